/** `jobwire templates send-test` */
import { inputs } from '../client/inputs.ts';
import { command } from './command.ts';
import { readJsonFile, withId } from './input.ts';
import { clean } from './output.ts';

export const testEmailCommands = {
  'templates send-test': command({
    about: 'Sends a test e-mail of a template to an address of the account itself.',
    more: 'ADDRESS must be the address of the signed-in user, the reply-to address of the notification settings, or the address of a recipient for the whole account. The subject begins with [Test]. The e-mail is not in the message history. If the mail server does not accept the e-mail, the exit code is 1.',
    args: ['ACCOUNT', 'ADDRESS'],
    fields: { ADDRESS: 'to' },
    flags: {
      kind: {
        value: 'KIND',
        about: 'Kind of message',
        choices: inputs['TestEmailRequest.kind'],
        required: true,
      },
      locale: {
        value: 'LOCALE',
        about: 'Locale. Default: that of the recipient or the account',
        choices: inputs['TestEmailRequest.locale'],
      },
      zone: { value: 'ZONE', about: 'Time zone. Default: that of the recipient or the account' },
      job: {
        value: 'NUMBER',
        about: 'Job number. Default: a sample job',
        range: inputs['TestEmailRequest.jobNumber'],
        field: 'jobNumber',
      },
      recipient: { value: 'ID', about: 'Recipient whose name, locale and zone are used' },
      template: {
        value: 'FILE',
        about: 'JSON file of a template to render instead of the current one. Requires the role admin',
      },
    },
    example: 'templates send-test acme orders@acme.example --kind dispatched --locale en-GB',
    async run({ api, out }, [account, to], flags) {
      const { kind, locale, zone, job: jobNumber, recipient } = flags;
      const template = flags.template === undefined ? undefined : readJsonFile('template', flags.template);
      const body = { to, kind, locale, zone, jobNumber, recipient, template };
      const result = await api().post('/v1/accounts/{id}/notifications/test', { ...withId(account), body });
      out.document(
        result,
        result.sent
          ? `“${clean(result.subject)}” was sent to ${clean(to)}.`
          : `It was not sent: ${clean(result.message)}`,
      );
      return result.sent ? 0 : 1;
    },
  }),
};
