/** Helpers for asynchronous iterables. */

/** Yields the same items. Fetches the next one in advance. */
export async function* prefetch<T>(source: AsyncGenerator<T>): AsyncGenerator<T> {
  const begin = (): Promise<IteratorResult<T>> => {
    const next = source.next();
    next.catch(() => undefined);
    return next;
  };
  let next = begin();
  try {
    for (;;) {
      const { done, value } = await next;
      if (done) return;
      next = begin();
      yield value;
    }
  } finally {
    await next.catch(() => undefined);
    await source.return(undefined);
  }
}

export async function* mapAsync<A, B>(
  source: AsyncIterable<A>,
  map: (one: A) => Promise<B>,
): AsyncGenerator<B> {
  for await (const one of source) yield await map(one);
}
