/** Evaluation of alert rules while tables and secrets cannot be read. */
import { randomUUID } from 'node:crypto';
import { expect, test } from 'vitest';
import { evaluateAlerts } from '../../shared/alerts/evaluate.ts';
import { createAlertRule, readAlertRule } from '../../shared/alerts/rules.ts';
import { openSealedTexts, type SealedTexts, SecretError } from '../../shared/secrets.ts';
import { historySchema, keys } from '../../shared/storage/schema.ts';
import { createMemoryTable } from '../../shared/storage/sqlite-table.ts';
import { TableError } from '../../shared/storage/table.ts';

const MINUTE = 60_000;

/** A rule that fires, whose messages are accepted. */
async function createWorld() {
  const clock = { now: Date.parse('2026-03-02T12:00:00Z') };
  const now = () => clock.now;
  const table = createMemoryTable();
  const sealed = await openSealedTexts(table, new Uint8Array(32).fill(5));
  const rule = {
    ...{ id: 'dead', name: 'Dead events', condition: 'dead_events', threshold: 0 },
    target: { kind: 'webhook', url: 'https://ops.example/hook' },
  };
  const rules = { table, now, targets: sealed, allowPrivateNetworks: false, canMail: false };
  expect((await createAlertRule(rules, 'us', rule, randomUUID)).kind).toBe('created');
  await table.write({ put: { ...keys.sink('us', 'erp'), kind: 'webhook', target: 'x', accounts: [] } });
  await table.write({ put: { ...keys.dead('us', 'erp', 'acme', 1), diedAt: 0 } });
  const bodies: string[] = [];
  const post = async (_url: string, _headers: object, body: string) => {
    bodies.push(JSON.parse(body).type);
    return { kind: 'answered', status: 200, headers: {}, excerpt: '' } as const;
  };
  const connections = { of: () => ({ post, close: () => undefined }), close: () => undefined };
  return {
    bodies,
    /** Evaluates the rule a minute later, with these targets. */
    async nextMinute(targets: Pick<SealedTexts, 'load'> = sealed) {
      clock.now += MINUTE;
      const sending = { targets, connections, mailer: undefined, dashboardUrl: null };
      return evaluateAlerts({ table, history: createMemoryTable(historySchema), now, ...sending }, 'us');
    },
    readState: async () => (await readAlertRule(table, 'us', 'dead'))?.state,
  };
}

test.each([
  new SecretError('key', 'could not be decrypted by KMS (ThrottlingException).'),
  new TableError('read', 'The request timed out.'),
])('a message whose target cannot be read is sent a minute later: %s', async (cause) => {
  const world = await createWorld();
  const load = () => Promise.reject(cause);
  expect(await world.nextMinute({ load })).toMatchObject({ firing: 1, sent: 0, failed: 1 });
  const problem = `The target could not be read. ${cause.message}`;
  expect(await world.readState()).toMatchObject({ status: 'firing', sentAt: null, problem });
  expect(await world.nextMinute()).toMatchObject({ firing: 1, sent: 1, failed: 0 });
  expect(world.bodies).toEqual(['alert.firing']);
  expect(await world.readState()).toMatchObject({ problem: null });
});
