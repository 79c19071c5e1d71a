/** The CDK app: every stage with its cells. `cdk deploy 'jobwire-dev-*'` deploys one stage. */
import { buildDashboard } from '../dashboard/build.ts';
import { createApp } from './create-app.ts';

createApp({ dashboard: await buildDashboard() }).synth();
