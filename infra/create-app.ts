import { App, type AppProps, Validations } from 'aws-cdk-lib';
import { AwsSolutionsChecks } from 'cdk-nag';
import { listCells } from './cell.ts';
import { CellStack } from './cell-stack.ts';
import { readStages, SETTINGS_FILE } from './settings.ts';

/**
 * Creates the app with one stack for each cell of each stage in the settings file, which the context value `cells` can name. Synthesis
 * checks it against the AwsSolutions rules. `dashboard`: the folder of the files from which the dashboard is built. Throws
 * {@link SettingsError}.
 */
export function createApp({ dashboard, ...props }: AppProps & { readonly dashboard: string }): App {
  const app = new App(props);
  const path: unknown = app.node.tryGetContext('cells') ?? SETTINGS_FILE;
  for (const cell of listCells(readStages(String(path)))) {
    new CellStack(app, { ...cell, dashboard });
  }
  Validations.of(app).addPlugins(new AwsSolutionsChecks(app));
  return app;
}
