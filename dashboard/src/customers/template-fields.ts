/** Fields and variables of templates, as documented in docs/notifications.md. */
import { ApiError, type Template } from '../../../client/index.ts';
import type { Channel } from '../../../shared/notifications/types.ts';
import { toErrorMessage } from '../api.ts';

/** A field of a template. */
export interface TemplateField {
  readonly name: string;
  readonly label: string;
  readonly description: string;
  /** Initial height of the input in rows. */
  readonly rows: number;
  /** For fields that replace the layout: the initial text of a custom version. */
  readonly initialText?: string;
}

export const templateFields: Readonly<Record<Channel, readonly TemplateField[]>> = {
  email: [
    { name: 'subject', label: 'Subject', description: 'One line.', rows: 1 },
    {
      name: 'preheader',
      label: 'Preheader',
      description: 'Shown next to the subject in mailboxes.',
      rows: 2,
    },
    { name: 'heading', label: 'Heading', description: 'Above the intro. Default: the subject.', rows: 1 },
    {
      name: 'intro',
      label: 'Intro',
      description: 'Above the parcels. An empty line starts a new paragraph.',
      rows: 5,
    },
    { name: 'outro', label: 'Outro', description: 'Below the parcels. Can be empty.', rows: 3 },
    {
      name: 'html',
      label: 'HTML',
      description: 'A complete HTML document that replaces the layout. Must contain {{ unsubscribe_url }}.',
      rows: 10,
      initialText:
        '<!doctype html>\n<html lang="{{ locale }}">\n<body>\n<h1>{{ order }}</h1>\n<p>{{ count }} {{ count | plural: "job", "jobs" }}</p>\n<p><a href="{{ unsubscribe_url }}">Unsubscribe</a></p>\n</body>\n</html>\n',
    },
    {
      name: 'text',
      label: 'Text version',
      description:
        'The complete text version, which replaces the layout. Must contain {{ unsubscribe_url }}.',
      rows: 8,
      initialText:
        '{{ order }}\n\n{% for parcel in parcels %}{{ parcel.number }}: {{ parcel.link }}\n{% endfor %}\nUnsubscribe: {{ unsubscribe_url }}\n',
    },
  ],
  sms: [{ name: 'text', label: 'Text', description: 'At most two segments.', rows: 4 }],
};

/** Descriptions of the variables of all channels, by name. */
const COMMON_VARIABLES = {
  order:
    'Order group, otherwise order number, otherwise job number. Empty if the jobs have none of these in common',
  group: 'Order group. May be empty',
  name: 'Name of the recipient. May be empty',
  brand: 'Branding: name, website, logo, color, color_text (white or black) and footer (lines)',
  count: 'Number of jobs',
  jobs: 'Each with label, number, order_number, description, date_out, date_due, former_date_due, note and parcels',
  parcel_count: 'Number of parcels',
  link_count: 'Number of parcels with a link',
  parcels: 'Each with number and link. One of them may be empty',
  shipments: 'Groups of parcels with the same jobs: parcels and jobs',
  untracked: 'Jobs without tracking',
  date_out: 'Formatted dispatch date. Empty if it is not the same for all jobs',
  date_due: 'Formatted due date',
  former_date_due: 'Formatted previous due date, if it changed',
  kind: 'Kind of the message, such as dispatched or tracking',
  locale: 'Locale of the recipient, such as en-GB',
  unsubscribe_url: 'URL of the unsubscribe page. Required in a custom HTML or text version',
};
/** Further variables of SMS. */
const SMS_VARIABLES = {
  details: 'Description of a single job, or the order numbers of several, if they fit',
  tracking: 'Tracking links or numbers, as many as fit',
};

/** Descriptions of the variables of each channel, by name. */
export const templateVariables: Readonly<Record<Channel, Readonly<Record<string, string>>>> = {
  email: COMMON_VARIABLES,
  sms: { ...COMMON_VARIABLES, ...SMS_VARIABLES },
};

export type { Template };
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
  const message = toErrorMessage(cause);
  const named = cause instanceof ApiError ? cause.field : undefined;
  if (named === undefined) return { field: undefined, message };
  const rest = message.startsWith(`${named} `) ? `It ${message.slice(named.length + 1)}` : message;
  return { field: named.replace(/^template\./, ''), message: rest };
}
