// ---- Siblings taken for each other, by their parent.

const GROUPS = 10; // parents that are shown at first
const PAIRS = 6; // of each

function drawConfusions() {
  const box = at('.groups'), groups = new Map();
  for (const [parent, ...pair] of data.confusions) { // the most frequent come first
    if (!groups.has(parent)) groups.set(parent, []);
    groups.get(parent).push(pair);
  }
  if (!groups.size) {
    box.before(make('p', 'panel empty-note', 'No sibling was given in place of another.'));
    return;
  }
  const left = data.confusedPairs - data.confusions.length;
  if (left > 0) {
    at('#confusions .about').append(` The ${number(data.confusions.length)} most frequent of`
      + ` ${number(data.confusedPairs)} pairs are here; more are in the .json file.`);
  }
  const total = pairs => pairs.reduce((sum, [, , documents]) => sum + documents, 0);
  const ordered = [...groups].sort((one, other) => total(other[1]) - total(one[1]));
  const show = (from, to) => box.append(...ordered.slice(from, to).map(([parent, pairs]) => group(parent, pairs, total)));
  show(0, GROUPS);
  if (ordered.length <= GROUPS) return;
  const more = make('button', '', `Show ${counted(ordered.length - GROUPS, 'more parent')}`);
  more.type = 'button';
  more.addEventListener('click', () => { show(GROUPS); more.remove(); });
  box.after(more);
}

function group(parent, pairs, total) {
  const box = make('div', 'panel group');
  box.append(named('h3', '', parent === null ? 'At the top' : `Under ${shown(parent)}`),
    make('p', 'sum', `${counted(total(pairs), 'time')}, ${counted(pairs.length, 'pair')}`));
  const show = (from, to) => box.append(...pairs.slice(from, to).map(pairRow));
  show(0, PAIRS);
  if (pairs.length > PAIRS) {
    const more = make('button', '', `Show ${counted(pairs.length - PAIRS, 'more pair')}`);
    more.type = 'button';
    more.addEventListener('click', () => { show(PAIRS); more.remove(); });
    box.append(more);
  }
  return box;
}

function labelButton(label) {
  const button = named('button', '', shown(label));
  button.type = 'button';
  button.title = 'Show in the taxonomy';
  button.addEventListener('click', () => openLabel(label));
  return button;
}

function pairRow([label, instead, documents]) {
  const share = documents / actual[label], arrow = make('span', 'arrow', '→');
  arrow.setAttribute('role', 'img');
  arrow.setAttribute('aria-label', 'was taken for');
  const many = make('div', 'many', make('b', '', number(documents)), ` of ${number(actual[label])} (${percent(share)})`);
  return make('div', 'pair', make('div', 'who', labelButton(label), arrow, labelButton(instead)), many,
    make('div', 'share', place(make('i'), 0, share)));
}
