/** Addresses for people who may not see them whole; for the command and the terminal as well, so it depends on nothing. */

/** An e-mail address or a mobile number that can be recognized by whoever knows it: `j•••@e•••.com`, `+64 •••• 123`. */
export function maskAddress(address: string): string {
  const at = address.lastIndexOf('@');
  if (at > 0)
    return `${first(address)}•••@${first(address.slice(at + 1))}•••${address.slice(address.lastIndexOf('.'))}`;
  return `${address.slice(0, 3)} •••• ${address.slice(-3)}`;
}

const first = (text: string): string => [...text][0] ?? '';
