/**
 * The operator's commands to a cell, which the API cannot execute: creating the first key, and renewing logs
 * after a restore. One command per invocation, an object with the field `do`. The response contains the
 * result, or `{ "error": { "kind", "message" } }` for a command that cannot be executed. Only faults (the
 * table does not respond) are thrown, so that every error of the function needs attention.
 */
import * as z from 'zod';
import { NewKey } from '../../shared/api/key-input.ts';
import type { KeyRecord } from '../../shared/api/key-record.ts';
import { createKey, OPERATOR } from '../../shared/api/keys.ts';
import type { Rejection } from '../../shared/resources.ts';
import { type OperatorDeps, renewLogs } from '../../shared/tracking/operator.ts';
import { formatIssue } from '../../shared/validation.ts';
import type { Telemetry } from '../telemetry.ts';

/** Dependencies of the handler. */
export interface OperateDeps extends OperatorDeps {
  readonly region: string;
  /** Whether the cell's table was restored from a backup. */
  readonly isRestored: boolean;
  readonly telemetry: Pick<Telemetry, 'operate'>;
}

/** A response: JSON. */
interface Answer {
  readonly key?: KeyRecord;
  readonly secret?: string;
  readonly logs?: Awaited<ReturnType<typeof renewLogs>>;
  readonly error?: { readonly kind: Rejection['kind']; readonly message: string };
}

/** All commands, each with its input schema. */
const Command = z.discriminatedUnion(
  'do',
  [
    z.strictObject({
      do: z.literal('keys.create'),
      ...NewKey.shape,
      role: NewKey.shape.role.default('admin'),
    }),
    z.strictObject({ do: z.literal('logs.renew') }),
  ],
  {
    error: (issue) =>
      issue.code === 'invalid_union' ? `must be one of ${commands().join(', ')}` : undefined,
  },
);
type Command = z.infer<typeof Command>;

/** Returns the names of all commands. */
export function commands(): string[] {
  return Command.options.map(({ shape }) => shape.do.value);
}

/**
 * Creates the handler, which executes one command. Invalid input and impossible commands get a response;
 * faults are thrown.
 */
export function createOperateHandler(deps: OperateDeps) {
  return async (event: unknown): Promise<Answer> => {
    const parsed = Command.safeParse(event, { reportInput: true });
    const answer = parsed.success
      ? await perform(deps, parsed.data)
      : fail('rejected', `${formatIssue(parsed.error.issues[0], 'The command')}.`);
    deps.telemetry.operate({
      command: parsed.success ? parsed.data.do : 'unknown',
      about: answer.key?.id ?? null,
      outcome: answer.error?.kind ?? 'done',
    });
    return answer;
  };
}

async function perform(deps: OperateDeps, command: Command): Promise<Answer> {
  switch (command.do) {
    case 'keys.create': {
      const { do: _, ...input } = command;
      const outcome = await createKey(deps, input, OPERATOR);
      if (outcome.kind !== 'created') return fail(outcome.kind, outcome.reason);
      return { key: outcome.key, secret: outcome.secret };
    }
    case 'logs.renew':
      if (deps.isRestored) return { logs: await renewLogs(deps, deps.region) };
      return fail(
        'conflict',
        `The settings of the cell "${deps.region}" name no restored table (stateTable.restoredAt), so there is nothing to renew.`,
      );
  }
}

const fail = (kind: Rejection['kind'], message: string): Answer => ({ error: { kind, message } });
