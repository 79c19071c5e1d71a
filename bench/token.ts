import type { UpstreamFacts } from './upstream.ts';

/** Returns a new token of the ordering API. */
export async function newToken(
  { authUrl, clientId, clientSecret }: Pick<UpstreamFacts, 'authUrl' | 'clientId' | 'clientSecret'>,
  realm = 'us',
): Promise<string> {
  const form = { grant_type: 'client_credentials', client_id: clientId, client_secret: clientSecret };
  const url = `${authUrl}/realms/${realm}/protocol/openid-connect/token`;
  const answer = await fetch(url, { method: 'POST', body: new URLSearchParams(form) });
  return ((await answer.json()) as { access_token: string }).access_token;
}
