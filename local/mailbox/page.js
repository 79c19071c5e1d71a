// The mailbox of the demo. All content is inserted as text; only the frame of a mail renders HTML.

const find = (id) => document.getElementById(id);
const [list, pane, reader, fresh, empty] = ['list', 'list-pane', 'reader', 'fresh', 'empty'].map(find);
const MAX_SHOWN = 500;
/** Interval of screen reader announcements. */
const ANNOUNCE_MS = 4_000;

/** Messages by id, in order of arrival. */
const messages = new Map();
const items = new Map();
let box;
let last = 0;
let source;
let openId;
let tab = 'message';
let narrow = false;
/** Ids of opened messages, stored for the session. */
let read = new Set();
let newCount = 0;

/** Creates an element with children. Names with a hyphen, and names that are no property, become attributes. */
function createElement(name, properties = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(properties)) {
    if (value === undefined || value === null) continue;
    if (key in element && !key.includes('-')) element[key] = value;
    else element.setAttribute(key, value);
  }
  element.append(...children.filter((child) => child !== undefined && child !== null));
  return element;
}

function icon(...paths) {
  const space = 'http://www.w3.org/2000/svg';
  const svg = document.createElementNS(space, 'svg');
  svg.setAttribute('viewBox', '0 0 24 24');
  svg.setAttribute('aria-hidden', 'true');
  for (const d of paths) {
    const path = document.createElementNS(space, 'path');
    path.setAttribute('d', d);
    svg.append(path);
  }
  return svg;
}

const formatName = ({ name, address }) => name || address;
/** Reports whether a sender has only a number. */
const isNumber = ({ address }) => address.startsWith('+');
/** Formats of times: in the user's language and time zone, as in the dashboard. */
const clock = new Intl.DateTimeFormat(undefined, { hour: '2-digit', minute: '2-digit', second: '2-digit' });
const whole = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'medium' });
const createTime = (at, format = clock) =>
  createElement(
    'time',
    { dateTime: at, title: `${whole.format(Date.parse(at))}\n${at}` },
    format.format(Date.parse(at)),
  );
/** Reports whether the user prefers reduced motion. */
const prefersReducedMotion = () => matchMedia('(prefers-reduced-motion: reduce)').matches;
const isWide = () => matchMedia('(min-width: 761px)').matches;

function avatar({ channel, from }) {
  const name = formatName(from);
  const hue = [...name].reduce((sum, letter) => (sum * 31 + letter.codePointAt(0)) % 360, 7);
  const face =
    channel === 'sms'
      ? icon('M8 2.5h8a2 2 0 0 1 2 2v15a2 2 0 0 1-2 2H8a2 2 0 0 1-2-2v-15a2 2 0 0 1 2-2zM11 18.5h2')
      : [...name][0].toUpperCase();
  const element = createElement('span', { className: 'avatar', 'aria-hidden': 'true' }, face);
  element.style.setProperty('--hue', hue);
  return element;
}

// The list.

function createItem(message) {
  const { id, channel, from, to, subject, preview, at } = message;
  const link = createElement(
    'a',
    { className: `item ${channel}${read.has(id) ? '' : ' unread'}`, href: `#${id}`, tabIndex: -1 },
    avatar(message),
    createElement(
      'span',
      { className: 'who' },
      isNumber(from) ? `To ${formatName(to)}` : `${formatName(from)} to ${formatName(to)}`,
    ),
    createTime(at),
    createElement(
      'span',
      { className: 'subject' },
      createElement('span', { className: 'hidden' }, channel === 'sms' ? 'SMS: ' : ''),
      subject ?? preview,
    ),
    channel === 'sms' ? undefined : createElement('span', { className: 'preview' }, preview),
  );
  return createElement('li', {}, link);
}

function add(message, isNew) {
  if (messages.has(message.id)) return;
  messages.set(message.id, message);
  last = Math.max(last, message.id);
  const item = createItem(message);
  items.set(message.id, item);
  if (isNew) item.firstChild.classList.add('arrived');
  // Reading it causes a layout.
  const before = isNew ? pane.scrollTop : 0;
  list.prepend(item);
  filterOne(message, item);
  if (isNew && !item.hidden) {
    if (before > 0) {
      // Keeps the visible items in place.
      pane.scrollTop = before + item.offsetHeight;
      newCount += 1;
    } else {
      room += item.getBoundingClientRect().height;
    }
  }
  for (const [id] of messages) {
    if (messages.size <= MAX_SHOWN) break;
    if (id === openId) break;
    remove(id);
  }
}

let waiting = [];
let isAnimating = false;
let room = 0;

/** Shows new messages with an animation, so that items do not jump. Messages that arrive during it wait for its end. */
function arrive() {
  if ((isAnimating && !document.hidden) || waiting.length === 0) return;
  room = 0;
  for (const message of waiting) add(message, true);
  waiting = [];
  showState();
  if (room === 0 || document.hidden || prefersReducedMotion()) return;
  isAnimating = true;
  const from = { transform: `translateY(${-room}px)` };
  const animation = list.animate([from, { transform: 'none' }], { duration: 250, easing: 'ease-out' });
  // Draws the last frame of the animation before the next one begins.
  animation.onfinish = animation.oncancel = () => {
    requestAnimationFrame(() =>
      requestAnimationFrame(() => {
        isAnimating = false;
        arrive();
      }),
    );
  };
}

function remove(id) {
  messages.delete(id);
  items.get(id)?.remove();
  items.delete(id);
}

const getFilter = () => ({
  channel: new FormData(find('tools')).get('channel'),
  search: find('search').value.trim().toLocaleLowerCase(),
});

function filterOne(message, item, { channel, search } = getFilter()) {
  const { from, to, subject, preview } = message;
  const texts = [from.name, from.address, to.name, to.address, subject, preview]
    .join('\n')
    .toLocaleLowerCase();
  item.hidden = (channel !== '' && message.channel !== channel) || !texts.includes(search);
}

function filterAll() {
  const filter = getFilter();
  for (const [id, message] of messages) filterOne(message, items.get(id), filter);
  showState();
}

/** Updates counts, tab order and empty state. */
function showState() {
  const all = [...messages.values()];
  for (const count of document.querySelectorAll('[data-count]')) {
    const { count: channel } = count.dataset;
    count.textContent = all.filter((one) => channel === '' || one.channel === channel).length || '';
  }
  const unread = all.filter(({ id }) => !read.has(id)).length;
  document.title = unread === 0 ? 'Mailbox' : `(${unread}) Mailbox`;
  const shown = visible();
  const stop = shown.find((link) => link.hasAttribute('aria-current')) ?? shown[0];
  for (const link of shown) link.tabIndex = link === stop ? 0 : -1;
  empty.hidden = shown.length > 0;
  find('empty-text').textContent =
    all.length > 0
      ? 'No message matches the filter.'
      : 'No messages yet. A few seconds after a job of the demo is dispatched, the messages to its customers appear here.';
  fresh.hidden = newCount === 0;
  fresh.textContent = `${newCount} new`;
}

const visible = () => [...list.querySelectorAll('li:not([hidden]) > a')];

fresh.addEventListener('click', () => pane.scrollTo({ top: 0, behavior: 'smooth' }));
pane.addEventListener('scroll', () => {
  if (pane.scrollTop > 8 || newCount === 0) return;
  newCount = 0;
  showState();
});
find('tools').addEventListener('input', filterAll);
find('tools').addEventListener('submit', (event) => event.preventDefault());
find('clear').addEventListener('click', async () => {
  const answer = await fetch('/mailbox/messages', { method: 'DELETE' }).catch(() => undefined);
  if (!answer?.ok) return;
  waiting = [];
  for (const id of [...messages.keys()]) remove(id);
  newCount = 0;
  location.hash = '';
  showState();
});
list.addEventListener('keydown', (event) => {
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  const links = visible();
  const at = links.indexOf(document.activeElement);
  if (step === undefined && !['Home', 'End'].includes(event.key)) return;
  event.preventDefault();
  const to = step === undefined ? links.at(event.key === 'Home' ? 0 : -1) : links[at + step];
  if (!to) return;
  to.focus();
  // In the wide layout, opens the message too, without a history entry.
  if (isWide()) location.replace(to.hash);
});

// One message.

async function show() {
  const id = Number(location.hash.slice(1)) || undefined;
  const before = openId;
  openId = id;
  document.body.toggleAttribute('data-open', id !== undefined);
  for (const link of list.querySelectorAll('[aria-current]')) link.removeAttribute('aria-current');
  if (id === undefined) {
    reader.replaceChildren(
      createElement('div', { className: 'empty' }, createElement('p', {}, 'Select a message to read it.')),
    );
    items.get(before)?.firstChild.focus({ preventScroll: true });
    showState();
    return;
  }
  const link = items.get(id)?.firstChild;
  link?.setAttribute('aria-current', 'true');
  link?.classList.remove('unread');
  const answer = await fetch(`/mailbox/messages/${id}`).catch(() => undefined);
  if (openId !== id) return;
  if (!answer?.ok) {
    reader.replaceChildren(
      createElement(
        'div',
        { className: 'empty' },
        createElement(
          'p',
          {},
          answer
            ? 'This message is no longer stored. '
            : 'This message cannot be loaded: the demo is stopped. ',
        ),
        createElement('a', { href: '#' }, 'All messages'),
      ),
    );
    return;
  }
  const message = await answer.json();
  if (openId !== id) return;
  read.add(id);
  remember();
  showState();
  link?.scrollIntoView({ block: 'nearest' });
  if (message.channel === 'sms') await showSms(message);
  else showMail(message);
  if (!isWide()) reader.focus({ preventScroll: true });
}

const back = () =>
  createElement('a', { className: 'back', href: '#', 'aria-label': 'All messages' }, icon('M15 5 8 12l7 7'));

function formatParty({ name, address }) {
  return name ? [`${name} `, createElement('span', { className: 'address' }, `<${address}>`)] : [address];
}

function showMail(message) {
  const { id, from, to, at, subject, unsubscribe, references, repeat } = message;
  const fact = (term, ...children) => [createElement('dt', {}, term), createElement('dd', {}, ...children)];
  const earlier = [...messages.values()].find((one) => one.id !== id && references.at(-1) === one.messageId);
  const status = createElement('p', { className: 'done', role: 'status', hidden: true });
  const actions = createElement(
    'div',
    { className: 'actions' },
    unsubscribe && unsubscribeButton(message, status),
    createElement(
      'a',
      { className: 'quiet', href: `/mailbox/messages/${id}/source`, target: '_blank' },
      'Source',
    ),
  );
  const panel = createElement('div', { className: 'panel', id: 'panel', role: 'tabpanel' });
  const tabs = [
    ['message', 'Message'],
    ['text', 'Text'],
    ['headers', 'Headers'],
  ].map(([what, label]) =>
    createElement(
      'button',
      { type: 'button', role: 'tab', id: `tab-${what}`, 'aria-controls': 'panel', 'data-tab': what },
      label,
    ),
  );
  const width = createElement(
    'div',
    { className: 'width', role: 'group', 'aria-label': 'Width' },
    ...[
      ['Full', false],
      ['Phone', true],
    ].map(([label, value]) =>
      createElement(
        'button',
        {
          type: 'button',
          'data-narrow': String(value),
          onclick: () => {
            narrow = value;
            selectTab(tab);
          },
        },
        label,
      ),
    ),
  );

  function selectTab(to) {
    tab = to;
    for (const one of tabs) {
      const chosen = one.dataset.tab === to;
      one.setAttribute('aria-selected', String(chosen));
      one.tabIndex = chosen ? 0 : -1;
    }
    for (const one of width.children)
      one.setAttribute('aria-pressed', String(one.dataset.narrow === String(narrow)));
    width.hidden = to !== 'message';
    panel.setAttribute('aria-labelledby', `tab-${to}`);
    panel.classList.toggle('narrow', to === 'message' && narrow && isWide());
    const shown = panel.firstChild;
    if (to === 'message' && shown?.localName === 'iframe') return;
    panel.replaceChildren(partFor(to, message));
    panel.scrollTop = 0;
  }
  const bar = createElement('div', { role: 'tablist', 'aria-label': 'View' }, ...tabs);
  bar.addEventListener('click', (event) => {
    if (event.target.dataset.tab) selectTab(event.target.dataset.tab);
  });
  bar.addEventListener('keydown', (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (step === undefined) return;
    const next = tabs[(tabs.findIndex((one) => one.dataset.tab === tab) + step + tabs.length) % tabs.length];
    selectTab(next.dataset.tab);
    next.focus();
  });

  const head = createElement(
    'header',
    { className: 'head' },
    createElement(
      'div',
      { className: 'head-row' },
      back(),
      createElement('h2', {}, subject ?? '(no subject)'),
      actions,
    ),
    createElement(
      'dl',
      { className: 'facts' },
      ...fact('From', ...formatParty(from)),
      ...fact('To', ...formatParty(to)),
      ...fact(
        'Received',
        createTime(at, whole),
        repeat ? ' ' : '',
        repeat ? createElement('span', { className: 'tag' }, 'repeated') : '',
      ),
      ...(earlier
        ? fact(
            'Earlier message',
            createElement('a', { href: `#${earlier.id}` }, earlier.subject ?? '(no subject)'),
          )
        : []),
    ),
    status,
    createElement('div', { className: 'tabs' }, bar, width),
  );
  reader.replaceChildren(head, panel);
  selectTab(tab);
}

function partFor(what, { id, hasHtml, text, headers, subject }) {
  if (what === 'headers') {
    const rows = headers.map(([name, value]) =>
      createElement('div', {}, createElement('dt', {}, name), createElement('dd', {}, value)),
    );
    return createElement('dl', { className: 'headers' }, ...rows);
  }
  if (what === 'text' || !hasHtml) return createElement('pre', {}, ...withLinks(text));
  return createElement('iframe', {
    // No scripts, no forms, no origin. Links open in a new window.
    sandbox: 'allow-popups allow-popups-to-escape-sandbox',
    referrerPolicy: 'no-referrer',
    title: `E-mail: ${subject ?? '(no subject)'}`,
    src: `/mailbox/messages/${id}/html`,
  });
}

/** Unsubscribes as a mail program does (RFC 8058). */
function unsubscribeButton({ unsubscribe, to }, status) {
  const { url, path, oneClick } = unsubscribe;
  if (!oneClick || !path) {
    return createElement(
      'a',
      { className: 'quiet', href: url, target: '_blank', rel: 'noreferrer' },
      'Unsubscribe',
    );
  }
  return createElement('button', {
    className: 'quiet',
    type: 'button',
    title: 'Unsubscribe with one click, as a mail program does',
    textContent: 'Unsubscribe',
    async onclick() {
      this.disabled = true;
      const body = new URLSearchParams({ 'List-Unsubscribe': 'One-Click' });
      const answer = await fetch(path, { method: 'POST', body }).catch(() => undefined);
      this.disabled = answer?.ok === true;
      const link = (label) => createElement('a', { href: url, target: '_blank', rel: 'noreferrer' }, label);
      status.replaceChildren(
        ...(answer?.ok
          ? [`${to.address} is unsubscribed from this account. `, link('Subscribe again')]
          : ['Unsubscribing failed. ', link('Open the unsubscribe page')]),
      );
      status.hidden = false;
    },
  });
}

/** Shows the SMS of one sender to one number as a conversation. */
async function showSms(message) {
  const same = [...messages.values()].filter(
    ({ channel, from, to }) =>
      channel === 'sms' && from.address === message.from.address && to.address === message.to.address,
  );
  // The latest other messages. The list has only previews, so their texts are fetched.
  const around = same.filter(({ id }) => id !== message.id).slice(-20);
  const others = await Promise.all(
    around.map(async ({ id }) => {
      const answer = await fetch(`/mailbox/messages/${id}`);
      return answer.ok ? answer.json() : undefined;
    }),
  );
  if (openId !== message.id) return;
  const all = [...others.filter(Boolean), message].sort((one, other) => one.id - other.id);
  const bubbles = createElement(
    'ol',
    { className: 'bubbles', tabIndex: 0, 'aria-label': `SMS to ${message.to.address}` },
    ...all.map((one) => createBubble(one, message.id)),
  );
  reader.replaceChildren(
    createElement(
      'div',
      { className: 'phone' },
      createElement(
        'header',
        { className: 'phone-top' },
        back(),
        avatar(message),
        createElement(
          'div',
          { className: 'who' },
          createElement('h2', {}, formatName(message.from)),
          createElement('p', {}, `to ${message.to.address}`),
        ),
      ),
      bubbles,
      createElement('footer', { className: 'phone-foot' }, stopButton(message, bubbles)),
    ),
  );
  if (message.optedOut) bubbles.append(stopBubble());
  const current = bubbles.querySelector('[aria-current]');
  bubbles.scrollTop = current.offsetTop - bubbles.clientHeight / 2;
}

const stopBubble = () =>
  createElement('li', { className: 'answer' }, createElement('p', { className: 'bubble' }, 'STOP'));

/** Opts the number out, as a customer does who answers STOP. Jobwire detects it with the next SMS. */
function stopButton({ to, optedOut }, bubbles) {
  return createElement('button', {
    className: 'quiet',
    type: 'button',
    disabled: optedOut,
    title: 'Opt this number out: later SMS to it are suppressed',
    textContent: optedOut ? 'Opted out' : 'Reply STOP',
    async onclick() {
      this.disabled = true;
      const path = `/mailbox/opted-out/${encodeURIComponent(to.address)}`;
      const answer = await fetch(path, { method: 'PUT' }).catch(() => undefined);
      this.disabled = answer?.ok === true;
      if (!answer?.ok) return;
      this.textContent = 'Opted out';
      bubbles.append(stopBubble());
      bubbles.scrollTop = bubbles.scrollHeight;
    },
  });
}

function createBubble(message, currentId) {
  const { id, at, text, sms } = message;
  const parts = sms ? `, ${sms.segments} ${sms.segments === 1 ? 'segment' : 'segments'} ${sms.encoding}` : '';
  return createElement(
    'li',
    id === currentId ? { 'aria-current': 'true' } : {},
    createElement('p', { className: 'bubble' }, ...withLinks(text)),
    createElement('p', { className: 'meta' }, createTime(at), `${parts}`),
  );
}

/** Converts URLs in a text to links. */
function withLinks(text) {
  return text
    .split(/(https?:\/\/[^\s<>"]+[^\s<>".,;:!?)\]])/)
    .map((part, at) =>
      at % 2 === 0 ? part : createElement('a', { href: part, target: '_blank', rel: 'noreferrer' }, part),
    );
}

// New messages.

let unannounced = [];
function announce(message) {
  unannounced.push(message);
  if (unannounced.length > 1) return;
  setTimeout(() => {
    const [first] = unannounced;
    const what = first.channel === 'sms' ? 'SMS' : 'e-mail';
    find('announcement').textContent =
      unannounced.length === 1
        ? `New ${what} from ${formatName(first.from)}: ${first.subject ?? first.preview}`
        : `${unannounced.length} new messages`;
    unannounced = [];
  }, ANNOUNCE_MS);
}

function remember() {
  try {
    sessionStorage.setItem('mailbox', JSON.stringify({ box, read: [...read].slice(-2 * MAX_SHOWN) }));
  } catch {
    // Storage is not available: the state lasts until the page is closed.
  }
}

function recall() {
  try {
    const kept = JSON.parse(sessionStorage.getItem('mailbox') ?? '{}');
    return new Set(kept.box === box ? kept.read : []);
  } catch {
    return new Set();
  }
}

async function load() {
  const found = await (await fetch('/mailbox/messages')).json();
  waiting = [];
  for (const id of [...messages.keys()]) remove(id);
  box = found.box;
  last = found.last;
  read = recall();
  newCount = 0;
  for (const message of found.messages.reverse()) add(message, false);
  showState();
}

function showConnection(on) {
  find('live').className = `live ${on ? 'on' : 'off'}`;
  find('live-text').textContent = on ? 'live' : 'demo stopped, reconnecting';
}

function follow() {
  source?.close();
  source = new EventSource(`/mailbox/stream?after=${last}`);
  source.addEventListener('box', async (event) => {
    showConnection(true);
    // The demo was restarted: reload its messages.
    if (JSON.parse(event.data).box !== box) start();
  });
  source.addEventListener('caught', (event) => {
    const message = JSON.parse(event.data);
    if (messages.has(message.id)) return;
    waiting.push(message);
    announce(message);
    arrive();
  });
  source.addEventListener('error', () => {
    showConnection(false);
    // The browser has given up: reconnect.
    if (source.readyState === EventSource.CLOSED) setTimeout(start, 2_000);
  });
}

async function start() {
  try {
    await load();
  } catch {
    showConnection(false);
    setTimeout(start, 2_000);
    return;
  }
  follow();
  await show();
}

addEventListener('hashchange', show);
await start();
