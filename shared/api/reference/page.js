// Old links of operations: `/docs#listJobs`, and `/docs#/Jobs/listJobs` of Swagger UI.
const links = [...document.querySelectorAll('.operations a')];
const followHash = () => {
  const id = location.hash.split('/').at(-1).replace('#', '');
  const link = !document.getElementById(id) && links.find(({ hash }) => id && hash === `#${id}`);
  if (link) location.replace(link.href);
};
followHash();
addEventListener('hashchange', followHash);

// The script is at `/docs/assets/{version}/page.js` of the API.
const apiUrl = new URL('../../..', document.currentScript.src).href.replace(/\/$/, '');
for (const code of document.querySelectorAll('.curl code')) {
  code.textContent = code.textContent.replace('$JOBWIRE_URL', apiUrl);
  // Only pages from HTTPS or localhost can write to the clipboard.
  if (!navigator.clipboard) continue;
  const button = document.createElement('button');
  button.type = 'button';
  button.textContent = 'Copy';
  button.addEventListener('click', async () => {
    await navigator.clipboard.writeText(code.textContent);
    button.textContent = 'Copied';
    setTimeout(() => {
      button.textContent = 'Copy';
    }, 2000);
  });
  code.parentElement.before(button);
}

const search = document.querySelector('[type=search]');
const filter = () => {
  const words = search.value.toLowerCase().split(/\s+/);
  let found = 0;
  for (const group of document.querySelectorAll('.group')) {
    group.hidden = true;
    for (const item of group.querySelectorAll('li')) {
      const text = `${group.dataset.tag} ${item.textContent} ${item.dataset.id}`.toLowerCase();
      item.hidden = !words.every((word) => text.includes(word));
      if (item.hidden) continue;
      group.hidden = false;
      found += 1;
    }
  }
  document.getElementById('found').textContent =
    search.value && `${found} ${found === 1 ? 'operation' : 'operations'} found`;
};
search?.addEventListener('input', filter);
// The browser restores the text when the user goes back.
if (search?.value) filter();
