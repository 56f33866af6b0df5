// ---- Labels are found by words, without regard to case and accents; the tree opens and marks them.

// The words that were found, marked; `ends` says where each folded letter stands in the text itself.
function markWords(span, text, words) {
  const starts = [], ends = [];
  let plain = '', from = 0;
  for (const letter of text) {
    const part = fold(letter);
    plain += part;
    for (let unit = 0; unit < part.length; unit++) { starts.push(from); ends.push(from + letter.length); }
    from += letter.length;
  }
  const marked = new Uint8Array(text.length);
  for (const word of words) {
    for (let next = -1; (next = plain.indexOf(word, next + 1)) >= 0;) {
      marked.fill(1, starts[next], ends[next + word.length - 1]);
    }
  }
  span.replaceChildren();
  for (let first = 0, to; first < text.length; first = to) {
    for (to = first + 1; to < text.length && marked[to] === marked[first]; to++);
    const part = text.slice(first, to);
    span.append(marked[first] ? make('mark', '', part) : part);
  }
}

let found = [], foundAt = -1, folded = null, walked = null;

function inOrder() { // all labels as one meets them going down the open tree in its order, each once
  if (walked) return walked;
  const seen = new Uint8Array(size), waiting = tree.sorted(-1).reverse();
  walked = [];
  while (waiting.length) {
    const label = waiting.pop();
    if (seen[label]) continue;
    seen[label] = 1;
    walked.push(label);
    waiting.push(...tree.sorted(label).reverse());
  }
  return walked;
}

function openMatches() {
  folded ??= names.map(fold);
  const hit = label => tree.words.every(word => folded[label].includes(word));
  found = tree.words.length ? inOrder().filter(hit) : [];
  tree.matches = new Set(found);
  for (const label of found.slice(0, MOST_MATCHES)) for (const path of tree.paths(label)) tree.reveal(path);
}

function search(text) {
  tree.words = fold(text).split(/\s+/).filter(Boolean);
  openMatches();
  tree.current = foundAt = -1;
  if (found.length) step(1); else { tree.repaint(); tellFound(); }
}

function searchAgain() { // in another order: the matches are the same, and so is the one that was stepped to
  walked = null;
  openMatches();
  foundAt = found.indexOf(tree.current);
  tellFound();
}

function step(by) {
  if (!found.length) return;
  foundAt = (foundAt + by + found.length) % found.length;
  tree.current = found[foundAt];
  tree.show(tree.current);
  tree.choose(tree.current);
  tellFound();
}

function tellFound() {
  const some = found.length ? `${number(foundAt + 1)} of ${counted(found.length, 'match')}` : 'No match';
  at('#found').textContent = tree.words.length ? some : '';
  at('#next').disabled = at('#previous').disabled = !found.length;
}

function drawSearch() {
  const query = at('#query');
  let delay = 0;
  const searchNow = () => { clearTimeout(delay); delay = 0; search(query.value); };
  query.addEventListener('input', () => { clearTimeout(delay); delay = setTimeout(searchNow, 80); });
  query.addEventListener('keydown', event => {
    if (event.key !== 'Enter' || event.isComposing) return;
    event.preventDefault();
    if (delay) searchNow(); else step(event.shiftKey ? -1 : 1);
  });
  at('#next').addEventListener('click', () => step(1));
  at('#previous').addEventListener('click', () => step(-1));
}
