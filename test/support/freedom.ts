/**
 * The freedoms of the contract as fast-check values: the lag of each view, fields it never contains, spellings, and temporary
 * failures. The contract freedom of the sandbox (sandbox/http/freedom.ts) applies all of them.
 */
import fc from 'fast-check';
import type { FreedomSettings } from '../../sandbox/http/freedom.ts';
import { drawShare } from '../../sandbox/http/reshape.ts';
import type { Spelling } from '../../sandbox/http/spelling.ts';
import type { Sight } from './freedom-oracle.ts';
import type { History } from './history.ts';

/** Freedoms that an API uses permanently. */
export interface WorldFreedom {
  readonly seed: number;
  readonly lagSeconds: NonNullable<FreedomSettings['lagSeconds']>;
  /** Fields, each with its view, that are null for some of the jobs: always for the same jobs. */
  readonly hidden: readonly string[];
  readonly omitted: number;
  readonly styles: readonly Spelling[];
  readonly placeholders: number;
  readonly clockSkewMinutes: number;
}

type Records = NonNullable<FreedomSettings['records']>;

/** Freedoms that an API uses from one poll to the next. */
export interface RoundFreedom {
  /** Fields that are null for some of the jobs in this round only. */
  readonly flicker: readonly string[];
  readonly throttled: { readonly view: ThrottledView; readonly retryAfterSeconds: number } | null;
  /** A job that cannot be read properly, in this round or permanently. `job` counts from the newest job back. */
  readonly record: {
    readonly job: number;
    readonly what: Omit<Records[number], 'region' | 'jobNumber'>;
    readonly lasts: boolean;
  } | null;
}

const THROTTLED = ['active', 'closed', 'search', 'closedSearch', 'groups', 'detail'] as const;
type ThrottledView = (typeof THROTTLED)[number];

/** Fields of which the contract permits null, each in one view. */
const HIDDEN = [
  'active.orderNumber',
  'active.description',
  'active.dateOut',
  'active.orderGroup',
  'active.originCode',
  'active.permissions',
  'active.tracking',
  'active.masterJobStatus',
  'detail.orderNumber',
  'detail.orderGroup',
  'detail.orderGroupSequence',
  'detail.description',
  'detail.dateIn',
  'detail.dateOut',
  'detail.permissions',
  'detail.location',
  'detail.shippingAddresses',
  'detail.lines',
  'detail.jobStatus',
  'groups.orderGroup',
  'closed.dateOut',
  'closedSearch.dateOut',
] as const;
/** Null means "not given" for these: an absent value has not changed (rule 4). */
const FLICKERING = [
  'active.masterJobStatus',
  'active.permissions',
  'detail.jobStatus',
  'detail.permissions',
  'detail.orderNumber',
  'detail.orderGroup',
  'detail.orderGroupSequence',
  'detail.location',
] as const;
const SHARE = 0.5;

const lag = fc.constantFrom(0, 0, 0, 20, 90, 300, 900);

/** The freedoms of an API. An API that writes UTC never omits the zone: otherwise the time would be ambiguous. */
export const worldFreedoms: fc.Arbitrary<WorldFreedom> = fc.record({
  seed: fc.nat(1_000),
  lagSeconds: fc.record({ active: lag, closed: lag, search: lag, groups: lag, detail: lag }),
  hidden: fc.subarray([...HIDDEN], { maxLength: 4 }),
  omitted: fc.constantFrom(0, 0.5),
  styles: fc.oneof(
    fc.subarray<Spelling>(['noSeconds', 'milliseconds', 'sevenDigits', 'space', 'utc']),
    fc.subarray<Spelling>(['noSeconds', 'milliseconds', 'sevenDigits', 'space', 'dateOnly', 'noOffset']),
  ),
  placeholders: fc.constantFrom(0, 0.5),
  clockSkewMinutes: fc.constantFrom(0, 0, -7, 7, -14, 14, 45),
});

/** The freedoms of an API in one round. Most rounds have none. */
export const roundFreedoms: fc.Arbitrary<RoundFreedom | null> = fc.oneof(
  { withCrossShrink: true },
  { weight: 2, arbitrary: fc.constant(null) },
  {
    weight: 1,
    arbitrary: fc.record({
      flicker: fc.subarray([...FLICKERING], { maxLength: 3 }),
      throttled: fc.option(
        fc.record({
          view: fc.constantFrom(...THROTTLED),
          retryAfterSeconds: fc.constantFrom(30, 120, 600),
        }),
        { freq: 2 },
      ),
      record: fc.option(
        fc.record({
          job: fc.nat(9),
          what: fc.constantFrom<NonNullable<RoundFreedom['record']>['what']>(
            { detail: 'error' },
            { detail: 'forbidden' },
            { descriptionLength: 50_000 },
            { listedAs: -7 },
            { listedAs: 1_000_000_000_000 },
          ),
          lasts: fc.boolean(),
        }),
        { freq: 2 },
      ),
    }),
  },
);

/** An API that uses its freedoms, and what the oracle has to know about it. */
export function createFreedoms(world: WorldFreedom, history: History, set: (to: FreedomSettings) => void) {
  const lasting: Records = [];
  const unusable = new Set<string>();
  const flickered = new Set<string>();
  let wasThrottled = false;
  const allHidden = () => [...world.hidden, ...flickered];
  const isNull = (view: string, jobNumber: number, field: string) =>
    allHidden().includes(`${view}.${field}`) &&
    drawShare([world.seed, view, String(jobNumber), field].join('\n')) < SHARE;
  const viewName = (view: 'list' | 'detail') => (view === 'list' ? 'active' : 'detail');
  const isUnusable = (records: Records, view: 'list' | 'detail', jobNumber: number) =>
    records.some(
      (record) =>
        record.jobNumber === jobNumber &&
        (view === 'list' ? record.listedAs !== undefined : record.detail !== undefined),
    );

  function apply(round: RoundFreedom | null): void {
    const { renaming } = history;
    const records = [...lasting];
    const jobNumber =
      round?.record && history.jobs.at(-1 - (round.record.job % Math.max(1, history.jobs.length)));
    if (round?.record && jobNumber) {
      const record = { region: 'us' as const, jobNumber, ...round.record.what };
      records.push(record);
      for (const view of ['list', 'detail'] as const) {
        if (isUnusable([record], view, jobNumber)) unusable.add(`${view} ${jobNumber}`);
      }
      if (round.record.lasts) lasting.push(record);
    }
    // A value that neither view contains any more cannot be distinguished from a cleared one.
    const flickering = (round?.flicker ?? []).filter(
      (field) => !world.hidden.includes(field.replace('detail.', 'active.').replace('Sequence', '')),
    );
    for (const field of flickering) flickered.add(field);
    wasThrottled ||= round?.throttled?.view === 'detail';
    set({
      seed: world.seed,
      lagSeconds: world.lagSeconds,
      nulls: {
        fields: Object.fromEntries([...world.hidden, ...flickering].map((field) => [field, SHARE])),
        omitted: world.omitted,
      },
      spelling: { styles: [...world.styles], placeholders: world.placeholders },
      clockSkewMinutes: world.clockSkewMinutes,
      statuses: {
        renames: renaming
          ? [{ region: 'us', former: renaming.from, current: renaming.to, share: round ? 0.5 : 0 }]
          : [],
      },
      records,
      throttled: round?.throttled
        ? { [round.throttled.view]: { retryAfterSeconds: round.throttled.retryAfterSeconds } }
        : {},
    });
  }

  const longestLag = Math.max(...Object.values(world.lagSeconds).map((seconds) => seconds ?? 0));
  const sight: Sight = {
    slackMs: longestLag * 1000,
    skewMs: world.clockSkewMinutes * 60_000,
    isHidden: (view, jobNumber, field) => isNull(viewName(view), jobNumber, field),
    isUnreadable: (view, jobNumber) => isUnusable(lasting, view, jobNumber),
    wasUnreadable: (view, jobNumber) => unusable.has(`${view} ${jobNumber}`),
    isZoneless: (jobNumber) =>
      world.styles.some((style) => style === 'noOffset' || style === 'dateOnly') &&
      isNull('detail', jobNumber, 'location'),
    wasThrottled: () => wasThrottled,
    toCurrentName: (name) => (name === history.renaming?.from ? history.renaming.to : name),
  };
  return { apply, sight, longestLagSeconds: longestLag };
}
