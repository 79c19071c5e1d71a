/**
 * Replaces the SDK's chain of credential providers in bundles (see infra/bundling.ts). Lambda provides a
 * function's role credentials in the environment. Profiles, SSO and instance metadata never exist there, and
 * the code for them is a fifth of a bundle.
 */

/**
 * Returns the credentials of the environment. They last as long as the environment, so they are read once.
 */
export function defaultProvider() {
  return async () => {
    const { AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN } = process.env;
    if (!AWS_ACCESS_KEY_ID || !AWS_SECRET_ACCESS_KEY) {
      throw new Error(
        'The environment holds no AWS credentials: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY.',
      );
    }
    return {
      accessKeyId: AWS_ACCESS_KEY_ID,
      secretAccessKey: AWS_SECRET_ACCESS_KEY,
      ...(AWS_SESSION_TOKEN === undefined ? {} : { sessionToken: AWS_SESSION_TOKEN }),
    };
  };
}
