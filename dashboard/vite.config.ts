/** How the dashboard is built, and served while it is worked on (`npm run dashboard`, beside a running `npm start`). */
import react from '@vitejs/plugin-react';
import { defineConfig } from 'vite';

/** Where requests that are not for the page go while it is worked on. */
const API = process.env.JOBWIRE_URL ?? 'http://127.0.0.1:4000';

export default defineConfig({
  root: import.meta.dirname,
  plugins: [react()],
  publicDir: 'public',
  server: { proxy: { '/v1': API, '/docs': API, '/mailbox': API } },
  build: {
    target: 'es2023',
    // The page's policy takes no inline script, and no data for one.
    modulePreload: { polyfill: false },
    assetsInlineLimit: 0,
    reportCompressedSize: false,
    // In kB, unpacked; a test has the bound that counts.
    chunkSizeWarningLimit: 1_000,
    manifest: true,
    license: { fileName: 'licenses.md' },
    rolldownOptions: { input: { page: `${import.meta.dirname}/index.html` } },
  },
});
