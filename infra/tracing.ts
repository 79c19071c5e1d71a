import { acknowledge } from './acknowledge.ts';
import type { Cell } from './cell.ts';
import type { CellFunction } from './cell-function.ts';

/** Lets functions send their spans to X-Ray, in a stage that has traces. */
export function traceFunctions(functions: readonly CellFunction[], { stage }: Pick<Cell, 'stage'>): void {
  if (!stage.tracing) return;
  for (const fn of functions) {
    fn.set('JOBWIRE_TRACE_SAMPLE', String(stage.tracing.samplePercent / 100));
    fn.permit(['xray:PutSpans', 'xray:PutSpansForIndexing', 'xray:PutTraceSegments'], ['*']);
    acknowledge(fn.role ?? fn, {
      'AwsSolutions-IAM5[Resource::*]':
        'Traces have no ARN, so the permission cannot be limited to some of them.',
    });
  }
}
