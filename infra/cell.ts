import type { ApiRegion, CellSettings, StageSettings } from './settings.ts';

/** A cell and its stage, with their settings. */
export interface Cell {
  readonly stage: StageSettings;
  readonly region: ApiRegion;
  readonly cell: CellSettings;
}
