// What the demo's customers got. Everything that is shown is put in as text; only a mail's own frame shows HTML.

const find = (id) => document.getElementById(id);
const [list, pane, reader, fresh, empty] = ['list', 'list-pane', 'reader', 'fresh', 'empty'].map(find);
const MAX_SHOWN = 500;
/** Names of what follows each other are said together. */
const SAY_EVERY_MS = 4_000;

/** What was caught, by id; in the order it came. */
const messages = new Map();
const items = new Map();
let box;
let last = 0;
let source;
let openId;
let tab = 'message';
let narrow = false;
/** Ids that were looked at, kept as long as the window. */
let read = new Set();
let freshCount = 0;

/** An element with properties, attributes where they have a hyphen or are no property, and children. */
function make(name, properties = {}, ...children) {
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

const nameOf = ({ name, address }) => name || address;
/** A sender whose number says nothing. */
const isNumber = ({ address }) => address.startsWith('+');
const clock = (at) => new Date(at).toLocaleTimeString('en-GB');
/** Who wants no motion is shown what came at once. */
const likesItStill = () => matchMedia('(prefers-reduced-motion: reduce)').matches;
const isWide = () => matchMedia('(min-width: 761px)').matches;

function avatar({ channel, from }) {
  const name = nameOf(from);
  const hue = [...name].reduce((sum, letter) => (sum * 31 + letter.codePointAt(0)) % 360, 7);
  const face =
    channel === 'sms'
      ? icon('M8 2.5h8a2 2 0 0 1 2 2v15a2 2 0 0 1-2 2H8a2 2 0 0 1-2-2v-15a2 2 0 0 1 2-2zM11 18.5h2')
      : [...name][0].toUpperCase();
  const element = make('span', { className: 'avatar', 'aria-hidden': 'true' }, face);
  element.style.setProperty('--hue', hue);
  return element;
}

// The list.

function itemOf(message) {
  const { id, channel, from, to, subject, preview, at } = message;
  const link = make(
    'a',
    { className: `item ${channel}${read.has(id) ? '' : ' unread'}`, href: `#${id}`, tabIndex: -1 },
    avatar(message),
    make(
      'span',
      { className: 'who' },
      isNumber(from) ? `To ${nameOf(to)}` : `${nameOf(from)} to ${nameOf(to)}`,
    ),
    make('time', { dateTime: at, title: new Date(at).toLocaleString() }, clock(at)),
    make(
      'span',
      { className: 'subject' },
      make('span', { className: 'hidden' }, channel === 'sms' ? 'SMS: ' : ''),
      subject ?? preview,
    ),
    channel === 'sms' ? undefined : make('span', { className: 'preview' }, preview),
  );
  return make('li', {}, link);
}

function add(message, isNew) {
  if (messages.has(message.id)) return;
  messages.set(message.id, message);
  last = Math.max(last, message.id);
  const item = itemOf(message);
  items.set(message.id, item);
  if (isNew) item.firstChild.classList.add('arrived');
  const before = pane.scrollTop;
  list.prepend(item);
  filterOne(message, item);
  if (isNew && !item.hidden) {
    if (before > 0) {
      // What one is looking at stays where it is.
      pane.scrollTop = before + item.offsetHeight;
      freshCount += 1;
    } else {
      room += item.getBoundingClientRect().height;
    }
  }
  for (const [id] of messages) {
    if (messages.size <= MAX_SHOWN) break;
    if (id === openId) break;
    forget(id);
  }
}

let waiting = [];
let gliding = false;
let room = 0;

/** Shows what came. What stands below glides down, so that it never jumps from under a finger; what comes meanwhile waits. */
function arrive() {
  if ((gliding && !document.hidden) || waiting.length === 0) return;
  room = 0;
  for (const message of waiting) add(message, true);
  waiting = [];
  showState();
  if (room === 0 || document.hidden || likesItStill()) return;
  gliding = true;
  const from = { transform: `translateY(${-room}px)` };
  const glide = list.animate([from, { transform: 'none' }], { duration: 250, easing: 'ease-out' });
  // The frame that ends the glide is drawn before the next begins.
  glide.onfinish = glide.oncancel = () => {
    requestAnimationFrame(() =>
      requestAnimationFrame(() => {
        gliding = false;
        arrive();
      }),
    );
  };
}

function forget(id) {
  messages.delete(id);
  items.get(id)?.remove();
  items.delete(id);
}

const wanted = () => ({
  channel: new FormData(find('tools')).get('channel'),
  words: find('search').value.trim().toLocaleLowerCase(),
});

function filterOne(message, item, { channel, words } = wanted()) {
  const { from, to, subject, preview } = message;
  const texts = [from.name, from.address, to.name, to.address, subject, preview]
    .join('\n')
    .toLocaleLowerCase();
  item.hidden = (channel !== '' && message.channel !== channel) || !texts.includes(words);
}

function filterAll() {
  const by = wanted();
  for (const [id, message] of messages) filterOne(message, items.get(id), by);
  showState();
}

/** Counts, the place for the keyboard, and what stands where nothing is. */
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
      ? 'Nothing here fits.'
      : 'Nothing yet. When a job of the demo is dispatched, its customers hear about it here some seconds later.';
  fresh.hidden = freshCount === 0;
  fresh.textContent = `${freshCount} new`;
}

const visible = () => [...list.querySelectorAll('li:not([hidden]) > a')];

fresh.addEventListener('click', () => pane.scrollTo({ top: 0, behavior: 'smooth' }));
pane.addEventListener('scroll', () => {
  if (pane.scrollTop > 8 || freshCount === 0) return;
  freshCount = 0;
  showState();
});
find('tools').addEventListener('input', filterAll);
find('tools').addEventListener('submit', (event) => event.preventDefault());
find('clear').addEventListener('click', async () => {
  await fetch('/mailbox/messages', { method: 'DELETE' });
  waiting = [];
  for (const id of [...messages.keys()]) forget(id);
  freshCount = 0;
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
  // Beside the reader one reads on as one goes; the way back is not filled with it.
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
      make('div', { className: 'empty' }, make('p', {}, 'Choose a message to read it.')),
    );
    items.get(before)?.firstChild.focus({ preventScroll: true });
    showState();
    return;
  }
  const link = items.get(id)?.firstChild;
  link?.setAttribute('aria-current', 'true');
  link?.classList.remove('unread');
  const answer = await fetch(`/mailbox/messages/${id}`);
  if (openId !== id) return;
  if (!answer.ok) {
    reader.replaceChildren(
      make(
        'div',
        { className: 'empty' },
        make('p', {}, 'This message is no longer there. '),
        make('a', { href: '#' }, 'All messages'),
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
  make('a', { className: 'back', href: '#', 'aria-label': 'All messages' }, icon('M15 5 8 12l7 7'));

function partyOf({ name, address }) {
  return name ? [`${name} `, make('span', { className: 'address' }, `<${address}>`)] : [address];
}

function showMail(message) {
  const { id, from, to, at, subject, unsubscribe, references, repeat } = message;
  const fact = (term, ...children) => [make('dt', {}, term), make('dd', {}, ...children)];
  const earlier = [...messages.values()].find((one) => one.id !== id && references.at(-1) === one.messageId);
  const done = make('p', { className: 'done', role: 'status', hidden: true });
  const actions = make(
    'div',
    { className: 'actions' },
    unsubscribe && unsubscribeButton(message, done),
    make('a', { className: 'quiet', href: `/mailbox/messages/${id}/source`, target: '_blank' }, 'Source'),
  );
  const panel = make('div', { className: 'panel', id: 'panel', role: 'tabpanel' });
  const tabs = [
    ['message', 'Message'],
    ['text', 'Text'],
    ['headers', 'Headers'],
  ].map(([what, label]) =>
    make(
      'button',
      { type: 'button', role: 'tab', id: `tab-${what}`, 'aria-controls': 'panel', 'data-tab': what },
      label,
    ),
  );
  const width = make(
    'div',
    { className: 'width', role: 'group', 'aria-label': 'Width' },
    ...[
      ['Full', false],
      ['Phone', true],
    ].map(([label, value]) =>
      make(
        'button',
        {
          type: 'button',
          'data-narrow': String(value),
          onclick: () => {
            narrow = value;
            turn(tab);
          },
        },
        label,
      ),
    ),
  );

  function turn(to) {
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
  const bar = make('div', { role: 'tablist', 'aria-label': 'What to show' }, ...tabs);
  bar.addEventListener('click', (event) => {
    if (event.target.dataset.tab) turn(event.target.dataset.tab);
  });
  bar.addEventListener('keydown', (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (step === undefined) return;
    const next = tabs[(tabs.findIndex((one) => one.dataset.tab === tab) + step + tabs.length) % tabs.length];
    turn(next.dataset.tab);
    next.focus();
  });

  const head = make(
    'header',
    { className: 'head' },
    make('div', { className: 'head-row' }, back(), make('h2', {}, subject ?? '(no subject)'), actions),
    make(
      'dl',
      { className: 'facts' },
      ...fact('From', ...partyOf(from)),
      ...fact('To', ...partyOf(to)),
      ...fact(
        'Came',
        new Date(at).toLocaleString(),
        repeat ? ' ' : '',
        repeat ? make('span', { className: 'tag' }, 'again') : '',
      ),
      ...(earlier
        ? fact('After', make('a', { href: `#${earlier.id}` }, earlier.subject ?? '(no subject)'))
        : []),
    ),
    done,
    make('div', { className: 'tabs' }, bar, width),
  );
  reader.replaceChildren(head, panel);
  turn(tab);
}

function partFor(what, { id, hasHtml, text, headers, subject }) {
  if (what === 'headers') {
    const rows = headers.map(([name, value]) => make('div', {}, make('dt', {}, name), make('dd', {}, value)));
    return make('dl', { className: 'headers' }, ...rows);
  }
  if (what === 'text' || !hasHtml) return make('pre', {}, ...withLinks(text));
  return make('iframe', {
    // No scripts, no forms, no origin; links open elsewhere.
    sandbox: 'allow-popups allow-popups-to-escape-sandbox',
    referrerPolicy: 'no-referrer',
    title: `The mail “${subject ?? ''}”`,
    src: `/mailbox/messages/${id}/html`,
  });
}

/** What a mail program does when one unsubscribes there (RFC 8058). */
function unsubscribeButton({ unsubscribe, to }, done) {
  const { url, path, oneClick } = unsubscribe;
  if (!oneClick || !path) {
    return make('a', { className: 'quiet', href: url, target: '_blank', rel: 'noreferrer' }, 'Unsubscribe');
  }
  return make('button', {
    className: 'quiet',
    type: 'button',
    title: 'One click, as a mail program does it',
    textContent: 'Unsubscribe',
    async onclick() {
      this.disabled = true;
      const body = new URLSearchParams({ 'List-Unsubscribe': 'One-Click' });
      const answer = await fetch(path, { method: 'POST', body }).catch(() => undefined);
      this.disabled = answer?.ok === true;
      const way = make('a', { href: url, target: '_blank', rel: 'noreferrer' }, 'The way back');
      done.replaceChildren(
        ...(answer?.ok
          ? [`${to.address} gets no more e-mails of this account. `, way]
          : [
              'That did not work. ',
              make('a', { href: url, target: '_blank', rel: 'noreferrer' }, 'Open its page'),
            ]),
      );
      done.hidden = false;
    },
  });
}

/** What came to this number from the same sender, as its phone shows it. */
async function showSms(message) {
  const same = [...messages.values()].filter(
    ({ channel, from, to }) =>
      channel === 'sms' && from.address === message.from.address && to.address === message.to.address,
  );
  // Those before it, as far as a phone shows them; the texts of others are asked for.
  const around = same.filter(({ id }) => id !== message.id).slice(-20);
  const others = await Promise.all(
    around.map(async ({ id }) => {
      const answer = await fetch(`/mailbox/messages/${id}`);
      return answer.ok ? answer.json() : undefined;
    }),
  );
  if (openId !== message.id) return;
  const all = [...others.filter(Boolean), message].sort((one, other) => one.id - other.id);
  const bubbles = make(
    'ol',
    { className: 'bubbles', tabIndex: 0, 'aria-label': `SMS to ${message.to.address}` },
    ...all.map((one) => bubbleOf(one, message.id)),
  );
  reader.replaceChildren(
    make(
      'div',
      { className: 'phone' },
      make(
        'header',
        { className: 'phone-top' },
        back(),
        avatar(message),
        make(
          'div',
          { className: 'who' },
          make('h2', {}, nameOf(message.from)),
          make('p', {}, `to ${message.to.address}`),
        ),
      ),
      bubbles,
      make('footer', { className: 'phone-foot' }, stopButton(message, bubbles)),
    ),
  );
  if (message.optedOut) bubbles.append(stopBubble());
  const current = bubbles.querySelector('[aria-current]');
  bubbles.scrollTop = current.offsetTop - bubbles.clientHeight / 2;
}

const stopBubble = () => make('li', { className: 'answer' }, make('p', { className: 'bubble' }, 'STOP'));

/** What a customer does who wants no more SMS: SNS keeps that, and Jobwire finds out with the next one. */
function stopButton({ to, optedOut }, bubbles) {
  return make('button', {
    className: 'quiet',
    type: 'button',
    disabled: optedOut,
    title: 'Opts the number out: the next SMS to it is held back',
    textContent: optedOut ? 'Opted out' : 'Answer STOP',
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

function bubbleOf(message, currentId) {
  const { id, at, text, sms } = message;
  const parts = sms ? `, ${sms.segments} ${sms.segments === 1 ? 'segment' : 'segments'} ${sms.encoding}` : '';
  return make(
    'li',
    id === currentId ? { 'aria-current': 'true' } : {},
    make('p', { className: 'bubble' }, ...withLinks(text)),
    make('p', { className: 'meta' }, make('time', { dateTime: at }, clock(at)), `${parts}`),
  );
}

/** Text whose addresses can be followed. */
function withLinks(text) {
  return text
    .split(/(https?:\/\/[^\s<>"]+[^\s<>".,;:!?)\]])/)
    .map((part, at) =>
      at % 2 === 0 ? part : make('a', { href: part, target: '_blank', rel: 'noreferrer' }, part),
    );
}

// What comes.

let unsaid = [];
function say(message) {
  unsaid.push(message);
  if (unsaid.length > 1) return;
  setTimeout(() => {
    const [first] = unsaid;
    const what = first.channel === 'sms' ? 'SMS' : 'e-mail';
    find('said').textContent =
      unsaid.length === 1
        ? `New ${what} from ${nameOf(first.from)}: ${first.subject ?? first.preview}`
        : `${unsaid.length} new messages`;
    unsaid = [];
  }, SAY_EVERY_MS);
}

function remember() {
  try {
    sessionStorage.setItem('mailbox', JSON.stringify({ box, read: [...read].slice(-2 * MAX_SHOWN) }));
  } catch {
    // Then it is forgotten with the page.
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
  for (const id of [...messages.keys()]) forget(id);
  box = found.box;
  last = found.last;
  read = recall();
  freshCount = 0;
  for (const message of found.messages.reverse()) add(message, false);
  showState();
}

function isLive(on) {
  find('live').className = `live ${on ? 'on' : 'off'}`;
  find('live-text').textContent = on ? 'live' : 'the demo has stopped; waiting for it';
}

function follow() {
  source?.close();
  source = new EventSource(`/mailbox/stream?after=${last}`);
  source.addEventListener('box', async (event) => {
    isLive(true);
    // The demo was started anew: what is shown is of another one.
    if (JSON.parse(event.data).box !== box) start();
  });
  source.addEventListener('caught', (event) => {
    const message = JSON.parse(event.data);
    if (messages.has(message.id)) return;
    waiting.push(message);
    say(message);
    arrive();
  });
  source.addEventListener('error', () => {
    isLive(false);
    // A browser that gave up begins anew.
    if (source.readyState === EventSource.CLOSED) setTimeout(start, 2_000);
  });
}

async function start() {
  try {
    await load();
  } catch {
    isLive(false);
    setTimeout(start, 2_000);
    return;
  }
  follow();
  await show();
}

addEventListener('hashchange', show);
await start();
