// The countries and states of the ordering API's address forms.

import type { Country, State } from '../../shared/ordering/contract/lookups.ts';
import data from './data/countries.json' with { type: 'json' };

/** ISO 3166-1 alpha-3 by alpha-2; states by country, sorted by name. */
const { iso3: CODES, withoutPostalCode, withSuburb } = data;
const STATES: Readonly<Record<string, Readonly<Record<string, string>>>> = data.states;

let countries: readonly Country[] | undefined;

/** Every country, in the order of the names. */
export function allCountries(): readonly Country[] {
  countries ??= readCountries();
  return countries;
}

function readCountries(): Country[] {
  const names = new Intl.DisplayNames('en', { type: 'region' });
  return Object.entries(CODES)
    .map(([iso2, iso3]) => ({
      name: names.of(iso2) ?? iso2,
      iso2,
      iso3,
      hasSuburb: withSuburb.includes(iso2),
      hasState: iso2 in STATES,
      hasPostalCode: !withoutPostalCode.includes(iso2),
    }))
    .toSorted((one, other) => one.name.localeCompare(other.name, 'en'));
}

/** The country with this ISO 3166-1 alpha-2 code, in capitals. */
export function findCountry(iso2: string): Country | undefined {
  return allCountries().find((country) => country.iso2 === iso2);
}

/** The states of a country, sorted by name; empty if the API has none. */
export function listStates(iso2: string): readonly State[] {
  return Object.entries(STATES[iso2] ?? {}).map(([abbreviation, name]) => ({ name, abbreviation }));
}
