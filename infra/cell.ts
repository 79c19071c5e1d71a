/** The cells of the settings, by the names that commands and AWS resources use. */
import { cellName } from '../shared/metrics.ts';
import { type CellSettings, SettingsError, type StageSettings } from './settings.ts';
import { ApiRegion } from './settings-checks.ts';

/** A cell of the settings, with its stage. */
export interface Cell {
  /** Name in commands and in the names of AWS resources: `<stage>-<id>`. */
  readonly name: string;
  /** Name in its stage. */
  readonly id: string;
  readonly stage: StageSettings;
  /** Region of the ordering API. */
  readonly region: ApiRegion;
  readonly cell: CellSettings;
}

/** Returns a cell of a stage. */
export function toCell(stage: StageSettings, id: string, cell: CellSettings): Cell {
  return {
    name: cellName({ stage: stage.stage, cell: id }),
    id,
    stage,
    region: ApiRegion.parse(cell.region ?? id),
    cell,
  };
}

/** Returns all cells of the stages. */
export function listCells(stages: readonly StageSettings[]): Cell[] {
  return stages.flatMap((stage) => Object.entries(stage.cells).map(([id, cell]) => toCell(stage, id, cell)));
}

/**
 * Returns the cell that a command names, as `<stage>-<cell>`, or as `<cell>` if only one stage has a cell with this name. Throws
 * {@link SettingsError}.
 */
export function findCell(stages: readonly StageSettings[], name: string): Cell {
  const cells = listCells(stages);
  const named = cells.filter((cell) => cell.name === name || cell.id === name);
  const [found] = named;
  if (found && named.length === 1) return found;
  throw new SettingsError(`--cell must be one of ${cells.map((cell) => cell.name).join(', ')}.`);
}

/** Prefix of the ids of accounts and endpoints of smoke tests. Those of an interrupted run are removed by the next one. */
export const SMOKE_PREFIX = 'jobwire-smoke-';

/** Returns the name of the stack of a cell's smoke test. */
export const smokeStackName = (cell: string): string => `jobwire-${cell}-smoke`;
