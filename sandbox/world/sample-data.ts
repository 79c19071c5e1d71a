// Sample data for jobs and users: invented garments, designs, comments and names.

import samples from './data/samples.json' with { type: 'json' };

/** `AWKWARD_TEXTS` are hostile texts that customers may enter: they must be displayed, never executed. */
export const {
  garments: GARMENTS,
  designs: DESIGNS,
  awkwardTexts: AWKWARD_TEXTS,
  printedProcesses: PRINTED_PROCESSES,
  origins: ORIGINS,
  firstNames: FIRST_NAMES,
  lastNames: LAST_NAMES,
} = samples;
