/**
 * Contract freedom: settings with which the sandbox uses what the contract of the ordering API leaves open. By default it uses
 * none of it.
 */
import * as z from 'zod';
import { REGIONS, type RegionCode } from '../world/regions.ts';
import type { World } from '../world/world.ts';
import { strictObject } from './faults.ts';
import { drawShare, type Reshaping, reshape } from './reshape.ts';
import { type HttpResponse, json, problem } from './responses.ts';
import { pickSpelling, SPELLINGS } from './spelling.ts';
import { VIEWS, type View } from './traffic.ts';

const view = z.enum(VIEWS);
const share = z.number().min(0).max(1);

/** The settings. Absent ones use no freedom. */
export const freedomSchema = strictObject({
  /** Source of all choices: the same seed and the same requests give the same answers. */
  seed: z.int().default(1),
  /** Age of the state that a view shows, in seconds. Default: 0; of `closedSearch`: that of `search`. */
  lagSeconds: z
    .partialRecord(view, z.number().min(0).max(86_400), {
      error: (issue: z.core.$ZodRawIssue) =>
        issue.code === 'unrecognized_keys'
          ? `has no view ${issue.keys.join(', ')}; it may have: ${VIEWS.join(', ')}`
          : undefined,
    })
    .default({}),
  /** Nullable fields that are null although there is a value: always the same ones of a job in a view. */
  nulls: strictObject({
    share: share.default(0),
    /** Other shares, by field, or by view and field: `dateOut`, `detail.location.timezone`. */
    fields: z.record(z.string(), share).default({}),
    /** Share of the null fields that are omitted. */
    omitted: share.default(0),
  }).prefault({}),
  /** Timestamps in other spellings. */
  spelling: strictObject({
    styles: z.array(z.enum(SPELLINGS)).default([]),
    /** Share of the answers that use a style; each style is drawn for each answer. */
    share: share.default(0.5),
    /** Share of the null timestamps that are written as `0001-01-01T00:00:00`, drawn for each value. */
    placeholders: share.default(0),
  }).prefault({}),
  /** Minutes by which the server's clock is ahead: in the Date header, and in `dateIn` and `dateOut` from now on. */
  clockSkewMinutes: z.number().min(-1440).max(1440).default(0),
  statuses: strictObject({
    /** Response of the status lookup: all entries, none, or 500. */
    lookup: z.enum(['all', 'empty', 'error']).default('all'),
    /** Renames that are still spreading: values of these views have the former name, drawn for each value. */
    renames: z
      .array(
        strictObject({
          region: z.enum(REGIONS),
          former: z.string(),
          current: z.string(),
          share,
          views: z.array(view).default(VIEWS.filter((name) => name !== 'statuses')),
        }),
      )
      .default([]),
  }).prefault({}),
  /** Jobs that the API cannot answer properly. */
  records: z
    .array(
      strictObject({
        region: z.enum(REGIONS),
        jobNumber: z.int(),
        /** Status of the response with its detail: 500 or 403. */
        detail: z.enum(['error', 'forbidden']).optional(),
        /** Length of the description in its detail. */
        descriptionLength: z.int().min(0).max(10_000_000).optional(),
        /** Its number in lists. */
        listedAs: z.number().optional(),
      }),
    )
    .default([]),
  /** Views that answer an error with Retry-After. */
  throttled: z
    .partialRecord(
      view,
      strictObject({
        status: z.int().min(400).max(599).default(429),
        retryAfterSeconds: z.int().min(0),
      }),
    )
    .default({}),
});

/** Settings as given by the caller. */
export type FreedomSettings = z.input<typeof freedomSchema>;

/** Complete settings. */
export type Freedom = z.output<typeof freedomSchema>;

/** A request whose answer may use a freedom. */
export interface FreeRequest {
  readonly region: RegionCode;
  /** Undefined for requests that read no view. */
  readonly view: View | undefined;
  readonly operation: string;
  readonly jobNumber: number | undefined;
  /** Path of the request, for problems. */
  readonly instance: string;
  /** The documented shape of a success. */
  readonly schema: z.ZodType | undefined;
}

const NONE = freedomSchema.parse({});

/** The freedoms in use. */
export class ContractFreedom {
  readonly #world: World;
  #settings: Freedom = NONE;
  #answerCount = 0;

  constructor(world: World) {
    this.#world = world;
  }

  /** The settings in force, complete. */
  get settings(): Freedom {
    return this.#settings;
  }

  /** Replaces the given settings; others stay. Throws ZodError if they are invalid. */
  set(changes: FreedomSettings): void {
    const given = Object.entries(freedomSchema.parse(changes)).filter(([name]) => name in changes);
    this.#settings = { ...this.#settings, ...Object.fromEntries(given) };
    const { lagSeconds, clockSkewMinutes } = this.#settings;
    const longest = Math.max(0, ...Object.values(lagSeconds).map((seconds) => seconds ?? 0));
    // A lag that is reduced for a while must find earlier versions when it is raised again.
    this.#world.historyMs = Math.max(this.#world.historyMs, longest * 1000);
    this.#world.clockSkewMs = clockSkewMinutes * 60_000;
  }

  /** Uses no freedom any more, and forgets the history. */
  clear(): void {
    this.#settings = NONE;
    this.#world.historyMs = 0;
    this.#world.clockSkewMs = 0;
  }

  /** Lag of a view, in ms. */
  lagMs(name: View | undefined): number {
    if (name === undefined || this.#world.historyMs === 0) return 0;
    const { lagSeconds } = this.#settings;
    return (lagSeconds[name] ?? (name === 'closedSearch' ? lagSeconds.search : undefined) ?? 0) * 1000;
  }

  /** Answers a request with the freedoms in use; `answer` creates the regular answer. */
  apply(request: FreeRequest, answer: () => HttpResponse): HttpResponse {
    const { statuses, throttled, records } = this.#settings;
    if (this.#settings === NONE) return answer();
    const { region, view: name, instance, jobNumber } = request;
    const limit = name && throttled[name];
    if (limit) {
      const limited = problem(limit.status, 'Too many requests of this kind.', instance);
      limited.headers['retry-after'] = String(limit.retryAfterSeconds);
      return limited;
    }
    if (name === 'statuses' && statuses.lookup !== 'all') {
      return statuses.lookup === 'empty' ? json([]) : problem(500, 'An unexpected error.', instance);
    }
    const regular = answer();
    if (regular.status !== 200 || !request.schema) return regular;
    const record =
      name === 'detail'
        ? records.find((one) => one.region === region && one.jobNumber === jobNumber)
        : undefined;
    if (record?.detail === 'error') return problem(500, 'An unexpected error.', instance);
    if (record?.detail === 'forbidden') return problem(403, 'The job may not be read.', instance);
    const body = reshape(request.schema, JSON.parse(regular.body), this.#reshaping(request));
    return { ...regular, body: JSON.stringify(body) };
  }

  #reshaping({ region, view: name, operation }: FreeRequest): Reshaping {
    const { seed, nulls, spelling, statuses, records } = this.#settings;
    this.#answerCount += 1;
    const draw = (...parts: (string | number)[]) => drawShare([seed, ...parts].join('\n'));
    // Choices of a job are the same in every answer; others are drawn for each answer.
    const source = name ?? (operation === 'patchJob' ? 'detail' : operation);
    const drawOnce = (...parts: (string | number)[]) => draw(this.#answerCount, ...parts);
    const spell = pickSpelling(spelling.styles.filter((style) => drawOnce(style) < spelling.share));
    const renames = statuses.renames.filter(
      (one) => one.region === region && name && one.views.includes(name),
    );
    const listed = operation === 'activeJobs' ? records.filter((one) => one.region === region) : [];
    const oversized = name === 'detail' ? records.filter((one) => one.region === region) : [];
    return {
      isNull: (record, path, field) => {
        const { fields } = nulls;
        return draw(source, record, path) < (fields[`${source}.${field}`] ?? fields[field] ?? nulls.share);
      },
      isOmitted: (record, path) => draw(source, record, path, 'omitted') < nulls.omitted,
      timestamp: spell,
      isPlaceholder: (record, path) => drawOnce(record, path) < spelling.placeholders,
      statusFields: name === 'statuses' ? ['name'] : ['masterJobStatus', 'jobStatus', 'lines.jobLineStatus'],
      status: (value, record, path) =>
        renames.find(({ current, share: part }) => current === value && drawOnce(record, path) < part)
          ?.former ?? value,
      record: (fields) => {
        const listedAs = listed.find(({ jobNumber }) => jobNumber === fields.jobNumber)?.listedAs;
        const length = oversized.find(({ jobNumber }) => jobNumber === fields.jobNumber)?.descriptionLength;
        return {
          ...fields,
          ...(listedAs !== undefined && { jobNumber: listedAs }),
          ...(length !== undefined && { description: 'x'.repeat(length) }),
        };
      },
    };
  }
}
