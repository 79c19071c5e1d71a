/** A child process: a mail server that accepts everything and records only the recipients. */
import type { AddressInfo } from 'node:net';
import { SMTPServer } from 'smtp-server';

/** Sent once the server listens. */
export interface MailServerFacts {
  readonly port: number;
}
/** Response to any message: mails received since the previous one. */
export interface MailTally {
  readonly mails: number;
  /** Recipient addresses. */
  readonly addresses: number;
}

let mails = 0;
let addresses = new Set<string>();

const server = new SMTPServer({
  authOptional: true,
  disabledCommands: ['AUTH', 'STARTTLS'],
  disableReverseLookup: true,
  logger: false,
  onData(stream, session, done) {
    stream.on('data', () => undefined);
    stream.once('end', () => {
      mails += 1;
      for (const { address } of session.envelope.rcptTo) addresses.add(address);
      done(null, 'queued as bench');
    });
  },
});
server.listen(0, '127.0.0.1', () => {
  const { port } = server.server.address() as AddressInfo;
  process.send?.({ port } satisfies MailServerFacts);
});
process.on('message', () => {
  process.send?.({ mails, addresses: addresses.size } satisfies MailTally);
  mails = 0;
  addresses = new Set();
});
process.on('disconnect', () => process.exit(0));
