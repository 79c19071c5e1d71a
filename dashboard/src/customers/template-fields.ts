/** What can be written in a template: its fields and variables, as docs/notifications.md has them. */
import type * as z from 'zod';
import type * as views from '../../../shared/api/notification-views.ts';
import type { Channel } from '../../../shared/notifications/types.ts';
import { ApiError, sentenceOf } from '../api.ts';

/** A field of a template. */
export interface TemplateField {
  readonly name: string;
  readonly label: string;
  readonly about: string;
  /** How much room it has at first. */
  readonly rows: number;
  /** Of what takes the place of the layout: what it begins with when it is written anew. */
  readonly begins?: string;
  /** May be empty, which then means nothing. */
  readonly mayBeEmpty?: boolean;
}

export const templateFields: Readonly<Record<Channel, readonly TemplateField[]>> = {
  email: [
    { name: 'subject', label: 'Subject', about: 'One line.', rows: 1 },
    {
      name: 'preheader',
      label: 'Preheader',
      about: 'What mailboxes show beside the subject.',
      rows: 2,
      mayBeEmpty: true,
    },
    {
      name: 'heading',
      label: 'Heading',
      about: 'Stands above the mail; the subject where it is empty.',
      rows: 1,
      mayBeEmpty: true,
    },
    {
      name: 'intro',
      label: 'Intro',
      about: 'Above the parcels. An empty line begins a new paragraph.',
      rows: 5,
      mayBeEmpty: true,
    },
    {
      name: 'outro',
      label: 'Outro',
      about: 'Below the parcels; empty for nothing.',
      rows: 3,
      mayBeEmpty: true,
    },
    {
      name: 'html',
      label: 'HTML',
      about: 'A whole HTML document in place of the layout. It has to show {{ unsubscribe_url }}.',
      rows: 10,
      begins:
        '<!doctype html>\n<html lang="{{ locale }}">\n<body>\n<h1>{{ order }}</h1>\n<p>{{ count }} {{ count | plural: "job", "jobs" }}</p>\n<p><a href="{{ unsubscribe_url }}">Unsubscribe</a></p>\n</body>\n</html>\n',
    },
    {
      name: 'text',
      label: 'Text version',
      about: 'The whole text version in place of the layout. It has to show {{ unsubscribe_url }}.',
      rows: 8,
      begins:
        '{{ order }}\n\n{% for parcel in parcels %}{{ parcel.number }}: {{ parcel.link }}\n{% endfor %}\nUnsubscribe: {{ unsubscribe_url }}\n',
    },
  ],
  sms: [{ name: 'text', label: 'Text', about: 'It must come out in at most two segments.', rows: 4 }],
};

/** A variable of a template, and what it stands for. */
export interface TemplateVariable {
  readonly name: string;
  readonly about: string;
  /** Of SMS alone. */
  readonly only?: Channel;
}

export const templateVariables: readonly TemplateVariable[] = [
  {
    name: 'order',
    about:
      'What customers call it: the order group, else the order number, else the job number; empty if the jobs have nothing in common',
  },
  { name: 'group', about: 'The order group, or nothing' },
  { name: 'name', about: 'The recipient’s name, or nothing' },
  { name: 'brand', about: 'With name, website, logo, color, color_text (white or black) and footer (lines)' },
  { name: 'count', about: 'How many jobs' },
  {
    name: 'jobs',
    about:
      'Each with label, number, order_number, description, date_out, date_due, former_date_due, note and parcels',
  },
  { name: 'parcel_count', about: 'How many parcels' },
  { name: 'link_count', about: 'How many of them have a link' },
  { name: 'parcels', about: 'Each with number and link, of which one may be nothing' },
  { name: 'shipments', about: 'Parcels that hold the same jobs, with these: parcels and jobs' },
  { name: 'untracked', about: 'The jobs without tracking' },
  {
    name: 'date_out',
    about: 'When they were dispatched, in words; nothing where it is not the same for all',
  },
  { name: 'date_due', about: 'The due date, in words' },
  { name: 'former_date_due', about: 'The due date as it was, where it moved' },
  { name: 'kind', about: 'What the message is about: dispatched, tracking and so on' },
  { name: 'locale', about: 'The recipient’s language: en-GB and so on' },
  {
    name: 'unsubscribe_url',
    about: 'Leads to where one unsubscribes; has to be in an HTML or text version of one’s own',
  },
  {
    name: 'details',
    about: 'The description of a job, or the order numbers of several, if there is room',
    only: 'sms',
  },
  { name: 'tracking', about: 'Links, or numbers, as many as there is room for', only: 'sms' },
];

export type Template = z.infer<typeof views.Template>;
export type Place = Pick<Template, 'kind' | 'channel' | 'locale'>;
/** The text of a template, by field; a field that is absent has the default text. */
export type Written = Readonly<Record<string, string>>;

/** An error in a template: the message, and the field it is about. */
export interface Fault {
  readonly field: string | undefined;
  readonly sentence: string;
}

/** Returns the error and its field. The API names the field; in a preview it is a part of the request. */
export function faultOf(cause: unknown): Fault {
  const sentence = sentenceOf(cause);
  const named = cause instanceof ApiError ? cause.field : undefined;
  if (named === undefined) return { field: undefined, sentence };
  const rest = sentence.startsWith(`${named} `) ? `It ${sentence.slice(named.length + 1)}` : sentence;
  return { field: named.replace(/^template\./, ''), sentence: rest };
}
