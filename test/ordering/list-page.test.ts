import { hash } from 'node:crypto';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { Exchanged } from '../../shared/ordering/exchange.ts';
import { type ListedJob, type Recall, readListPage } from '../../shared/ordering/list-page.ts';

const entry = fc.record(
  {
    jobNumber: fc.integer({ min: 1, max: 9 }),
    masterJobStatus: fc.option(fc.string({ unit: 'grapheme' })),
    description: fc.constantFrom('a "quoted" one', '\\', '\\"', '}]', '[{', '…'),
    permissions: fc.option(fc.record({ canEdit: fc.boolean(), lockedReason: fc.string() })),
    tracking: fc.array(fc.record({ trackingNumber: fc.string(), trackingLink: fc.constant(null) }), {
      maxLength: 2,
    }),
    unknown: fc.jsonValue({ maxDepth: 2 }),
  },
  { requiredKeys: ['jobNumber'] },
);
const often = <T>(usual: fc.Arbitrary<T>, rare: fc.Arbitrary<unknown>) =>
  fc.oneof({ weight: 9, arbitrary: usual }, { weight: 1, arbitrary: rare });
/** Pages in any order of their fields, some of them malformed, and some with other lists of objects. */
const page = fc
  .record(
    {
      before: fc.array(often(fc.constant(0), fc.record({ jobNumber: fc.constant(1) })), { maxLength: 1 }),
      items: often(
        fc.array(often(entry, fc.oneof(fc.nat(3), fc.constant({}), fc.constant([]))), { maxLength: 4 }),
        fc.jsonValue(),
      ),
      totalCount: fc.nat(),
      pageNumber: fc.nat(),
      pageSize: often(fc.nat(), fc.string()),
      totalPages: fc.nat(),
      hasNextPage: fc.boolean(),
      after: often(
        fc.constant(null),
        fc.oneof(fc.jsonValue({ maxDepth: 3 }), fc.array(entry, { maxLength: 2 })),
      ),
    },
    { requiredKeys: ['items', 'totalCount', 'pageNumber', 'pageSize', 'totalPages', 'hasNextPage'] },
  )
  .chain((body) =>
    fc.tuple(
      fc.shuffledSubarray(Object.entries(body), { minLength: Object.keys(body).length }),
      fc.constantFrom(0, 2),
    ),
  )
  .map(([fields, indent]) => JSON.stringify(Object.fromEntries(fields), undefined, indent));

const answer = (text: string) => ({ status: 200, headers: new Headers(), text }) as unknown as Exchanged;

/** Returns the parsed page without digests, or the error. */
function read(text: string, recall?: Recall<ListedJob>) {
  try {
    const { items, ...frame } = readListPage('GET /Jobs/active', answer(text), recall);
    return { ...frame, items: items.map(({ digest: _, ...job }) => job) };
  } catch (error) {
    return String(error);
  }
}

/** Returns the entries of a page by their digests. */
function digests(text: string): Map<string, ListedJob> {
  try {
    const { items } = readListPage<never>('GET /Jobs/active', answer(text), () => undefined);
    return new Map(items.map((job) => [job.digest ?? '', job]));
  } catch {
    return new Map();
  }
}

test('a page with known entries gives exactly the result of a page that is parsed, also if its text is damaged', () => {
  let known = 0;
  fc.assert(
    fc.property(
      page,
      fc.nat(),
      fc.constantFrom('', '1', '-', '"', '{', '}', '[', ']', ',', ' ', '\\'),
      fc.nat(2),
      (text, at, by, removed) => {
        const entries = digests(text);
        const recall = (digest: string) => {
          const job = entries.get(digest);
          if (job) known += 1;
          return job;
        };
        const position = at % (text.length + 1);
        const damaged = text.slice(0, position) + by + text.slice(position + removed);
        for (const given of [text, damaged]) {
          const parsed = read(given);
          expect([read(given, recall), read(given, () => undefined)]).toEqual([parsed, parsed]);
        }
      },
    ),
    { numRuns: 3000 },
  );
  expect(known).toBeGreaterThan(3000);
});

test('only entries with a text that is not known are parsed, and the others are replaced in place', () => {
  const text = (...jobs: object[]) =>
    JSON.stringify({
      items: jobs,
      totalCount: 3,
      pageNumber: 1,
      pageSize: 100,
      totalPages: 1,
      hasNextPage: false,
    });
  const [one, two, three] = [{ jobNumber: 1 }, { jobNumber: 2, description: 'a' }, { jobNumber: 3 }];
  const known = new Map(
    [one, two].map((job) => [hash('sha256', JSON.stringify(job), 'binary'), `known ${job.jobNumber}`]),
  );
  const { items } = readListPage('GET /Jobs/active', answer(text(two, three, one)), (digest) =>
    known.get(digest),
  );
  expect(items).toMatchObject(['known 2', { jobNumber: 3 }, 'known 1']);
  const changed = readListPage(
    'GET /Jobs/active',
    answer(text({ ...two, description: 'b' }, three, one)),
    (digest) => known.get(digest),
  );
  expect(changed.items).toMatchObject([{ jobNumber: 2, description: 'b' }, { jobNumber: 3 }, 'known 1']);
  for (const damage of ['1', '-', '"', '{']) {
    const damaged = text(one, three).replace('[{', `[${damage}{`);
    expect(() => readListPage('GET /Jobs/active', answer(damaged), (digest) => known.get(digest))).toThrow(
      'is not JSON',
    );
  }
  for (const damage of ['.0', 'e0', '1', '}']) {
    const damaged = text(one, three).replace('},', `}${damage},`);
    expect(() => readListPage('GET /Jobs/active', answer(damaged), (digest) => known.get(digest))).toThrow(
      'is not JSON',
    );
  }
  const html = {
    ...answer(text(one)),
    headers: new Headers({ 'content-type': 'text/html' }),
  } as unknown as Exchanged;
  expect(() => readListPage('GET /Jobs/active', html, (digest) => known.get(digest))).toThrow('HTML');
});
