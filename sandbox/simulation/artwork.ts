/*
 * Fetches artwork from the customer's URL. Where the contract is silent, the sandbox chose:
 *
 * - Artwork URLs must be http or https, without credentials. The complete file must arrive within 10 seconds and have
 *   at most 50 MB. At most 5 redirects are followed, and each target must satisfy the same rules. Requests contain no
 *   cookies and no credentials.
 * - Every 2xx response with at least one byte counts as artwork, unless it is a web page, such as a login page.
 * - Private addresses are allowed.
 */

/** Result of fetching artwork; `reason` is an error message without the URL. */
export type ArtworkAnswer = { found: true; bytes: number } | { found: false; reason: string };

/** Bounds of a fetch. */
export interface ArtworkLimits {
  /** For all redirects and the whole body. */
  timeoutMs: number;
  maxBytes: number;
  maxRedirects: number;
}

/** Limits of the sandbox. */
const LIMITS: ArtworkLimits = { timeoutMs: 10_000, maxBytes: 50_000_000, maxRedirects: 5 };

/** Fetches artwork. Never throws; an abort by `signal` counts as not found. */
export async function fetchArtwork(
  url: string,
  { signal, ...given }: Partial<ArtworkLimits> & { signal?: AbortSignal } = {},
): Promise<ArtworkAnswer> {
  const { timeoutMs, maxBytes, maxRedirects } = { ...LIMITS, ...given };
  const patience = AbortSignal.timeout(timeoutMs);
  const until = signal ? AbortSignal.any([signal, patience]) : patience;
  try {
    let next = url;
    for (let redirects = 0; redirects <= maxRedirects; redirects++) {
      const address = URL.parse(next);
      if (!address) return missing('The URL is invalid.');
      if (!/^https?:$/.test(address.protocol)) return missing('The address is neither http nor https.');
      if (address.username !== '' || address.password !== '') {
        return missing('The address carries credentials.');
      }
      const answer = await fetch(address, { redirect: 'manual', credentials: 'omit', signal: until });
      const location = answer.headers.get('location');
      if (answer.status >= 300 && answer.status < 400 && location !== null) {
        await answer.body?.cancel();
        next = URL.parse(location, address.href)?.href ?? '';
        continue;
      }
      return await read(answer, maxBytes);
    }
    return missing('It redirects too often.');
  } catch {
    return missing(patience.aborted ? 'The request timed out.' : 'The host is unreachable.');
  }
}

async function read(answer: Response, maxBytes: number): Promise<ArtworkAnswer> {
  const rejection = !answer.ok
    ? `It answered ${answer.status}.`
    : /^\s*text\/html\b/i.test(answer.headers.get('content-type') ?? '')
      ? 'It is a web page.'
      : undefined;
  if (rejection !== undefined) {
    await answer.body?.cancel();
    return missing(rejection);
  }
  let bytes = 0;
  // Leaving the loop cancels the body.
  for await (const chunk of answer.body ?? []) {
    bytes += chunk.length;
    if (bytes > maxBytes) return missing('It is too large.');
  }
  return bytes === 0 ? missing('It is empty.') : { found: true, bytes };
}

const missing = (reason: string): ArtworkAnswer => ({ found: false, reason });
