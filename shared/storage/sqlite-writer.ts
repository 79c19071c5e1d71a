/** The writer thread; see `sqlite-table.ts`. Its `workerData` is the path of the file. */
import { parentPort, receiveMessageOnPort, workerData } from 'node:worker_threads';
import { SqliteStore } from './sqlite-store.ts';
import { FILE_SCHEMAS, type WriterRequest, type WriterResponse } from './sqlite-table.ts';

/** Maximum number of orders in one commit, so that the first orders do not wait for too many others. */
const MAX_ORDERS = 256;
const SWEEP_EVERY_MS = 60_000;
const SWEEP_AGAIN_MS = 1_000;

const port = parentPort;
if (!port) throw new Error('This file runs in a worker thread only.');
const store = new SqliteStore(String(workerData), FILE_SCHEMAS);

port.on('message', (first: WriterRequest) => {
  const asked: WriterRequest[] = [first];
  while (asked.length < MAX_ORDERS && asked.at(-1)) {
    const next = receiveMessageOnPort(port) as { message: WriterRequest } | undefined;
    if (!next) break;
    asked.push(next.message);
  }
  const orders = asked.filter((one) => one !== null);
  if (orders.length > 0) {
    const results = store.commit(orders.map(({ order }) => order));
    port.postMessage(orders.map(({ id }, at) => [id, results[at]]) as unknown as WriterResponse);
  }
  if (asked.at(-1) === null) {
    clearTimeout(sweeping);
    store.close();
    port.close();
  }
});

let sweeping = setTimeout(sweep, SWEEP_EVERY_MS);
function sweep(): void {
  let more = false;
  try {
    more = store.sweep(Date.now() / 1000);
  } catch {
    // No caller waits for the sweep, and it is retried.
  }
  sweeping = setTimeout(sweep, more ? SWEEP_AGAIN_MS : SWEEP_EVERY_MS);
}

port.postMessage([] satisfies WriterResponse);
