/** What can be written in a template: its fields and variables, as docs/notifications.md has them. */
import type * as z from 'zod';
import type * as views from '../../../shared/api/notification-views.ts';
import type { Channel } from '../../../shared/notifications/types.ts';
import { ApiError, toErrorMessage } from '../api.ts';

/** A field of a template. */
export interface TemplateField {
  readonly name: string;
  readonly label: string;
  readonly description: string;
  /** How much room it has at first. */
  readonly rows: number;
  /** Of what takes the place of the layout: what it begins with when it is written anew. */
  readonly initialText?: string;
  /** May be empty, which then means nothing. */
  readonly optional?: boolean;
}

export const templateFields: Readonly<Record<Channel, readonly TemplateField[]>> = {
  email: [
    { name: 'subject', label: 'Subject', description: 'One line.', rows: 1 },
    {
      name: 'preheader',
      label: 'Preheader',
      description: 'What mailboxes show beside the subject.',
      rows: 2,
      optional: true,
    },
    {
      name: 'heading',
      label: 'Heading',
      description: 'Stands above the mail; the subject where it is empty.',
      rows: 1,
      optional: true,
    },
    {
      name: 'intro',
      label: 'Intro',
      description: 'Above the parcels. An empty line begins a new paragraph.',
      rows: 5,
      optional: true,
    },
    {
      name: 'outro',
      label: 'Outro',
      description: 'Below the parcels; empty for nothing.',
      rows: 3,
      optional: true,
    },
    {
      name: 'html',
      label: 'HTML',
      description: 'A whole HTML document in place of the layout. It has to show {{ unsubscribe_url }}.',
      rows: 10,
      initialText:
        '<!doctype html>\n<html lang="{{ locale }}">\n<body>\n<h1>{{ order }}</h1>\n<p>{{ count }} {{ count | plural: "job", "jobs" }}</p>\n<p><a href="{{ unsubscribe_url }}">Unsubscribe</a></p>\n</body>\n</html>\n',
    },
    {
      name: 'text',
      label: 'Text version',
      description: 'The whole text version in place of the layout. It has to show {{ unsubscribe_url }}.',
      rows: 8,
      initialText:
        '{{ order }}\n\n{% for parcel in parcels %}{{ parcel.number }}: {{ parcel.link }}\n{% endfor %}\nUnsubscribe: {{ unsubscribe_url }}\n',
    },
  ],
  sms: [{ name: 'text', label: 'Text', description: 'It must come out in at most two segments.', rows: 4 }],
};

/** A variable of a template, and what it stands for. */
export interface TemplateVariable {
  readonly name: string;
  readonly description: string;
  /** Of SMS alone. */
  readonly channel?: Channel;
}

export const templateVariables: readonly TemplateVariable[] = [
  {
    name: 'order',
    description:
      'What customers call it: the order group, else the order number, else the job number; empty if the jobs have nothing in common',
  },
  { name: 'group', description: 'The order group, or nothing' },
  { name: 'name', description: 'The recipient’s name, or nothing' },
  {
    name: 'brand',
    description: 'With name, website, logo, color, color_text (white or black) and footer (lines)',
  },
  { name: 'count', description: 'How many jobs' },
  {
    name: 'jobs',
    description:
      'Each with label, number, order_number, description, date_out, date_due, former_date_due, note and parcels',
  },
  { name: 'parcel_count', description: 'How many parcels' },
  { name: 'link_count', description: 'How many of them have a link' },
  { name: 'parcels', description: 'Each with number and link, of which one may be nothing' },
  { name: 'shipments', description: 'Parcels that hold the same jobs, with these: parcels and jobs' },
  { name: 'untracked', description: 'The jobs without tracking' },
  {
    name: 'date_out',
    description: 'When they were dispatched, in words; nothing where it is not the same for all',
  },
  { name: 'date_due', description: 'The due date, in words' },
  { name: 'former_date_due', description: 'The due date as it was, where it moved' },
  { name: 'kind', description: 'What the message is about: dispatched, tracking and so on' },
  { name: 'locale', description: 'The recipient’s language: en-GB and so on' },
  {
    name: 'unsubscribe_url',
    description: 'Leads to where one unsubscribes; has to be in an HTML or text version of one’s own',
  },
  {
    name: 'details',
    description: 'The description of a job, or the order numbers of several, if there is room',
    channel: 'sms',
  },
  { name: 'tracking', description: 'Links, or numbers, as many as there is room for', channel: 'sms' },
];

export type Template = z.infer<typeof views.Template>;
export type TemplateKey = Pick<Template, 'kind' | 'channel' | 'locale'>;
/** The text of a template, by field; a field that is absent has the default text. */
export type TemplateText = Readonly<Record<string, string>>;

/** An error in a template: the message, and the field it is about. */
export interface TemplateError {
  readonly field: string | undefined;
  readonly message: string;
}

/** Returns the error and its field. The API names the field; in a preview it is a part of the request. */
export function toTemplateError(cause: unknown): TemplateError {
  const sentence = toErrorMessage(cause);
  const named = cause instanceof ApiError ? cause.field : undefined;
  if (named === undefined) return { field: undefined, message: sentence };
  const rest = sentence.startsWith(`${named} `) ? `It ${sentence.slice(named.length + 1)}` : sentence;
  return { field: named.replace(/^template\./, ''), message: rest };
}
