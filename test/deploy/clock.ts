/**
 * Replaces the clock of the process by one that can be advanced: `Date` has the advanced time from the import of this module
 * on. Timers use the real clock.
 */
const RealDate = globalThis.Date;
const realNow = RealDate.now.bind(RealDate);
let ahead = 0;

globalThis.Date = new Proxy(RealDate, {
  construct: (target, args, newTarget) =>
    Reflect.construct(target, args.length === 0 ? [realNow() + ahead] : args, newTarget),
  apply: () => new Date().toString(),
  get: (target, name, self) =>
    name === 'now'
      ? () => realNow() + ahead
      : Reflect.get(target, name, self === globalThis.Date ? target : self),
});

/** Lead of the clock over the real one, in milliseconds. */
export function clockAhead(): number {
  return ahead;
}

/** Sets the lead of the clock. */
export function setClockAhead(ms: number): void {
  ahead = ms;
}
