// Refreshes the live parts of the page, and keeps the scroll position after a form. The page works without it.

const SECONDS = 4;

/** Replaces each live part by its current version, unless the user is in it. */
async function refresh() {
  if (document.hidden) return;
  const response = await fetch(location.href);
  if (!response.ok) return;
  const fresh = new DOMParser().parseFromString(await response.text(), 'text/html');
  for (const part of document.querySelectorAll('[data-live]')) {
    const next = fresh.querySelector(`[data-live="${part.dataset.live}"]`);
    if (!next || next.innerHTML === part.innerHTML || part.contains(document.activeElement)) continue;
    part.replaceChildren(...document.adoptNode(next).childNodes);
  }
}

setInterval(() => void refresh().catch(() => {}), SECONDS * 1000);

const key = `scroll ${location.pathname}`;
const position = sessionStorage.getItem(key);
if (position !== null) {
  sessionStorage.removeItem(key);
  scrollTo(0, Number(position));
}
document.addEventListener('submit', () => sessionStorage.setItem(key, String(scrollY)));
// So that reloading shows no earlier result.
const here = new URL(location.href);
here.searchParams.delete('result');
history.replaceState(null, '', here);
