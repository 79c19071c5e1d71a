/**
 * zod would try whether it may make code while it runs. The page's policy forbids that, and tells of each try. Imported before all
 * else, for schemas ask when they are made.
 */
(globalThis as { __zod_globalConfig?: { jitless?: boolean } }).__zod_globalConfig = { jitless: true };
