/**
 * A clock that can be moved on, in place of the process's own: `Date` shows it from the moment this module is loaded.
 * Timers go on by the real one.
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

/** How far the clock is ahead of the real one, in milliseconds. */
export function clockAhead(): number {
  return ahead;
}

/** Puts it so far ahead. */
export function setClockAhead(ms: number): void {
  ahead = ms;
}
