import type { Texts } from './language.ts';

const GREETING = 'Bonjour{% if name %} {{ name }}{% endif %},\n\n';
const JOBS = '{% if count == 1 %}Un article{% else %}{{ count }} articles{% endif %}';
const DETAILS = '{% if details %} ({{ details }}){% endif %}';
const CLOSING =
  '{% if brand.reply_to %}Une question\u00a0? Répondez simplement à cet e-mail.\n\n{% endif %}Cordialement,\n{{ brand.name }}';
const NOT_DISPATCHED = `{% if group %}${JOBS} de votre commande {{ order }} {{ count | plural: "n’a pas encore été expédié", "n’ont pas encore été expédiés" }}{% else %}Votre commande {{ order }} n’a pas encore été expédiée{% endif %}`;
const ON_WAY = `{% if group %}${JOBS} de votre commande {{ order }} {{ count | plural: "est", "sont" }} en route{% else %}Votre commande {{ order }} est en route{% endif %}`;
const NEW_DATE =
  '{% if date_due %}Nouvelle date d’expédition pour votre commande {{ order }}\u00a0: {{ date_due }}{% else %}Nouvelles dates d’expédition pour votre commande {{ order }}{% endif %}';
const CANCELLED = `{% if group %}${JOBS} de votre commande {{ order }} {{ count | plural: "semble annulé", "semblent annulés" }}{% else %}Votre commande {{ order }} semble annulée{% endif %}`;
const REINSTATED = `{% if group %}${JOBS} de votre commande {{ order }} {{ count | plural: "n’est pas annulé", "ne sont pas annulés" }}{% else %}Votre commande {{ order }} n’est pas annulée{% endif %}`;

/** French texts, in the formal address. A colon is preceded by a non-breaking space. */
export const french: Texts = {
  labels: {
    job: (jobNumber) => `Article ${jobNumber}`,
    parcels: (first, last, of) => {
      if (of === 1) return 'Votre colis';
      return first === last ? `Colis ${first} sur ${of}` : `Colis ${first} à ${last} sur ${of}`;
    },
    track: (number, carrier) => `Suivre ${number ?? 'ce colis'}${carrier === null ? '' : ` chez ${carrier}`}`,
    trackingNumber: (number) => `Numéro de suivi\u00a0: ${number}`,
    contents: (parcels) => (parcels === 1 ? 'Dans ce colis' : 'Dans ces colis'),
    untracked: 'Pas encore de numéro de suivi',
    noTracking: 'Pas encore de numéro de suivi',
    more: (jobs) => (jobs === 1 ? 'et 1 autre' : `et ${jobs} autres`),
    dispatchedOn: (day) => `Expédié le ${day}`,
    newDueDate: (to, from) => {
      if (to === null) return `Aucune date d’expédition (auparavant ${from})`;
      return `Expédition prévue d’ici au ${to}${from === null ? '' : ` (auparavant ${from})`}`;
    },
    footerReason: (brand) => `Vous recevez cet e-mail, car ${brand} vous informe de l’état de vos commandes.`,
    unsubscribe: 'Se désabonner',
    colon: '\u00a0:',
  },
  email: {
    dispatched: {
      subject: ON_WAY,
      preheader:
        '{{ count }} {{ count | plural: "article", "articles" }}{% if parcel_count > 0 and untracked.size == 0 %} en {{ parcel_count }} colis{% endif %}{% if date_out %}, {{ count | plural: "expédié", "expédiés" }} le {{ date_out }}{% endif %}.',
      intro: `${GREETING}{% if count == 1 %}Votre article a été expédié{% else %}{{ count }} articles ont été expédiés{% endif %}{% if parcel_count > 1 and untracked.size == 0 %} en {{ parcel_count }} colis{% endif %}{% if date_out %} le {{ date_out }}{% endif %}.`,
      outro:
        '{% if link_count > 0 %}Quelques heures peuvent s’écouler avant que le transporteur n’indique où {{ link_count | plural: "se trouve votre colis", "se trouvent vos colis" }}.{% endif %}\n\n' +
        CLOSING,
    },
    tracking: {
      subject: 'Le suivi de votre commande {{ order }} est disponible',
      preheader: '{{ parcel_count }} colis avec {{ count }} {{ count | plural: "article", "articles" }}.',
      intro: `${GREETING}Vous pouvez désormais suivre {% if count == 1 %}un article qui est{% else %}{{ count }} articles qui sont{% endif %} en route vers vous.`,
      outro: CLOSING,
    },
    dispatch_revoked: {
      subject: NOT_DISPATCHED,
      preheader: 'Nous vous avons annoncé l’expédition trop tôt. Nous vous prions de nous en excuser.',
      intro: `${GREETING}Nous vous avons annoncé l’expédition {% if count == 1 %}de cet article{% else %}de ces {{ count }} articles{% endif %}. C’était trop tôt\u00a0: {{ count | plural: "il n’a pas encore été expédié", "ils n’ont pas encore été expédiés" }}. Veuillez nous excuser pour cette confusion.`,
      outro: CLOSING,
    },
    due_date_changed: {
      subject: NEW_DATE,
      preheader:
        '{% if date_due and former_date_due %}Date précédente\u00a0: {{ former_date_due }}.{% else %}Cela concerne {{ count }} {{ count | plural: "article", "articles" }}.{% endif %}',
      intro: `${GREETING}La date d’expédition prévue {% if count == 1 %}de votre article{% else %}de {{ count }} articles{% endif %} a changé{% if date_due and former_date_due %}\u00a0: le {{ date_due }} au lieu du {{ former_date_due }}{% elsif date_due %}\u00a0: le {{ date_due }}{% endif %}.`,
      outro: CLOSING,
    },
    cancelled: {
      subject: CANCELLED,
      preheader: 'Si vous ne vous y attendiez pas, veuillez nous contacter.',
      intro: `${GREETING}{% if count == 1 %}Cet article ne figure{% else %}Ces {{ count }} articles ne figurent{% endif %} plus parmi les articles en production et {{ count | plural: "semble annulé", "semblent annulés" }}.`,
      outro: `Si vous ne vous y attendiez pas, veuillez nous contacter.\n\n${CLOSING}`,
    },
    reinstated: {
      subject: REINSTATED,
      preheader: 'Nous vous avons annoncé une annulation par erreur. Nous vous prions de nous en excuser.',
      intro: `${GREETING}Nous vous avons annoncé que {% if count == 1 %}cet article semblait annulé{% else %}ces {{ count }} articles semblaient annulés{% endif %}. C’était une erreur\u00a0: {{ count | plural: "il figure", "ils figurent" }} de nouveau parmi les articles en production. Veuillez nous excuser pour cette confusion.`,
      outro: CLOSING,
    },
    note: {
      subject: 'À propos de votre commande {{ order }}',
      preheader: '{{ note_text }}',
      intro: `${GREETING}{{ note_text }}`,
      outro: CLOSING,
    },
  },
  sms: {
    dispatched: {
      text: `{{ brand.name }}\u00a0: {% if group %}${JOBS} de votre commande {{ order }}${DETAILS} {{ count | plural: "est", "sont" }} en route{% else %}votre commande {{ order }}${DETAILS} est en route{% endif %}{% if parcel_count > 1 %} en {{ parcel_count }} colis{% endif %}.{% if tracking %} Suivi\u00a0: {{ tracking }}{% endif %}`,
    },
    tracking: {
      text: `{{ brand.name }}\u00a0: suivi de votre commande {{ order }}${DETAILS}{% if tracking %}\u00a0: {{ tracking }}{% else %} disponible.{% endif %}`,
    },
    dispatch_revoked: {
      text: `{{ brand.name }}\u00a0: l’expédition a été annoncée par erreur. ${NOT_DISPATCHED}${DETAILS}.`,
    },
    due_date_changed: {
      text: `{{ brand.name }}\u00a0: {% if date_due %}nouvelle date d’expédition pour votre commande {{ order }}${DETAILS}\u00a0: {{ date_due }}{% if former_date_due %} (auparavant {{ former_date_due }}){% endif %}{% else %}les dates d’expédition de votre commande {{ order }}${DETAILS} ont changé.{% endif %}`,
    },
    cancelled: {
      text: `{{ brand.name }}\u00a0: ${CANCELLED.replace('Un article', 'un article').replace('Votre', 'votre')}${DETAILS}. Inattendu\u00a0? Contactez-nous.`,
    },
    reinstated: {
      text: `{{ brand.name }}\u00a0: l’annulation a été annoncée par erreur. ${REINSTATED}${DETAILS}.`,
    },
    note: {
      text: '{{ brand.name }}{% if order %}, {{ order }}{% endif %}\u00a0: {{ note_text }}',
    },
  },
};
