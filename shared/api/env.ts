import type { Caller } from './keys.ts';

/** Context variables of handlers. */
export interface ApiEnv {
  Bindings: {
    /** Client address, for the limit on failed authentications. Never logged. */
    clientAddress?: string;
    /** Number of `Host` headers, if the server knows it. More than one is rejected. */
    hostHeaders?: number;
    /** Why the server blocks the request. */
    blocked?: string | undefined;
  };
  Variables: {
    requestId: string;
    /** The caller. Set only after authentication. */
    caller: Caller;
    /** Name of the route for the log: `GET /v1/accounts/{id}`. */
    route: string;
  };
}
