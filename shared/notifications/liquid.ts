/** Renders Liquid templates, with limits of time, memory and output. */
import { CaptureTag, type Context, Liquid, LiquidError, type Template as Parsed } from 'liquidjs';
import { getOrCreate } from '../get-or-create.ts';
import { escapeHtml } from '../html.ts';
import { oneLine } from './template-variables.ts';
import type { Locale } from './types.ts';

/** Maximum output of a template, characters. */
const MAX_OUTPUT = 500_000;

/** A template that failed to render. */
export class TemplateFault extends Error {
  override readonly name = 'TemplateFault';
  readonly field: string;

  constructor(field: string, message: string, cause?: unknown) {
    super(message, { cause });
    this.field = field;
  }
}

/** Returns the fault of a template in one line, without content of the notice. Rethrows any other error. */
export function toFault(error: unknown): { readonly field: string; readonly message: string } {
  if (error instanceof TemplateFault) return error;
  throw error;
}

type Mode = 'html' | 'text';

/** A Liquid engine with its parsed templates. */
interface Engine {
  readonly liquid: Liquid;
  readonly parsed: Map<string, Parsed[]>;
}

const engines = new Map<string, Engine>();

/** Maximum number of cached parsed templates of a locale. 30 are built in. */
const MAX_PARSED = 200;

/** Remaining time of a template. */
export interface Time {
  ms: number;
}

export function render(
  field: string,
  source: string,
  mode: Mode,
  locale: Locale,
  scope: object,
  time: Time,
): string {
  if (!source.includes('{')) return source;
  const from = performance.now();
  try {
    const engine = getEngine(mode, locale);
    const text = String(engine.liquid.renderSync(parse(source, engine), scope, { renderLimit: time.ms }));
    if (text.length > MAX_OUTPUT) throw new TemplateFault(field, 'its output is too long');
    return text;
  } catch (error) {
    if (error instanceof TemplateFault) throw error;
    throw new TemplateFault(field, formatLiquidError(error), error);
  } finally {
    time.ms -= performance.now() - from;
  }
}

/** Returns the first line of a Liquid error. It contains names and positions in the template only. */
export function formatLiquidError(error: unknown): string {
  // A string above the engine's maximum length fails with a RangeError.
  if (error instanceof RangeError) return 'its output is too long';
  if (!LiquidError.is(error as LiquidError)) return 'it cannot be rendered';
  const [first = ''] = (error as LiquidError).message.split('\n');
  return oneLine(rewordLiquidMessage(first), 200);
}

/** Prefixes of Liquid's messages, and their replacements. */
const LIQUID_MESSAGES: readonly (readonly [RegExp, string])[] = [
  [/^undefined variable: /, 'unknown variable '],
  [/^undefined filter: /, 'unknown filter '],
  [/^tag "([^"]*)" not found/, 'unknown tag $1'],
  [/^output "(.*)" not closed/, '$1 is not closed'],
  [/^tag (.*) not closed/, '$1 is not closed'],
];

function rewordLiquidMessage(complaint: string): string {
  const placed = complaint.replace(/, line:(\d+), col:(\d+)$/, ' (line $1, column $2)');
  return LIQUID_MESSAGES.reduce((text, [from, to]) => text.replace(from, to), placed);
}

export function parse(source: string, { liquid, parsed }: Engine): Parsed[] {
  return getOrCreate(parsed, source, () => {
    const template = liquid.parse(source);
    if (parsed.size >= MAX_PARSED) parsed.clear();
    return template;
  });
}

/** Returns the engine for an output mode and a locale, with its plural rules. In HTML all output is escaped. */
export function getEngine(mode: Mode, locale: Locale): Engine {
  const create = () => ({ liquid: createLiquid(mode, locale), parsed: new Map() });
  return getOrCreate(engines, `${mode} ${locale}`, create);
}

function createLiquid(mode: Mode, locale: Locale): Liquid {
  const liquid = new Liquid({
    strictVariables: true,
    strictFilters: true,
    ownPropertyOnly: true,
    parseLimit: 250_000,
    memoryLimit: 5_000_000,
    ...(mode === 'html' && { outputEscape }),
  });
  limitOutput(liquid);
  const plurals = new Intl.PluralRules(locale);
  liquid.registerFilter('plural', (count: unknown, one: unknown, other: unknown) =>
    plurals.select(Number(count)) === 'one' ? one : other,
  );
  // Templates cannot include others, least of all files.
  for (const tag of ['include', 'render', 'layout', 'block']) delete liquid.tags[tag];
  // All output is escaped once, and templates cannot disable that.
  liquid.unregisterFilter('raw');
  // Filters that evaluate expressions for each element bypass the limits of time and memory.
  for (const name of Object.keys(liquid.filters)) if (name.endsWith('_exp')) liquid.unregisterFilter(name);
  if (mode === 'html') {
    for (const name of ['escape', 'escape_once', 'xml_escape'])
      liquid.registerFilter(name, (value: unknown) => value);
    liquid.registerFilter('newline_to_br', (value: unknown) => new TextWithBreaks(stringify(value)));
    liquid.registerTag('capture', TextCapture);
  }
  return liquid;
}

/** A text whose line breaks are `<br />` in HTML. Filters and captures use it as a text. */
class TextWithBreaks extends String {
  toHtml(): string {
    return escapeHtml(String(this)).replace(/\r?\n/g, '<br />\n');
  }
}

/** Name of the register with the number of captures that are being rendered. */
const CAPTURES = 'captures';

/** The tag `capture`. It captures text without escaping it: the text is escaped when it is output. */
class TextCapture extends CaptureTag {
  override *render(context: Context): Generator<unknown, void, string> {
    const captures: number = context.getRegister(CAPTURES, 0);
    context.setRegister(CAPTURES, captures + 1);
    yield* super.render(context);
    context.setRegister(CAPTURES, captures);
  }
}

/** Escapes a value that is output, unless it is captured. */
function outputEscape(this: { readonly context: Context }, value: unknown): string {
  if (this.context.getRegister(CAPTURES, 0) > 0) return stringify(value);
  return value instanceof TextWithBreaks ? value.toHtml() : escapeHtml(stringify(value));
}

/** Counts output and captures of templates as memory. Otherwise a text that captures itself twice would grow without limit. */
function limitOutput({ renderer }: Liquid): void {
  const renderTemplates = renderer.renderTemplates.bind(renderer);
  renderer.renderTemplates = function* (templates, context, emitter): IterableIterator<unknown> {
    const rendered: unknown = yield* renderTemplates(templates, context, emitter);
    // With an emitter it is part of an output that is counted as a whole.
    if (!emitter && typeof rendered === 'string') context.memoryLimit.use(rendered.length);
    return rendered;
  };
}

function stringify(value: unknown): string {
  return Array.isArray(value) ? value.map(stringify).join('') : String(value ?? '');
}
