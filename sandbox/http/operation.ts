/**
 * An operation of the ordering API as data: parameters, permissions, answers. The routes (`app.ts`), the OpenAPI document
 * (`openapi.ts`) and the generated tests use it.
 */
import type * as z from 'zod';
import { Problem } from '../../shared/ordering/contract/common.ts';
import type { Service } from '../service.ts';
import type { Role, SandboxUser } from '../world/records.ts';
import type { SandboxAccount } from '../world/world.ts';
import type { HttpResponse } from './responses.ts';
import type { Right } from './roles.ts';
import type { OperationName } from './traffic.ts';

/** A request that may use its operation, with parameters and body as their schemas read them. */
export interface Call<P = unknown, Q = unknown, B = unknown> {
  readonly service: Service;
  readonly account: SandboxAccount;
  /** The user of the credentials; undefined if it was removed. */
  readonly user: SandboxUser | undefined;
  readonly role: Role;
  readonly params: P;
  readonly query: Q;
  readonly body: B;
  /** A header of the request. */
  header(name: string): string | undefined;
  /** The path of the request, for problems. */
  readonly instance: string;
  /** The complete URL of the request. */
  readonly url: string;
  /** Time whose state the answer shows, epoch ms: the sandbox clock, minus the lag of the view. */
  readonly now: number;
}

/** An answer of an operation. Without a schema, an error is a problem document, and other answers have no body. */
export interface ResponseSpec {
  readonly description: string;
  readonly schema?: z.ZodType;
}

/** Errors that operations opt into. */
export const UNEXPECTED: ResponseSpec = { description: 'An unexpected error. Repeat the request once.' };

/** An operation as declared: `P`, `Q` and `B` are the types of path, query and body. */
export interface OperationSpec<P extends z.ZodObject, Q extends z.ZodObject, B extends z.ZodType> {
  readonly name: OperationName;
  readonly method: 'get' | 'post' | 'patch';
  /** Path below the API host, such as `/Jobs/{jobNumber}`. */
  readonly path: string;
  readonly tag: 'Price codes' | 'Jobs' | 'Assets' | 'Account' | 'Lookups' | 'Stock' | 'Promo codes';
  readonly summary: string;
  readonly description?: string;
  readonly params?: P;
  readonly query?: Q;
  /** Headers; all are optional strings. */
  readonly headers?: { readonly [name: string]: string };
  /** A JSON body. A body that its schema rejects answers 400 before the operation runs. */
  readonly body?: B;
  /** The possible shapes of a body that has no discriminator; for the description. */
  readonly bodyShapes?: readonly z.ZodType[];
  /** Media types that bodies may have; `application/json` by default. */
  readonly consumes?: readonly string[];
  /** Media types that answers are offered in; `application/json` by default. */
  readonly produces?: readonly string[];
  /** Required right, otherwise 403: to order, or to administer the account. */
  readonly needs?: Exclude<Right, 'privileged'>;
  /** Accepts any parameter value: there is no 400. */
  readonly takesAnything?: true;
  /** Answers by status. 401 is implicit, 403 with `needs`, and 400 if there are parameters or a body. */
  readonly answers: { readonly [status: number]: ResponseSpec };
  /** Called at most once for each request that changes state. */
  handle(call: Call<z.output<P>, z.output<Q>, z.output<B>>): HttpResponse;
}

/** An operation with any parameter types. */
export type Operation = OperationSpec<z.ZodObject, z.ZodObject, z.ZodType>;

/** Returns a function that declares an operation of a group. Default method: GET. */
export const createOperationFactory =
  (tag: Operation['tag']) =>
  <P extends z.ZodObject = z.ZodObject, Q extends z.ZodObject = z.ZodObject, B extends z.ZodType = z.ZodType>(
    spec: Omit<OperationSpec<P, Q, B>, 'tag' | 'method'> & Partial<Pick<Operation, 'method'>>,
  ): Operation =>
    // These schemas parsed the arguments of `handle`.
    ({ method: 'get', tag, ...spec }) as unknown as Operation;

/** All answers of an operation, including the implicit ones. */
export function listAnswers(spec: Operation): Readonly<Record<number, ResponseSpec>> {
  const answers: Record<number, ResponseSpec> = {
    401: { description: 'The bearer token is missing or not valid in this region.' },
  };
  if ((spec.params ?? spec.query ?? spec.body) && !spec.takesAnything) {
    answers[400] = { description: 'A parameter or the body is not valid.' };
  }
  if (spec.needs) {
    answers[403] = { description: 'The credentials may not use this operation.' };
  }
  if (spec.body) {
    answers[413] = { description: 'The body is larger than 1 MiB.' };
    answers[415] = { description: 'The body has an unsupported media type.' };
  }
  return Object.fromEntries(
    Object.entries({ ...answers, ...spec.answers }).map(([status, answer]) => [
      status,
      Number(status) < 400 ? answer : { schema: Problem, ...answer },
    ]),
  );
}
