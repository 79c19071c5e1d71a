/** The checks of `jobwire doctor` that ask other servers: the ordering API, DynamoDB, the mail server and the issuer of users. */
import { describeNetworkError } from '../client/errors.ts';
import type { Config } from '../shared/config.ts';
import type { Check } from './doctor-running.ts';
import { count } from './output.ts';

/** Maximum time for a server to respond (ms). */
export const PROBE_MS = 5_000;
/**
 * Clock skew above which a check warns. Receivers reject signatures that are minutes off, and timestamps of events come from this clock.
 */
const SKEW_WARN_MS = 5_000;
const SKEW_FAIL_MS = 60_000;

/** A region of the ordering API. */
export interface Region {
  readonly id: string;
  readonly baseUrl: string;
  readonly tokenUrl: string;
}

export async function checkDynamo(config: Config | undefined): Promise<Check[]> {
  if (config?.dynamodbEndpoint === undefined) return [];
  const probe = await probeUrl(config.dynamodbEndpoint);
  if (probe.responded) return [{ check: 'DynamoDB', state: 'ok', message: 'dynamodbEndpoint responds.' }];
  const message = `dynamodbEndpoint can’t be reached: ${probe.failureReason}.`;
  return [{ check: 'DynamoDB', state: 'fail', message, fix: 'Start DynamoDB, or correct dynamodbEndpoint.' }];
}

/** Checks whether the ordering API and its token endpoint respond. */
export async function checkRegion(region: Region): Promise<Check[]> {
  const { id, baseUrl, tokenUrl } = region;
  const check = `Region ${id}`;
  const [token, api] = await Promise.all([
    probeUrl(tokenUrl, { method: 'POST' }),
    probeUrl(`${baseUrl.replace(/\/+$/, '')}/account`),
  ]);
  const toCheck = (what: string, field: string, probe: Probe): Check => {
    if (!probe.responded) {
      const fix = `Check regions.${id}.${field} and the network: DNS, firewall, proxy.`;
      return { check, state: 'fail', message: `${what} can’t be reached: ${probe.failureReason}.`, fix };
    }
    if (probe.status === 404) {
      const fix = `Correct ${field === 'authUrl' ? `regions.${id}.authUrl or realm` : `the path of regions.${id}.baseUrl`}.`;
      return { check, state: 'fail', message: `${what} is not at this address (HTTP 404).`, fix };
    }
    if (probe.status >= 500) {
      const message = `${what} responds with HTTP ${probe.status}.`;
      return { check, state: 'warn', message, fix: 'Wait until the ordering API works again.' };
    }
    return { check, state: 'ok', message: `${what} responds.` };
  };
  const clock = [token, api].find((probe) => probe.responded);
  return [
    toCheck('The token endpoint', 'authUrl', token),
    toCheck('The ordering API', 'baseUrl', api),
    ...(clock ? checkSkew(`Clock`, `the ordering API (${id})`, clock) : []),
  ];
}

/** Connects to the mail server and goes as far as possible without sending a mail. */
export async function checkMail(config: Config | undefined): Promise<Check[]> {
  if (!config?.notifications) return [];
  const check = 'Mail server';
  const { smtp } = config.notifications;
  const { checkSmtp } = await import('../shared/notifications/smtp.ts');
  let isLoggedIn = false;
  const problem = await checkSmtp(smtp, PROBE_MS, () => {
    isLoggedIn = true;
  });
  if (problem) return [{ check, state: 'fail', ...problem }];
  const server = `${smtp.host}:${smtp.port} responds`;
  if (smtp.user === undefined) return [{ check, state: 'ok', message: `${server}.` }];
  if (isLoggedIn) return [{ check, state: 'ok', message: `${server} and accepts the login.` }];
  const message = `${server}, but offers no login. So user and password are not used.`;
  const fix =
    'Check notifications.smtp.port and notifications.smtp.secure. Many servers offer the login only with TLS, or only on port 587.';
  return [{ check, state: 'warn', message, fix }];
}

/** Checks whether AWS credentials for SMS are found. Sends no request to Amazon SNS. */
export async function checkSms(config: Config | undefined): Promise<Check[]> {
  const sms = config?.notifications?.sms;
  if (!sms) return [];
  const check = 'SMS';
  const { checkSmsCredentials } = await import('../shared/notifications/sms.ts');
  const problem = await checkSmsCredentials(sms.awsRegion);
  if (!problem) return [{ check, state: 'ok', message: 'AWS credentials for Amazon SNS were found.' }];
  const fix = `${problem.fix} This check uses the environment of this command.`;
  return [{ check, state: 'fail', message: problem.message, fix }];
}

/** Reads the discovery document and the keys of the issuer. */
export async function checkSignIn(config: Config | undefined): Promise<Check[]> {
  if (!config?.signIn) return [];
  const check = 'Sign-in';
  const { createSignIn } = await import('../shared/api/sign-in.ts');
  try {
    const keys = await createSignIn({ settings: config.signIn, now: Date.now }).check();
    const message = `${config.signIn.issuer} responds and has ${count(keys, 'key')}.`;
    return [{ check, state: 'ok', message }];
  } catch (cause) {
    const message = cause instanceof Error ? cause.message : String(cause);
    const fix = 'Check signIn.issuer and the network: DNS, firewall, proxy.';
    return [{ check, state: 'fail', message, fix }];
  }
}

type Probe =
  | { readonly responded: true; readonly status: number; readonly skewMs: number | undefined }
  | { readonly responded: false; readonly failureReason: string };

/** Checks whether a server responds, and how far its clock is ahead of ours. */
export async function probeUrl(url: string, init: RequestInit = {}): Promise<Probe> {
  const requestedAt = Date.now();
  try {
    const answer = await fetch(url, { ...init, redirect: 'manual', signal: AbortSignal.timeout(PROBE_MS) });
    const middle = (requestedAt + Date.now()) / 2;
    await answer.body?.cancel();
    const date = Date.parse(answer.headers.get('date') ?? '');
    // The header has whole seconds, rounded down.
    const skewMs = Number.isNaN(date) ? undefined : date + 500 - middle;
    return { responded: true, status: answer.status, skewMs };
  } catch (cause) {
    return { responded: false, failureReason: describeNetworkError(cause) };
  }
}

/** Warns if the clock of a server differs from ours. */
export function checkSkew(check: string, whose: string, probe: Probe): Check[] {
  if (!probe.responded || probe.skewMs === undefined) return [];
  const off = Math.abs(probe.skewMs);
  const state = off >= SKEW_FAIL_MS ? 'fail' : off >= SKEW_WARN_MS ? 'warn' : 'ok';
  if (state === 'ok') return [{ check, state, message: `In sync with ${whose}.` }];
  const message = `${Math.round(off / 1000)} s ${probe.skewMs > 0 ? 'behind' : 'ahead of'} ${whose}.`;
  return [{ check, state, message, fix: 'Synchronize the clock of this machine by NTP.' }];
}
