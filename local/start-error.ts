/** The program cannot start. The message is printed on the terminal. */
export class StartError extends Error {}
