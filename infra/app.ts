/** The CDK app: every stage with its cells. `cdk deploy 'jobwire-dev-*'` deploys one stage. */
import { createApp } from './create-app.ts';

createApp().synth();
