/**
 * Templates are tenants' text that Jobwire executes. A penetration test found one of 150 bytes that blocked the process for 223
 * s.
 */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setInterval } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { renderEmail } from '../../shared/notifications/render.ts';
import type { RenderInput } from '../../shared/notifications/render-types.ts';
import { createRenderer } from '../../shared/notifications/rendering.ts';
import { sampleBranding, sampleNotice } from '../../shared/notifications/samples.ts';
import type { EmailTemplate, Template } from '../../shared/notifications/template.ts';

const PLACE = { kind: 'dispatched', channel: 'email', locale: 'en-GB' } as const;
const LINK = '{{ unsubscribe_url }}';
/** Runs until it is stopped: after two seconds by itself, if it is not killed before. */
const BUSY = '{% assign a = (1..20000) %}{% for i in a %}{% if a contains "x" %}{% endif %}{% endfor %}x';
const SOON = { killAfterMs: 1_000 };
/** Too short for `BUSY`. */
const AT_ONCE = { killAfterMs: 100 };

function input(template: Template): RenderInput {
  return {
    content: sampleNotice('dispatched'),
    recipient: { name: 'Robin', locale: 'en-GB', zone: 'Europe/London' },
    branding: sampleBranding,
    unsubscribeUrl: 'https://notify.example.com/v1/unsubscribe/token',
    template,
  };
}

test.each([
  'where_exp: "x", "x.label == 1"',
  'group_by_exp: "x", "x.label"',
  'has_exp: "x", "x.label == 1"',
  'find_exp: "x", "x.label == 1"',
  'find_index_exp: "x", "x.label == 1"',
  'reject_exp: "x", "x.label == 1"',
])('unknown filter that evaluates an expression: %s', async (filter) => {
  const problems = await createRenderer().check(PLACE, { subject: `{{ jobs | ${filter} }}` }, 'acme');
  expect(problems).toEqual([{ field: 'subject', reason: expect.stringMatching(/^unknown filter \w+_exp/) }]);
});

test('a template that hangs is killed, others are rendered meanwhile, and the next one is rendered', async () => {
  const health = createServer((_, response) => response.end('ok'));
  await new Promise<void>((done) => health.listen(0, '127.0.0.1', done));
  onTestFinished(() => void health.close());
  const url = `http://127.0.0.1:${(health.address() as AddressInfo).port}`;
  const renderer = createRenderer(SOON);

  let over = false;
  const hanging = renderer.email(input({ subject: BUSY }), 'acme').finally(() => {
    over = true;
  });
  let answers = 0;
  for await (const _ of setInterval(10)) {
    if (over) break;
    expect((await fetch(url)).status).toBe(200);
    answers += 1;
  }
  expect(await hanging).toEqual({ kind: 'failed', reason: 'template: it takes too long' });
  // A blocked thread would respond only once.
  expect(answers).toBeGreaterThan(10);
  expect(await renderer.email(input({ subject: 'Sent' }), 'acme')).toMatchObject({ kind: 'rendered' });
});

test('a killed template is not tried again for the next message', async () => {
  const renderer = createRenderer(AT_ONCE);
  const template = { subject: BUSY };
  const first = await renderer.email(input(template), 'acme');
  let turns = 0;
  const turn = setImmediate(() => {
    turns += 1;
  });
  onTestFinished(() => clearImmediate(turn));
  expect(await renderer.email(input(template), 'acme')).toEqual(first);
  expect(turns).toBe(0);
});

test('a template whose worker was killed once, for example by a stall of the machine, is rendered', async () => {
  process.once('worker', (worker) => void worker.terminate());
  const outcome = await createRenderer().email(input({ subject: 'Sent' }), 'acme');
  expect(outcome).toMatchObject({ kind: 'rendered' });
});

test('a template that hangs is rejected when it is saved', async () => {
  expect(await createRenderer(AT_ONCE).check(PLACE, { subject: BUSY }, 'acme')).toEqual([
    { field: 'subject', reason: 'it takes too long' },
  ]);
});

test('a template with excessive memory ends its worker only', async () => {
  const renderer = createRenderer({
    memory: { maxOldGenerationSizeMb: 24, maxYoungGenerationSizeMb: 4 },
    // Only the memory ends it, however slow the machine is.
    killAfterMs: 60_000,
  });
  // Allowed as a value, and created immediately.
  const grows = '{% assign a = (1..4500000) %}{{ a.size }}';
  const outcome = await renderer.email(input({ subject: 'x', html: `${LINK}${grows}`, text: LINK }), 'acme');
  expect(outcome).toEqual({ kind: 'failed', reason: 'template: it uses too much memory' });
  expect(await renderer.email(input({ subject: 'Sent' }), 'acme')).toMatchObject({ kind: 'rendered' });
});

test.each<[string, EmailTemplate]>([
  ['spaces', { subject: 'x', text: `${LINK}{% for i in (1..9000) %}${' '.repeat(50)}{% endfor %}x` }],
  ['empty lines', { subject: 'x', text: `${LINK}{% for i in (1..9000) %}${'\\n'.repeat(50)}{% endfor %}x` }],
  [
    'empty lines in a paragraph',
    { subject: 'x', intro: `{% for i in (1..9000) %}${' \\n'.repeat(25)}{% endfor %}x` },
  ],
])('text is sanitized in linear time: %s', (_, template) => {
  const source = Object.fromEntries(
    Object.entries(template).map(([field, text]) => [field, text.replaceAll('\\n', '\n')]),
  );
  // Of half a million characters; in quadratic time it would take minutes.
  expect(renderEmail(input(source))).toMatchObject({ kind: 'rendered' });
});

test('one account’s templates delay another one’s by one at most, and more than two at a time are rejected', async () => {
  const renderer = createRenderer({ ...SOON, perOwner: 2 });
  const order: string[] = [];
  const note = (name: string) => (outcome: { kind: string }) => {
    order.push(`${name} ${outcome.kind}`);
  };
  const busy = [1, 2, 3].map((at) =>
    renderer.email(input({ subject: `${BUSY}${at}` }), 'greedy').then(note(`greedy ${at}`)),
  );
  const other = renderer.email(input({ subject: 'Sent' }), 'other').then(note('other'));
  await Promise.all([...busy, other]);
  // A killed template is tried twice.
  expect(order).toEqual(['greedy 3 failed', 'other rendered', 'greedy 1 failed', 'greedy 2 failed']);
});
