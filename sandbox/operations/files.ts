// Serves the files that the API links to: previews, asset files with thumbnails, invoices. Contents are generated per request
// and deterministic.

import { createHash } from 'node:crypto';
import { crc32, deflateSync } from 'node:zlib';
import { type Context, Hono } from 'hono';
import { problem, requestPath, type SandboxEnv, send } from '../http/responses.ts';
import { type Asset, globalAssets, type StoredFile } from '../world/asset-files.ts';
import { assetFileId, labelId, sign } from '../world/links.ts';
import type { JobRecord } from '../world/records.ts';
import { findRegion, REGION_FACTS, type RegionCode } from '../world/regions.ts';
import type { World } from '../world/world.ts';

/*
 * Where the contract is silent, the sandbox chose:
 *
 * - Links to previews and invoices need no token. An expired link results in 410, and a modified link in 403. An
 *   invoice link expires 15 minutes after the detail of the job was read, and a preview link 45 to 60 minutes after it
 *   was returned. If an invoice is no longer stored, or has a new number, its link results in 404.
 * - Links to asset files and line labels do not expire. They contain an unguessable id. A wrong id and the id of an
 *   archived file result in 404.
 * - `size` also applies to previews. Other values than 50, 100 and 150 result in 400.
 */

const FULL_SIZE = 300;
const THUMBNAIL_SIZES: readonly string[] = ['50', '100', '150'];

/** Generates the content of an asset file. */
export function fileBytes(asset: Asset, file: StoredFile): Uint8Array<ArrayBuffer> {
  if (file.isImage) return picture(`${asset.assetTag} ${file.upload}`, FULL_SIZE);
  const { assetTag, description, garment, processCode, createdAt } = asset;
  return pdf([
    `Print sheet ${assetTag}`,
    description ?? '',
    `Process: ${processCode ?? '-'}`,
    `Garment: ${garment ?? '-'}`,
    `First produced: ${new Date(createdAt).toISOString().slice(0, 10)}`,
  ]);
}

/** Creates the app below `/files`. Requests need no token. */
export function createFilesApp(world: World): Hono<SandboxEnv> {
  const app = new Hono<SandboxEnv>();
  const missing = (c: Context<SandboxEnv>) =>
    send(c, problem(404, 'The file does not exist.', requestPath(c)));

  app.get('/:region/previews/:name', (c) => rejectInvalidLink(c, world) ?? image(c, c.req.param('name')));

  app.get('/:region/invoices/:jobNumber/:name', (c) => {
    const rejection = rejectInvalidLink(c, world);
    if (rejection) return rejection;
    const region = findRegion(c.req.param('region'));
    const job = region && world.findJob(region, Number(c.req.param('jobNumber')))?.job;
    if (!region || !job?.invoiceStored || `${job.invoiceNumber}.pdf` !== c.req.param('name')) {
      return missing(c);
    }
    return file(c, 'application/pdf', pdf(invoiceText(region, job)), 'private');
  });

  app.get('/:region/certificates/:name', (c) => {
    const rejection = rejectInvalidLink(c, world);
    if (rejection) return rejection;
    const region = findRegion(c.req.param('region'));
    const certificate = (region ? world.accounts(region) : [])
      .flatMap(({ books }) => books.certificates)
      .find(({ entityFileId, hasFile }) => hasFile && `${entityFileId}.pdf` === c.req.param('name'));
    if (!certificate) return missing(c);
    const { name, businessName, exemptionNumber, exemptionType } = certificate;
    const lines = [name, businessName, exemptionNumber, exemptionType].map((text) => text ?? '-');
    return file(c, 'application/pdf', pdf(lines), 'private');
  });

  app.get('/:region/stock/:slug/:name', (c) => {
    const { region: code, slug, name } = c.req.param();
    const region = findRegion(code);
    const record = region && world.warehouse(region).records.find((one) => one.slug === slug && !one.hidden);
    const pictures = record
      ? [...record.views, ...record.stockVariants.map(({ variantCode }) => variantCode)]
      : [];
    return pictures.some((view) => `${view}.png` === name) ? image(c, `${slug} ${name}`) : missing(c);
  });

  app.get('/:region/assets/:owner/:tag/:fileId/:name', (c) => {
    const { region: code, owner, tag, fileId, name } = c.req.param();
    const region = findRegion(code);
    if (!region) return missing(c);
    const shelf =
      owner === 'catalogue' ? globalAssets(world, region) : world.account(region, Number(owner))?.assets;
    const asset = shelf?.get(tag);
    const found = asset?.files.find((one) => assetFileId(region, asset, one) === fileId);
    if (!asset || found?.fileName !== name || found.action === 'Archived') return missing(c);
    if (found.isImage) return image(c, `${tag} ${found.upload}`);
    return file(c, 'application/pdf', fileBytes(asset, found), 'public, max-age=86400');
  });

  app.get('/:region/labels/:id/:name', (c) => {
    const { region: code, id, name } = c.req.param();
    const [jobNumber = 0, line = 0] = name
      .replace(/\.pdf$/, '')
      .split('-')
      .map(Number);
    const region = findRegion(code);
    const job = region && world.findJob(region, jobNumber)?.job;
    const labelled = job?.lines[line - 1];
    if (!job || !labelled || id !== labelId(code, jobNumber, line)) return missing(c);
    const text = [
      `Job ${jobNumber}, line ${line}`,
      `${labelled.quantity} x ${labelled.description ?? '-'}`,
      `Reference: ${labelled.customerReference ?? '-'}`,
      `Due ${job.dateDue ?? '-'}, to ${job.location?.name ?? '-'}`,
    ];
    return file(c, 'application/pdf', pdf(text), 'private');
  });

  app.all('*', missing);
  return app;
}

/** An image in the requested size. */
function image(c: Context<SandboxEnv>, name: string): Response {
  const size = c.req.query('size');
  if (size !== undefined && !THUMBNAIL_SIZES.includes(size)) {
    const errors = { size: [`The value is not one of ${THUMBNAIL_SIZES.join(', ')}.`] };
    return send(c, problem(400, 'A parameter is not valid.', requestPath(c), errors));
  }
  const caching = c.req.query('expires') === undefined ? 'public, max-age=86400' : 'private';
  return file(c, 'image/png', picture(name, size === undefined ? FULL_SIZE : Number(size)), caching);
}

function file(
  c: Context<SandboxEnv>,
  type: string,
  body: Uint8Array<ArrayBuffer>,
  caching: string,
): Response {
  return send(c, { status: 200, headers: { 'content-type': type, 'cache-control': caching }, body });
}

/** Rejects a modified link with 403 and an expired one with 410. */
function rejectInvalidLink(c: Context<SandboxEnv>, world: World): Response | undefined {
  const { pathname } = new URL(c.req.url);
  const { expires = '', signature } = c.req.query();
  if (signature !== sign(`${pathname.slice('/files'.length)} ${expires}`)) {
    return send(c, problem(403, "The link's signature is invalid.", requestPath(c)));
  }
  if (Number(expires) > world.now()) return undefined;
  return send(c, problem(410, 'The link has expired.', requestPath(c)));
}

function invoiceText(region: RegionCode, job: JobRecord): string[] {
  const currency = REGION_FACTS[region].currency;
  const sum = job.lines.reduce((total, { quantity, unitPrice }) => total + quantity * unitPrice, 0);
  const { costs } = job;
  const tax = costs?.tax ?? job.taxTotal ?? 0;
  return [
    `Invoice ${job.invoiceNumber}`,
    `Job ${job.jobNumber}, your order ${job.orderNumber ?? '-'}`,
    `Dispatched ${job.dateOut ?? '-'}`,
    '',
    ...job.lines.map(
      ({ quantity, description, unitPrice }) =>
        `${quantity} x ${description ?? '-'} at ${unitPrice.toFixed(2)} = ${(quantity * unitPrice).toFixed(2)}`,
    ),
    '',
    ...(costs ? [`Setup ${costs.setup.toFixed(2)}, reset ${costs.reset.toFixed(2)}`] : []),
    ...(costs?.discount ? [`Discount ${costs.discount.toFixed(2)}`] : []),
    `Tax ${tax.toFixed(2)}`,
    `Total ${currency} ${(costs?.total ?? sum + tax).toFixed(2)}`,
  ];
}

/** A PDF of one A4 page with lines of text, the first one large. */
function pdf([title = '', ...lines]: string[]): Uint8Array<ArrayBuffer> {
  // The standard fonts contain only Latin-1.
  const written = (text: string) =>
    `(${text.replace(/[^\x20-\x7e\xa0-\xff]/g, '?').replace(/[\\()]/g, (sign) => `\\${sign}`)})`;
  const content = [
    'BT /F1 20 Tf 56 770 Td',
    `${written(title)} Tj`,
    '/F1 11 Tf 0 -30 Td 16 TL',
    ...lines.map((line) => `${written(line)} Tj T*`),
    'ET',
  ].join('\n');
  const objects = [
    '<< /Type /Catalog /Pages 2 0 R >>',
    '<< /Type /Pages /Kids [3 0 R] /Count 1 >>',
    '<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents 4 0 R /Resources << /Font << /F1 5 0 R >> >> >>',
    `<< /Length ${content.length} >>\nstream\n${content}\nendstream`,
    '<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>',
  ];
  let text = '%PDF-1.4\n';
  const offsets = objects.map((object, index) => {
    const offset = text.length;
    text += `${index + 1} 0 obj\n${object}\nendobj\n`;
    return offset;
  });
  const xref = offsets.map((offset) => `${String(offset).padStart(10, '0')} 00000 n \n`).join('');
  text += `xref\n0 6\n0000000000 65535 f \n${xref}trailer\n<< /Size 6 /Root 1 0 R >>\nstartxref\n${text.length}\n%%EOF\n`;
  return new Uint8Array(Buffer.from(text, 'latin1'));
}

/** A PNG motif on a transparent background, derived from the name: seven by seven fields, symmetric. */
function picture(name: string, size: number): Uint8Array<ArrayBuffer> {
  const dice = createHash('sha256').update(name).digest();
  const palette = [0, 0, 0, dice[0], dice[1], dice[2], dice[3], dice[4], dice[5]].map(Number);
  const rows = Buffer.alloc(size * (size + 1));
  for (let y = 0; y < size; y++) {
    for (let x = 0; x < size; x++) {
      const column = Math.floor((x * 7) / size);
      const field = Math.floor((y * 7) / size) * 4 + Math.min(column, 6 - column);
      // The first byte of each row names its filter: none. 28 fields take bytes 6 to 31, the last two those of the first two.
      rows[y * (size + 1) + 1 + x] = Number(dice[6 + (field % 26)]) % 3;
    }
  }
  const header = Buffer.alloc(13);
  header.writeUInt32BE(size, 0);
  header.writeUInt32BE(size, 4);
  // Eight bits a pixel, of a palette.
  header.set([8, 3, 0, 0, 0], 8);
  return new Uint8Array(
    Buffer.concat([
      Buffer.from('\x89PNG\r\n\x1a\n', 'latin1'),
      chunk('IHDR', header),
      chunk('PLTE', Buffer.from(palette)),
      chunk('tRNS', Buffer.from([0])),
      chunk('IDAT', deflateSync(rows)),
      chunk('IEND', Buffer.alloc(0)),
    ]),
  );
}

function chunk(type: string, data: Buffer): Buffer {
  const body = Buffer.concat([Buffer.from(type, 'latin1'), data]);
  const [length, sum] = [Buffer.alloc(4), Buffer.alloc(4)];
  length.writeUInt32BE(data.length);
  sum.writeUInt32BE(crc32(body));
  return Buffer.concat([length, body, sum]);
}
