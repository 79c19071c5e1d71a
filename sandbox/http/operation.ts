/**
 * What an operation of the ordering service is, as data: what it takes, who may use it, what it answers. The routes
 * (`app.ts`), the interface description (`openapi.ts`) and the tests that ask everything come from it.
 */
import type * as z from 'zod';
import { Problem } from '../../shared/ordering/contract/common.ts';
import type { Service } from '../service.ts';
import type { Role, SandboxUser } from '../world/records.ts';
import type { SandboxAccount } from '../world/world.ts';
import type { Answer } from './responses.ts';
import type { Right } from './roles.ts';
import type { OperationName } from './traffic.ts';

/** A request that may use its operation, with parameters and body as their schemas read them. */
export interface Call<P = unknown, Q = unknown, B = unknown> {
  readonly service: Service;
  readonly account: SandboxAccount;
  /** Whom the credentials act as; undefined when there is no such user any more. */
  readonly user: SandboxUser | undefined;
  readonly role: Role;
  readonly params: P;
  readonly query: Q;
  readonly body: B;
  /** A header of the request. */
  header(name: string): string | undefined;
  /** The path as it was asked for, for problems. */
  readonly instance: string;
  /** The whole address as it was asked for. */
  readonly url: string;
  /** Sandbox clock, epoch ms. */
  readonly now: number;
}

/** An answer that an operation may give; without a schema it has no body. */
export interface AnswerSpec {
  readonly description: string;
  readonly schema?: z.ZodType;
}

/** What may always go wrong, for operations that say so. */
export const UNEXPECTED: AnswerSpec = { description: 'An unexpected error; retry once.', schema: Problem };

/** An operation as it is declared: `P`, `Q` and `B` are what it takes in path, query and body. */
export interface OperationSpec<P extends z.ZodObject, Q extends z.ZodObject, B extends z.ZodType> {
  readonly name: OperationName;
  readonly method: 'get' | 'post' | 'patch';
  /** Below the API host, such as `/Jobs/{jobNumber}`. */
  readonly path: string;
  readonly tag: 'Price codes' | 'Jobs' | 'Assets' | 'Account' | 'Lookups' | 'Stock' | 'Promo codes';
  readonly summary: string;
  readonly description?: string;
  readonly params?: P;
  readonly query?: Q;
  /** What headers say; all are optional texts. */
  readonly headers?: { readonly [name: string]: string };
  /** A JSON body. What its schema refuses is answered with 400 before the operation sees it. */
  readonly body?: B;
  /** The shapes that the body may have, when `body` reads several that nothing tells apart; for the description. */
  readonly bodyShapes?: readonly z.ZodType[];
  /** Media types that bodies may have; `application/json` by default. */
  readonly consumes?: readonly string[];
  /** Media types that answers are offered in; `application/json` by default. */
  readonly produces?: readonly string[];
  /** What the credentials must be allowed, else 403: to order at all, or to administer the account. */
  readonly needs?: Exclude<Right, 'privileged'>;
  /** Whatever its parameters hold, they are never refused: there is no 400. */
  readonly takesAnything?: true;
  /** By status. 401 goes without saying, and so does 400 where there are parameters or a body. */
  readonly answers: { readonly [status: number]: AnswerSpec };
  /** Called at most once for each request that changes something. */
  handle(call: Call<z.output<P>, z.output<Q>, z.output<B>>): Answer;
}

/** An operation, whatever it takes. */
export type Operation = OperationSpec<z.ZodObject, z.ZodObject, z.ZodType>;

/** Declares an operation. */
export function operation<
  P extends z.ZodObject = z.ZodObject,
  Q extends z.ZodObject = z.ZodObject,
  B extends z.ZodType = z.ZodType,
>(spec: OperationSpec<P, Q, B>): Operation {
  // What `handle` is called with was read by these very schemas.
  return spec as unknown as Operation;
}

/** Every answer that an operation may give, with those that go without saying. */
export function answersOf(spec: Operation): Readonly<Record<number, AnswerSpec>> {
  const answers: Record<number, AnswerSpec> = {
    401: { description: 'There is no valid bearer token of this region.', schema: Problem },
  };
  if ((spec.params ?? spec.query ?? spec.body) && !spec.takesAnything) {
    answers[400] = { description: 'A parameter or the body is not valid.', schema: Problem };
  }
  if (spec.needs) {
    answers[403] = { description: 'The credentials may not use this operation.', schema: Problem };
  }
  if (spec.body) {
    answers[413] = { description: 'The body is larger than 1 MiB.', schema: Problem };
    answers[415] = { description: 'The body is of another media type.', schema: Problem };
  }
  return { ...answers, ...spec.answers };
}
