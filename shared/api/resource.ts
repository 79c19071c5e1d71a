/**
 * Routes of a resource that users list, create, get, change and delete. A resource is declared once: its schema, its paths, how it is
 * found, and its names. Each route then states its texts and its store function. What all of them share is here: operation ids,
 * responses, `ETag`, `If-Match`, `Location`, and the problems of a rejected operation (docs/decisions/0048-resources-of-the-api.md).
 */
import * as z from 'zod';
import type { SchemaOutput } from '../representation.ts';
import type { Rejection } from '../resources.ts';
import type { Role } from './key-input.ts';
import type { Caller } from './keys.ts';
import { nextCursor } from './parameters.ts';
import {
  type Call,
  type HandlerResult,
  type ResponseSpec,
  type Route,
  type RouteParts,
  type RouteSpec,
  route,
  type Subject,
} from './route.ts';

type NoFields = z.ZodObject<Record<never, never>>;
type Handle<Q extends z.ZodObject, B extends z.ZodType, S, R> = (
  call: Call<Record<never, never>, z.output<Q>, z.output<B>, S>,
  parts: RouteParts,
) => R | Rejection | Response | Promise<R | Rejection | Response>;

/** A result of a store function: the record, under the name of its resource. */
type Named<N extends string, T> = { readonly [P in N]: T };

/** A resource: `S` is its record, `V` the schema of its representation, `C` what contains it. */
interface Resource<N extends string, P extends string, V extends z.ZodType, S, C> {
  /** Name of the record in results of store functions: `alertRule`. */
  readonly name: N;
  /** Name of the list in pages: `endpoints`. */
  readonly names: P;
  /** Name with its article in texts: `an alert rule`. */
  readonly one: string;
  /** Name in operation ids. Default: `name` with a capital letter. */
  readonly title?: string;
  readonly tag: Route['spec']['tag'];
  /** Path of the list. */
  readonly path: `/${string}`;
  /** Path of one, below that of the list. Default: `/{id}`. */
  readonly item?: `/${string}` | '';
  readonly schema: V;
  /** Description of a response with the current resource. */
  readonly current: string;
  /** Finds one. If it has a revision, responses have an `ETag`, and changes support `If-Match`. */
  readonly subject: Subject<S>;
  /** Finds what contains the list. */
  readonly within?: Subject<C>;
  /** Returns the record as a key may see it. Default: as it is. */
  readonly view?: (record: S, caller: Caller, parts: RouteParts) => SchemaOutput<V>;
}

/** Description of a route. Summaries and descriptions are those of the document. */
type Texts = Pick<Route['spec'], 'description'> & { readonly summary?: string };

/** The declaration of a change, for a subject of type `T`. */
interface ChangeSpec<B extends z.ZodType, T> extends Texts {
  readonly summary: string;
  readonly id?: string;
  readonly method?: 'post' | 'put' | 'patch';
  readonly role?: Role;
  readonly subject?: Subject<T>;
  readonly body?: B;
  readonly example?: z.input<B>;
  readonly repeatable?: boolean;
  readonly record?: RouteSpec<NoFields, NoFields, B, z.ZodType, T>['record'];
  /** Description of the response. Default: that of the current resource. */
  readonly result?: string;
}

/** Returns a page of records as a response. */
export function pageAnswer<N extends string, V extends z.ZodType>(names: N, items: V, description: string) {
  const shape = { [names]: z.array(items), next: nextCursor } as Named<N, z.ZodArray<V>> & {
    readonly next: typeof nextCursor;
  };
  return { description, schema: z.object(shape) } as const;
}

/** Declares a resource. Returns the functions that declare its routes. */
export function defineResource<
  N extends string,
  P extends string,
  V extends z.ZodType,
  S extends object,
  C = undefined,
>(resource: Resource<N, P, V, S, C>) {
  const { name, names, one, tag, path, schema, current, subject, within } = resource;
  const title = resource.title ?? capitalize(name);
  /** Name in texts, without an article. */
  const label = one.replace(/^(an?|the) /, '');
  const item = `${path}${resource.item ?? '/{id}'}` as const;
  const view = resource.view ?? ((record: S) => record as unknown as SchemaOutput<V>);
  const isRevised = subject.getRevision !== undefined;
  const headers: ResponseSpec['headers'] = isRevised ? { ETag: 'Revision, for `If-Match`.' } : undefined;
  const answer: ResponseSpec<V> = { description: current, schema, headers };

  /** Returns the response of a route: the record of the result, or why there is none. */
  function respond(
    result: Named<N, S> | Rejection | Response,
    caller: Caller,
    parts: RouteParts,
  ): HandlerResult<SchemaOutput<V>> {
    if (result instanceof Response || !(name in result)) return result as Rejection | Response;
    const record = (result as Named<N, S>)[name];
    return { body: view(record, caller, parts), revision: subject.getRevision?.(record) ?? undefined };
  }

  function change<B extends z.ZodType, T>(
    spec: ChangeSpec<B, T> &
      Required<Pick<ChangeSpec<B, T>, 'id' | 'method' | 'role'>> &
      Pick<Route['spec'], 'path'>,
    handle: Handle<NoFields, B, T, Named<N, S>>,
  ): Route {
    const { result, ...others } = spec;
    return route<NoFields, NoFields, B, V, T>(
      {
        ...{ tag, subject: subject as unknown as Subject<T>, ...others, conditional: isRevised },
        answer: { ...answer, description: result ?? current },
        problems: ['conflict', ...(spec.body ? (['unprocessable-content'] as const) : [])],
      },
      async (call, parts) => respond(await handle(call, parts), call.caller, parts),
    );
  }

  return {
    /** Lists records page by page. The query has the parameters of a page. */
    list<Q extends z.ZodObject, I extends z.ZodType = V>(
      spec: Texts & { readonly query: Q; readonly page: string; readonly items?: I },
      handle: Handle<Q, z.ZodUndefined, C, Named<P, readonly S[]> & { readonly next: string | null }>,
    ): Route {
      const { page, items = schema as unknown as I, summary = `List ${names}`, ...others } = spec;
      return route(
        {
          ...{ method: 'get', path, id: `list${capitalize(names)}`, tag, summary, role: 'read', ...others },
          subject: within as Subject<C>,
          answer: pageAnswer<string, z.ZodType>(names, items, page),
        },
        async (call, parts) => {
          const found = await handle(call, parts);
          if (found instanceof Response || !(names in found)) return found as Rejection | Response;
          const { [names]: records, next } = found as Named<P, readonly S[]> & {
            readonly next: string | null;
          };
          return {
            body: { [names]: records.map((record) => view(record, call.caller, parts)), next } as never,
          };
        },
      );
    },

    /** Creates one. `toBody` returns the response if it contains more than the record. */
    create<B extends z.ZodType, R extends Named<N, S>, A extends z.ZodType = V>(
      spec: Texts &
        Pick<RouteSpec<NoFields, NoFields, B, A, C>, 'body' | 'example' | 'allAccounts' | 'record'> & {
          readonly id?: string;
          readonly role?: Role;
          readonly location: (record: S, parts: RouteParts, within: C) => string;
          readonly answer?: { readonly description: string; readonly schema: A };
        },
      handle: Handle<NoFields, B, C, R>,
      toBody?: (created: R) => SchemaOutput<A>,
    ): Route {
      const { location, summary = `Create ${one}`, ...others } = spec;
      return route<NoFields, NoFields, B, A, C>(
        {
          ...{ method: 'post', path, id: `create${title}`, tag, summary, role: 'admin', ...others },
          subject: within as Subject<C>,
          answer: {
            ...(spec.answer ?? (answer as unknown as ResponseSpec<A>)),
            status: 201,
            headers: { ...headers, Location: `Path of the ${label}.` },
          },
          problems: ['conflict', 'unprocessable-content'],
        },
        async (call, parts) => {
          const created = await handle(call, parts);
          const shown = respond(created, call.caller, parts) as HandlerResult<SchemaOutput<A>>;
          if (!('body' in shown) || shown instanceof Response) return shown;
          const result = created as R;
          return {
            ...{ ...shown, ...(toBody && { body: toBody(result) }) },
            headers: { location: location(result[name], parts, call.subject) },
          };
        },
      );
    },

    /** Returns one. */
    get(texts: Texts = {}): Route {
      const summary = texts.summary ?? `Get ${one}`;
      return route(
        {
          ...{ method: 'get', path: item, id: `get${title}`, tag, role: 'read', subject, answer },
          ...texts,
          summary,
        },
        ({ subject, caller }, parts) => respond({ [name]: subject } as unknown as Named<N, S>, caller, parts),
      );
    },

    /** Changes the given fields of one. */
    update<B extends z.ZodType, T = S>(
      spec: Texts & { readonly body: B; readonly example: z.input<B>; readonly subject?: Subject<T> },
      handle: Handle<NoFields, B, T, Named<N, S>>,
    ): Route {
      const texts = { id: `update${title}`, summary: `Update ${one}` };
      return change<B, T>({ method: 'patch', path: item, role: 'admin', ...texts, ...spec }, handle);
    },

    /** Deletes one. */
    remove<T = S>(
      spec: Texts &
        Pick<Route['spec'], 'also' | 'problems'> & {
          readonly subject?: Subject<T>;
          readonly result?: string;
        },
      handle: Handle<NoFields, z.ZodUndefined, T, { readonly kind: 'deleted' }>,
    ): Route {
      const {
        result = `The ${label} is deleted.`,
        problems = [],
        summary = `Delete ${one}`,
        ...others
      } = spec;
      return route<NoFields, NoFields, z.ZodUndefined, z.ZodUndefined, T>(
        {
          ...{ method: 'delete', path: item, id: `delete${title}`, tag, summary, role: 'admin' },
          ...{ subject: subject as unknown as Subject<T>, ...others, conditional: isRevised },
          answer: { status: 204, description: result },
          problems: ['conflict', ...problems],
        },
        async (call, parts) => {
          const result = await handle(call, parts);
          return 'kind' in result && result.kind === 'deleted' ? { body: undefined } : result;
        },
      );
    },

    /** Performs an action on one: `POST …/<verb>`, or another method. */
    act<B extends z.ZodType = z.ZodUndefined, T = S>(
      verb: string,
      spec: ChangeSpec<B, T>,
      handle: Handle<NoFields, B, T, Named<N, S>>,
    ): Route {
      const below = verb === '' ? item : (`${item}/${verb}` as const);
      return change<B, T>(
        { method: 'post', path: below, id: `${verb}${title}`, role: 'operate', ...spec },
        handle,
      );
    },
  };
}

function capitalize(text: string): string {
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}`;
}
