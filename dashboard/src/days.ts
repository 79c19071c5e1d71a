/** Calendar days, as YYYY-MM-DD. Free of React. */

/** The day that this computer has at an instant (epoch ms). */
export function dayAt(atMs: number): string {
  const at = new Date(atMs);
  const two = (number: number): string => String(number).padStart(2, '0');
  return `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}`;
}

/** The day that is so many days later, or earlier. */
export function dayPlus(day: string, days: number): string {
  return new Date(Date.parse(day) + days * 86_400_000).toISOString().slice(0, 10);
}
