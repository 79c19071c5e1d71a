/** Types of the used parts of packages that `npm ci` does not install. */
declare module 'lighthouse' {
  export const desktopConfig: object;
  export const defaultConfig: object;
  interface Audit {
    readonly id: string;
    readonly score: number | null;
    readonly numericValue?: number;
    readonly details?: { readonly debugData?: { readonly totalElements?: number } };
  }
  export default function lighthouse(
    url: string,
    flags: object,
    config: object,
    page: object,
  ): Promise<
    | {
        readonly lhr: {
          readonly audits: Readonly<Record<string, Audit>>;
          readonly categories: Readonly<Record<string, { readonly score: number | null }>>;
        };
      }
    | undefined
  >;
}

declare module 'puppeteer-core' {
  interface Page {
    goto(url: string): Promise<unknown>;
    evaluate(act: (text: string) => void, text: string): Promise<unknown>;
  }
  interface Context {
    newPage(): Promise<Page>;
    close(): Promise<void>;
  }
  interface Browser {
    createBrowserContext(): Promise<Context>;
    close(): Promise<void>;
  }
  const puppeteer: { launch(options: object): Promise<Browser> };
  export default puppeteer;
}
