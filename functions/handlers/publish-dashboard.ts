/**
 * Publishes the dashboard's files. CloudFormation invokes it when the files have changed and when the stack
 * is deleted.
 */
import type { CloudFormationCustomResourceEvent, CloudFormationCustomResourceResponse } from 'aws-lambda';
import * as z from 'zod';
import {
  ASSETS,
  CELLS_FILE,
  getCacheControl,
  getContentType,
  PAGE_FILE,
} from '../../shared/dashboard-headers.ts';

/** Resource type in templates. */
export const RESOURCE_TYPE = 'Custom::JobwireDashboard';

/**
 * Properties of the resource in the template. CloudFormation invokes the function again if any of them
 * changes.
 */
export const DashboardProperties = z.object({
  /** A hash of all files. */
  Build: z.string(),
  /** Names of the files in `assets`: they outlive the build by {@link KEPT_MS}. */
  Assets: z.array(z.string()),
  /** Content of `cells.json`, in place of the build's own. */
  Cells: z.string().optional(),
});

/** The store of the published files, by name. */
export interface FileStore {
  put(
    name: string,
    body: Uint8Array | string,
    about: { readonly contentType: string; readonly cacheControl: string },
  ): Promise<void>;
  list(): AsyncIterable<{ readonly name: string; readonly modifiedAt: number }>;
  delete(names: readonly string[]): Promise<void>;
}

/**
 * Retention (ms) of an asset after the last build that named it was replaced: open pages load some of their
 * parts late.
 */
export const KEPT_MS = 30 * 86_400_000;
/**
 * Prefix of an asset's name: an empty file whose age is the time since that replacement. It is never served.
 */
const REPLACED = 'replaced/';

export interface PublishDeps {
  readonly read: () => Promise<ReadonlyMap<string, Uint8Array>>;
  readonly store: FileStore;
  /** Epoch ms. */
  readonly now: () => number;
  /** Sends the result to CloudFormation. */
  readonly answer: (url: string, response: CloudFormationCustomResourceResponse) => Promise<void>;
  readonly onFault: (cause: unknown) => void;
}

/**
 * Creates a handler of CloudFormation requests. It responds in every case: without a response, a stack hangs
 * for an hour.
 */
export function createPublishDashboardHandler({ read, store, now, answer, onFault }: PublishDeps) {
  return async (event: CloudFormationCustomResourceEvent): Promise<void> => {
    const { StackId, RequestId, LogicalResourceId } = event;
    const about = { StackId, RequestId, LogicalResourceId, PhysicalResourceId: 'dashboard' };
    try {
      if (event.RequestType === 'Delete') await clear();
      else await publish(event);
      await answer(event.ResponseURL, { ...about, Status: 'SUCCESS' });
    } catch (cause) {
      onFault(cause);
      const Reason = 'The files of the dashboard could not be published; see the log of publishDashboard.';
      await answer(event.ResponseURL, { ...about, Status: 'FAILED', Reason });
    }
  };

  /** Publishes assets first and the page last: the page never exists before the files it loads. */
  async function publish(event: CloudFormationCustomResourceEvent): Promise<void> {
    const { Cells } = DashboardProperties.parse(event.ResourceProperties);
    const former =
      event.RequestType === 'Update'
        ? DashboardProperties.safeParse(event.OldResourceProperties).data
        : undefined;
    const files = new Map<string, Uint8Array | string>(await read());
    if (Cells !== undefined) files.set(CELLS_FILE, Cells);
    for (const name of [...files.keys()].sort(byTurn)) {
      const about = { contentType: getContentType(name), cacheControl: getCacheControl(name) };
      await store.put(name, files.get(name) ?? '', about);
    }
    for (const name of former?.Assets ?? []) {
      if (files.has(name)) continue;
      const about = { contentType: getContentType(name), cacheControl: 'no-store' };
      await store.put(`${REPLACED}${name}`, '', about);
    }
    const there = new Map<string, number>();
    for await (const { name, modifiedAt } of store.list()) there.set(name, modifiedAt);
    const isOld = (name: string): boolean => (there.get(name) ?? 0) < now() - KEPT_MS;
    const gone = [...there.keys()].filter((name) => {
      if (files.has(name)) return false;
      if (name.startsWith(REPLACED)) return isOld(name);
      return !isAsset(name) || (isOld(name) && isOld(`${REPLACED}${name}`));
    });
    await store.delete(gone);
  }

  async function clear(): Promise<void> {
    const all: string[] = [];
    for await (const { name } of store.list()) all.push(name);
    await store.delete(all);
  }
}

/** Reports whether a file is named by its content. */
export function isAsset(name: string): boolean {
  return `/${name}`.startsWith(ASSETS);
}

function byTurn(a: string, b: string): number {
  const turn = (name: string) => (isAsset(name) ? 0 : name === PAGE_FILE ? 2 : 1);
  return turn(a) - turn(b);
}
