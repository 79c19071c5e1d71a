/**
 * Disables code generation in zod: the page's Content-Security-Policy forbids it and reports each attempt. Import this module first,
 * because schemas read the setting when they are created.
 */
(globalThis as { __zod_globalConfig?: { jitless?: boolean } }).__zod_globalConfig = { jitless: true };
