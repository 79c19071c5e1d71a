/** Worker thread that renders accounts' own templates: see `rendering.ts`. */
import { parentPort } from 'node:worker_threads';
import { checkTemplate, renderEmail, renderSms } from './render.ts';
import type { RenderTask } from './rendering.ts';

const port = parentPort;
if (!port) throw new Error('This file must run in a worker thread.');

port.postMessage('ready');
port.on('message', (task: RenderTask) => port.postMessage(runTask(task)));

function runTask(task: RenderTask) {
  switch (task.what) {
    case 'email':
      return renderEmail(task.input);
    case 'sms':
      return renderSms(task.input);
    case 'check':
      return checkTemplate(task.place, task.template);
  }
}
