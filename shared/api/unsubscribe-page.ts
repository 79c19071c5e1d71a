/**
 * Page of the unsubscribe link: one button to unsubscribe, or one to subscribe again. HTML without scripts and external resources, in the
 * language of the reader.
 */
import { hash } from 'node:crypto';
import { html, raw } from 'hono/html';
import { parseAccept } from 'hono/utils/accept';
import type { Branding } from '../notifications/records.ts';
import { type Channel, type Locale, locales } from '../notifications/types.ts';

/** States of the page. */
export type UnsubscribeView =
  /** The address receives messages. The button unsubscribes. */
  | 'subscribed'
  /** The address is unsubscribed. The button subscribes again. */
  | 'unsubscribed'
  /** A user of the account entered the suppression. The link cannot remove it. */
  | 'unsubscribed by account'
  /** The address is not unsubscribed, but suppressed for another reason. The link cannot remove it. */
  | 'suppressed'
  /** The address was just subscribed again. */
  | 'resubscribed'
  /** The link is that of a preview or a test e-mail. */
  | 'preview'
  /** The link is invalid or expired. */
  | 'unknown';

/** Texts of each view. `{name}` is the sender. Hyphens are non-breaking. */
interface PageTexts {
  readonly subscribed: readonly [head: string, text: string, button: string];
  readonly unsubscribed: readonly [head: string, text: string, button: string];
  readonly 'unsubscribed by account': readonly [head: string, text: string];
  readonly suppressed: readonly [head: string, text: string];
  readonly resubscribed: readonly [head: string, text: string, button: string];
  readonly preview: readonly [head: string, text: string];
  readonly unknown: readonly [head: string, text: string];
}

const en = (channel: Channel): PageTexts => {
  const messages = channel === 'email' ? 'e\u2011mails' : 'text messages';
  const address = channel === 'email' ? 'address' : 'number';
  return {
    subscribed: [
      `Stop ${messages} from {name}?`,
      `Messages about your orders are sent to this ${address}. Use the button to unsubscribe.`,
      'Unsubscribe',
    ],
    unsubscribed: [
      'You are unsubscribed',
      `{name} no longer sends ${messages} to this ${address}. A message that was already sent may still arrive.`,
      'Subscribe again',
    ],
    'unsubscribed by account': [
      'You are unsubscribed',
      `{name} has recorded that no ${messages} are sent to this ${address}. To receive them again, contact {name}.`,
    ],
    suppressed: [
      `No ${messages} are sent to this ${address}`,
      `${channel === 'email' ? 'An earlier e\u2011mail was returned, or was marked as spam.' : 'The number has opted out of text messages, or an earlier text message could not be delivered.'} To receive ${messages} again, contact {name}.`,
    ],
    resubscribed: [
      'You are subscribed again',
      `{name} sends ${messages} about your orders to this ${address} again.`,
      'Unsubscribe',
    ],
    preview: [
      'This is the link of a preview',
      'In a message to a customer, this link opens the page to unsubscribe. In a preview or a test message, it changes nothing.',
    ],
    unknown: [
      'This link does not work',
      'The link is incomplete or has expired. Open it from the message again, or reply to the message.',
    ],
  };
};

const de = (channel: Channel): PageTexts => {
  const messages = channel === 'email' ? 'E\u2011Mails' : 'SMS';
  const address = channel === 'email' ? 'diese Adresse' : 'diese Nummer';
  return {
    subscribed: [
      `Keine ${messages} von {name} mehr?`,
      `Nachrichten zu Ihren Bestellungen gehen an ${address}. Mit der Schaltfläche unten melden Sie sich ab.`,
      'Abmelden',
    ],
    unsubscribed: [
      'Sie sind abgemeldet',
      `{name} schickt keine ${messages} mehr an ${address}. Eine bereits gesendete Nachricht kann noch ankommen.`,
      'Wieder anmelden',
    ],
    'unsubscribed by account': [
      'Sie sind abgemeldet',
      `{name} hat vermerkt, dass keine ${messages} mehr an ${address} gehen sollen. Wenn Sie wieder welche möchten, wenden Sie sich bitte an {name}.`,
    ],
    suppressed: [
      `An ${address} gehen keine ${messages}`,
      `${channel === 'email' ? 'Eine frühere E\u2011Mail kam zurück oder wurde als Spam gemeldet.' : 'Die Nummer hat SMS abbestellt, oder eine frühere SMS war nicht zustellbar.'} Wenn Sie wieder ${messages} möchten, wenden Sie sich bitte an {name}.`,
    ],
    resubscribed: [
      'Sie sind wieder angemeldet',
      `{name} schickt ${messages} zu Ihren Bestellungen wieder an ${address}.`,
      'Abmelden',
    ],
    preview: [
      'Dies ist der Link einer Vorschau',
      'In einer Nachricht an Kunden öffnet dieser Link die Seite zum Abmelden. In einer Vorschau oder Testnachricht ändert er nichts.',
    ],
    unknown: [
      'Dieser Link ist ungültig',
      'Der Link ist unvollständig oder abgelaufen. Öffnen Sie ihn noch einmal aus der Nachricht, oder antworten Sie darauf.',
    ],
  };
};

const fr = (channel: Channel): PageTexts => {
  const [some, none] =
    channel === 'email'
      ? (['des e\u2011mails', 'd’e\u2011mails'] as const)
      : (['des SMS', 'de SMS'] as const);
  const address = channel === 'email' ? 'cette adresse' : 'ce numéro';
  return {
    subscribed: [
      `Ne plus recevoir ${none} de {name}\u00a0?`,
      `Des messages au sujet de vos commandes sont envoyés à ${address}. Utilisez le bouton ci-dessous pour vous désabonner.`,
      'Se désabonner',
    ],
    unsubscribed: [
      'Désabonnement confirmé',
      `{name} n’envoie plus ${none} à ${address}. Un message déjà parti peut encore arriver.`,
      'Se réabonner',
    ],
    'unsubscribed by account': [
      'Désabonnement confirmé',
      `{name} a noté que ${address} ne doit plus recevoir ${none}. Pour en recevoir de nouveau, adressez-vous à {name}.`,
    ],
    suppressed: [
      `Aucun ${channel === 'email' ? 'e\u2011mail' : 'SMS'} n’est envoyé à ${address}`,
      `${channel === 'email' ? 'Un e\u2011mail précédent a été renvoyé ou signalé comme indésirable.' : 'Le numéro a refusé les SMS, ou un SMS précédent n’a pas pu être remis.'} Pour en recevoir de nouveau, adressez-vous à {name}.`,
    ],
    resubscribed: [
      'Abonnement rétabli',
      `{name} envoie de nouveau ${some} à ${address} au sujet de vos commandes.`,
      'Se désabonner',
    ],
    preview: [
      'Ceci est le lien d’un aperçu',
      'Dans un message à un client, ce lien ouvre la page de désabonnement. Dans un aperçu ou un message de test, il ne change rien.',
    ],
    unknown: [
      'Ce lien n’est pas valide',
      'Le lien est incomplet ou a expiré. Ouvrez-le de nouveau depuis le message, ou répondez-y.',
    ],
  };
};

const languages = { en, de, fr };

/** Name and values of the form's only field. */
export const CHOICE = 'choice';
export const choices = ['unsubscribe', 'subscribe'] as const;

/** Returns the page and its headers. */
export function unsubscribePage(
  view: UnsubscribeView,
  of: {
    readonly locale: Locale;
    /** Channel of the link's address. */
    readonly channel: Channel;
    /** Absent if the link is invalid. */
    readonly branding?: Pick<Branding, 'name' | 'color'> | undefined;
  },
): { readonly body: string; readonly headers: Readonly<Record<string, string>> } {
  const { locale, channel, branding } = of;
  const texts = languages[locale.slice(0, 2) as keyof typeof languages](channel);
  const [head, text, button] = texts[view];
  const name = String(html`<bdi>${branding?.name ?? ''}</bdi>`);
  const insertName = (text: string) => raw(text.replaceAll('{name}', () => name));
  const title = head.replace('{name}', () => branding?.name ?? '');
  const style = toStyle(branding?.color ?? '#3b4754');
  const choice = view === 'unsubscribed' ? 'subscribe' : 'unsubscribe';
  const body = html`<!doctype html>
<html lang="${locale}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
<meta name="color-scheme" content="light dark">
<title>${title}</title>
<link rel="icon" href="data:,">
<style>${raw(style)}</style>
</head>
<body>
<main>
${branding ? html`<p class="from"><bdi>${branding.name}</bdi></p>` : ''}
<div${raw(view === 'subscribed' ? '' : ' role="status"')}>
<h1>${insertName(head)}</h1>
<p>${insertName(text)}</p>
</div>
${
  button === undefined
    ? ''
    : html`<form method="post">
<button type="submit" name="${CHOICE}" value="${choice}"${raw(view === 'subscribed' ? '' : ' class="second"')}>${button}</button>
</form>`
}
</main>
</body>
</html>
`;
  return {
    body: String(body),
    headers: {
      'content-type': 'text/html; charset=utf-8',
      'content-language': locale,
      'content-security-policy': `default-src 'none'; style-src 'sha256-${hash('sha256', style, 'base64')}'; img-src data:; form-action 'self'; base-uri 'none'; frame-ancestors 'none'`,
    },
  };
}

/** Returns the preferred supported locale of an `Accept-Language` header, or the fallback. */
export function selectLocale(acceptLanguage: string | undefined, fallback: Locale): Locale {
  const wanted = parseAccept((acceptLanguage ?? '').slice(0, 500).toLowerCase());
  for (const { type: tag } of wanted.filter(({ q }) => q > 0)) {
    const language = tag.slice(0, 2);
    const matchesLanguage = (locale: Locale) => locale.slice(0, 2) === language && /^..(-|$)/.test(tag);
    const found =
      locales.find((locale) => locale.toLowerCase() === tag) ??
      [fallback, ...locales].find((locale) => matchesLanguage(locale));
    if (found) return found;
  }
  return fallback;
}

function toStyle(color: string): string {
  const shade = /^#[0-9a-f]{6}$/i.test(color) ? color : '#3b4754';
  return `:root { color-scheme: light dark; }
* { box-sizing: border-box; }
body { margin: 0; min-height: 100vh; display: grid; place-items: center; padding: 24px 16px; background: #f3f4f6; color: #1f2328; font: 17px/1.55 system-ui, -apple-system, "Segoe UI", sans-serif; }
main { width: 100%; max-width: 480px; padding: 32px; background: #fff; border-radius: 12px; border-top: 6px solid ${shade}; box-shadow: 0 1px 3px rgba(0, 0, 0, .12); overflow-wrap: anywhere; }
.from { margin: 0 0 20px; font-weight: 600; color: #57606a; }
h1 { margin: 0 0 12px; font-size: 25px; line-height: 1.25; }
p { margin: 0 0 24px; }
form { margin: 0; }
button { font: inherit; font-weight: 600; min-height: 48px; padding: 10px 24px; border: 2px solid ${shade}; border-radius: 8px; background: ${shade}; color: ${textColorOn(shade)}; cursor: pointer; }
button.second { background: transparent; border-color: #6e7781; color: inherit; }
button:focus-visible { outline: 3px solid #0969da; outline-offset: 3px; }
@media (max-width: 480px) { main { padding: 24px; } button { width: 100%; } }
@media (prefers-color-scheme: dark) {
  body { background: #16181b; color: #e6edf3; }
  main { background: #22262b; box-shadow: none; }
  .from { color: #a5adb6; }
  button { border-color: #8b949e; }
  button:focus-visible { outline-color: #79c0ff; }
}
`;
}

/** Returns black or white, whichever is legible on the color. */
function textColorOn(color: string): string {
  const [red = 0, green = 0, blue = 0] = [1, 3, 5].map((at) => {
    const part = Number.parseInt(color.slice(at, at + 2), 16) / 255;
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.179 ? '#000' : '#fff';
}
