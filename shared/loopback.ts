/** Returns whether a host is this machine. `host`: as in a URL, or an IPv6 address without brackets. */
export const isLoopbackHost = (host: string): boolean =>
  /^(localhost|127(\.(25[0-5]|2[0-4]\d|1?\d?\d)){3}|::1|\[::1\])$/.test(host);
