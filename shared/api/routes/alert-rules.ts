/** Alert rule routes. */
import * as z from 'zod';
import { sendAlert, toMessage } from '../../alerts/evaluate.ts';
import { AlertRuleUpdate, AlertRule as AlertRuleView, NewAlertRule } from '../../alerts/rule-input.ts';
import {
  type AlertRule,
  createAlertRule,
  deleteAlertRule,
  listAlertRules,
  readAlertRule,
  type StoredRule,
  toView,
  updateAlertRule,
} from '../../alerts/rules.ts';
import { maskAddress } from '../../notifications/masking.ts';
import { textOrNull } from '../../representation.ts';
import { type Rejection, rejected } from '../../resources.ts';
import { isId } from '../../validation.ts';
import { canAccessAll } from '../access.ts';
import { roleAllows } from '../key-input.ts';
import type { Caller } from '../keys.ts';
import { afterBy, decodePageCursor, encodePageCursor, limit, one } from '../parameters.ts';
import { badParameter, problem } from '../problems.ts';
import { defineResource } from '../resource.ts';
import { type Route, route, type Subject } from '../route.ts';

/** Returns whether a key gives access to a rule, that is, to all accounts of its scope. */
const isForRule = (caller: Caller, accounts: readonly string[] | null): boolean =>
  caller.accounts === null || (accounts !== null && canAccessAll(caller, accounts));

/** A rule that a request names: as responses show it, and as stored. */
interface FoundRule extends AlertRule {
  readonly stored: StoredRule;
}

/** A rule by its id, which is looked up in each served region. */
const ruleSubject: Subject<FoundRule> = {
  params: { id: one.describe('Id of the rule.') },
  query: {
    region: one.optional().describe('Required if several regions have this id.'),
  },
  async find({ c, caller, params, query }, { feed }) {
    const { id = '' } = params;
    const regions = feed.regions.filter((region) => query.region === undefined || region === query.region);
    const read = isId(id)
      ? await Promise.all(regions.map((region) => readAlertRule(feed.table, region, id)))
      : [];
    const found = read.filter((stored) => stored !== undefined && isForRule(caller, stored.rule.accounts));
    const [stored, ...others] = found;
    if (!stored) return problem(c, 'not-found', { detail: 'There is no such alert rule.' });
    if (others.length === 0) return { ...toView(stored), stored };
    const detail = 'region is required: alert rules with this id exist in several regions.';
    return problem(c, 'invalid-parameter', { field: 'region', detail });
  },
  getRevision: ({ revision }) => revision,
};

const TestResult = z
  .object({
    sent: z.boolean().describe('Whether the target accepted the message.'),
    message: textOrNull.describe('Why the target did not accept the message. `null`: accepted.'),
  })
  .meta({ id: 'AlertTestResult' });

const rules = defineResource({
  ...{ name: 'alertRule', names: 'alertRules', one: 'an alert rule', tag: 'Alerts' },
  ...{ path: '/v1/alert-rules', schema: AlertRuleView, current: 'The alert rule.' },
  subject: ruleSubject as Subject<AlertRule>,
  view: (rule, caller) => {
    const { target } = rule;
    const to = roleAllows(caller.role, 'operate') ? target.to : (target.to?.map(maskAddress) ?? null);
    return { ...rule, target: { ...target, to } };
  },
});

/** Rejects a scope that the key does not give access to. */
function checkScope(caller: Caller, accounts: readonly string[] | null | undefined): Rejection | undefined {
  return isForRule(caller, accounts ?? null)
    ? undefined
    : rejected('accounts is required, and can contain only accounts of the API key.');
}

const toResult = <T extends { readonly rule: AlertRule }>(outcome: T | Rejection) =>
  'rule' in outcome ? { alertRule: outcome.rule } : outcome;

/** Returns the position of a rule in the list. `!` sorts before all characters of an id. */
const toPlace = ({ id, region }: StoredRule): string => `${id}!${region}`;

/** Parses a cursor of the list. Returns `undefined` if it is invalid. */
function decodeRulePlace(text: string): string | undefined {
  const place = decodePageCursor(text);
  const [id = '', region = '', ...more] = place?.split('!') ?? [];
  return isId(id) && region !== '' && more.length === 0 ? place : undefined;
}

const regionRule = (regions: readonly string[]): string => `must be one of ${regions.join(', ')}`;

/** All alert rule routes. */
export const alertRuleRoutes: readonly Route[] = [
  rules.list(
    {
      summary: 'List alert rules',
      page: 'A page of alert rules, ordered by id.',
      query: z.strictObject({
        limit,
        after: afterBy('alert rules', decodeRulePlace),
        region: one.optional().describe('Only rules of this region.'),
      }),
    },
    async ({ c, caller, query: { limit: most, after, region } }, { feed }) => {
      if (region !== undefined && !feed.regions.includes(region)) {
        return badParameter(c, `region ${regionRule(feed.regions)}.`);
      }
      const regions = region === undefined ? feed.regions : [region];
      const all = await Promise.all(regions.map((each) => listAlertRules(feed.table, each)));
      const visible = all
        .flat()
        .filter(({ rule }) => isForRule(caller, rule.accounts))
        .map((stored) => ({ place: toPlace(stored), stored }))
        .sort((a, b) => (a.place < b.place ? -1 : 1))
        .filter(({ place }) => after === undefined || place > after);
      const page = visible.slice(0, most);
      const next = visible.length > most ? encodePageCursor(page.at(-1)?.place ?? null) : null;
      return { alertRules: page.map(({ stored }) => toView(stored)), next };
    },
  ),
  rules.create(
    {
      description: 'The rule is evaluated once a minute. With a restricted API key, `accounts` is required.',
      body: NewAlertRule.extend({
        region: z
          .string('must be the name of a region')
          .optional()
          .describe('Required if Jobwire serves several regions.'),
      }).meta({ id: 'NewAlertRule' }),
      example: {
        id: 'late',
        name: 'Late jobs',
        condition: 'late_jobs',
        threshold: 5,
        forMinutes: 10,
        target: { kind: 'email', to: ['ops@acme.example'] },
      },
      location: ({ id, region }, { feed }) =>
        `/v1/alert-rules/${id}${feed.regions.length > 1 ? `?region=${region}` : ''}`,
    },
    async ({ caller, body: { region, ...input }, generators }, { feed, alerts }) => {
      const rejection = checkScope(caller, input.accounts);
      if (rejection) return rejection;
      const [only, ...others] = feed.regions;
      const served = region ?? (others.length === 0 ? only : undefined);
      if (served === undefined || !feed.regions.includes(served)) {
        return rejected(
          `region ${region === undefined ? 'is missing; it ' : ''}${regionRule(feed.regions)}.`,
        );
      }
      return toResult(await createAlertRule(alerts.rules, served, input, generators.newId));
    },
  ),
  rules.get(),
  rules.update(
    {
      subject: ruleSubject,
      body: AlertRuleUpdate,
      example: { threshold: 10, quietHours: null },
    },
    async ({ caller, subject: { stored }, body, expected, generators }, { alerts }) => {
      const rejection = body.accounts === undefined ? undefined : checkScope(caller, body.accounts);
      if (rejection) return rejection;
      const { newId } = generators;
      return toResult(await updateAlertRule(alerts.rules, stored, body, expected, newId));
    },
  ),
  rules.remove({ subject: ruleSubject }, ({ subject: { stored }, expected }, { alerts }) =>
    deleteAlertRule(alerts.rules, stored, expected),
  ),
  route(
    {
      method: 'post',
      path: '/v1/alert-rules/{id}/test',
      id: 'testAlertRule',
      tag: 'Alerts',
      summary: 'Send a test message of an alert rule',
      description: 'The state of the rule does not change.',
      role: 'admin',
      subject: ruleSubject,
      answer: { description: 'The result.', schema: TestResult },
    },
    async ({ subject: { stored } }, { alerts }) => {
      const { sending } = alerts;
      const message = await sendAlert(sending, stored, toMessage(sending, stored, 'test'));
      return { body: { sent: message === null, message } };
    },
  ),
];
