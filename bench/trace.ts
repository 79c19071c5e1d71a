/** CPU time of the tasks of pages, from a trace of Chromium. */
import type { Browser } from 'playwright-core';

/** Records the CPU time (ms) of each task of the pages: the minimum duration of a frame on an idle machine. */
export async function startTrace(browser: Browser): Promise<{ stop(): Promise<number[]> }> {
  interface Traced {
    readonly name: string;
    readonly pid: number;
    readonly tid: number;
    readonly tdur?: number;
    readonly args?: { readonly name?: string };
  }
  const session = await browser.newBrowserCDPSession();
  const events: Traced[] = [];
  session.on('Tracing.dataCollected', ({ value }) => void events.push(...(value as unknown as Traced[])));
  await session.send('Tracing.start', {
    transferMode: 'ReportEvents',
    traceConfig: { includedCategories: ['toplevel'] },
  });
  return {
    async stop(): Promise<number[]> {
      const complete = new Promise<void>((done) => session.once('Tracing.tracingComplete', () => done()));
      await session.send('Tracing.end');
      await complete;
      const place = ({ pid, tid }: Traced): string => `${pid}/${tid}`;
      const pages = new Set(
        events.flatMap((one) =>
          one.name === 'thread_name' && one.args?.name === 'CrRendererMain' ? [place(one)] : [],
        ),
      );
      return events.flatMap((one) =>
        one.name === 'ThreadControllerImpl::RunTask' && pages.has(place(one)) ? [(one.tdur ?? 0) / 1000] : [],
      );
    },
  };
}
