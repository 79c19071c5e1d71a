/** `jobwire messages send` and `messages recipients`: notes to the recipients of a job. */
import { inputs } from '../client/inputs.ts';
import { CSV, command, limitFlag } from './command.ts';
import { checkNumber } from './jobs.ts';
import { sanitizeLine } from './output.ts';

export const notes = {
  'messages recipients': command({
    about: 'Lists the recipients of a job with their channels, and the reason if no note can be sent.',
    args: ['ACCOUNT', 'NUMBER'],
    flags: { limit: limitFlag(100), ...CSV },
    example: 'messages recipients acme 100042',
    async run({ api, out }, [account, number], { limit: max }) {
      checkNumber(number);
      const params = { path: { id: account, jobNumber: number } };
      const path = '/v1/accounts/{id}/jobs/{jobNumber}/recipients';
      return out.list(
        (onMore) => api().list(path, 'recipients', { params, max, onMore }),
        [
          { name: 'RECIPIENT', value: ({ recipient }) => recipient },
          { name: 'NAME', value: ({ name }) => name },
          { name: 'CHANNEL', value: ({ channel }) => channel },
          { name: 'ADDRESS', value: ({ address }) => address, long: true },
          { name: 'NOT BEFORE', value: ({ notBefore }) => notBefore && out.formatTimeCell(notBefore) },
          { name: 'NOT SENT BECAUSE', value: ({ detail }) => detail, long: true },
        ],
        'The job has no recipients.',
      );
    },
  }),

  'messages send': command({
    about: 'Sends a note about a job to one of its recipients.',
    more: 'During quiet hours, an SMS waits until they end. The same text about the same job is not sent to the same address again within 14 days.',
    args: ['ACCOUNT', 'NUMBER', 'RECIPIENT', 'TEXT'],
    flags: {
      channel: {
        value: 'CHANNEL',
        about: 'Channel of the message',
        choices: inputs['NoteInput.channel'],
        default: 'email',
      },
      'dry-run': { about: 'Only show the message' },
    },
    example: 'messages send acme 100042 ann Delayed --dry-run',
    async run({ api, out }, [account, number, recipient, text], { channel, 'dry-run': dryRun }) {
      checkNumber(number);
      const result = await api().post('/v1/accounts/{id}/jobs/{jobNumber}/messages', {
        params: { path: { id: account, jobNumber: number } },
        body: { recipient, channel, text, dryRun },
      });
      out.document(result, () => {
        const { created, message } = result;
        const { subject, text: rendered, to, state } = message;
        if (subject !== null) out.line(sanitizeLine(subject));
        for (const line of (rendered ?? '').trimEnd().split('\n')) out.line(sanitizeLine(line));
        out.line();
        const address = sanitizeLine(to?.address ?? '');
        if (dryRun) out.note(`Not sent. Without --dry-run, it goes to ${address}.`);
        else if (created) out.note(`Message ${sanitizeLine(message.id)} to ${address} is queued.`);
        else
          out.note(
            `Not sent again: message ${sanitizeLine(message.id)} to ${address} has the same text (${state}).`,
          );
      });
    },
  }),
};
