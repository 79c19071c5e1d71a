/** Access tokens of the token endpoint. */
import { randomBytes } from 'node:crypto';
import type { Credentials } from '../world/records.ts';
import type { RegionCode } from '../world/regions.ts';
import type { SandboxAccount, World } from '../world/world.ts';

/** Whom a token was given to. */
export interface Holder {
  readonly account: SandboxAccount;
  readonly credentials: Credentials;
}

/** Access tokens in force, and lately expired ones. A token is known in its own region only. */
export class TokenBook {
  readonly #world: World;
  readonly #lifetimeSeconds: number;
  readonly #tokens = new Map<string, Holder & { expiresAt: number }>();

  constructor(world: World, lifetimeSeconds = 600) {
    this.#world = world;
    this.#lifetimeSeconds = lifetimeSeconds;
  }

  /** Issues a token; it lives by the sandbox clock. */
  issue(account: SandboxAccount, credentials: Credentials): { token: string; expiresInSeconds: number } {
    const now = this.#world.now();
    // In the order of their issue, and so of their ends.
    for (const [token, { expiresAt }] of this.#tokens) {
      if (expiresAt > now || this.#tokens.size < REMEMBERED_TOKENS) break;
      this.#tokens.delete(token);
    }
    const token = `${account.region}.${randomBytes(24).toString('base64url')}`;
    this.#tokens.set(token, { account, credentials, expiresAt: now + this.#lifetimeSeconds * 1000 });
    return { token, expiresInSeconds: this.#lifetimeSeconds };
  }

  /** Whose token this is in a region, if it is valid there. */
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

/** So many tokens are kept, expired ones too; more only while they are in force. */
const REMEMBERED_TOKENS = 10_000;
