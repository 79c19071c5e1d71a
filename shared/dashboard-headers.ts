/**
 * Serving of the dashboard: its paths, and the headers of its files. The self-hosted server and a cell's
 * distribution both use this. Free of dependencies.
 */

/** Path prefixes of the page, besides `/`; the page distinguishes them itself. */
export const PAGE_PATHS = ['/jobs', '/health', '/setup', '/sign-in'] as const;

/** The page, in the output folder of `vite build`. */
export const PAGE_FILE = 'index.html';

/**
 * The frame that displays an e-mail: a separate page, because e-mails have styles that the dashboard's policy
 * forbids.
 */
export const MAIL_FRAME = 'mail-frame.html';

/**
 * The other cells' dashboards, for the switcher: `{ "cells": [{ "region", "url" }] }`. The build's file lists
 * none; a cell that knows others replaces it.
 */
export const CELLS_FILE = 'cells.json';

/** Path prefix of files that are named by their content. */
export const ASSETS = '/assets/';

/** The paths of such files. */
export const ASSET_PATH = /^\/assets\/[\w.-]+$/;

/** The other files that are requested by name. */
export const NAMED_FILES = [MAIL_FRAME, CELLS_FILE, 'favicon.svg'] as const;

/**
 * Returns the file of the build for a path (`/jobs/acme/1` is the page); `undefined` if the path is not the
 * dashboard's.
 */
export function findFile(path: string): string | undefined {
  if (path === '/' || PAGE_PATHS.some((page) => path === page || path.startsWith(`${page}/`)))
    return PAGE_FILE;
  if (NAMED_FILES.some((name) => path === `/${name}`) || ASSET_PATH.test(path)) return path.slice(1);
  return undefined;
}

/**
 * Paths that are never pages, for any client: the API, the files of the build, and what a browser would parse
 * as another host.
 */
export const NEVER_PAGES = /^\/(\/|v1\/|assets\/)/;

/** Part of a browser's `Accept` header when it navigates. Programs and subresources do not send it. */
export const WANTS_PAGE = /\btext\/html\b/;

/**
 * Returns the file for an unknown path: the page for a browser that navigates there, which displays a "not
 * found" message.
 */
export function findFallbackFile(path: string, accept: string): string | undefined {
  return WANTS_PAGE.test(accept) && !NEVER_PAGES.test(path) ? PAGE_FILE : undefined;
}

/** Content types by file extension. */
const CONTENT_TYPES: Readonly<Record<string, string>> = {
  css: 'text/css; charset=utf-8',
  html: 'text/html; charset=utf-8',
  js: 'text/javascript; charset=utf-8',
  json: 'application/json',
  png: 'image/png',
  svg: 'image/svg+xml',
  woff2: 'font/woff2',
};

/** Returns the content type of a file of the build. */
export function getContentType(file: string): string {
  return CONTENT_TYPES[file.split('.').at(-1) ?? ''] ?? 'application/octet-stream';
}

/**
 * The content security policy of the page: only its own files and its own API. Script sets styles (the
 * CSSOM), which needs no permission; `unsafe-inline` is never allowed.
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
 * The hash of the frame's script. The script is inline: without an origin, the frame may load nothing, not
 * even from here.
 */
const MAIL_SCRIPT = "'sha256-tfDj8qkgwAvpK5dEVATcZfZaWJEX04ymNpPtAt2uSWs='";

/**
 * The content security policy of the frame: no origin, its one script, the mail's inline styles; no requests,
 * and only images embedded in the mail.
 */
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

/** Returns the content security policy of a file of the build. */
export function getContentPolicy(file: string): string {
  return file === MAIL_FRAME ? MAIL_POLICY : PAGE_POLICY;
}

/** Returns the cache policy of a file: immutable if its name changes with its content. */
export function getCacheControl(file: string): string {
  return file.startsWith(ASSETS.slice(1)) ? 'public, max-age=31536000, immutable' : 'no-cache';
}

/** Headers of every file besides its security policy, content type and cache policy. */
export const FILE_HEADERS = {
  'strict-transport-security': 'max-age=63072000',
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'permissions-policy': 'camera=(), geolocation=(), microphone=()',
} as const;
