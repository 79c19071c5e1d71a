/** What the parts of a running sandbox share. */
import type { FaultBook } from './http/faults.ts';
import type { TokenBook } from './http/tokens.ts';
import type { RequestHook, RequestLog } from './http/traffic.ts';
import type { Agenda } from './simulation/event-schemas.ts';
import type { SandboxAccount, World } from './world/world.ts';

/** What all regions of a running sandbox share. */
export interface Service {
  world: World;
  tokens: TokenBook;
  faults: FaultBook;
  requests: RequestLog;
  /** Called before each answer is made up; may be replaced at any time. */
  onRequest: RequestHook | undefined;
  /** Told of each job that was ordered over the API, so that it gets a life of its own. */
  ordered: ((account: SandboxAccount, jobNumber: number) => void) | undefined;
  /** What is to happen, to jobs that live by themselves too: brought up to now before a request looks at anything. */
  agenda: Agenda;
}
