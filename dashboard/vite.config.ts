/** Build of the dashboard, and its development server (`npm run dashboard`, beside a running `npm start`). */
import react from '@vitejs/plugin-react';
import { defineConfig, type Plugin } from 'vite';

/** Target of API requests of the development server. */
const API = process.env.JOBWIRE_URL ?? 'http://127.0.0.1:4000';

/** Leaves out zod's output of JSON Schema: no page uses it, but every schema refers to it, so tree shaking keeps it. */
const WITHOUT_JSON_SCHEMA: Plugin = {
  name: 'without-json-schema',
  load: {
    filter: { id: /\/zod\/v4\/core\/(json-schema-processors|to-json-schema)\.js$/ },
    handler: () => 'module.exports = {};',
  },
};

export default defineConfig({
  root: import.meta.dirname,
  plugins: [react(), WITHOUT_JSON_SCHEMA],
  publicDir: 'public',
  server: { proxy: { '/v1': API, '/docs': API, '/mailbox': API } },
  build: {
    target: 'es2023',
    // The Content-Security-Policy forbids inline scripts and data URLs of scripts.
    modulePreload: { polyfill: false },
    assetsInlineLimit: 0,
    reportCompressedSize: false,
    // In kB, uncompressed. test/browser/script-size.test.ts checks the limit of compressed scripts.
    chunkSizeWarningLimit: 1_000,
    manifest: true,
    license: { fileName: 'licenses.md' },
    rolldownOptions: { input: { page: `${import.meta.dirname}/index.html` } },
  },
});
