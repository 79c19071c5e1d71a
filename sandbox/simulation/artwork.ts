/*
 * Artwork, fetched from where the customer says it is. Where the contract is silent, the sandbox chose:
 *
 * - http and https only, to the end of the file, within 10 seconds and 50 MB in all and over at most 5 redirects, each held to
 *   the same rules. No cookies and no credentials are sent; an address that carries some is not asked.
 * - Artwork is what answers 2xx with at least one byte and is no web page: a page to log in at is no artwork.
 * - Private addresses are allowed: who builds against a sandbox keeps the artwork on the same machine.
 */

/** What came of asking for artwork; `reason` is for people and names no address. */
export type ArtworkAnswer = { found: true; bytes: number } | { found: false; reason: string };

/** Bounds of a fetch. */
export interface ArtworkLimits {
  /** For all redirects and the whole body. */
  timeoutMs: number;
  maxBytes: number;
  maxRedirects: number;
}

/** What the sandbox grants. */
const LIMITS: ArtworkLimits = { timeoutMs: 10_000, maxBytes: 50_000_000, maxRedirects: 5 };

/** Asks for artwork. Never throws; `signal` ends it early, which counts as not found. */
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
      if (!address) return missing('The address is not one.');
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
    return missing('It is redirected too often.');
  } catch {
    return missing(patience.aborted ? 'It takes too long.' : 'It can not be reached.');
  }
}

async function read(answer: Response, maxBytes: number): Promise<ArtworkAnswer> {
  const refusal = !answer.ok
    ? `It is answered with ${answer.status}.`
    : /^\s*text\/html\b/i.test(answer.headers.get('content-type') ?? '')
      ? 'It is a web page.'
      : undefined;
  if (refusal !== undefined) {
    await answer.body?.cancel();
    return missing(refusal);
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
