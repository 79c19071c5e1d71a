/** `npm run bench -- --peers` on a machine without the other systems. */
import { expect, it } from 'vitest';
import { launch } from '../support/command.ts';

it('states how to build the other systems if their programs are missing, and measures nothing', async () => {
  const command = ['npm', 'run', '--silent', 'bench', '--', '--peers'];
  const env = { SVIX_SERVER: undefined, OUTPOST_DIR: undefined };
  const { code, out, err } = await launch(command, { env }).ended;
  expect({ code, out }).toEqual({ code: 1, out: '' });
  expect(err).toMatch(/^SVIX_SERVER must be the path of svix-server\..* cargo build /);
  expect(err).toMatch(/^OUTPOST_DIR must be the folder of outpost and outpost-server\..* go build /m);
});
