/** `jobwire health`: for health checks of containers and load balancers, so it loads little. */
import { describeNetworkError, UnreachableError } from '../client/errors.ts';
import type { Context } from './command.ts';

const TIMEOUT_MS = 5_000;

/** Requests the readiness of Jobwire. Throws {@link UnreachableError} if it is not ready. */
export async function health({ url, out }: Pick<Context, 'url' | 'out'>): Promise<undefined> {
  let why: string;
  try {
    const response = await fetch(`${url}/readyz`, {
      redirect: 'manual',
      signal: AbortSignal.timeout(TIMEOUT_MS),
    });
    const body = (await response.json().catch(() => null)) as { status?: unknown; detail?: unknown } | null;
    if (response.ok && body?.status === 'ok') {
      out.document({ url, status: 'ok' }, `Jobwire at ${url} is ready.`);
      return;
    }
    const detail = typeof body?.detail === 'string' ? `: ${body.detail.replace(/\.$/, '')}` : '';
    why = `it responds with HTTP ${response.status}${detail}`;
  } catch (cause) {
    const isLate = cause instanceof Error && cause.name === 'TimeoutError';
    why = isLate ? `no response within ${TIMEOUT_MS / 1_000} seconds` : describeNetworkError(cause);
  }
  throw new UnreachableError(`Jobwire at ${url} is not ready: ${why}.`);
}
