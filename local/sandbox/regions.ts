// The regions of the service and what differs between them: places, status names, where job numbers start.

/** The regions of the service, each with API and token host of its own. */
export const REGIONS = ['us', 'nz', 'au', 'uk', 'eu'] as const;

/** A region's code; also the name of its realm at the token endpoint. */
export type RegionCode = (typeof REGIONS)[number];

/** Where in a job's life a status belongs. Known only inside the sandbox: the service shows nothing but id and name. */
export type Stage =
  | 'artwork'
  | 'intake'
  | 'scheduled'
  | 'hold'
  | 'production'
  | 'finishing'
  | 'packing'
  | 'shipped'
  | 'closed'
  | 'returned'
  | 'cancelled';

/** An entry of a region's job status lookup. */
export interface JobStatus {
  id: number;
  name: string;
  stage: Stage;
}

/** A place that makes jobs. */
export interface Location {
  name: string | null;
  /** IANA name, such as `America/Denver`. */
  timezone: string | null;
}

/** Where each region starts counting jobs. */
export const FIRST_JOB_NUMBER: Record<RegionCode, number> = {
  us: 410_001,
  nz: 120_001,
  au: 230_001,
  uk: 340_001,
  eu: 560_001,
};

/** Where each region makes its jobs; the first is the default. */
export const LOCATIONS: Record<RegionCode, readonly [Location, ...Location[]]> = {
  us: [
    { name: 'Denver', timezone: 'America/Denver' },
    { name: 'Charlotte', timezone: 'America/New_York' },
  ],
  nz: [{ name: 'Auckland', timezone: 'Pacific/Auckland' }],
  au: [
    { name: 'Brisbane', timezone: 'Australia/Brisbane' },
    { name: 'Adelaide', timezone: 'Australia/Adelaide' },
  ],
  uk: [{ name: 'Leeds', timezone: 'Europe/London' }],
  eu: [{ name: 'Rotterdam', timezone: 'Europe/Amsterdam' }],
};

const COMMON_STATUS_NAMES: Record<Stage, string> = {
  artwork: 'Awaiting artwork',
  intake: 'Order received',
  scheduled: 'Scheduled',
  hold: 'On hold',
  production: 'In production',
  finishing: 'Quality check',
  packing: 'Ready to ship',
  shipped: 'Shipped',
  closed: 'Completed',
  returned: 'Returned',
  cancelled: 'Cancelled',
};

/** Each region's status lookup, by stage, in the order of the ids. Regions mostly agree on names, and differ here and there, as lists kept by different people do. */
export const STATUS_NAMES: Record<RegionCode, Record<Stage, string>> = {
  us: { ...COMMON_STATUS_NAMES, cancelled: 'Canceled' },
  nz: COMMON_STATUS_NAMES,
  au: { ...COMMON_STATUS_NAMES, scheduled: 'Booked in', finishing: 'QC' },
  uk: { ...COMMON_STATUS_NAMES, packing: 'Ready for despatch', shipped: 'Despatched' },
  eu: { ...COMMON_STATUS_NAMES, intake: 'Received', hold: 'Waiting for customer' },
};
