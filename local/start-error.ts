/** The program cannot start. The message is printed on the terminal. */
export class StartError extends Error {}

/** Returns the message of an error. */
export function toMessage(cause: unknown): string {
  return cause instanceof Error ? cause.message : String(cause);
}
