/** Reference data of the ordering API. */
import * as z from 'zod';
import { text } from './common.ts';

/** An entry of the status lookup. */
export const JobStatus = z.strictObject({ id: z.int(), name: text }).meta({ id: 'JobStatus' });
/** A status in a response. */
export type JobStatus = z.infer<typeof JobStatus>;

/** The status lookup. */
export const JobStatuses = z.array(JobStatus);

/** A country, and the parts of its addresses. */
export const Country = z
  .strictObject({
    name: z.string(),
    iso2: z.string().length(2).describe('ISO 3166-1 alpha-2.'),
    iso3: z.string().length(3).describe('ISO 3166-1 alpha-3.'),
    hasSuburb: z.boolean(),
    hasState: z.boolean(),
    hasPostalCode: z.boolean(),
  })
  .meta({ id: 'Country' });
/** A country in a response. */
export type Country = z.infer<typeof Country>;

/** The country lookup. */
export const Countries = z
  .strictObject({
    countries: z.array(Country),
    defaultCountry: z.string().length(2).describe('ISO 3166-1 alpha-2.'),
  })
  .meta({ id: 'Countries' });

/** A state, province or region of a country. */
export const State = z.strictObject({ name: z.string(), abbreviation: z.string() }).meta({ id: 'State' });
/** A state in a response. */
export type State = z.infer<typeof State>;

/** The states of a country. */
export const States = z
  .strictObject({
    countryCode: z.string().length(2),
    states: z.array(State).describe('Empty for countries without divisions.'),
  })
  .meta({ id: 'States' });

/** Properties of a process. */
export const ProcessMetadata = z
  .strictObject({
    setupApplies: z.boolean(),
    resetApplies: z.boolean(),
    scheduleable: z.boolean(),
    physicalStockRequired: z.boolean(),
    printable: z.boolean(),
  })
  .meta({ id: 'ProcessMetadata' });

/** An entry of the process lookup. */
export const ProcessCode = z
  .strictObject({
    processCode: z.string(),
    description: z.string(),
    rank: z.int(),
    metadata: ProcessMetadata,
  })
  .meta({ id: 'ProcessCode' });
/** A process in the lookup. */
export type ProcessCode = z.infer<typeof ProcessCode>;

/** The process lookup. */
export const ProcessCodes = z.array(ProcessCode);

/** A set of related sizes. */
export const SizeSet = z
  .strictObject({ id: z.int(), name: text, sizes: z.array(z.string().min(1)).describe('Sizes, in order.') })
  .meta({ id: 'SizeSet' });

/** The size lookup. */
export const SizeSets = z.array(SizeSet);
