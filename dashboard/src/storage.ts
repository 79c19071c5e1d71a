/** The storage of the browser. If the browser blocks it, values are kept until the page is closed. */
type Store = Pick<Storage, 'getItem' | 'setItem' | 'removeItem'>;

/** Values of this browser. */
export const localStore = openStore('localStorage');
/** Values of this tab. */
export const sessionStore = openStore('sessionStorage');

function openStore(name: 'localStorage' | 'sessionStorage'): Store {
  try {
    globalThis[name].getItem('');
    return globalThis[name];
  } catch {
    const values = new Map<string, string>();
    return {
      getItem: (key) => values.get(key) ?? null,
      setItem: (key, value) => void values.set(key, value),
      removeItem: (key) => void values.delete(key),
    };
  }
}
