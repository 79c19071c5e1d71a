/** Routes of the attention queue, and of the figures of the overview. */
import { randomUUID } from 'node:crypto';
import * as z from 'zod';
import { line } from '../../validation.ts';
import { type ItemId, parseItemId } from '../attention/items.ts';
import {
  actOnAttention,
  decodeEntryPlace,
  decodeQueuePlace,
  listAttention,
  listAttentionHistory,
  readAttention,
  STATE_DAYS,
} from '../attention/queue.ts';
import { toQueueDeps } from '../attention/recording.ts';
import { findCandidate } from '../attention/sources.ts';
import type { AttentionAction } from '../attention/state.ts';
import {
  ATTENTION_KINDS,
  ATTENTION_STATES,
  AttentionEntry,
  AttentionItem,
  AttentionPage,
  type SubjectAction,
} from '../attention/views.ts';
import { Figures, readFigures } from '../figures.ts';
import { afterBy, commaSeparated, day, encodePageCursor, limit, one, textUpTo } from '../parameters.ts';
import { badParameter, problem } from '../problems.ts';
import { pageAnswer } from '../resource.ts';
import { createRouteFactory, type Route, type Subject, toFieldResult } from '../route.ts';

const route = createRouteFactory('Attention');

const kinds = commaSeparated(ATTENTION_KINDS, `must be comma-separated kinds: ${ATTENTION_KINDS.join(', ')}`);

const STATE_RULE = `must be ${ATTENTION_STATES.join(', ')} or all`;
const MAX_SNOOZE_DAYS = 90;
const UNTIL_RULE = `must be a timestamp (ISO 8601) in the future, at most ${MAX_SNOOZE_DAYS} days ahead`;

const noteText = line(500);
const note = noteText.optional().describe('Note for colleagues, which replaces the current one.');

/** An item by its id, if the key can access its subject. It may not need attention at present. */
const itemSubject: Subject<ItemId> = {
  params: { id: one.describe('Id of the item.') },
  async find({ c, params }, { feed }) {
    const id = parseItemId(params.id ?? '');
    if (id && feed.regions.includes(id.region)) return id;
    return problem(c, 'not-found', { detail: 'There is no such item.' });
  },
};

const GONE = 'There is no such item: its subject needs no attention, or the key cannot access it.';

/** All routes of the attention queue. */
export const attentionRoutes: readonly Route[] = [
  route(
    {
      path: '/v1/attention',
      id: 'listAttention',
      summary: 'List the items that need attention',
      description:
        'Returns the items that need attention, highest rank first. A subject is listed once, with its most severe kind. An item must match all filters. In a very large region, the least urgent items can be missing (`counts.complete`).',
      role: 'read',
      query: z.strictObject({
        region: one.optional().describe('Only this region. Default: all regions.'),
        kind: kinds.optional().describe('Only items of these kinds, comma-separated.'),
        account: textUpTo(63).optional().describe('Only items of this account.'),
        subject: textUpTo(100)
          .optional()
          .describe('Only the item of this subject, such as `job/410018` or `endpoint/erp`.'),
        assignee: textUpTo(100)
          .optional()
          .describe('Only items assigned to this name. `none`: only unassigned items.'),
        state: z
          .enum([...ATTENTION_STATES, 'all'], STATE_RULE)
          .default('open')
          .describe('Only items in this state, or `all`.'),
        limit,
        after: afterBy('items', decodeQueuePlace),
      }),
      answer: { description: 'A page of the queue.', schema: AttentionPage },
    },
    async ({ c, caller, query: { state, kind, assignee, ...query } }, parts) => {
      const deps = toQueueDeps(parts);
      const unknown = findUnknownRegion(query.region, deps.regions);
      if (unknown) return badParameter(c, unknown);
      const filter = {
        ...query,
        kinds: kind,
        assignee: assignee === 'none' ? null : assignee,
        state: state === 'all' ? undefined : state,
      };
      return { body: await listAttention(deps, caller, filter) };
    },
  ),
  route(
    {
      path: '/v1/attention/{id}',
      id: 'getAttention',
      summary: 'Get an item of the attention queue',
      role: 'read',
      subject: itemSubject,
      answer: { description: 'The item.', schema: AttentionItem },
    },
    async ({ c, caller, subject }, parts) => {
      const item = await readAttention(toQueueDeps(parts), caller, subject);
      return item ? { body: item } : problem(c, 'not-found', { detail: GONE });
    },
  ),
  route(
    {
      path: '/v1/attention/{id}/history',
      id: 'listAttentionHistory',
      summary: 'List the actions of users on an item',
      description: `Returns the actions, newest first. They are kept for ${STATE_DAYS} days.`,
      role: 'read',
      subject: itemSubject,
      query: z.strictObject({ limit, after: afterBy('entries', decodeEntryPlace) }),
      answer: pageAnswer('entries', AttentionEntry, 'A page of the history.'),
    },
    async ({ c, caller, subject, query }, parts) => {
      const deps = toQueueDeps(parts);
      const item = await findCandidate(deps, subject, caller);
      if (!item) return problem(c, 'not-found', { detail: GONE });
      const { entries, next } = await listAttentionHistory(deps, item, query);
      return { body: { entries, next: encodePageCursor(next) } };
    },
  ),
  act(
    'snooze',
    'Snooze an item',
    'Hides the item until a time, or until its cause changes materially:\n\n- Job: its status, due date or kinds change, or the number of days late reaches the next power of two (1, 2, 4, 8, …).\n- Endpoint: its state changes, a new failure begins, the number of dead events of the last 30 days changes from or to zero, or the number of parked or dead events grows to the next power of two.\n- Account: the cause changes, or a new quarantine begins.\n- Region: a new outage begins.\n- Message: its state changes.',
    z.strictObject({
      until: z.iso
        .datetime({ offset: true, error: UNTIL_RULE })
        .transform((text) => Date.parse(text))
        .describe('End of the snooze.'),
      note,
    }),
    { until: '2026-03-05T08:00:00Z', note: 'The customer asked to wait.' },
    ({ until, note: text }, now) =>
      until > now && until <= now + MAX_SNOOZE_DAYS * 86_400_000
        ? { action: 'snooze', until, note: text }
        : `until ${UNTIL_RULE}.`,
  ),
  act(
    'acknowledge',
    'Acknowledge an item',
    'Hides the item until its cause changes materially (see *Snooze an item*).',
    z.strictObject({ note }),
    {},
    (body) => ({ action: 'acknowledge', ...body }),
  ),
  act(
    'reopen',
    'Reopen an item',
    'Undoes a snooze or an acknowledgement.',
    z.strictObject({ note }),
    {},
    (body) => ({ action: 'reopen', ...body }),
  ),
  act(
    'assign',
    'Assign an item',
    '`null` removes the name.',
    z.strictObject({
      assignee: line(100).nullable().describe('Name of a person. `null` removes it.'),
      note,
    }),
    { assignee: 'ann' },
    (body) => ({ action: 'assign', ...body }),
  ),
  act(
    'note',
    'Add a note to an item',
    'Replaces the current note, which stays in the history. `null` removes it.',
    z.strictObject({ note: noteText.nullable().describe('Text of the note.') }),
    { note: 'Called the supplier.' },
    (body) => ({ action: 'note', ...body }),
  ),
  route(
    {
      path: '/v1/figures',
      id: 'getFigures',
      summary: 'Get the figures of all regions',
      role: 'read',
      query: z.strictObject({
        region: one.optional().describe('Only this region. Default: all regions.'),
        day: day.optional().describe('Default: today (UTC).'),
      }),
      answer: { description: 'The figures.', schema: Figures },
    },
    async ({ c, caller, query: { region, day: requestedDay } }, parts) => {
      const deps = toQueueDeps(parts);
      const unknown = findUnknownRegion(region, deps.regions);
      if (unknown) return badParameter(c, unknown);
      const regions = region === undefined ? deps.regions : [region];
      const today = requestedDay ?? new Date(deps.now()).toISOString().slice(0, 10);
      return { body: await readFigures(deps, caller, { regions, day: today }) };
    },
  ),
];

/** Declares the route of an action. `toAction` returns the action, or why it is rejected. */
function act<B extends z.ZodType>(
  name: Exclude<AttentionAction['action'], SubjectAction>,
  summary: string,
  description: string,
  body: B,
  example: z.input<B>,
  toAction: (body: z.output<B>, now: number) => AttentionAction | string,
): Route {
  const title = `${name.charAt(0).toUpperCase()}${name.slice(1)}`;
  return route(
    {
      method: 'post',
      path: `/v1/attention/{id}/${name}`,
      id: `${name}Attention`,
      summary,
      description,
      role: 'operate',
      subject: itemSubject,
      body: body.meta({ id: `${title}Attention` }),
      example,
      answer: { description: 'The item.', schema: AttentionItem },
      problems: ['unprocessable-content', 'conflict'],
    },
    async ({ caller, subject, body: given }, parts) => {
      const deps = { ...toQueueDeps(parts), newId: randomUUID };
      const action = toAction(given as z.output<B>, deps.now());
      if (typeof action === 'string') return { kind: 'rejected', reason: action };
      return toFieldResult(await actOnAttention(deps, caller, subject, action), 'item');
    },
  );
}

function findUnknownRegion(region: string | undefined, regions: readonly string[]): string | undefined {
  if (region === undefined || regions.includes(region)) return undefined;
  return `region must be one of ${regions.join(', ')}.`;
}
