/**
 * Alert rules: stored in one partition of a region. Their state has its own items, so that evaluations and changes by users do not conflict.
 * Targets are secrets: they are encrypted, under a name that a change of the target replaces.
 */
import { isDeepStrictEqual } from 'node:util';
import { checkAccounts } from '../accounts/accounts.ts';
import { checkUrl } from '../delivery/outbound.ts';
import { checkEmail } from '../notifications/email-address.ts';
import type { SchemaOutput } from '../representation.ts';
import {
  alreadyExists,
  atMaximum,
  type Expectation,
  getRevision,
  modified,
  newResourceId,
  notFound,
  type Rejection,
  rejected,
  revisionUnchanged,
  withoutUndefined,
} from '../resources.ts';
import type { SealedPlace, SealedTexts } from '../secrets.ts';
import { type AccountRef, alertRulePk, alertStatePk, keys } from '../storage/schema.ts';
import type { Item, Table } from '../storage/table.ts';
import { checkInput } from '../validation.ts';
import {
  type AlertRuleRecord,
  type AlertRule as AlertRuleSchema,
  AlertRuleUpdate,
  type AlertTarget,
  NewAlertRule,
} from './rule-input.ts';
import { type AlertState, clearFailures, INITIAL_STATE } from './state.ts';

/** A rule as responses show it. */
export type AlertRule = SchemaOutput<typeof AlertRuleSchema>;

/** Dependencies of changes of rules. */
export interface AlertRuleDeps {
  readonly table: Table;
  /** Epoch ms. */
  readonly now: () => number;
  /** Encrypted targets. */
  readonly targets: SealedTexts;
  readonly allowPrivateNetworks: boolean;
  /** Whether e-mails can be sent. */
  readonly canMail: boolean;
}

/** Maximum number of rules of a region, and of those that name one account. */
export const MAX_ALERT_RULES = 100;
export const MAX_ALERT_RULES_PER_ACCOUNT = 20;

/** A stored rule with its state. */
export type StoredRule = Readonly<ReturnType<typeof toStored>>;

const DEFAULTS = {
  ...{ accounts: null, forMinutes: 0, repeatMinutes: null, notifyResolved: true, quietHours: null },
  enabled: true,
} as const;

/** Returns the place of a target among the secrets. */
const toPlace = (region: string, name: string): SealedPlace => ({
  key: keys.alertTarget(region, name),
  binding: `alert-target/${region}/${name}`,
  name: `of the alert rule ${name.split('.')[0]}`,
});

/** Returns the rules of a region, ordered by id. */
export async function listAlertRules(table: Table, region: string): Promise<StoredRule[]> {
  const [items, states] = await Promise.all([
    table.query({ pk: alertRulePk(region), limit: MAX_ALERT_RULES + 10 }),
    table.query({ pk: alertStatePk(region), limit: MAX_ALERT_RULES + 10 }),
  ]);
  const stateById = new Map(states.map((item) => [item.sk, item]));
  return items.map((item) => toStored(region, item, stateById.get(item.sk)));
}

/** Returns a rule, or `undefined` if there is none. */
export async function readAlertRule(
  table: Table,
  region: string,
  id: string,
): Promise<StoredRule | undefined> {
  const [item, state] = await Promise.all([
    table.get(keys.alertRule(region, id)),
    table.get(keys.alertState(region, id)),
  ]);
  return item && toStored(region, item, state);
}

/** Returns the target of a rule. Throws {@link SecretError}. */
export async function readTarget(
  targets: Pick<SealedTexts, 'load'>,
  { region, targetName }: Pick<StoredRule, 'region' | 'targetName'>,
): Promise<AlertTarget | undefined> {
  const text = await targets.load(toPlace(region, targetName));
  return text === undefined ? undefined : (JSON.parse(text) as AlertTarget);
}

/** Creates a rule. A repeated request with the same `newId` returns the rule created first. */
export async function createAlertRule(
  deps: AlertRuleDeps,
  region: string,
  input: unknown,
  newId: () => string,
): Promise<{ readonly kind: 'created'; readonly rule: AlertRule } | Rejection> {
  const checked = checkInput(NewAlertRule, input);
  if (checked.kind === 'rejected') return checked;
  const creation = newId();
  const { id = newResourceId('alert', newId), target, ...fields } = checked.value;
  const rule: AlertRuleRecord = { ...DEFAULTS, ...withoutUndefined(fields) } as AlertRuleRecord;
  const rejection =
    checkRule(rule) ??
    checkTarget(deps, target) ??
    (await checkAccounts(deps.table, region, rule.accounts ?? [], 'accounts'));
  if (rejection) return rejection;
  const others = await listOthers(deps.table, region, id);
  if (others.length >= MAX_ALERT_RULES) {
    return { kind: 'conflict', reason: `The maximum of ${MAX_ALERT_RULES} alert rules is reached.` };
  }
  const full = checkAccountLimit(others, rule.accounts ?? []);
  if (full) return full;
  const targetName = `${id}.${creation}`;
  await deps.targets.save(toPlace(region, targetName), JSON.stringify(target));
  const at = deps.now();
  const item: Item = {
    ...keys.alertRule(region, id),
    ...toAttributes(rule, target),
    ...{ targetName, revision: 1, createdAt: at, changedAt: at },
  };
  const put = await deps.table.write({ put: item, when: [['pk', 'absent']] });
  if (put.done || put.item?.targetName === targetName) {
    // An evaluation, or an interrupted deletion, may have left that of an earlier rule.
    await deps.table.write({ delete: keys.alertState(region, id) });
    return { kind: 'created', rule: toView(toStored(region, put.item ?? item, undefined)) };
  }
  await deps.targets.remove(toPlace(region, targetName));
  return alreadyExists('an alert rule', id);
}

/** Changes a rule. Its revision stays if nothing changes. Its state stays, unless the condition changes or the rule is disabled. */
export async function updateAlertRule(
  deps: AlertRuleDeps,
  stored: StoredRule,
  input: unknown,
  expected: Expectation,
  newId: () => string,
): Promise<{ readonly rule: AlertRule } | Rejection> {
  const checked = checkInput(AlertRuleUpdate, input);
  if (checked.kind === 'rejected') return checked;
  const { region, id, rule: before, targetName, item } = stored;
  const { target: wanted, ...fields } = checked.value;
  const given = Object.entries(withoutUndefined(fields)).map(([name, value]) => [
    name,
    value ?? DEFAULTS[name as keyof typeof DEFAULTS],
  ]);
  const rule: AlertRuleRecord = { ...before, ...Object.fromEntries(given) };
  // Some accounts that it already names may have been deleted since.
  const named = rule.accounts?.filter((account) => !before.accounts?.includes(account)) ?? [];
  const rejection =
    checkRule(rule) ??
    (wanted && checkTarget(deps, wanted)) ??
    (await checkAccounts(deps.table, region, named, 'accounts')) ??
    (named.length === 0 ? undefined : checkAccountLimit(await listOthers(deps.table, region, id), named));
  if (rejection) return rejection;
  if (expected.revision !== undefined && expected.revision !== getRevision(item)) {
    return modified(`alert rule "${id}"`);
  }
  // A target that cannot be decrypted is replaced.
  const isKept =
    wanted && isDeepStrictEqual(wanted, await readTarget(deps.targets, stored).catch(() => undefined));
  const target = isKept ? undefined : wanted;
  if (!target && isDeepStrictEqual(rule, before)) return { rule: toView(stored) };
  const newName = target ? `${id}.${newId()}` : targetName;
  if (target) await deps.targets.save(toPlace(region, newName), JSON.stringify(target));
  const changed = await deps.table.write({
    update: keys.alertRule(region, id),
    set: {
      ...toAttributes(rule, target),
      ...{ targetName: newName, revision: getRevision(item) + 1, changedAt: deps.now() },
    },
    when: [['pk', 'present'], revisionUnchanged(item)],
  });
  // Of the two targets, the one that is not in use is removed.
  const unused = changed.done ? targetName : newName;
  if (target) await deps.targets.remove(toPlace(region, unused));
  if (!changed.done) return modified(`alert rule "${id}"`);
  if (!rule.enabled || rule.condition !== before.condition) {
    await deps.table.write({ delete: keys.alertState(region, id) });
  } else if (target && stored.state.problem !== null) {
    // The failures of the former target do not delay messages to the new one.
    await saveState(deps.table, stored, clearFailures(stored.state));
  }
  const current = await readAlertRule(deps.table, region, id);
  return current ? { rule: toView(current) } : notFound(`alert rule "${id}"`);
}

async function listOthers(table: Table, region: string, id: string): Promise<Item[]> {
  const rules = await table.query({ pk: alertRulePk(region), limit: MAX_ALERT_RULES + 1 });
  return rules.filter(({ sk }) => sk !== id);
}

/** Returns why no further rule can name one of the accounts, so that no tenant uses up all rules of a region. */
function checkAccountLimit(others: readonly Item[], accounts: readonly string[]): Rejection | undefined {
  const named = others.flatMap((item) => toStored('', item, undefined).rule.accounts ?? []);
  const full = accounts.find(
    (account) => named.filter((other) => other === account).length >= MAX_ALERT_RULES_PER_ACCOUNT,
  );
  return full === undefined
    ? full
    : atMaximum(`The account "${full}" has ${MAX_ALERT_RULES_PER_ACCOUNT} alert rules that name it`);
}

/** Deletes a rule with its state and its target. */
export async function deleteAlertRule(
  { table }: Pick<AlertRuleDeps, 'table'>,
  { region, id, targetName, item }: StoredRule,
  expected: Expectation,
): Promise<{ readonly kind: 'deleted' } | Rejection> {
  const deleted = await table.write({
    delete: keys.alertRule(region, id),
    when: expected.revision === undefined ? [] : [revisionUnchanged(item)],
  });
  if (!deleted.done) return modified(`alert rule "${id}"`);
  await table.write({ delete: keys.alertState(region, id) });
  await table.write({ delete: keys.alertTarget(region, targetName) });
  return { kind: 'deleted' };
}

/**
 * Removes a deleted account from the rules of its region, because its id can be reused. A rule that names no other account is deleted:
 * without accounts it would measure all. Returns false if a rule was changed concurrently; call it again.
 */
export async function removeAccountFromAlertRules(
  { table, now }: Pick<AlertRuleDeps, 'table' | 'now'>,
  { region, account }: AccountRef,
): Promise<boolean> {
  let done = true;
  for (const item of await table.query({ pk: alertRulePk(region) })) {
    const stored = toStored(region, item, undefined);
    const { id, rule } = stored;
    if (!rule.accounts?.includes(account)) continue;
    const accounts = rule.accounts.filter((each) => each !== account);
    const revision = getRevision(item);
    if (accounts.length === 0) {
      done = (await deleteAlertRule({ table }, stored, { revision })).kind === 'deleted' && done;
      continue;
    }
    const changed = await table.write({
      update: keys.alertRule(region, id),
      set: { rule: JSON.stringify({ ...rule, accounts }), revision: revision + 1, changedAt: now() },
      when: [['pk', 'present'], revisionUnchanged(item)],
    });
    done &&= changed.done;
  }
  return done;
}

/** Stores the state of a rule, unless another process has stored one since it was read. */
export async function saveState(
  table: Table,
  { region, id, stateItem }: Pick<StoredRule, 'region' | 'id' | 'stateItem'>,
  state: AlertState,
): Promise<Item | undefined> {
  const item: Item = {
    ...keys.alertState(region, id),
    ...{ state: JSON.stringify(state), version: Number(stateItem?.version ?? 0) + 1 },
  };
  const written = await table.write({
    put: item,
    when: [stateItem ? ['version', '=', Number(stateItem.version)] : ['pk', 'absent']],
  });
  return written.done ? item : undefined;
}

/** Returns a rule as responses show it. */
export function toView({ region, id, rule, state, item }: StoredRule): AlertRule {
  const { status, since, value, sentAt, problem } = state;
  return {
    ...{ id, region, ...rule },
    target: {
      kind: item.targetKind as AlertTarget['kind'],
      to: Array.isArray(item.targetTo) ? (item.targetTo as readonly string[]) : null,
      host: typeof item.targetHost === 'string' ? item.targetHost : null,
    },
    state: { status, since, value, sentAt, problem },
    ...{ createdAt: Number(item.createdAt), changedAt: Number(item.changedAt), revision: getRevision(item) },
  };
}

function checkRule({ condition, accounts }: AlertRuleRecord): Rejection | undefined {
  return condition === 'notifications_delayed' && accounts !== null
    ? rejected('accounts cannot be used with the condition notifications_delayed.')
    : undefined;
}

function checkTarget(
  { allowPrivateNetworks, canMail }: AlertRuleDeps,
  target: AlertTarget,
): Rejection | undefined {
  if (target.kind !== 'email') {
    const reason = checkUrl(target.url, allowPrivateNetworks);
    return reason === undefined ? undefined : rejected(`target.url is not accepted. ${reason}`);
  }
  if (!canMail)
    return rejected('target cannot be used: the kind email requires a mail server, and none is configured.');
  const at = target.to.findIndex((address) => checkEmail(address).kind === 'rejected');
  return at < 0 ? undefined : rejected(`target.to[${at}] must be an e-mail address.`);
}

/** Attributes of a rule's item. Of a URL, only its host is visible. */
function toAttributes(rule: AlertRuleRecord, target: AlertTarget | undefined) {
  return {
    rule: JSON.stringify(rule),
    ...(target && {
      targetKind: target.kind,
      targetTo: target.kind === 'email' ? target.to : undefined,
      targetHost: target.kind === 'email' ? undefined : new URL(target.url).host,
    }),
  };
}

/** `stateItem`: `undefined` if the rule was not evaluated yet. */
function toStored(region: string, item: Item, stateItem: Item | undefined) {
  const stored = typeof stateItem?.state === 'string' ? (JSON.parse(stateItem.state) as AlertState) : {};
  return {
    ...{ region, id: item.sk, item, stateItem },
    rule: JSON.parse(String(item.rule)) as AlertRuleRecord,
    /** Name of the target among the secrets. */
    targetName: String(item.targetName),
    state: { ...INITIAL_STATE, ...stored },
  };
}
