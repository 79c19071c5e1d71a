/** Lambda: publishes the dashboard's files to the bucket of the cell's distribution. */
import { DeleteObjectsCommand, PutObjectCommand, paginateListObjectsV2, S3Client } from '@aws-sdk/client-s3';
import middy from '@middy/core';
import { readDashboard } from './dashboard-files.ts';
import { PublishDashboardEnv, readEnv } from './env.ts';
import { createPublishDashboardHandler, type FileStore } from './handlers/publish-dashboard.ts';
import { createTelemetry } from './telemetry.ts';

/** The largest file is uploaded within seconds; a dead connection must not use up the function's timeout. */
const TIMEOUTS = { connectionTimeout: 2_000, requestTimeout: 20_000, throwOnRequestTimeout: true };
/** Maximum number of objects that S3 deletes in one call. */
const DELETED_AT_ONCE = 1_000;
/** CloudFormation waits for the response; a lost one costs an hour. */
const ANSWER_ATTEMPTS = 3;

const env = readEnv(PublishDashboardEnv, process.env);
const telemetry = createTelemetry('publishDashboard', env);

/** Invoked by CloudFormation when a deployment has changed the files, and when the stack is deleted. */
export const handler = middy(
  createPublishDashboardHandler({
    read: readDashboard,
    store: bucketStore(new S3Client({ requestHandler: TIMEOUTS }), env.JOBWIRE_DASHBOARD_BUCKET),
    now: Date.now,
    answer,
    onFault: (cause) => telemetry.fault('The files of the dashboard could not be published.', cause),
  }),
).use(telemetry.logging);

function bucketStore(client: S3Client, Bucket: string): FileStore {
  return {
    async put(Key, Body, { contentType, cacheControl }) {
      await client.send(
        new PutObjectCommand({ Bucket, Key, Body, ContentType: contentType, CacheControl: cacheControl }),
      );
    },
    async *list() {
      for await (const { Contents = [] } of paginateListObjectsV2({ client }, { Bucket })) {
        for (const { Key = '', LastModified } of Contents) {
          yield { name: Key, modifiedAt: LastModified?.getTime() ?? 0 };
        }
      }
    },
    async delete(names) {
      for (let at = 0; at < names.length; at += DELETED_AT_ONCE) {
        const Objects = names.slice(at, at + DELETED_AT_ONCE).map((Key) => ({ Key }));
        const { Errors = [] } = await client.send(
          new DeleteObjectsCommand({ Bucket, Delete: { Objects, Quiet: true } }),
        );
        if (Errors.length > 0) throw new Error(`${Errors.length} files could not be deleted.`);
      }
    },
  };
}

async function answer(url: string, response: object): Promise<void> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      // The URL is signed for no content type.
      const answered = await fetch(url, {
        method: 'PUT',
        headers: { 'content-type': '' },
        body: JSON.stringify(response),
      });
      if (answered.ok) return;
      throw new Error(`CloudFormation did not accept the response: ${answered.status}.`);
    } catch (cause) {
      if (attempt === ANSWER_ATTEMPTS) throw cause;
    }
  }
}
