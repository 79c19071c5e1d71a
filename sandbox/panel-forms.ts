/** The forms of the control panel's pages: their fields as requests to the operations of the control panel. */
import type { FreedomSettings } from './http/freedom.ts';

/** The fields of a submitted form. An empty text is an absent value. */
export type Fields = Readonly<Record<string, string | undefined>>;

/** A request to the control panel. */
interface PanelRequest {
  readonly method: 'POST' | 'DELETE';
  readonly path: string;
  readonly body?: unknown;
}

/** A form. `toRequest` returns an error message if the fields have no valid form. */
interface PanelForm {
  readonly toRequest: (fields: Fields, nowMs: number) => PanelRequest | string;
  /** The result as a sentence. */
  readonly done: (fields: Fields) => string;
}

const DAY_MS = 86_400_000;

/** Named settings of the contract freedom that the page offers. */
export const FREEDOMS = {
  stale: {
    label: 'Outdated views: the search is 5 min old, the detail 1 min, the list 20 s',
    settings: { lagSeconds: { active: 20, search: 300, detail: 60 } },
  },
  nulls: {
    label: 'Missing values: 10 % of the nullable fields are null',
    settings: { nulls: { share: 0.1, omitted: 0.5 } },
  },
  spellings: {
    label: 'Other timestamp formats, and a clock that is 7 min slow',
    settings: {
      spelling: { styles: ['noSeconds', 'space', 'utc'], placeholders: 0.5 },
      clockSkewMinutes: -7,
    },
  },
  throttled: {
    label: 'Throttled search: 429 with Retry-After 30 s',
    settings: { throttled: { search: { retryAfterSeconds: 30 } } },
  },
} as const satisfies Record<string, { label: string; settings: FreedomSettings }>;

/** Returns the fields that are not empty. */
const given = (fields: Fields, ...names: readonly string[]): Record<string, string> =>
  Object.fromEntries(
    names.flatMap((name) => {
      const value = fields[name]?.trim();
      return value ? [[name, value]] : [];
    }),
  );

const toNumber = (text: string | undefined): number | undefined =>
  text === undefined || text.trim() === '' ? undefined : Number(text);

/** A request with a fixed path and result. */
const fixedForm = (
  method: PanelRequest['method'],
  path: string,
  done: string,
  toBody?: (fields: Fields) => unknown,
): PanelForm => ({
  toRequest: (fields) => ({ method, path, body: toBody?.(fields) }),
  done: () => done,
});

/** An action on a job that has the path of the control panel. `done` completes "Job 410001". */
const jobForm = (
  action: string,
  done: string,
  toBody: (fields: Fields, nowMs: number) => unknown = () => ({}),
): PanelForm => ({
  toRequest: (fields, nowMs) => ({
    method: 'POST',
    path: `/jobs/${encodeURIComponent(fields.region ?? '')}/${encodeURIComponent(fields.jobNumber ?? '')}/${action}`,
    body: toBody(fields, nowMs),
  }),
  done: ({ jobNumber }) => `Job ${jobNumber} ${done}.`,
});

/** The forms by the value of their field `do`. */
export const FORMS: Readonly<Record<string, PanelForm>> = {
  advance: fixedForm('POST', '/clock/advance', 'The clock is advanced.', ({ seconds }) => ({
    seconds: toNumber(seconds),
  })),
  create: {
    toRequest: (fields, nowMs) => {
      const days = toNumber(fields.dueInDays);
      return {
        method: 'POST',
        path: '/jobs',
        body: {
          ...given(fields, 'region', 'account', 'description', 'orderNumber', 'orderGroup', 'status'),
          ...(days === undefined ? {} : { dateDue: Math.round(nowMs + days * DAY_MS) }),
        },
      };
    },
    done: ({ jobNumber }) => `Job ${jobNumber} is created.`,
  },
  late: jobForm('edit', 'is late: it was due yesterday', (_, nowMs) => ({ dateDue: nowMs - DAY_MS })),
  status: jobForm('status', 'has the new status', (fields) => given(fields, 'status')),
  dispatch: jobForm('dispatch', 'is dispatched', (fields) => {
    const parcel = given(fields, 'trackingNumber', 'trackingLink');
    return {
      ...given(fields, 'status'),
      ...(Object.keys(parcel).length === 0 ? {} : { tracking: [parcel] }),
    };
  }),
  tracking: jobForm('tracking', 'has the new tracking', (fields) => ({
    tracking: [given(fields, 'trackingNumber', 'trackingLink')].filter((one) => Object.keys(one).length > 0),
  })),
  // Here an empty text removes the value.
  edit: jobForm('edit', 'is changed', (fields) => ({
    description: null,
    orderNumber: null,
    orderGroup: null,
    ...given(fields, 'description', 'orderNumber', 'orderGroup'),
  })),
  'clear-date-out': jobForm('clear-date-out', 'is no longer dispatched'),
  invoice: jobForm('invoice', 'is invoiced'),
  close: jobForm('close', 'is closed'),
  cancel: jobForm('cancel', 'is cancelled'),
  reopen: jobForm('reopen', 'is open again'),
  lock: jobForm('lock', 'is locked'),
  unlock: jobForm('unlock', 'is unlocked'),
  hide: jobForm('hide', 'is hidden from the lists'),
  unhide: jobForm('unhide', 'is listed again'),
  live: jobForm('live', 'proceeds automatically'),
  remove: jobForm('remove', 'is deleted'),
  fault: fixedForm('POST', '/faults', 'The fault is on.', (fields) => {
    const { kind } = fields;
    const [status, delayMs, forSeconds] = [fields.status, fields.delayMs, fields.forSeconds].map(toNumber);
    return {
      match: given(fields, 'region', 'operation'),
      fault: {
        kind,
        ...(kind === 'status' ? { status } : {}),
        ...(kind === 'delay' ? { delayMs } : {}),
        ...(kind === 'pageDrift' ? { insert: 2, hide: 2 } : {}),
      },
      ...(forSeconds === undefined ? {} : { forSeconds }),
    };
  }),
  'end-fault': {
    toRequest: ({ id = '' }) => ({ method: 'DELETE', path: `/faults/${encodeURIComponent(id)}` }),
    done: () => 'The fault is off.',
  },
  'end-faults': fixedForm('DELETE', '/faults', 'All faults are off.'),
  freedom: {
    toRequest: ({ freedom = '' }) =>
      Object.hasOwn(FREEDOMS, freedom)
        ? { method: 'POST', path: '/freedom', body: FREEDOMS[freedom as keyof typeof FREEDOMS].settings }
        : 'The setting must be one of the listed ones.',
    done: () => 'The contract freedom is on.',
  },
  'end-freedom': fixedForm('DELETE', '/freedom', 'The contract freedom is off.'),
  'revoke-tokens': fixedForm('POST', '/tokens/revoke', 'The tokens are revoked.', (fields) =>
    given(fields, 'region', 'account'),
  ),
};
