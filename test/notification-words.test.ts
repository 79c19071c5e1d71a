import { expect, test } from 'vitest';
import { compileLayout, readLayout, writeLayout } from './support/mail-layout.ts';

test('the layout is what the MJML makes', async () => {
  if (process.env.LAYOUT === 'write') await writeLayout();
  expect(readLayout() === (await compileLayout())).toBe(true);
});
