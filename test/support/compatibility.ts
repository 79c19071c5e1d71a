/**
 * What of a document of the API can break a client that was made for an earlier one. Why it is written here, and what counts:
 * docs/decisions/0025-documents-and-what-breaks.md.
 *
 * What is taken may only become wider, what is given only narrower; but whatever is documented stays.
 */

type Json = { readonly [name: string]: unknown };
type Schema = Json | boolean;

/** What breaks, in words that name the place: they are what a version's note has to quote. */
export type Breaking = string;

/** Which way a schema's values go: to us, or to the client. */
type Direction = 'in' | 'out';

/** What breaks from one OpenAPI document to a later one. */
export function breakingInOpenApi(before: Json, after: Json): readonly Breaking[] {
  const found = new Found(before, after);
  const [was, is] = [record(before.paths), record(after.paths)];
  for (const [path, item] of Object.entries(was)) {
    const now = found.now(is[path]);
    for (const method of METHODS) {
      const place = `${method.toUpperCase()} ${path}`;
      const old = found.then(item)[method];
      if (old === undefined) continue;
      if (now[method] === undefined) found.say(place, 'is gone');
      else compareOperations(found, place, [found.then(item), old as Json], [now, now[method] as Json]);
    }
  }
  const schemes = (document: Json) => record(record(document.components).securitySchemes);
  for (const [name, scheme] of Object.entries(schemes(before))) {
    const now = schemes(after)[name];
    if (!same(essence(scheme), essence(now))) found.say(`security scheme ${name}`, 'is another');
  }
  return found.all;
}

/** What breaks from one AsyncAPI document to a later one. All messages are given, none is taken. */
export function breakingInAsyncApi(before: Json, after: Json): readonly Breaking[] {
  const found = new Found(before, after);
  for (const kind of ['servers', 'channels', 'operations'] as const) {
    for (const [name, then] of Object.entries(record(before[kind]))) {
      const place = `${kind.slice(0, -1)} ${name}`;
      const now = record(after[kind])[name];
      if (now === undefined) found.say(place, 'is gone');
      else if (kind === 'channels') compareChannels(found, place, found.then(then), found.now(now));
      else {
        for (const key of ['action', 'channel', 'host', 'protocol', 'pathname']) {
          if (!same(found.then(then)[key], found.now(now)[key])) found.say(`${place}: ${key}`, 'is another');
        }
      }
    }
  }
  return found.all;
}

const METHODS = ['get', 'put', 'post', 'delete', 'patch', 'head', 'options', 'trace'];

/** What was found, and the documents that references lead into. */
class Found {
  readonly #said = new Set<Breaking>();
  /** Pairs of references that are being compared, or were: a schema can hold itself. */
  readonly pairs = new Set<string>();
  readonly #before: Json;
  readonly #after: Json;

  constructor(before: Json, after: Json) {
    this.#before = before;
    this.#after = after;
  }

  get all(): readonly Breaking[] {
    return [...this.#said];
  }

  say(place: string, what: string): void {
    this.#said.add(`${place} ${what}`);
  }

  /** What nobody has been told of yet: to try out whether one of several fits. */
  aside(): Found {
    const found = new Found(this.#before, this.#after);
    for (const pair of this.pairs) found.pairs.add(pair);
    return found;
  }

  then(value: unknown): Json {
    return record(resolve(this.#before, value));
  }

  now(value: unknown): Json {
    return record(resolve(this.#after, value));
  }
}

// OpenAPI

function compareOperations(
  found: Found,
  place: string,
  [oldItem, old]: readonly [Json, Json],
  [newItem, now]: readonly [Json, Json],
): void {
  if (old.operationId !== now.operationId) found.say(place, 'has another operationId');
  compareSecurity(found, place, old, now);
  compareParameters(found, place, parametersOf(found, 'then', oldItem, old), parametersOf(found, 'now', newItem, now));
  compareBodies(found, `${place} body`, found.then(old.requestBody), found.now(now.requestBody));
  const answers = record(now.responses);
  for (const [status, response] of Object.entries(record(old.responses))) {
    const answer = `${place} answer ${status}`;
    if (answers[status] === undefined) found.say(answer, 'is gone');
    else compareAnswers(found, answer, found.then(response), found.now(answers[status]));
  }
  for (const status of Object.keys(answers)) {
    // A client has to expect problems that it doesn't know; it need not expect another kind of success.
    if (record(old.responses)[status] === undefined && /^[123]/.test(status)) {
      found.say(`${place} answer ${status}`, 'is new');
    }
  }
}

function compareAnswers(found: Found, place: string, old: Json, now: Json): void {
  compareContents(found, place, old, now, 'out');
  const headers = byLowerCase(record(now.headers));
  for (const [name, header] of Object.entries(byLowerCase(record(old.headers)))) {
    if (headers[name] === undefined) found.say(`${place} header ${name}`, 'is gone');
    else {
      const [was, is] = [found.then(header), found.now(headers[name])];
      if (was.required === true && is.required !== true) found.say(`${place} header ${name}`, 'may be missing');
      compareSchemas(found, `${place} header ${name}`, was.schema, is.schema, 'out');
    }
  }
}

function compareBodies(found: Found, place: string, old: Json, now: Json): void {
  if (now.required === true && old.required !== true) found.say(place, 'is required');
  compareContents(found, place, old, now, 'in');
}

function compareContents(found: Found, place: string, old: Json, now: Json, direction: Direction): void {
  const contents = record(now.content);
  for (const [type, content] of Object.entries(record(old.content))) {
    if (contents[type] === undefined) found.say(`${place} as ${type}`, 'is gone');
    else compareSchemas(found, place, record(content).schema, record(contents[type]).schema, direction);
  }
}

function parametersOf(found: Found, when: 'then' | 'now', item: Json, operation: Json): Record<string, Json> {
  const all = [...list(item.parameters), ...list(operation.parameters)].map((one) => found[when](one));
  return Object.fromEntries(
    all.map((one) => [`${one.in} ${one.in === 'header' ? String(one.name).toLowerCase() : one.name}`, one]),
  );
}

function compareParameters(
  found: Found,
  place: string,
  old: Record<string, Json>,
  now: Record<string, Json>,
): void {
  for (const [name, was] of Object.entries(old)) {
    const is = now[name];
    if (is === undefined) {
      found.say(`${place} ${name}`, 'is gone');
      continue;
    }
    if (is.required === true && was.required !== true) found.say(`${place} ${name}`, 'is required');
    for (const key of ['style', 'explode', 'allowReserved']) {
      if (was[key] !== is[key]) found.say(`${place} ${name}: ${key}`, 'is another');
    }
    compareSchemas(found, `${place} ${name}`, was.schema, is.schema, 'in');
  }
  for (const [name, is] of Object.entries(now)) {
    if (old[name] === undefined && is.required === true) found.say(`${place} ${name}`, 'is new and required');
  }
}

/** Whoever was let in with what they had must be let in still. */
function compareSecurity(found: Found, place: string, old: Json, now: Json): void {
  const was = ways(found.then(old.security ?? { $ref: '#/security' }) as unknown, found.then({ $ref: '#' }), old);
  const is = ways(found.now(now.security ?? { $ref: '#/security' }) as unknown, found.now({ $ref: '#' }), now);
  const letsIn = (shown: Json) => (asked: Json) =>
    Object.entries(asked).every(
      ([scheme, scopes]) =>
        shown[scheme] !== undefined && list(scopes).every((scope) => list(shown[scheme]).includes(scope)),
    );
  for (const shown of was) {
    if (!is.some(letsIn(shown))) found.say(place, `asks for more than ${Object.keys(shown).join(' and ') || 'nothing'}`);
  }
}

function ways(_resolved: unknown, document: Json, operation: Json): readonly Json[] {
  const asked = list(operation.security ?? document.security) as Json[];
  return asked.length === 0 ? [{}] : asked;
}

// AsyncAPI

function compareChannels(found: Found, place: string, old: Json, now: Json): void {
  if (old.address !== now.address) found.say(`${place}: address`, 'is another');
  const messages = record(now.messages);
  for (const [name, then] of Object.entries(record(old.messages))) {
    const message = `${place} message ${name}`;
    if (messages[name] === undefined) {
      found.say(message, 'is gone');
      continue;
    }
    const was = withTraits(found, 'then', found.then(then));
    const is = withTraits(found, 'now', found.now(messages[name]));
    if (was.contentType !== is.contentType) found.say(`${message}: content type`, 'is another');
    compareSchemas(found, message, was.payload, is.payload, 'out');
    compareSchemas(found, `${message} header`, was.headers, is.headers, 'out');
  }
}

function withTraits(found: Found, when: 'then' | 'now', message: Json): Json {
  return Object.assign({}, ...list(message.traits).map((trait) => found[when](trait)), message);
}

// Schemas

/** Bounds, and whether a greater one lets more through. */
const BOUNDS: Readonly<Record<string, 'more' | 'fewer'>> = {
  ...{ maxLength: 'more', maxItems: 'more', maximum: 'more', exclusiveMaximum: 'more', maxProperties: 'more' },
  ...{ minLength: 'fewer', minItems: 'fewer', minimum: 'fewer', exclusiveMinimum: 'fewer', minProperties: 'fewer' },
};
/** Those that let everything through when absent, and can't be compared but with themselves. */
const RULES = ['pattern', 'format', 'multipleOf', 'uniqueItems', 'contentEncoding', 'contentMediaType'];
/** Those that say what a schema is, and are compared by themselves. */
const KNOWN = new Set([
  ...Object.keys(BOUNDS),
  ...RULES,
  ...['type', 'const', 'enum', 'properties', 'required', 'additionalProperties', 'propertyNames', 'items'],
  ...['prefixItems', 'anyOf', 'oneOf', 'allOf', '$ref', 'default', 'x-extensible-enum'],
]);
/** Those that only explain. */
const WORDS = new Set([
  ...['title', 'description', 'examples', 'example', 'deprecated', 'readOnly', 'writeOnly', 'discriminator'],
  ...['$schema', '$id', '$comment', '$anchor', 'externalDocs', 'xml', '$defs', 'definitions'],
]);

/** Says what of a schema breaks. Every value that goes in must go in still; every value that comes out must have been expected. */
function compareSchemas(
  found: Found,
  place: string,
  before: unknown,
  after: unknown,
  direction: Direction,
): void {
  const refs = `${direction} ${record(before).$ref} ${record(after).$ref}`;
  if (!refs.includes('undefined')) {
    // Compared where it was met first.
    if (found.pairs.has(`${place} ${refs}`)) return;
    if ([...found.pairs].some((pair) => pair.endsWith(` ${refs}`) && place.startsWith(pair.slice(0, -refs.length - 1)))) return;
    found.pairs.add(`${place} ${refs}`);
  }
  const old = variantsOf(found, 'then', before as Schema | undefined);
  const now = variantsOf(found, 'now', after as Schema | undefined);
  // Each of the narrower side has to find its place on the wider one.
  const [narrow, wide] = direction === 'in' ? [old, now] : [now, old];
  const met = new Set<Variant>();
  for (const one of narrow) {
    const outcomes = wide
      .filter((other) => mayHold(other, one))
      .map((other) => {
        const tried = found.aside();
        const [was, is] = direction === 'in' ? [one, other] : [other, one];
        compareVariants(tried, place, was, is, direction);
        return { other, said: tried.all };
      })
      .sort((a, b) => a.said.length - b.said.length || distance(a.other, one) - distance(b.other, one));
    const [best] = outcomes;
    if (best === undefined) {
      found.say(place, direction === 'in' ? `no longer takes ${nameOf(one)}` : `may be ${nameOf(one)}`);
      continue;
    }
    met.add(best.other);
    for (const said of best.said) found.say(said, '');
  }
  // What is documented stays: a kind of answer that is never given again leaves its clients waiting.
  if (direction === 'out') {
    for (const other of wide) {
      if (!met.has(other) && other.type !== 'null' && other.values === undefined) {
        found.say(place, `is never ${nameOf(other)} any more`);
      }
    }
    const values = (all: readonly Variant[]) => all.flatMap((one) => one.values ?? []).map((one) => JSON.stringify(one));
    const open = now.some((one) => one.values === undefined && one.type !== 'null' && one.type !== 'object');
    if (!open) {
      for (const value of values(old)) {
        if (value !== 'null' && !values(now).includes(value)) found.say(place, `is never ${value} any more`);
      }
    }
  }
  const known = (all: readonly Variant[]) => all.flatMap((one) => list(one.schema['x-extensible-enum'])).map(String);
  for (const value of known(old)) {
    if (!known(now).includes(value)) found.say(place, `no longer knows ${JSON.stringify(value)}`);
  }
  const [was, is] = [found.then(before), found.now(after)];
  if (direction === 'in' && 'default' in was && !same(was.default, is.default)) found.say(place, 'has another default');
}

/** A schema of one type, or of some values. */
interface Variant {
  readonly type: string;
  readonly values: readonly unknown[] | undefined;
  readonly schema: Json;
}

const TYPES = ['null', 'boolean', 'object', 'array', 'number', 'string'];

function variantsOf(found: Found, when: 'then' | 'now', schema: Schema | undefined): readonly Variant[] {
  if (schema === undefined || schema === true) return TYPES.map((type) => ({ type, values: undefined, schema: {} }));
  if (schema === false || same(schema.not, {})) return [];
  const flat = merged(found, when, schema);
  const either = list(flat.anyOf ?? flat.oneOf) as Schema[];
  if (either.length > 0) {
    const { anyOf: _, oneOf: __, ...rest } = flat;
    return either.flatMap((one) => variantsOf(found, when, { ...rest, allOf: [one] }));
  }
  const values = 'const' in flat ? [flat.const] : (flat.enum as unknown[] | undefined);
  if (values !== undefined) {
    const types = [...new Set(values.map(typeOf))];
    return types.map((type) => ({ type, values: values.filter((one) => typeOf(one) === type), schema: flat }));
  }
  const types = typeof flat.type === 'string' ? [flat.type] : (list(flat.type) as string[]);
  return (types.length > 0 ? types : TYPES).map((type) => ({ type, values: undefined, schema: flat }));
}

/** A schema without references and `allOf` at its top. */
function merged(found: Found, when: 'then' | 'now', schema: Schema, depth = 0): Json {
  if (typeof schema === 'boolean' || depth > 32) return {};
  if (typeof schema.$ref === 'string') {
    const { $ref: _, ...rest } = schema;
    return merged(found, when, { ...rest, allOf: [found[when](schema), ...list(rest.allOf)] }, depth + 1);
  }
  const { allOf, ...rest } = schema;
  return (list(allOf) as Schema[]).reduce<Json>((sum, one) => {
    const part = merged(found, when, one, depth + 1);
    return {
      ...sum,
      ...part,
      ...(sum.properties || part.properties
        ? { properties: { ...record(sum.properties), ...record(part.properties) } }
        : {}),
      ...(sum.required || part.required ? { required: [...list(sum.required), ...list(part.required)] } : {}),
    };
  }, rest);
}

/** Whether the values of one can be among those of another, as far as their types go. */
function mayHold(wide: Variant, narrow: Variant): boolean {
  return wide.type === narrow.type || (wide.type === 'number' && narrow.type === 'integer');
}

function compareVariants(found: Found, place: string, old: Variant, now: Variant, direction: Direction): void {
  const [narrow, wide] = direction === 'in' ? [old, now] : [now, old];
  if (wide.values !== undefined) {
    if (narrow.values === undefined) {
      found.say(place, direction === 'in' ? 'takes some values only' : 'may be any value');
    } else {
      for (const value of narrow.values) {
        if (wide.values.some((one) => same(one, value))) continue;
        // Problems may be of new kinds at any time.
        if (direction === 'out' && / answer [45]/.test(place)) continue;
        const text = JSON.stringify(value);
        found.say(place, direction === 'in' ? `no longer takes ${text}` : `may be ${text}`);
      }
    }
    return;
  }
  if (narrow.values === undefined) compareRules(found, place, narrow.schema, wide.schema, direction);
  else if (direction === 'in' && !same(rulesOf(old.schema), rulesOf(now.schema))) {
    compareRules(found, place, {}, wide.schema, direction);
  }
  const unknown = new Set([...Object.keys(old.schema), ...Object.keys(now.schema)]);
  for (const key of unknown) {
    if (KNOWN.has(key) || WORDS.has(key) || key.startsWith('x-')) continue;
    if (!same(old.schema[key], now.schema[key])) found.say(`${place}: ${key}`, 'is another');
  }
  if (old.type === 'object' && now.type === 'object') compareObjects(found, place, old.schema, now.schema, direction);
  if (old.type === 'array' && now.type === 'array') {
    const [was, is] = [list(old.schema.prefixItems), list(now.schema.prefixItems)];
    for (let at = 0; at < Math.max(was.length, is.length); at++) {
      compareSchemas(found, `${place}[${at}]`, was[at] ?? old.schema.items, is[at] ?? now.schema.items, direction);
    }
    compareSchemas(found, `${place}[]`, old.schema.items, now.schema.items, direction);
  }
}

function compareRules(found: Found, place: string, narrow: Json, wide: Json, direction: Direction): void {
  for (const [bound, greater] of Object.entries(BOUNDS)) {
    const limit = wide[bound];
    if (typeof limit !== 'number') continue;
    const kept = narrow[bound];
    const fits = typeof kept === 'number' && (greater === 'more' ? kept <= limit : kept >= limit);
    if (!fits) found.say(`${place}: ${bound}`, direction === 'in' ? 'is stricter' : 'is looser');
  }
  for (const rule of RULES) {
    if (wide[rule] !== undefined && wide[rule] !== false && !same(wide[rule], narrow[rule])) {
      found.say(`${place}: ${rule}`, direction === 'in' ? 'is stricter or another' : 'is looser or another');
    }
  }
}

function compareObjects(found: Found, place: string, old: Json, now: Json, direction: Direction): void {
  const [was, is] = [record(old.properties), record(now.properties)];
  const at = (name: string) => `${place} .${name}`.replace(/ \.(\S+) \.(\S+)$/, ' .$1.$2');
  for (const [name, schema] of Object.entries(was)) {
    const field = fieldOf(place, name);
    if (!(name in is)) found.say(field, 'is gone');
    else compareSchemas(found, field, schema, is[name], direction);
  }
  const [musts, mustsNow] = [list(old.required), list(now.required)];
  const [fewer, more] = direction === 'in' ? [musts, mustsNow] : [mustsNow, musts];
  for (const name of more) {
    // One that is gone was named already.
    if (fewer.includes(name) || (direction === 'out' && !(String(name) in is))) continue;
    found.say(fieldOf(place, String(name)), direction === 'in' ? 'is required' : 'may be missing');
  }
  compareOthers(found, place, old, now, direction);
  void at;
}

/** Fields without a name of their own. A client ignores those that it doesn't know, unless it was told what they hold. */
function compareOthers(found: Found, place: string, old: Json, now: Json, direction: Direction): void {
  const [was, is] = [old.additionalProperties ?? true, now.additionalProperties ?? true];
  if (direction === 'in') {
    if (is === false && was !== false) found.say(`${place} .*`, 'is no longer taken');
    else if (was !== false) compareSchemas(found, `${place} .*`, was, is, direction);
    if (was !== false) compareSchemas(found, `${place} names`, old.propertyNames, now.propertyNames, direction);
    // A field that has a name now was taken as one of these before.
    for (const [name, schema] of Object.entries(record(now.properties))) {
      if (was !== false && !(name in record(old.properties))) {
        compareSchemas(found, fieldOf(place, name), was, schema, direction);
      }
    }
    return;
  }
  if (typeof was !== 'object') return;
  if (is === false) found.say(`${place} .*`, 'is gone');
  else compareSchemas(found, `${place} .*`, was, is, direction);
}

function fieldOf(place: string, name: string): string {
  return / \.\S*$/.test(place) ? `${place}.${name}` : `${place} .${name}`;
}

/** How unlike two are, to name what is wrong with the likelier one of several. */
function distance(a: Variant, b: Variant): number {
  const fields = ({ schema }: Variant) => Object.keys(record(schema.properties));
  return fields(a).filter((name) => !fields(b).includes(name)).length;
}

function rulesOf(schema: Json): Json {
  return Object.fromEntries(Object.entries(schema).filter(([key]) => key in BOUNDS || RULES.includes(key)));
}

function nameOf({ type, values }: Variant): string {
  return values === undefined ? type : values.map((one) => JSON.stringify(one)).join(' or ');
}

function typeOf(value: unknown): string {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'array';
  return Number.isInteger(value) ? 'integer' : typeof value;
}

// JSON

/** Without words that only explain. */
function essence(value: unknown): unknown {
  return Object.fromEntries(Object.entries(record(value)).filter(([key]) => key !== 'description'));
}

function byLowerCase(headers: Json): Json {
  return Object.fromEntries(Object.entries(headers).map(([name, header]) => [name.toLowerCase(), header]));
}

function resolve(document: Json, value: unknown, depth = 0): unknown {
  const ref = record(value).$ref;
  if (typeof ref !== 'string' || depth > 32) return value;
  const steps = ref.replace(/^#\/?/, '').split('/').filter((step) => step !== '');
  const target = steps.reduce<unknown>(
    (at, step) => record(at)[decodeURIComponent(step).replaceAll('~1', '/').replaceAll('~0', '~')],
    document,
  );
  return resolve(document, target, depth + 1);
}

function record(value: unknown): Json {
  return typeof value === 'object' && value !== null ? (value as Json) : {};
}

function list(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

function same(a: unknown, b: unknown): boolean {
  return JSON.stringify(sorted(a)) === JSON.stringify(sorted(b));
}

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([key, one]) => [key, sorted(one)]),
  );
}
