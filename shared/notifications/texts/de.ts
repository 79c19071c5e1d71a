import type { Texts } from './language.ts';

const GREETING = 'Guten Tag{% if name %} {{ name }}{% endif %},\n\n';
const JOBS = '{% if count == 1 %}Ein Druckauftrag{% else %}{{ count }} Druckaufträge{% endif %}';
const DETAILS = '{% if details %} ({{ details }}){% endif %}';
const CLOSING =
  '{% if brand.reply_to %}Fragen? Antworten Sie einfach auf diese E-Mail.\n\n{% endif %}Freundliche Grüße\n{{ brand.name }}';
const NOT_DISPATCHED = `{% if group %}${JOBS} Ihrer Bestellung {{ order }} {{ count | plural: "wurde", "wurden" }} noch nicht versandt{% else %}Ihre Bestellung {{ order }} wurde noch nicht versandt{% endif %}`;
const ON_WAY = `{% if group %}${JOBS} Ihrer Bestellung {{ order }} {{ count | plural: "ist", "sind" }} unterwegs{% else %}Ihre Bestellung {{ order }} ist unterwegs{% endif %}`;
const NEW_DATE =
  '{% if date_due %}Neuer Versandtermin für Ihre Bestellung {{ order }}: {{ date_due }}{% else %}Neue Versandtermine für Ihre Bestellung {{ order }}{% endif %}';
const CANCELLED = `{% if group %}${JOBS} Ihrer Bestellung {{ order }} {{ count | plural: "wurde", "wurden" }} offenbar storniert{% else %}Ihre Bestellung {{ order }} wurde offenbar storniert{% endif %}`;
const REINSTATED = `{% if group %}${JOBS} Ihrer Bestellung {{ order }} {{ count | plural: "ist", "sind" }} nicht storniert{% else %}Ihre Bestellung {{ order }} ist nicht storniert{% endif %}`;

/** German texts, in the formal address. */
export const german: Texts = {
  labels: {
    job: (jobNumber) => `Auftrag ${jobNumber}`,
    parcels: (first, last, of) => {
      if (of === 1) return 'Ihr Paket';
      return first === last ? `Paket ${first} von ${of}` : `Pakete ${first} bis ${last} von ${of}`;
    },
    track: (number, carrier) => `${number ?? 'Paket'}${carrier === null ? '' : ` bei ${carrier}`} verfolgen`,
    trackingNumber: (number) => `Sendungsnummer: ${number}`,
    contents: (parcels) => (parcels === 1 ? 'In diesem Paket' : 'In diesen Paketen'),
    untracked: 'Noch keine Sendungsnummer',
    noTracking: 'Noch keine Sendungsnummer',
    more: (jobs) => `und ${jobs} weitere`,
    dispatchedOn: (day) => `Versandt am ${day}`,
    newDueDate: (to, from) => {
      if (to === null) return `Kein Versandtermin (bisher ${from})`;
      return `Versand voraussichtlich bis ${to}${from === null ? '' : ` (bisher ${from})`}`;
    },
    footerReason: (brand) =>
      `Sie erhalten diese E-Mail, weil ${brand} Sie über Ihre Bestellungen informiert.`,
    unsubscribe: 'Abbestellen',
    colon: ':',
  },
  email: {
    dispatched: {
      subject: ON_WAY,
      preheader:
        '{{ count }} {{ count | plural: "Druckauftrag", "Druckaufträge" }}{% if parcel_count > 0 and untracked.size == 0 %} in {{ parcel_count }} {{ parcel_count | plural: "Paket", "Paketen" }}{% endif %}{% if date_out %}, versandt am {{ date_out }}{% endif %}.',
      intro: `${GREETING}{% if count == 1 %}Ihr Druckauftrag wurde{% else %}{{ count }} Druckaufträge wurden{% endif %}{% if date_out %} am {{ date_out }},{% endif %}{% if parcel_count > 1 and untracked.size == 0 %} in {{ parcel_count }} Paketen{% endif %} versandt.`,
      outro:
        '{% if link_count > 0 %}Es kann einige Stunden dauern, bis der Paketdienst anzeigt, wo {{ link_count | plural: "sich Ihr Paket befindet", "sich Ihre Pakete befinden" }}.{% endif %}\n\n' +
        CLOSING,
    },
    tracking: {
      subject: 'Sendungsverfolgung für Ihre Bestellung {{ order }} verfügbar',
      preheader:
        '{{ parcel_count }} {{ parcel_count | plural: "Paket", "Pakete" }} mit {{ count }} {{ count | plural: "Druckauftrag", "Druckaufträgen" }}.',
      intro: `${GREETING}für {% if count == 1 %}einen Druckauftrag, der{% else %}{{ count }} Druckaufträge, die{% endif %} zu Ihnen unterwegs {{ count | plural: "ist", "sind" }}, ist die Sendungsverfolgung jetzt verfügbar.`,
      outro: CLOSING,
    },
    dispatch_revoked: {
      subject: NOT_DISPATCHED,
      preheader: 'Wir hatten den Versand zu früh gemeldet. Wir bitten um Entschuldigung.',
      intro: `${GREETING}wir hatten Ihnen mitgeteilt, dass {% if count == 1 %}dieser Druckauftrag{% else %}diese {{ count }} Druckaufträge{% endif %} versandt {{ count | plural: "wurde", "wurden" }}. Das war zu früh: {{ count | plural: "Er wurde", "Sie wurden" }} noch nicht versandt. Bitte entschuldigen Sie die Verwirrung.`,
      outro: CLOSING,
    },
    due_date_changed: {
      subject: NEW_DATE,
      preheader:
        '{% if date_due and former_date_due %}Bisher: {{ former_date_due }}.{% else %}Betrifft {{ count }} {{ count | plural: "Druckauftrag", "Druckaufträge" }}.{% endif %}',
      intro: `${GREETING}der voraussichtliche Versandtermin {% if count == 1 %}Ihres Druckauftrags{% else %}von {{ count }} Druckaufträgen{% endif %} hat sich geändert{% if date_due and former_date_due %}: {{ date_due }} statt {{ former_date_due }}{% elsif date_due %}: {{ date_due }}{% endif %}.`,
      outro: CLOSING,
    },
    cancelled: {
      subject: CANCELLED,
      preheader: 'Wenn Sie das nicht erwartet haben, melden Sie sich bitte bei uns.',
      intro: `${GREETING}{% if count == 1 %}dieser Druckauftrag wird{% else %}diese {{ count }} Druckaufträge werden{% endif %} in der Produktion nicht mehr geführt und {{ count | plural: "wurde", "wurden" }} offenbar storniert.`,
      outro: `Wenn Sie das nicht erwartet haben, melden Sie sich bitte bei uns.\n\n${CLOSING}`,
    },
    reinstated: {
      subject: REINSTATED,
      preheader: 'Wir hatten irrtümlich eine Stornierung gemeldet. Wir bitten um Entschuldigung.',
      intro: `${GREETING}wir hatten Ihnen mitgeteilt, dass {% if count == 1 %}dieser Druckauftrag{% else %}diese {{ count }} Druckaufträge{% endif %} offenbar storniert {{ count | plural: "wurde", "wurden" }}. Das war ein Irrtum: {{ count | plural: "Er wird", "Sie werden" }} in der Produktion wieder geführt. Bitte entschuldigen Sie die Verwirrung.`,
      outro: CLOSING,
    },
    note: {
      subject: 'Zu Ihrer Bestellung {{ order }}',
      preheader: '{{ note_text }}',
      intro: `${GREETING}{{ note_text }}`,
      outro: CLOSING,
    },
  },
  sms: {
    dispatched: {
      text: `{{ brand.name }}: {% if group %}${JOBS} Ihrer Bestellung {{ order }}${DETAILS} {{ count | plural: "ist", "sind" }}{% else %}Ihre Bestellung {{ order }}${DETAILS} ist{% endif %}{% if parcel_count > 1 %} in {{ parcel_count }} Paketen{% endif %} unterwegs.{% if tracking %} Verfolgen: {{ tracking }}{% endif %}`,
    },
    tracking: {
      text: `{{ brand.name }}: Sendungsverfolgung für Ihre Bestellung {{ order }}${DETAILS}{% if tracking %}: {{ tracking }}{% else %} ist verfügbar.{% endif %}`,
    },
    dispatch_revoked: {
      text: `{{ brand.name }}: Unsere Versandmeldung kam zu früh. ${NOT_DISPATCHED}${DETAILS}.`,
    },
    due_date_changed: {
      text: `{{ brand.name }}: {% if date_due %}Neuer Versandtermin für Ihre Bestellung {{ order }}${DETAILS}: {{ date_due }}{% if former_date_due %} (bisher {{ former_date_due }}){% endif %}{% else %}Die Versandtermine Ihrer Bestellung {{ order }}${DETAILS} haben sich geändert.{% endif %}`,
    },
    cancelled: {
      text: `{{ brand.name }}: ${CANCELLED}${DETAILS}. Nicht erwartet? Bitte melden Sie sich bei uns.`,
    },
    reinstated: {
      text: `{{ brand.name }}: Unsere Stornierungsmeldung war ein Irrtum. ${REINSTATED}${DETAILS}.`,
    },
    note: {
      text: '{{ brand.name }}{% if order %}, {{ order }}{% endif %}: {{ note_text }}',
    },
  },
};
