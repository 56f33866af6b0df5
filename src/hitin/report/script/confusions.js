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
  const groupBoxes = some => some.map(([parent, pairs]) => group(parent, pairs, total));
  box.append(...groupBoxes(ordered.slice(0, GROUPS)));
  if (ordered.length <= GROUPS) return;
  box.after(moreButton(ordered.length - GROUPS, 'more parent', box, () => groupBoxes(ordered.slice(GROUPS))));
}

function moreButton(many, noun, box, makeRest) { // the focus goes to the first of those it shows
  const button = make('button', '', `Show ${counted(many, noun)}`);
  button.type = 'button';
  button.addEventListener('click', () => {
    const rest = makeRest();
    box.append(...rest);
    button.remove();
    at('button', rest[0]).focus();
  });
  return button;
}

function group(parent, pairs, total) {
  const box = make('div', 'panel group');
  box.append(named('h3', '', parent === null ? 'At the top' : `Under ${shown(parent)}`),
    make('p', 'sum', `${counted(total(pairs), 'time')}, ${counted(pairs.length, 'pair')}`));
  box.append(...pairs.slice(0, PAIRS).map(pairRow));
  if (pairs.length > PAIRS) {
    box.append(moreButton(pairs.length - PAIRS, 'more pair', box, () => pairs.slice(PAIRS).map(pairRow)));
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
