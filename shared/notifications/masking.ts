/** Masking of addresses for users without permission to see them. The CLI and the terminal use it too, so it has no dependencies. */

/** Masks an e-mail address or a mobile number. A reader who knows the address can still recognize it: `j•••@e•••.com`, `+64 •••• 123`. */
export function maskAddress(address: string): string {
  const at = address.lastIndexOf('@');
  if (at > 0)
    return `${first(address)}•••@${first(address.slice(at + 1))}•••${address.slice(address.lastIndexOf('.'))}`;
  return `${address.slice(0, 3)} •••• ${address.slice(-3)}`;
}

const first = (text: string): string => [...text][0] ?? '';
