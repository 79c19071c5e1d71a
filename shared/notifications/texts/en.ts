import type { Texts } from './language.ts';

const GREETING = 'Hello{% if name %} {{ name }}{% endif %},\n\n';
const JOBS = '{% if count == 1 %}a print job{% else %}{{ count }} print jobs{% endif %}';
const DETAILS = '{% if details %} ({{ details }}){% endif %}';

/** Words in which the variants of English differ. */
export interface EnglishWords {
  readonly apologize: string;
  readonly canceled: string;
  readonly email: string;
  readonly parcel: string;
  /** Past participle. */
  readonly dispatched: string;
  /** Infinitive after “expected to”. */
  readonly toDispatch: string;
  /** Before “date” and “notification”. */
  readonly dispatch: string;
}

/** English texts with the words of a variant. */
export function english(words: EnglishWords): Texts {
  const { apologize, canceled, email, parcel, dispatched, toDispatch, dispatch } = words;
  const parcels = `${parcel}s`;
  const closing = `{% if brand.reply_to %}Questions? Just reply to this ${email}.\n\n{% endif %}Thank you,\n{{ brand.name }}`;
  const notDispatched = `{% if group %}${JOBS.replace('a print', 'A print')} of your order {{ order }} {{ count | plural: "has", "have" }} not been ${dispatched} yet{% else %}Your order {{ order }} has not been ${dispatched} yet{% endif %}`;
  const onWay = `{% if group %}${JOBS.replace('a print', 'A print')} of your order {{ order }} {{ count | plural: "is on its", "are on their" }} way{% else %}Your order {{ order }} is on its way{% endif %}`;
  const newDate = `{% if date_due %}Your order {{ order }} is now expected to ${toDispatch} by {{ date_due }}{% else %}New ${dispatch} dates for your order {{ order }}{% endif %}`;
  const cancelled = `{% if group %}${JOBS.replace('a print', 'A print')} of your order {{ order }} {{ count | plural: "seems", "seem" }} to be ${canceled}{% else %}Your order {{ order }} seems to be ${canceled}{% endif %}`;
  const reinstated = `{% if group %}${JOBS.replace('a print', 'A print')} of your order {{ order }} {{ count | plural: "is", "are" }} not ${canceled}{% else %}Your order {{ order }} is not ${canceled}{% endif %}`;
  return {
    labels: {
      job: (jobNumber) => `Job ${jobNumber}`,
      parcels: (first, last, of) => {
        if (of === 1) return `Your ${parcel}`;
        return first === last
          ? `${toTitle(parcel)} ${first} of ${of}`
          : `${toTitle(parcels)} ${first} to ${last} of ${of}`;
      },
      track: (number, carrier) =>
        `Track ${number ?? `this ${parcel}`}${carrier === null ? '' : ` with ${carrier}`}`,
      trackingNumber: (number) => `Tracking number: ${number}`,
      contents: (count) => (count === 1 ? `In this ${parcel}` : `In these ${parcels}`),
      untracked: 'No tracking number yet',
      noTracking: 'No tracking number yet',
      more: (jobs) => `and ${jobs} more`,
      dispatchedOn: (day) => `${toTitle(dispatched)} on ${day}`,
      newDueDate: (to, from) => {
        if (to === null) return `No ${dispatch} date (previously ${from})`;
        return `Expected to ${toDispatch} by ${to}${from === null ? '' : ` (previously ${from})`}`;
      },
      footerReason: (brand) =>
        `You’re receiving this ${email} because ${brand} sends you updates about your orders.`,
      unsubscribe: 'Unsubscribe',
      colon: ':',
    },
    email: {
      dispatched: {
        subject: onWay,
        preheader: `{{ count }} print {{ count | plural: "job", "jobs" }}{% if parcel_count > 0 and untracked.size == 0 %} in {{ parcel_count }} {{ parcel_count | plural: "${parcel}", "${parcels}" }}{% endif %}{% if date_out %}, ${dispatched} on {{ date_out }}{% endif %}.`,
        intro: `${GREETING}{% if count == 1 %}Your print job was{% else %}{{ count }} print jobs were{% endif %} ${dispatched}{% if parcel_count > 1 and untracked.size == 0 %} in {{ parcel_count }} ${parcels}{% endif %}{% if date_out %} on {{ date_out }}{% endif %}.`,
        outro: `{% if link_count > 0 %}It can take a few hours before the carrier shows the location of {{ link_count | plural: "your ${parcel}", "your ${parcels}" }}.{% endif %}\n\n${closing}`,
      },
      tracking: {
        subject: 'Tracking is now available for your order {{ order }}',
        preheader: `{{ parcel_count }} {{ parcel_count | plural: "${parcel}", "${parcels}" }} with {{ count }} print {{ count | plural: "job", "jobs" }}.`,
        intro: `${GREETING}You can now track {% if count == 1 %}a print job that is on its way{% else %}{{ count }} print jobs that are on their way{% endif %} to you.`,
        outro: closing,
      },
      dispatch_revoked: {
        subject: notDispatched,
        preheader: `Our ${dispatch} notification was sent too early. We ${apologize}.`,
        intro: `${GREETING}We notified you that {% if count == 1 %}this print job was{% else %}these {{ count }} print jobs were{% endif %} ${dispatched}. That was too early: {{ count | plural: "it has", "they have" }} not been ${dispatched} yet. We ${apologize} for the confusion.`,
        outro: closing,
      },
      due_date_changed: {
        subject: newDate,
        preheader:
          '{% if date_due and former_date_due %}Previously {{ former_date_due }}.{% else %}This concerns {{ count }} print {{ count | plural: "job", "jobs" }}.{% endif %}',
        intro: `${GREETING}The expected ${dispatch} date of {% if count == 1 %}your print job{% else %}{{ count }} print jobs{% endif %} changed{% if date_due and former_date_due %} from {{ former_date_due }} to {{ date_due }}{% elsif date_due %} to {{ date_due }}{% endif %}.`,
        outro: closing,
      },
      cancelled: {
        subject: cancelled,
        preheader: 'If you did not expect this, please contact us.',
        intro: `${GREETING}{% if count == 1 %}This print job is{% else %}These {{ count }} print jobs are{% endif %} no longer listed in production. It seems that {{ count | plural: "it was", "they were" }} ${canceled}.`,
        outro: `If you did not expect this, please contact us.\n\n${closing}`,
      },
      reinstated: {
        subject: reinstated,
        preheader: `Our cancellation notification was wrong. We ${apologize}.`,
        intro: `${GREETING}We notified you that {% if count == 1 %}this print job seemed{% else %}these {{ count }} print jobs seemed{% endif %} to be ${canceled}. That was wrong: {{ count | plural: "it is", "they are" }} listed in production again. We ${apologize} for the confusion.`,
        outro: closing,
      },
      note: {
        subject: 'About your order {{ order }}',
        preheader: '{{ note_text }}',
        intro: `${GREETING}{{ note_text }}`,
        outro: closing,
      },
    },
    sms: {
      dispatched: {
        text: `{{ brand.name }}: {% if group %}${JOBS.replace('a print', 'A print')} of your order {{ order }}${DETAILS} {{ count | plural: "is on its", "are on their" }} way{% else %}Your order {{ order }}${DETAILS} is on its way{% endif %}{% if parcel_count > 1 %} in {{ parcel_count }} ${parcels}{% endif %}.{% if tracking %} Tracking: {{ tracking }}{% endif %}`,
      },
      tracking: {
        text: `{{ brand.name }}: Tracking is now available for your order {{ order }}${DETAILS}{% if tracking %}: {{ tracking }}{% else %}.{% endif %}`,
      },
      dispatch_revoked: {
        text: `{{ brand.name }}: Our ${dispatch} message was sent too early. ${notDispatched}${DETAILS}.`,
      },
      due_date_changed: {
        text: `{{ brand.name }}: {% if date_due %}Your order {{ order }}${DETAILS} is now expected to ${toDispatch} by {{ date_due }}{% if former_date_due %} (previously {{ former_date_due }}){% endif %}{% else %}The ${dispatch} dates of your order {{ order }}${DETAILS} changed{% endif %}.`,
      },
      cancelled: {
        text: `{{ brand.name }}: ${cancelled}${DETAILS}. Not expected? Please contact us.`,
      },
      reinstated: {
        text: `{{ brand.name }}: Our cancellation message was wrong. ${reinstated}${DETAILS}.`,
      },
      note: {
        text: '{{ brand.name }}{% if order %}, {{ order }}{% endif %}: {{ note_text }}',
      },
    },
  };
}

function toTitle(word: string): string {
  return `${word.charAt(0).toUpperCase()}${word.slice(1)}`;
}
