// ---- Draw everything, and follow the address: `#q=words` searches, `#label=name` opens a label.

drawHead();
drawScores();
drawBaselines();
drawLevels();
drawDocuments();
drawTree();
drawScatter();
drawReliability();
drawConfusions();

function followAddress() {
  const wanted = new URLSearchParams(location.hash.slice(1));
  if (wanted.has('q')) {
    at('#query').value = wanted.get('q');
    search(wanted.get('q'));
    at('#labels').scrollIntoView({ behavior: 'instant' });
  } else if (wanted.has('label') && names.includes(wanted.get('label'))) {
    openLabel(names.indexOf(wanted.get('label')));
  }
}
window.addEventListener('hashchange', followAddress);
followAddress();

// The part that is being read, in the contents.
const links = new Map([...document.querySelectorAll('.contents a')].map(link => [link.hash.slice(1), link]));
const inView = new Set();
const watcher = new IntersectionObserver(entries => {
  for (const { target, isIntersecting } of entries) inView[isIntersecting ? 'add' : 'delete'](target.id);
  const first = [...links.keys()].find(id => inView.has(id));
  for (const [id, link] of links) {
    if (id === first) link.setAttribute('aria-current', 'true'); else link.removeAttribute('aria-current');
  }
}, { rootMargin: '-80px 0px -55% 0px' });
for (const id of links.keys()) watcher.observe(document.getElementById(id));
