/** The storage of the browser. What it does not store, because it is blocked or full, is kept until the page is closed. */
type Store = Pick<Storage, 'getItem' | 'setItem' | 'removeItem'>;

/** Values of this browser. */
export const localStore = openStore('localStorage');
/** Values of this tab. */
export const sessionStore = openStore('sessionStorage');

function openStore(name: 'localStorage' | 'sessionStorage'): Store {
  const kept = new Map<string, string>();
  return {
    getItem(key) {
      try {
        return kept.get(key) ?? globalThis[name].getItem(key);
      } catch {
        return null;
      }
    },
    setItem(key, value) {
      kept.delete(key);
      try {
        globalThis[name].setItem(key, value);
      } catch {
        kept.set(key, value);
      }
    },
    removeItem(key) {
      kept.delete(key);
      try {
        globalThis[name].removeItem(key);
      } catch {
        // A blocked storage contains nothing.
      }
    },
  };
}
