/**
 * The dashboard as it is served: which paths are its own, and which headers go with its files. A machine's own server and a
 * cell's distribution both serve by this. Free of dependencies.
 */

/** Beginnings of the paths at which the page stands, besides `/`; it tells them apart itself. */
export const PAGE_PATHS = ['/jobs', '/health', '/setup'] as const;

/** The page itself, in the folder that `vite build` makes. */
export const PAGE_FILE = 'index.html';

/** What shows an e-mail in a frame: a page of its own, for a mail has styles that the dashboard's policy forbids. */
export const MAIL_FRAME = 'mail-frame.html';

/** Where the other cells' dashboards are, for the switcher: `{ "cells": [{ "region", "url" }] }`. A build names none; a cell that knows others puts its own in its place. */
export const CELLS_FILE = 'cells.json';

/** Files below here are named by their contents. */
export const ASSETS = '/assets/';

/** The paths of such files. */
export const ASSET_PATH = /^\/assets\/[\w.-]+$/;

/** The other files that are asked for by their names. */
export const NAMED_FILES = [MAIL_FRAME, CELLS_FILE, 'favicon.svg'] as const;

/** The file of the build that answers a path (`/jobs/acme/1` is the page); `undefined`: it is not the dashboard's. */
export function fileOf(path: string): string | undefined {
  if (path === '/' || PAGE_PATHS.some((page) => path === page || path.startsWith(`${page}/`)))
    return PAGE_FILE;
  if (NAMED_FILES.some((name) => path === `/${name}`) || ASSET_PATH.test(path)) return path.slice(1);
  return undefined;
}

/** Where nothing is a page, whoever asks: the API, the files of the build, and what a browser would read as another host. */
export const NEVER_PAGES = /^\/(\/|v1\/|assets\/)/;

/** What the header `Accept` of a browser has that goes somewhere; programs, and what pages load, do not ask for it. */
export const WANTS_PAGE = /\btext\/html\b/;

/** The file that answers a path that is nobody's: for a browser that goes there the page, which says that there is none. */
export function fileOfNowhere(path: string, accept: string): string | undefined {
  return WANTS_PAGE.test(accept) && !NEVER_PAGES.test(path) ? PAGE_FILE : undefined;
}

/** By the ends of names. */
const CONTENT_TYPES: Readonly<Record<string, string>> = {
  css: 'text/css; charset=utf-8',
  html: 'text/html; charset=utf-8',
  js: 'text/javascript; charset=utf-8',
  json: 'application/json',
  png: 'image/png',
  svg: 'image/svg+xml',
  woff2: 'font/woff2',
};

/** What a file of the build is. */
export function contentTypeOf(file: string): string {
  return CONTENT_TYPES[file.split('.').at(-1) ?? ''] ?? 'application/octet-stream';
}

/**
 * The policy of the page: nothing but its own files and its own API. Styles are set by script (the CSSOM), which needs no
 * leave; there is no `unsafe-inline` for anybody.
 */
const PAGE_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "font-src 'self'",
  "connect-src 'self'",
  "frame-src 'self'",
  "manifest-src 'self'",
  "form-action 'none'",
  "base-uri 'none'",
  "frame-ancestors 'none'",
].join('; ');

/**
 * The hash of the script in the frame. It stands in the frame itself: without an origin the frame may load nothing, not even
 * from here.
 */
const MAIL_SCRIPT = "'sha256-ZckVqjR48hj7USdyWEpA90iVLL3iphAxZvx2R6A/rJk='";

/** The frame's: no origin, its one script, the mail's inline styles; no request, and pictures only where they are in the mail. */
const MAIL_POLICY = [
  'sandbox allow-scripts',
  "default-src 'none'",
  `script-src ${MAIL_SCRIPT}`,
  "style-src 'unsafe-inline'",
  'img-src data:',
  "form-action 'none'",
  "base-uri 'none'",
  "frame-ancestors 'self'",
].join('; ');

/** The policy that goes with a file of the build. */
export function policyOf(file: string): string {
  return file === MAIL_FRAME ? MAIL_POLICY : PAGE_POLICY;
}

/** How long a file may be kept: for ever where its name changes with it. */
export function cacheControlOf(file: string): string {
  return file.startsWith(ASSETS.slice(1)) ? 'public, max-age=31536000, immutable' : 'no-cache';
}

/** Headers of every file besides its policy, its type and how long it may be kept. */
export const FILE_HEADERS = {
  'strict-transport-security': 'max-age=63072000',
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'permissions-policy': 'camera=(), geolocation=(), microphone=()',
} as const;
