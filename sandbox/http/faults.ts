// Fault injection: rules that select requests and their faults.

import type { ServerResponse } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import * as z from 'zod';
import { REGIONS, type RegionCode } from '../world/regions.ts';
import type { SandboxAccount, World } from '../world/world.ts';
import { type HttpResponse, json, problem } from './responses.ts';
import { OPERATIONS, type RequestInfo, VIEWS } from './traffic.ts';

/** Maximum delay of a timer; longer delays would fire immediately. */
const waitMs = z
  .int()
  .min(0)
  .max(2 ** 31 - 1);
const delayMs = waitMs.optional();

/** Characters allowed in a header. */
const headerText = z.string().refine((text) => /^[\t\x20-\x7e\x80-\xff]*$/.test(text), {
  error: 'must be a text of one line, as a header can hold',
});

/** An object without unknown fields; the error message lists the known ones. */
export function strictObject<Shape extends z.core.$ZodLooseShape>(shape: Shape) {
  return z.strictObject(shape, {
    error: (issue) =>
      issue.code === 'unrecognized_keys'
        ? `has no field ${(issue.keys as string[]).join(', ')}; it may have: ${Object.keys(shape).join(', ')}`
        : undefined,
  });
}

/** Identifies an account. */
export const accountKey = z
  .union([z.string(), z.int()], { error: 'must be a name, a client id or an upstream id' })
  .describe('Name, client id or upstream id.');

const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'HEAD', 'OPTIONS'] as const;

const faultSchemas = [
  /** Answers with a status. `validation` is the isValid/validationMessages body, `html` a proxy's page. */
  strictObject({
    kind: z.literal('status'),
    status: z.int().min(200).max(599),
    body: z.enum(['problem', 'validation', 'empty', 'html']).default('problem'),
    /** Seconds, or the text of the Retry-After header. */
    retryAfter: z.union([z.int(), headerText]).optional(),
    delayMs,
  }),
  /** Answers with any body. */
  strictObject({
    kind: z.literal('raw'),
    status: z.int().min(200).max(599).default(200),
    contentType: headerText.default('application/json'),
    body: z.string(),
    delayMs,
  }),
  /** Answers as usual, later. */
  strictObject({ kind: z.literal('delay'), delayMs: waitMs }),
  /** Never answers. */
  strictObject({ kind: z.literal('hang') }),
  /** Resets the connection without an answer. */
  strictObject({ kind: z.literal('reset'), delayMs }),
  /** Sends half of the body given by content-length, then closes the connection. */
  strictObject({ kind: z.literal('cutBody'), delayMs }),
  /** Sends half of the JSON as a complete body. */
  strictObject({ kind: z.literal('truncatedJson'), delayMs }),
  /** Sends a list page whose items are null. */
  strictObject({ kind: z.literal('itemsNull'), delayMs }),
  /** Sends a list page with the number of another page. Default: the next one. */
  strictObject({
    kind: z.literal('wrongPageEcho'),
    pageNumber: z.int().optional(),
    pageSize: z.int().optional(),
    delayMs,
  }),
  /** Sends an empty list with 200. */
  strictObject({ kind: z.literal('emptyList'), delayMs }),
  /** Revokes all tokens of the request's account (of the region, if it has none), then answers normally: 401 at the API. */
  strictObject({ kind: z.literal('revokeTokens'), delayMs }),
  /**
   * Changes the list before the page is answered, so that a client misses jobs or reads them twice: adds new jobs, and hides
   * the newest ones for a number of seconds. Their details still answer.
   */
  strictObject({
    kind: z.literal('pageDrift'),
    insert: z.int().min(0).max(1000).default(0),
    hide: z.int().min(0).max(1000).default(0),
    forSeconds: z.number().positive().max(1e6).default(60),
    delayMs,
  }).refine(
    ({ insert, hide }) => insert > 0 || hide > 0,
    'must have insert or hide, as a number from 1 to 1000',
  ),
] as const;

const faultSchema = z.discriminatedUnion('kind', faultSchemas, {
  error: (issue) =>
    issue.code === 'invalid_union'
      ? `must be one of: ${faultSchemas.map(({ shape }) => shape.kind.value).join(', ')}`
      : undefined,
});

/** A rule as given by the caller. */
export const ruleSchema = strictObject({
  match: strictObject({
    region: z.enum(REGIONS).optional(),
    account: accountKey.optional(),
    operation: z.enum(OPERATIONS).optional(),
    view: z.enum(VIEWS).optional(),
    method: z
      .string()
      .transform((name) => name.toUpperCase())
      .pipe(z.enum(METHODS))
      .optional(),
    /** A regular expression for the path below the region's prefix, such as `^/api/Jobs/`. */
    path: z
      .union([z.instanceof(RegExp), z.string().transform(toRegExp)], {
        error: 'must be a regular expression',
      })
      .optional(),
    /** Query parameters by name; each must have this value. */
    query: z.record(z.string(), z.union([z.string(), z.number(), z.boolean()])).optional(),
    /** A job number: matches list requests and searches whose page contains this job. */
    listsJob: z.int().optional(),
    /** The first matching request that is struck, counted from 1 since the rule was added. */
    nth: z.int().min(1).optional(),
    /** Number of requests to fault from there on. Default: one with `nth`, otherwise all. */
    times: z.int().min(1).optional(),
  }).default({}),
  fault: faultSchema,
});

/** Fault to apply to a request. */
export type Fault = z.infer<typeof faultSchema>;

/** Changes of a list between two reads. */
export type PageDrift = Extract<Fault, { kind: 'pageDrift' }>;

/** Which requests go wrong, and how; checked when added. */
export type FaultRule = z.input<typeof ruleSchema>;

/** An active rule: number of requests matched and faulted. */
export interface ActiveFault {
  id: string;
  match: z.infer<typeof ruleSchema>['match'];
  fault: Fault;
  seen: number;
  struck: number;
}

/** A rule or a scheduled change names an unknown account; the message continues after the name of the rule. */
export class UnknownAccountError extends Error {
  override name = 'UnknownAccountError';
}

/** The account with this name, client id or upstream id. Throws UnknownAccountError if it does not exist. */
export function requireAccount(world: World, key: string | number, region?: RegionCode): SandboxAccount {
  const found = (region ? [region] : REGIONS).map((code) => world.account(code, key)).find(Boolean);
  if (found) return found;
  const names = world.accounts(region).map(({ clientId }) => clientId);
  throw new UnknownAccountError(
    `names ${JSON.stringify(key)}, which is no account${region ? ` in ${region}` : ''}; there ${
      names.length === 0 ? 'are none' : `are: ${names.join(', ')}`
    }`,
  );
}

/** The active rules, in the order in which they were added; the first one that applies wins. */
export class FaultRules {
  #rules: ActiveFault[] = [];
  #count = 0;

  /** Activates a rule and returns its id. Throws ZodError if it is invalid. */
  add(rule: FaultRule): string {
    const { match, fault } = ruleSchema.parse(rule);
    this.#count += 1;
    const id = `fault-${this.#count}`;
    this.#rules.push({ id, match, fault, seen: 0, struck: 0 });
    return id;
  }

  /** Deletes a rule; false if it does not exist. */
  remove(id: string): boolean {
    const before = this.#rules.length;
    this.#rules = this.#rules.filter((rule) => rule.id !== id);
    return this.#rules.length < before;
  }

  /** Ends all rules. */
  clear(): void {
    this.#rules = [];
  }

  /** The active rules, including exhausted ones. */
  list(): readonly Readonly<ActiveFault>[] {
    return this.#rules;
  }

  /** Returns the rule that applies to this request and counts the match. `lists` returns whether its answer would list a job. */
  take(info: RequestInfo, lists: (jobNumber: number) => boolean): Readonly<ActiveFault> | undefined {
    // All rules count the request, whichever applies.
    const matching = this.#rules.filter((rule) => matches(rule, info, lists));
    for (const rule of matching) rule.seen += 1;
    const first = matching.find(isDue);
    if (first) first.struck += 1;
    return first;
  }
}

/** With `nth`, the rule applies to the request positions; without it, to the first `count` requests. */
function isDue({ match: { nth, times }, seen, struck }: ActiveFault): boolean {
  if (nth === undefined) return times === undefined || struck < times;
  return seen >= nth && seen < nth + (times ?? 1);
}

/** Context of a fault. */
export interface FaultContext {
  info: RequestInfo;
  /** Absolute path of the request, for problem bodies. */
  instance: string;
  /** Creates the regular answer; called at most once. */
  answer: () => HttpResponse;
  /** Absent if the app runs without a server: connection faults then throw. */
  outgoing: ServerResponse | undefined;
  revokeTokens: () => void;
  drift: (how: PageDrift) => void;
}

/** Applies a fault. Returns the answer to send, or null when the connection has been dealt with. */
export async function applyFault(fault: Fault, context: FaultContext): Promise<HttpResponse | null> {
  if ('delayMs' in fault && fault.delayMs && !(await delay(fault.delayMs, context.outgoing))) return null;
  switch (fault.kind) {
    case 'status':
      return statusAnswer(fault, context.instance);
    case 'raw':
      return { status: fault.status, headers: { 'content-type': fault.contentType }, body: fault.body };
    case 'delay':
      return context.answer();
    case 'hang': {
      const outgoing = requireSocket(context);
      // Aborted when the client disconnects or the sandbox stops.
      if (!outgoing.destroyed) await new Promise((resolve) => outgoing.once('close', resolve));
      return null;
    }
    case 'reset':
      requireSocket(context).socket?.resetAndDestroy();
      return null;
    case 'cutBody': {
      const outgoing = requireSocket(context);
      const answer = context.answer();
      const body = Buffer.from(answer.body);
      outgoing.writeHead(answer.status, { ...answer.headers, 'content-length': body.length });
      outgoing.write(body.subarray(0, Math.floor(body.length / 2)), () => outgoing.socket?.destroy());
      return null;
    }
    case 'truncatedJson': {
      const answer = context.answer();
      return { ...answer, body: answer.body.slice(0, Math.floor(answer.body.length / 2)) };
    }
    case 'itemsNull':
      return transformPage(context.answer(), () => ({ items: null }));
    case 'wrongPageEcho':
      return transformPage(context.answer(), (page) => ({
        pageNumber:
          fault.pageNumber ?? (fault.pageSize === undefined ? page.pageNumber + 1 : page.pageNumber),
        pageSize: fault.pageSize ?? page.pageSize,
      }));
    case 'emptyList':
      return transformPage(context.answer(), () => ({
        items: [],
        totalCount: 0,
        totalPages: 0,
        hasPreviousPage: false,
        hasNextPage: false,
      }));
    case 'revokeTokens':
      context.revokeTokens();
      return context.answer();
    case 'pageDrift':
      context.drift(fault);
      return context.answer();
  }
}

/** Faults of job list pages affect nothing else. */
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
    (match.view === undefined || match.view === info.view) &&
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

function statusAnswer(fault: Extract<Fault, { kind: 'status' }>, instance: string): HttpResponse {
  const { status, retryAfter } = fault;
  const answer = ((): HttpResponse => {
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

/** Replaces fields of a valid list page; other answers are unchanged. */
function transformPage(
  answer: HttpResponse,
  change: (page: { pageNumber: number; pageSize: number }) => object,
): HttpResponse {
  if (answer.status !== 200) return answer;
  const page = JSON.parse(answer.body);
  return { ...answer, body: JSON.stringify({ ...page, ...change(page) }) };
}

function requireSocket(context: FaultContext): ServerResponse {
  if (!context.outgoing) throw new Error('Faults of the connection need a server');
  return context.outgoing;
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
