/** The CDK app of a smoke test, apart from that of the cells: `cdk deploy 'jobwire-dev-*'` must not deploy it. */
import { App } from 'aws-cdk-lib';
import { findCell } from './cell.ts';
import { readStages } from './settings.ts';
import { SmokeStack } from './smoke-stack.ts';

const app = new App();
const read = (name: string) => String(app.node.getContext(name));
new SmokeStack(app, {
  ...findCell(readStages(read('cells')), read('cell')),
  topicArn: read('topicArn'),
  secretHash: read('secretHash'),
  startedAt: Number(read('startedAt')),
});
app.synth();
