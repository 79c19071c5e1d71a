/**
 * Compares two versions of an API document, and returns the changes that break clients of the earlier one. Reasons and rules:
 * docs/decisions/0025-api-documents-and-compatibility.md.
 *
 * Accepted input may only become wider, output only narrower, and everything that is documented must remain. One file: the
 * rules for OpenAPI and AsyncAPI share the comparison of schemas.
 */

type Json = { readonly [name: string]: unknown };
type Schema = Json | boolean;

/** A breaking change: its place and description. The notes of a version have to quote it. */
export type Breaking = string;

/** Direction of the values of a schema: `in` to the server, `out` to the client, or to the client in an error response. */
type Direction = 'in' | 'out' | 'problem';

/** Returns the breaking changes between two OpenAPI documents. */
export function breakingInOpenApi(before: Json, after: Json): readonly Breaking[] {
  const found = new Found(before, after);
  const [was, is] = [record(before.paths), record(after.paths)];
  for (const [path, item] of Object.entries(was)) {
    const now = found.later(is[path]);
    for (const method of METHODS) {
      const place = `${method.toUpperCase()} ${path}`;
      const old = found.old(item)[method];
      if (old === undefined) continue;
      if (now[method] === undefined) found.say(place, 'is gone');
      else compareOperations(found, place, [found.old(item), old as Json], [now, now[method] as Json]);
    }
  }
  for (const [name, item] of Object.entries(record(before.webhooks))) {
    for (const method of METHODS) {
      const old = found.old(item)[method];
      if (old === undefined) continue;
      const place = `webhook ${name}`;
      const now = found.later(record(after.webhooks)[name])[method];
      if (now === undefined) found.say(place, 'is gone');
      else {
        const bodies = [found.old(record(old).requestBody), found.later(record(now).requestBody)] as const;
        compareContents(found, place, ...bodies, 'out');
      }
    }
  }
  const schemes = (document: Json) => record(record(document.components).securitySchemes);
  for (const [name, scheme] of Object.entries(schemes(before))) {
    const now = schemes(after)[name];
    if (!same(essence(scheme), essence(now))) found.say(`security scheme ${name}`, 'is another');
  }
  return found.all;
}

/** Returns the breaking changes between two AsyncAPI documents. All messages are output. */
export function breakingInAsyncApi(before: Json, after: Json): readonly Breaking[] {
  const found = new Found(before, after);
  for (const kind of ['servers', 'channels', 'operations'] as const) {
    for (const [name, then] of Object.entries(record(before[kind]))) {
      const place = `${kind.slice(0, -1)} ${name}`;
      const now = record(after[kind])[name];
      if (now === undefined) found.say(place, 'is gone');
      else if (kind === 'channels') compareChannels(found, place, found.old(then), found.later(now));
      else {
        for (const key of ['action', 'channel', 'host', 'protocol', 'pathname']) {
          if (!same(found.old(then)[key], found.later(now)[key])) found.say(place, `has another ${key}`);
        }
      }
    }
  }
  return found.all;
}

const METHODS = ['get', 'put', 'post', 'delete', 'patch', 'head', 'options', 'trace'];

/** Roles in ascending order of permissions. Without a role, no key is needed. */
const ROLES = ['read', 'operate', 'admin'];

/** The breaking changes found so far, and the documents that references point to. */
class Found {
  readonly before: Json;
  readonly after: Json;
  readonly #said = new Set<Breaking>();
  /** Named schemas that were compared or are being compared, so that each is compared once. */
  readonly #compared = new Set<string>();
  /** Schemas that are being compared, outermost first. */
  readonly #under: (readonly [before: unknown, after: unknown, direction: Direction])[] = [];

  constructor(before: Json, after: Json) {
    this.before = before;
    this.after = after;
  }

  get all(): readonly Breaking[] {
    return [...this.#said];
  }

  say(place: string, what: string): void {
    this.#said.add(`${place} ${what}`);
  }

  /** Returns `true` for the first call with this argument. */
  begins(compared: string): boolean {
    const fresh = !this.#compared.has(compared);
    this.#compared.add(compared);
    return fresh;
  }

  /** Compares two schemas unless they are already being compared: schemas can be recursive. */
  within(before: unknown, after: unknown, direction: Direction, compare: () => void): void {
    if (this.#under.some((one) => one[0] === before && one[1] === after && one[2] === direction)) return;
    this.#under.push([before, after, direction]);
    compare();
    this.#under.pop();
  }

  /** Creates a copy for a comparison whose result may be discarded. */
  aside(): Found {
    const found = new Found(this.before, this.after);
    for (const compared of this.#compared) found.#compared.add(compared);
    found.#under.push(...this.#under);
    return found;
  }

  /** Adds the result of such a comparison. */
  take(other: Found): void {
    for (const said of other.#said) this.#said.add(said);
  }

  old(value: unknown): Json {
    return record(resolve(this.before, value));
  }

  later(value: unknown): Json {
    return record(resolve(this.after, value));
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
  const [role, roleNow] = [ROLES.indexOf(String(old['x-role'])), ROLES.indexOf(String(now['x-role']))];
  if (roleNow > role) found.say(place, `takes the role ${ROLES[roleNow]}`);
  compareSecurity(found, place, old, now);
  compareParameters(
    found,
    place,
    getParameters(found, 'old', oldItem, old),
    getParameters(found, 'later', newItem, now),
  );
  compareBodies(found, `${place} body`, found.old(old.requestBody), found.later(now.requestBody));
  const answers = record(now.responses);
  for (const [status, response] of Object.entries(record(old.responses))) {
    const answer = `${place} answer ${status}`;
    if (answers[status] === undefined) found.say(answer, 'is gone');
    else {
      const direction = /^[45]/.test(status) ? 'problem' : 'out';
      compareAnswers(found, answer, found.old(response), found.later(answers[status]), direction);
    }
  }
  for (const status of Object.keys(answers)) {
    // Clients must accept unknown problems, but not unknown success statuses. 304 is sent only to clients that request it.
    if (status === '304') continue;
    if (record(old.responses)[status] === undefined && /^[123]/.test(status)) {
      found.say(`${place} answer ${status}`, 'is new');
    }
  }
}

function compareAnswers(found: Found, place: string, old: Json, now: Json, direction: Direction): void {
  compareContents(found, place, old, now, direction);
  for (const kind of list(old['x-problems'])) {
    if (!list(now['x-problems']).includes(kind)) found.say(`${place} problem ${kind}`, 'is gone');
  }
  const headers = byLowerCase(record(now.headers));
  for (const [name, header] of Object.entries(byLowerCase(record(old.headers)))) {
    if (headers[name] === undefined) found.say(`${place} header ${name}`, 'is gone');
    else {
      const [was, is] = [found.old(header), found.later(headers[name])];
      if (was.required === true && is.required !== true)
        found.say(`${place} header ${name}`, 'may be missing');
      compareSchemas(found, `${place} header ${name}`, was.schema, is.schema, direction);
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

function getParameters(
  found: Found,
  when: 'old' | 'later',
  item: Json,
  operation: Json,
): Record<string, Json> {
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
      if (was[key] !== is[key]) found.say(`${place} ${name}`, `has another ${key}`);
    }
    compareSchemas(found, `${place} ${name}`, was.schema, is.schema, 'in');
  }
  for (const [name, is] of Object.entries(now)) {
    if (old[name] === undefined && is.required === true) found.say(`${place} ${name}`, 'is new and required');
  }
}

/** Reports credentials that were sufficient before and no longer are. */
function compareSecurity(found: Found, place: string, old: Json, now: Json): void {
  const is = getKeys(found.after, now);
  for (const shown of getKeys(found.before, old)) {
    const enough = is.some((asked) =>
      Object.entries(asked).every(
        ([scheme, scopes]) =>
          shown[scheme] !== undefined && list(scopes).every((scope) => list(shown[scheme]).includes(scope)),
      ),
    );
    if (!enough) found.say(place, `asks for more than ${Object.keys(shown).join(' and ') || 'nothing'}`);
  }
}

/** Returns the alternative security requirements. Each of them is sufficient. */
function getKeys(document: Json, operation: Json): readonly Json[] {
  const asked = list(operation.security ?? document.security) as readonly Json[];
  return asked.length === 0 ? [{}] : asked;
}

// AsyncAPI

function compareChannels(found: Found, place: string, old: Json, now: Json): void {
  if (old.address !== now.address) found.say(place, 'has another address');
  const messages = record(now.messages);
  const compared: (readonly [unknown, unknown])[] = [];
  for (const [name, then] of Object.entries(record(old.messages))) {
    const message = `${place} message ${name}`;
    if (messages[name] === undefined) {
      found.say(message, 'is gone');
      continue;
    }
    const was = withTraits(found, 'old', found.old(then));
    const is = withTraits(found, 'later', found.later(messages[name]));
    if (was.contentType !== is.contentType) found.say(message, 'has another content type');
    compareSchemas(found, message, was.payload, is.payload, 'out');
    // Most messages have them from the same trait: one report is enough.
    if (compared.some(([then, later]) => then === was.headers && later === is.headers)) continue;
    compared.push([was.headers, is.headers]);
    compareSchemas(found, `${message} header`, was.headers, is.headers, 'out');
  }
}

function withTraits(found: Found, when: 'old' | 'later', message: Json): Json {
  return Object.assign({}, ...list(message.traits).map((trait) => found[when](trait)), message);
}

// Schemas

/** Bounds. `more`: a greater one accepts more values. */
const BOUNDS: Readonly<Record<string, 'more' | 'fewer'>> = {
  ...{
    maxLength: 'more',
    maxItems: 'more',
    maximum: 'more',
    exclusiveMaximum: 'more',
    maxProperties: 'more',
  },
  ...{
    minLength: 'fewer',
    minItems: 'fewer',
    minimum: 'fewer',
    exclusiveMinimum: 'fewer',
    minProperties: 'fewer',
  },
};
/** Keywords that accept everything when absent, and can only be compared for equality. */
const RULES = ['pattern', 'format', 'multipleOf', 'uniqueItems', 'contentEncoding', 'contentMediaType'];
/** Keywords that define a schema, and are compared separately. */
const KNOWN = new Set([
  ...Object.keys(BOUNDS),
  ...RULES,
  ...['type', 'const', 'enum', 'properties', 'required', 'additionalProperties', 'propertyNames', 'items'],
  ...['prefixItems', 'anyOf', 'oneOf', 'allOf', '$ref', 'default', 'x-extensible-enum'],
]);
/** Keywords that only describe a schema. */
const WORDS = new Set([
  ...['title', 'description', 'examples', 'example', 'deprecated', 'readOnly', 'writeOnly', 'discriminator'],
  ...['$schema', '$id', '$comment', '$anchor', 'externalDocs', 'xml', '$defs', 'definitions'],
]);

/** Reports breaking changes of a schema. Input that was accepted must be accepted; output must have been possible before. */
function compareSchemas(
  found: Found,
  place: string,
  before: unknown,
  after: unknown,
  direction: Direction,
): void {
  if (isAny(direction === 'in' ? after : before)) return;
  const [name, nameNow] = [record(before).$ref, record(after).$ref];
  if (typeof name === 'string' && name === nameNow) {
    // Reported once, by its name, even if it is used several times.
    place = `${name.replace(/^.*\//, 'schema ')} (${direction})`;
    if (!found.begins(place)) return;
  }
  const at = place;
  found.within(before, after, direction, () => compareAlternatives(found, at, before, after, direction));
}

/** Each alternative of the narrower side must fit one of the wider side. */
function compareAlternatives(
  found: Found,
  place: string,
  before: unknown,
  after: unknown,
  direction: Direction,
): void {
  const old = getVariants(found, 'old', before as Schema | undefined);
  const now = getVariants(found, 'later', after as Schema | undefined);
  const [narrow, wide] = direction === 'in' ? [old, now] : [now, old];
  const met = new Set<Variant>();
  const isNew = direction === 'out' ? getNewAlternative(found, before, after, old) : () => false;
  for (const one of narrow) {
    if (isNew(one)) continue;
    const outcomes = wide
      .filter((other) => mayHold(other, one))
      .map((other) => {
        const tried = found.aside();
        const [was, is] = direction === 'in' ? [one, other] : [other, one];
        compareVariants(tried, place, was, is, direction);
        return { other, tried };
      })
      .sort(
        (a, b) => a.tried.all.length - b.tried.all.length || distance(a.other, one) - distance(b.other, one),
      );
    const [best] = outcomes;
    if (best === undefined) {
      found.say(place, direction === 'in' ? `no longer takes ${getName(one)}` : `may be ${getName(one)}`);
      continue;
    }
    for (const { other, tried } of outcomes)
      if (other === best.other || tried.all.length === 0) met.add(other);
    found.take(best.tried);
  }
  // Documented alternatives must remain: clients would wait for a kind of response that is no longer sent.
  if (direction !== 'in') {
    for (const other of wide) {
      if (!met.has(other) && other.type !== 'null' && other.values === undefined) {
        found.say(place, `is never ${getName(other)} any more`);
      }
    }
    const values = (all: readonly Variant[]) =>
      all.flatMap((one) => one.values ?? []).map((one) => JSON.stringify(one));
    const open = now.some((one) => one.values === undefined && one.type !== 'null' && one.type !== 'object');
    if (!open) {
      for (const value of values(old)) {
        if (value !== 'null' && !values(now).includes(value)) found.say(place, `is never ${value} any more`);
      }
    }
  }
  const known = (all: readonly Variant[]) =>
    all.flatMap((one) => list(one.schema['x-extensible-enum'])).map(String);
  for (const value of known(old)) {
    if (!known(now).includes(value)) found.say(place, `no longer knows ${JSON.stringify(value)}`);
  }
  const [was, is] = [found.old(before), found.later(after)];
  if (direction === 'in' && 'default' in was && !same(was.default, is.default))
    found.say(place, 'has another default');
}

/**
 * Returns a predicate for new alternatives that clients must accept: both documents mark the union with `x-extensible`, and the
 * value of the discriminator is new.
 */
function getNewAlternative(
  found: Found,
  before: unknown,
  after: unknown,
  old: readonly Variant[],
): (one: Variant) => boolean {
  const [was, is] = [found.old(before), found.later(after)];
  const name = record(was.discriminator).propertyName;
  if (was['x-extensible'] !== true || is['x-extensible'] !== true || typeof name !== 'string')
    return () => false;
  const getTag = ({ schema }: Variant) => record(record(schema.properties)[name]).const;
  const known = new Set(old.map(getTag));
  return (one) => getTag(one) !== undefined && !known.has(getTag(one));
}

/** Returns whether a schema has no constraints. */
function isAny(schema: unknown): boolean {
  return (
    schema === undefined || schema === true || Object.keys(record(schema)).every((key) => WORDS.has(key))
  );
}

/** A schema of one type, or of an enumeration. */
interface Variant {
  readonly type: string;
  readonly values: readonly unknown[] | undefined;
  readonly schema: Json;
}

const TYPES = ['null', 'boolean', 'object', 'array', 'number', 'string'];

function getVariants(found: Found, when: 'old' | 'later', schema: Schema | undefined): readonly Variant[] {
  if (schema === undefined || schema === true)
    return TYPES.map((type) => ({ type, values: undefined, schema: {} }));
  if (schema === false || same(schema.not, {})) return [];
  const flat = merged(found, when, schema);
  const either = list(flat.anyOf ?? flat.oneOf) as Schema[];
  if (either.length > 0) {
    const { anyOf: _, oneOf: __, ...rest } = flat;
    return either.flatMap((one) => getVariants(found, when, { ...rest, allOf: [one] }));
  }
  const values = 'const' in flat ? [flat.const] : (flat.enum as unknown[] | undefined);
  if (values !== undefined) {
    const types = [...new Set(values.map(getType))];
    return types.map((type) => ({
      type,
      values: values.filter((one) => getType(one) === type),
      schema: flat,
    }));
  }
  const types = typeof flat.type === 'string' ? [flat.type] : (list(flat.type) as string[]);
  return (types.length > 0 ? types : TYPES).map((type) => ({ type, values: undefined, schema: flat }));
}

/** A schema without references and `allOf` at its top. */
function merged(found: Found, when: 'old' | 'later', schema: Schema, depth = 0): Json {
  if (typeof schema === 'boolean' || depth > 32) return {};
  if (typeof schema.$ref === 'string') {
    const { $ref: _, ...rest } = schema;
    return merged(found, when, { ...rest, allOf: [found[when](schema), ...list(rest.allOf)] }, depth + 1);
  }
  const { allOf, ...rest } = schema;
  let sum: Json = rest;
  for (const one of list(allOf) as Schema[]) {
    const part = merged(found, when, one, depth + 1);
    const { properties, required } = sum;
    sum = Object.assign({}, sum, part);
    if (properties && part.properties) {
      sum = { ...sum, properties: Object.assign({}, properties, part.properties) };
    }
    if (required && part.required) sum = { ...sum, required: [...list(required), ...list(part.required)] };
  }
  return sum;
}

/** Returns whether the values of one can be values of the other, according to their types. */
function mayHold(wide: Variant, narrow: Variant): boolean {
  return wide.type === narrow.type || (wide.type === 'number' && narrow.type === 'integer');
}

function compareVariants(
  found: Found,
  place: string,
  old: Variant,
  now: Variant,
  direction: Direction,
): void {
  const [narrow, wide] = direction === 'in' ? [old, now] : [now, old];
  if (wide.values !== undefined) {
    if (narrow.values === undefined) {
      found.say(place, direction === 'in' ? 'takes some values only' : 'may be any value');
    } else {
      for (const value of narrow.values) {
        if (wide.values.some((one) => same(one, value))) continue;
        // New kinds of problems may be added at any time.
        if (direction === 'problem') continue;
        const text = JSON.stringify(value);
        found.say(place, direction === 'in' ? `no longer takes ${text}` : `may be ${text}`);
      }
    }
    return;
  }
  if (narrow.values === undefined) compareRules(found, place, narrow.schema, wide.schema, direction);
  else {
    for (const value of narrow.values) {
      if (keepsRules(value, wide.schema)) continue;
      const text = JSON.stringify(value);
      found.say(place, direction === 'in' ? `no longer takes ${text}` : `may be ${text}`);
    }
  }
  const unknown = new Set([...Object.keys(old.schema), ...Object.keys(now.schema)]);
  for (const key of unknown) {
    if (KNOWN.has(key) || WORDS.has(key) || key.startsWith('x-')) continue;
    if (!same(old.schema[key], now.schema[key])) found.say(place, `has another ${key}`);
  }
  if (old.type === 'object' && now.type === 'object')
    compareObjects(found, place, old.schema, now.schema, direction);
  if (old.type === 'array' && now.type === 'array') {
    const [was, is] = [list(old.schema.prefixItems), list(now.schema.prefixItems)];
    for (let at = 0; at < Math.max(was.length, is.length); at++) {
      compareSchemas(
        found,
        `${place}[${at}]`,
        was[at] ?? old.schema.items,
        is[at] ?? now.schema.items,
        direction,
      );
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
    if (!fits) found.say(place, `has a ${direction === 'in' ? 'stricter' : 'looser'} ${bound}`);
  }
  for (const rule of RULES) {
    if (wide[rule] !== undefined && wide[rule] !== false && !same(wide[rule], narrow[rule])) {
      found.say(place, direction === 'in' ? `has another ${rule}` : `keeps to another ${rule}, or to none`);
    }
  }
}

function compareObjects(found: Found, place: string, old: Json, now: Json, direction: Direction): void {
  const [was, is] = [record(old.properties), record(now.properties)];
  for (const [name, schema] of Object.entries(was)) {
    const field = getField(place, name);
    if (!(name in is)) found.say(field, 'is gone');
    else compareSchemas(found, field, schema, is[name], direction);
  }
  const [musts, mustsNow] = [list(old.required), list(now.required)];
  const [fewer, more] = direction === 'in' ? [musts, mustsNow] : [mustsNow, musts];
  for (const name of more) {
    // A removed field has already been reported.
    if (fewer.includes(name) || (direction !== 'in' && !(String(name) in is))) continue;
    found.say(getField(place, String(name)), direction === 'in' ? 'is required' : 'may be missing');
  }
  compareOthers(found, place, old, now, direction);
}

/** Compares `additionalProperties`. Clients ignore unknown fields, unless their schema was documented. */
function compareOthers(found: Found, place: string, old: Json, now: Json, direction: Direction): void {
  const [was, is] = [old.additionalProperties ?? true, now.additionalProperties ?? true];
  if (direction === 'in') {
    if (is === false && was !== false) found.say(getField(place, '*'), 'is no longer taken');
    else if (was !== false) compareSchemas(found, getField(place, '*'), was, is, direction);
    if (was !== false)
      compareSchemas(found, `${place} names`, old.propertyNames, now.propertyNames, direction);
    // A field that is declared now was accepted as an additional property before.
    for (const [name, schema] of Object.entries(record(now.properties))) {
      if (was !== false && !(name in record(old.properties))) {
        compareSchemas(found, getField(place, name), was, schema, direction);
      }
    }
    return;
  }
  if (typeof was !== 'object') return;
  if (is === false) found.say(getField(place, '*'), 'is gone');
  else compareSchemas(found, getField(place, '*'), was, is, direction);
}

function getField(place: string, name: string): string {
  return place.includes(': ') ? `${place}.${name}` : `${place}: ${name}`;
}

/** Returns the number of different fields, to report the differences to the most similar alternative. */
function distance(a: Variant, b: Variant): number {
  const fields = ({ schema }: Variant) => Object.keys(record(schema.properties));
  return fields(a).filter((name) => !fields(b).includes(name)).length;
}

/** Returns whether a value satisfies the constraints of its type. Unknown constraints are not satisfied. */
function keepsRules(value: unknown, schema: Json): boolean {
  const size = typeof value === 'string' ? [...value].length : Number(value);
  const measured = typeof value === 'string' ? /Length$/ : /imum$/i;
  const inBounds = Object.entries(BOUNDS).every(([bound, greater]) => {
    const limit = schema[bound];
    if (typeof limit !== 'number' || !measured.test(bound)) return true;
    if (size === limit) return !bound.startsWith('exclusive');
    return greater === 'more' ? size < limit : size > limit;
  });
  return inBounds && RULES.every((rule) => schema[rule] === undefined);
}

function getName({ type, values }: Variant): string {
  return values === undefined ? type : values.map((one) => JSON.stringify(one)).join(' or ');
}

function getType(value: unknown): string {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'array';
  return Number.isInteger(value) ? 'integer' : typeof value;
}

// JSON

/** Removes descriptive keywords. */
function essence(value: unknown): unknown {
  return Object.fromEntries(Object.entries(record(value)).filter(([key]) => key !== 'description'));
}

function byLowerCase(headers: Json): Json {
  return Object.fromEntries(Object.entries(headers).map(([name, header]) => [name.toLowerCase(), header]));
}

function resolve(document: Json, value: unknown, depth = 0): unknown {
  const ref = record(value).$ref;
  if (typeof ref !== 'string' || depth > 32) return value;
  const steps = ref
    .replace(/^#\/?/, '')
    .split('/')
    .filter((step) => step !== '');
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
