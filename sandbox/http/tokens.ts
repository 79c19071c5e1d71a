/** Access tokens of the token endpoint. */
import { randomBytes } from 'node:crypto';
import type { Credentials } from '../world/records.ts';
import type { RegionCode } from '../world/regions.ts';
import type { SandboxAccount, World } from '../world/world.ts';

/** Holder of a token. */
export interface Holder {
  readonly account: SandboxAccount;
  readonly credentials: Credentials;
}

/** Access tokens: valid and recently expired ones. A token is valid in its own region only. */
export class TokenStore {
  readonly #world: World;
  readonly #lifetimeSeconds: number;
  readonly #tokens = new Map<string, Holder & { expiresAt: number }>();

  constructor(world: World, lifetimeSeconds = 600) {
    this.#world = world;
    this.#lifetimeSeconds = lifetimeSeconds;
  }

  /** Issues a token; it expires by the sandbox clock. */
  issue(account: SandboxAccount, credentials: Credentials): { token: string; expiresInSeconds: number } {
    const now = this.#world.now();
    // Sorted by time of issue, and so by expiry.
    for (const [token, { expiresAt }] of this.#tokens) {
      if (expiresAt > now || this.#tokens.size < REMEMBERED_TOKENS) break;
      this.#tokens.delete(token);
    }
    const token = `${account.region}.${randomBytes(24).toString('base64url')}`;
    this.#tokens.set(token, { account, credentials, expiresAt: now + this.#lifetimeSeconds * 1000 });
    return { token, expiresInSeconds: this.#lifetimeSeconds };
  }

  /** The holder of a token that is valid in the region. */
  holder(region: RegionCode, token: string): Holder | undefined {
    const entry = this.#known(region, token);
    return entry && entry.expiresAt > this.#world.now() ? entry : undefined;
  }

  /** Whether a token was valid in a region until its time was over, as far as that is remembered. */
  hasExpired(region: RegionCode, token: string): boolean {
    const entry = this.#known(region, token);
    return entry !== undefined && entry.expiresAt <= this.#world.now();
  }

  /** Forgets the tokens of a region, of an account (by name), or all; returns how many were in force. */
  revoke(which: { region?: RegionCode; account?: string } = {}): number {
    const now = this.#world.now();
    let count = 0;
    for (const [token, { account, expiresAt }] of this.#tokens) {
      if (expiresAt <= now) continue;
      if (which.region !== undefined && which.region !== account.region) continue;
      if (which.account !== undefined && which.account !== account.name) continue;
      this.#tokens.delete(token);
      count += 1;
    }
    return count;
  }

  #known(region: RegionCode, token: string): (Holder & { expiresAt: number }) | undefined {
    const entry = this.#tokens.get(token);
    return entry?.account.region === region ? entry : undefined;
  }
}

/** Maximum number of stored tokens, including expired ones; exceeded only by valid tokens. */
const REMEMBERED_TOKENS = 10_000;
