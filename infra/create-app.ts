import { App, type AppProps, Validations } from 'aws-cdk-lib';
import { AwsSolutionsChecks } from 'cdk-nag';
import { CellStack } from './cell-stack.ts';
import {
  type ApiRegion,
  type CellSettings,
  readStages,
  SETTINGS_FILE,
  type StageSettings,
} from './settings.ts';

/**
 * Creates the app with one stack for each cell of each stage in the settings file, which the context value `cells` can name. Synthesis
 * checks it against the AwsSolutions rules. `dashboard`: the folder of the files from which the dashboard is built. Throws
 * {@link SettingsError}.
 */
export function createApp({ dashboard, ...props }: AppProps & { readonly dashboard: string }): App {
  const app = new App(props);
  const path: unknown = app.node.tryGetContext('cells') ?? SETTINGS_FILE;
  for (const stage of readStages(String(path))) {
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
