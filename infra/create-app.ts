import { App, type AppProps, Validations } from 'aws-cdk-lib';
import { AwsSolutionsChecks } from 'cdk-nag';
import { CellStack } from './cell-stack.ts';
import { type ApiRegion, type CellSettings, type StageSettings, stages } from './settings.ts';

/**
 * Creates the app with one stack for each cell of each stage. Synthesis checks it against the AwsSolutions
 * rules. `dashboard`: the folder of the files from which the dashboard is built.
 */
export function createApp({ dashboard, ...props }: AppProps & { readonly dashboard: string }): App {
  const app = new App(props);
  for (const stage of stages) {
    for (const [region, cell] of listCells(stage)) {
      new CellStack(app, `jobwire-${stage.stage}-${region}`, { stage, region, cell, dashboard });
    }
  }
  Validations.of(app).addPlugins(new AwsSolutionsChecks(app));
  return app;
}

function listCells(stage: StageSettings): [ApiRegion, CellSettings][] {
  return Object.entries(stage.cells) as [ApiRegion, CellSettings][];
}
