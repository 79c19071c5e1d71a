/** State shared by the parts of a running sandbox. */
import type { FaultRules } from './http/faults.ts';
import type { ContractFreedom } from './http/freedom.ts';
import type { TokenStore } from './http/tokens.ts';
import type { RequestHook, RequestLog } from './http/traffic.ts';
import type { ChangeScheduler } from './simulation/scheduled-changes.ts';
import type { SandboxAccount, World } from './world/world.ts';

/** State shared by all regions of a running sandbox. */
export interface Service {
  world: World;
  tokens: TokenStore;
  faults: FaultRules;
  /** Behaviour where the contract leaves it open. It can be changed at any time. */
  freedom: ContractFreedom;
  requests: RequestLog;
  /** Called before each answer is created; replaceable at any time. */
  onRequest: RequestHook | undefined;
  /** Called for each job ordered over the API, so that the scenario advances it. */
  ordered: ((account: SandboxAccount, jobNumber: number) => void) | undefined;
  /** Scheduled changes and the scenario; run up to now before each request reads state. */
  scheduler: ChangeScheduler;
}
