// Faults on demand: rules that say which requests go wrong, and how.

import type { ServerResponse } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import * as z from 'zod';
import { REGIONS, type RegionCode } from '../world/regions.ts';
import type { SandboxAccount, World } from '../world/world.ts';
import { type Answer, json, problem } from './responses.ts';
import { OPERATIONS, type RequestInfo } from './traffic.ts';

/** What a timer can wait for; it fires at once for anything longer. */
const waitMs = z
  .int()
  .min(0)
  .max(2 ** 31 - 1);
const delayMs = waitMs.optional();

/** What may stand in a header. */
const headerText = z.string().refine((text) => /^[\t\x20-\x7e\x80-\xff]*$/.test(text), {
  error: 'must be a text of one line, as a header can hold',
});

/** An object without unknown fields; what is said of one names those that there are. */
export function strictly<Shape extends z.core.$ZodLooseShape>(shape: Shape) {
  return z.strictObject(shape, {
    error: (issue) =>
      issue.code === 'unrecognized_keys'
        ? `has no field ${(issue.keys as string[]).join(', ')}; it may have: ${Object.keys(shape).join(', ')}`
        : undefined,
  });
}

const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'HEAD', 'OPTIONS'] as const;

const KINDS = [
  'status',
  'raw',
  'delay',
  'hang',
  'reset',
  'cutBody',
  'truncatedJson',
  'itemsNull',
  'wrongPageEcho',
  'emptyList',
  'revokeTokens',
  'pageDrift',
];

const faultSchema = z.discriminatedUnion(
  'kind',
  [
    /** Answers with a status. `validation` is the isValid/validationMessages body, `html` a proxy's page. */
    strictly({
      kind: z.literal('status'),
      status: z.int().min(200).max(599),
      body: z.enum(['problem', 'validation', 'empty', 'html']).default('problem'),
      /** Seconds, or the text of the Retry-After header. */
      retryAfter: z.union([z.int(), headerText]).optional(),
      delayMs,
    }),
    /** Answers with any body. */
    strictly({
      kind: z.literal('raw'),
      status: z.int().min(200).max(599).default(200),
      contentType: headerText.default('application/json'),
      body: z.string(),
      delayMs,
    }),
    /** Answers as usual, later. */
    strictly({ kind: z.literal('delay'), delayMs: waitMs }),
    /** Never answers. */
    strictly({ kind: z.literal('hang') }),
    /** Resets the connection without an answer. */
    strictly({ kind: z.literal('reset'), delayMs }),
    /** Sends half of the body that content-length announced, then closes the connection. */
    strictly({ kind: z.literal('cutBody'), delayMs }),
    /** Sends half of the JSON as if it were all. */
    strictly({ kind: z.literal('truncatedJson'), delayMs }),
    /** Sends a list page whose items are null. */
    strictly({ kind: z.literal('itemsNull'), delayMs }),
    /** Sends a list page that claims to be another one: the next by default. */
    strictly({
      kind: z.literal('wrongPageEcho'),
      pageNumber: z.int().optional(),
      pageSize: z.int().optional(),
      delayMs,
    }),
    /** Sends an empty list with 200. */
    strictly({ kind: z.literal('emptyList'), delayMs }),
    /** Forgets all tokens of the request's account (of the region, when it has none), then answers as usual: 401 at the API. */
    strictly({ kind: z.literal('revokeTokens'), delayMs }),
    /**
     * Changes the list before the page is answered, so that a client who reads page by page misses jobs or sees them twice: puts
     * in new ones, and hides the newest (their details answer as before) for so many seconds.
     */
    strictly({
      kind: z.literal('pageDrift'),
      insert: z.int().min(0).max(1000).default(0),
      hide: z.int().min(0).max(1000).default(0),
      forSeconds: z.number().positive().max(1e6).default(60),
      delayMs,
    }),
  ],
  { error: (issue) => (issue.code === 'invalid_union' ? `must be one of: ${KINDS.join(', ')}` : undefined) },
);

/** A rule as it is given. */
export const ruleSchema = strictly({
  match: strictly({
    region: z.enum(REGIONS).optional(),
    /** Name, client id or upstream id. */
    account: z.union([z.string(), z.int()]).optional(),
    operation: z.enum(OPERATIONS).optional(),
    method: z
      .string()
      .transform((name) => name.toUpperCase())
      .pipe(z.enum(METHODS))
      .optional(),
    /** A regular expression over the path below the region's prefix, such as `^/api/Jobs/`. */
    path: z
      .union([z.instanceof(RegExp), z.string().transform(toRegExp)], {
        error: 'must be a regular expression',
      })
      .optional(),
    /** Query parameters by name; each must have this value. */
    query: z.record(z.string(), z.union([z.string(), z.number(), z.boolean()])).optional(),
    /** A job number: list requests, searches among them, whose page would show this job. */
    listsJob: z.int().optional(),
    /** The first matching request that is struck, counted from 1 since the rule was added. */
    nth: z.int().min(1).optional(),
    /** How many are struck from there on: one when `nth` is given, otherwise all. */
    times: z.int().min(1).optional(),
  }).default({}),
  fault: faultSchema,
});

/** What goes wrong with a request. */
export type Fault = z.infer<typeof faultSchema>;

/** How a list changes between two reads of it. */
export type PageDrift = Extract<Fault, { kind: 'pageDrift' }>;

/** Which requests go wrong, and how; checked when added. */
export type FaultRule = z.input<typeof ruleSchema>;

/** A rule in force: how many requests it has matched and struck. */
export interface ActiveFault {
  id: string;
  match: z.infer<typeof ruleSchema>['match'];
  fault: Fault;
  seen: number;
  struck: number;
}

/** A rule or a happening names an account that is not there; the message goes on after what names it. */
export class UnknownAccountError extends Error {
  override name = 'UnknownAccountError';
}

/** The account with this name, client id or upstream id. Throws UnknownAccountError when there is none. */
export function knownAccount(world: World, key: string | number, region?: RegionCode): SandboxAccount {
  const found = (region ? [region] : REGIONS).map((code) => world.account(code, key)).find(Boolean);
  if (found) return found;
  const names = world.accounts(region).map(({ clientId }) => clientId);
  throw new UnknownAccountError(
    `names ${JSON.stringify(key)}, which is no account${region ? ` in ${region}` : ''}; there ${
      names.length === 0 ? 'are none' : `are: ${names.join(', ')}`
    }`,
  );
}

/** The rules in force. They are asked in the order in which they were added; the first that strikes wins. */
export class FaultBook {
  #rules: ActiveFault[] = [];
  #count = 0;

  /** Puts a rule in force and returns its id. Throws a ZodError when it is not a rule. */
  add(rule: FaultRule): string {
    const { match, fault } = ruleSchema.parse(rule);
    this.#count += 1;
    const id = `fault-${this.#count}`;
    this.#rules.push({ id, match, fault, seen: 0, struck: 0 });
    return id;
  }

  /** Ends a rule; false if there is none of that id. */
  remove(id: string): boolean {
    const before = this.#rules.length;
    this.#rules = this.#rules.filter((rule) => rule.id !== id);
    return this.#rules.length < before;
  }

  /** Ends all rules. */
  clear(): void {
    this.#rules = [];
  }

  /** The rules in force, spent ones included. */
  list(): readonly Readonly<ActiveFault>[] {
    return this.#rules;
  }

  /** The rule that strikes this request, if one does; `lists` tells whether its answer would list a job. Counts. */
  take(info: RequestInfo, lists: (jobNumber: number) => boolean): Readonly<ActiveFault> | undefined {
    // All count, also those that come too late to strike: the second request is the second for each of them.
    const matching = this.#rules.filter((rule) => matches(rule, info, lists));
    for (const rule of matching) rule.seen += 1;
    const first = matching.find(isDue);
    if (first) first.struck += 1;
    return first;
  }
}

/** With `nth` the requests are named by their places, so that turns can be missed; without, so many are struck as there may be. */
function isDue({ match: { nth, times }, seen, struck }: ActiveFault): boolean {
  if (nth === undefined) return times === undefined || struck < times;
  return seen >= nth && seen < nth + (times ?? 1);
}

/** What a fault works with. */
export interface Victim {
  info: RequestInfo;
  /** Absolute path of the request, for problem bodies. */
  instance: string;
  /** Makes up the answer the request would get; called at most once. */
  answer: () => Answer;
  /** Absent when the app is called without a server: then faults of the connection throw. */
  outgoing: ServerResponse | undefined;
  revokeTokens: () => void;
  drift: (how: PageDrift) => void;
}

/** Applies a fault. Returns the answer to send, or null when the connection has been dealt with. */
export async function strike(fault: Fault, victim: Victim): Promise<Answer | null> {
  if ('delayMs' in fault && fault.delayMs && !(await delay(fault.delayMs, victim.outgoing))) return null;
  switch (fault.kind) {
    case 'status':
      return statusAnswer(fault, victim.instance);
    case 'raw':
      return { status: fault.status, headers: { 'content-type': fault.contentType }, body: fault.body };
    case 'delay':
      return victim.answer();
    case 'hang': {
      const outgoing = socketOf(victim);
      // Ends when the client gives up or the sandbox is stopped.
      if (!outgoing.destroyed) await new Promise((resolve) => outgoing.once('close', resolve));
      return null;
    }
    case 'reset':
      socketOf(victim).socket?.resetAndDestroy();
      return null;
    case 'cutBody': {
      const outgoing = socketOf(victim);
      const answer = victim.answer();
      const body = Buffer.from(answer.body);
      outgoing.writeHead(answer.status, { ...answer.headers, 'content-length': body.length });
      outgoing.write(body.subarray(0, Math.floor(body.length / 2)), () => outgoing.socket?.destroy());
      return null;
    }
    case 'truncatedJson': {
      const answer = victim.answer();
      return { ...answer, body: answer.body.slice(0, Math.floor(answer.body.length / 2)) };
    }
    case 'itemsNull':
      return reworked(victim.answer(), () => ({ items: null }));
    case 'wrongPageEcho':
      return reworked(victim.answer(), (page) => ({
        pageNumber:
          fault.pageNumber ?? (fault.pageSize === undefined ? page.pageNumber + 1 : page.pageNumber),
        pageSize: fault.pageSize ?? page.pageSize,
      }));
    case 'emptyList':
      return reworked(victim.answer(), () => ({
        items: [],
        totalCount: 0,
        totalPages: 0,
        hasPreviousPage: false,
        hasNextPage: false,
      }));
    case 'revokeTokens':
      victim.revokeTokens();
      return victim.answer();
    case 'pageDrift':
      victim.drift(fault);
      return victim.answer();
  }
}

/** Faults that are about a page of the job list touch nothing else. */
const LIST_FAULTS: readonly Fault['kind'][] = ['itemsNull', 'wrongPageEcho', 'emptyList', 'pageDrift'];

function matches(
  { match, fault }: ActiveFault,
  info: RequestInfo,
  lists: (jobNumber: number) => boolean,
): boolean {
  const { account } = info;
  return (
    (!LIST_FAULTS.includes(fault.kind) || info.operation === 'activeJobs') &&
    (match.region === undefined || match.region === info.region) &&
    (match.account === undefined ||
      (account !== undefined &&
        [account.name, account.clientId, String(account.id)].includes(String(match.account)))) &&
    (match.operation === undefined || match.operation === info.operation) &&
    (match.method === undefined || match.method === info.method) &&
    (match.path === undefined || info.path.search(match.path) >= 0) &&
    Object.entries(match.query ?? {}).every(([name, value]) => info.query[name] === String(value)) &&
    (match.listsJob === undefined || lists(match.listsJob))
  );
}

function toRegExp(source: string, context: z.RefinementCtx): RegExp {
  try {
    return new RegExp(source);
  } catch {
    context.addIssue({ code: 'custom', message: 'must be a regular expression' });
    return z.NEVER;
  }
}

function statusAnswer(fault: Extract<Fault, { kind: 'status' }>, instance: string): Answer {
  const { status, retryAfter } = fault;
  const answer = ((): Answer => {
    switch (fault.body) {
      case 'problem':
        return problem(status, 'The request could not be served.', instance);
      case 'validation':
        return json(
          {
            isValid: false,
            validationMessages: [{ errorCode: 'Unspecified', message: 'The request could not be served.' }],
          },
          status,
        );
      case 'empty':
        return { status, headers: {}, body: '' };
      case 'html':
        return {
          status,
          headers: { 'content-type': 'text/html' },
          body: `<html><head><title>${status}</title></head><body><h1>${status}</h1><hr>proxy</body></html>`,
        };
    }
  })();
  if (retryAfter !== undefined) answer.headers['retry-after'] = String(retryAfter);
  return answer;
}

/** Replaces fields of a good list page; any other answer stays as it is. */
function reworked(
  answer: Answer,
  change: (page: { pageNumber: number; pageSize: number }) => object,
): Answer {
  if (answer.status !== 200) return answer;
  const page = JSON.parse(answer.body);
  return { ...answer, body: JSON.stringify({ ...page, ...change(page) }) };
}

function socketOf(victim: Victim): ServerResponse {
  if (!victim.outgoing) throw new Error('Faults of the connection need a server');
  return victim.outgoing;
}

/** Waits; false when the connection closed meanwhile. */
async function delay(ms: number, outgoing: ServerResponse | undefined): Promise<boolean> {
  const gone = new AbortController();
  const onClose = () => gone.abort();
  outgoing?.once('close', onClose);
  try {
    await sleep(ms, undefined, { signal: gone.signal });
    return true;
  } catch {
    return false;
  } finally {
    outgoing?.off('close', onClose);
  }
}
