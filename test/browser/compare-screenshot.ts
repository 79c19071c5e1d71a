/**
 * Screenshots of pages that are compared with stored ones.
 *
 * A stored screenshot is a small WebP, at a fraction of the size of the page. Both images are blurred before the comparison. A difference
 * in the rendering of glyphs disappears, and a missing, moved or differently coloured element stays.
 * After `VISUAL=write`, the screenshots are stored instead.
 */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import pixelmatch from 'pixelmatch';
import type { Page } from 'playwright-core';
import { settled } from '../support/browser.ts';

/** Folder of the stored screenshots. */
const STORED = 'test/browser/screenshots';
/** Folder of the images of failed comparisons. */
const REPORTS = 'reports/screenshots';

// With these values, slight hinting with subpixel rendering instead of none makes at most 4 pixels differ in a window. A badge that is
// 8 pixels to the right makes 24 differ (median).
/** Radius of the blur, in pixels of the stored image. */
const BLUR = 1.5;
/** Minimum difference of a pixel, as in pixelmatch. */
const THRESHOLD = 0.1;
/** Size of the window in which different pixels are counted: an element that is missing or moved concentrates them. */
const WINDOW = 16;
/** Number of different pixels in a window that is accepted. */
const ACCEPTED = 8;

/** A size of the window, and the fraction at which its screenshot is stored. */
export interface ScreenshotSize {
  readonly width: number;
  readonly height: number;
  readonly scale: number;
}

/**
 * Compares the visible part of a page with a stored screenshot. Returns what differs, or undefined. If it differs, the expected and the
 * actual image and the difference are in `reports/screenshots`. `paper`: an empty page that decodes the images.
 */
export async function compareScreenshot(
  page: Page,
  paper: Page,
  name: string,
  { width, height, scale }: ScreenshotSize,
): Promise<string | undefined> {
  const file = join(STORED, `${name}.webp`);
  const isWriting = process.env.VISUAL === 'write';
  if (!isWriting && !existsSync(file)) return `${name}: there is no stored screenshot`;
  const expected = isWriting ? undefined : readFileSync(file);
  const clip = { x: 0, y: 0, width, height, scale };
  const session = await page.context().newCDPSession(page);
  let actual = Buffer.alloc(0);
  // After a change of size or theme, the page needs some frames, and charts some more.
  for (let before: Buffer | undefined; !before?.equals(actual); ) {
    if (before) await settled(page);
    before = actual;
    const { data } = await session.send('Page.captureScreenshot', { format: 'webp', quality: 80, clip });
    actual = Buffer.from(data, 'base64');
    if (expected?.equals(actual)) break;
  }
  await session.detach();
  if (expected === undefined) {
    mkdirSync(STORED, { recursive: true });
    writeFileSync(file, actual);
    return undefined;
  }
  if (expected.equals(actual)) return undefined;
  const [one, other] = [await decode(paper, expected), await decode(paper, actual)];
  if (one.width !== other.width || one.height !== other.height) return `${name}: the size differs`;
  const marked = new Uint8Array(one.pixels.length);
  const options = { threshold: THRESHOLD, includeAA: true, windowSize: WINDOW };
  const count = pixelmatch(one.pixels, other.pixels, marked, one.width, one.height, options);
  if (count <= ACCEPTED) return undefined;
  mkdirSync(REPORTS, { recursive: true });
  writeFileSync(join(REPORTS, `${name}.expected.webp`), expected);
  writeFileSync(join(REPORTS, `${name}.actual.webp`), actual);
  writeFileSync(join(REPORTS, `${name}.diff.png`), await encode(paper, marked, one.width, one.height));
  return `${name} differs, ${await describe(page, marked, one.width, scale)}`;
}

interface Pixels {
  readonly width: number;
  readonly height: number;
  /** RGBA. */
  readonly pixels: Uint8Array;
}

/** Decodes and blurs an image. */
async function decode(paper: Page, image: Buffer): Promise<Pixels> {
  const { width, height, base64 } = await paper.evaluate(
    async ([data, blur]) => {
      const bitmap = await createImageBitmap(await (await fetch(`data:image/webp;base64,${data}`)).blob());
      const { width, height } = bitmap;
      const canvas = new OffscreenCanvas(width, height).getContext('2d') as OffscreenCanvasRenderingContext2D;
      canvas.filter = `blur(${blur}px)`;
      canvas.drawImage(bitmap, 0, 0);
      const bytes = new Uint8Array(canvas.getImageData(0, 0, width, height).data);
      return { width, height, base64: (bytes as unknown as { toBase64(): string }).toBase64() };
    },
    [image.toString('base64'), BLUR] as const,
  );
  return { width, height, pixels: Buffer.from(base64, 'base64') };
}

async function encode(paper: Page, pixels: Uint8Array, width: number, height: number): Promise<Buffer> {
  const base64 = await paper.evaluate(
    async ([data, width, height]) => {
      const canvas = new OffscreenCanvas(width, height);
      const response = await fetch(`data:;base64,${data}`);
      const image = new ImageData(new Uint8ClampedArray(await response.arrayBuffer()), width, height);
      canvas.getContext('2d')?.putImageData(image, 0, 0);
      const bytes = new Uint8Array(await (await canvas.convertToBlob()).arrayBuffer());
      return (bytes as unknown as { toBase64(): string }).toBase64();
    },
    [Buffer.from(pixels).toString('base64'), width, height] as const,
  );
  return Buffer.from(base64, 'base64');
}

/** Describes the area of the different pixels, and the element at its centre. */
async function describe(page: Page, marked: Uint8Array, width: number, scale: number): Promise<string> {
  const box = { left: Number.POSITIVE_INFINITY, top: Number.POSITIVE_INFINITY, right: 0, bottom: 0 };
  for (let at = 0; at < marked.length; at += 4) {
    // pixelmatch draws differences red, and all else grey.
    if (marked[at] !== 255 || marked[at + 1] !== 0) continue;
    const [x, y] = [(at / 4) % width, Math.floor(at / 4 / width)];
    box.left = Math.min(box.left, x);
    box.right = Math.max(box.right, x);
    box.top = Math.min(box.top, y);
    box.bottom = Math.max(box.bottom, y);
  }
  const [left, top, right, bottom] = [box.left, box.top, box.right + 1, box.bottom + 1].map((at) =>
    Math.round(at / scale),
  ) as [number, number, number, number];
  const element = await page.evaluate(
    ([x, y]) => document.elementFromPoint(x, y)?.outerHTML.slice(0, 120) ?? 'no element',
    [(left + right) / 2, (top + bottom) / 2] as const,
  );
  return `from ${left},${top} to ${right},${bottom}; at the centre: ${element}`;
}
