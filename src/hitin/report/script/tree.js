// ---- The taxonomy, coloured by F1. Rows stand one after the other and are made when their parent is opened.

const PAGE = 200; // children shown at a time
const MOST_ROWS = 3000; // that "Expand all" makes
const MOST_MATCHES = 60; // that a search opens at once

const ORDERS = {
  taxonomy: null,
  f1: (one, other) => (f1Of(one) ?? 2) - (f1Of(other) ?? 2) || actual[other] - actual[one],
  documents: (one, other) => actual[other] - actual[one],
};

class Tree {
  constructor(box) {
    this.box = box;
    this.order = 'taxonomy';
    this.chosen = this.current = -1;
    this.words = [];
    this.matches = new Set();
    this.reset();
    const onRow = (kind, deed) => box.addEventListener(kind, event => {
      const row = event.target.closest('.row');
      if (row) deed(row.item, event);
    });
    onRow('click', (item, event) => this.click(item, event));
    onRow('keydown', (item, event) => this.key(item, event));
    onRow('focusin', item => this.rove(item));
  }

  reset() {
    this.root = { label: -1, level: 0, parent: null, kids: null, open: true };
    this.fill(this.root, PAGE);
    this.render();
  }

  sorted(label) {
    const kids = childrenOf(label);
    return ORDERS[this.order] ? kids.sort(ORDERS[this.order]) : kids;
  }

  fill(item, upTo) { // the first children, and one item that stands for the rest
    item.all ??= this.sorted(item.label);
    item.kids ??= [];
    if (item.kids.at(-1)?.rest) item.kids.pop();
    const last = item.all.length - upTo < PAGE / 4 ? item.all.length : Math.min(upTo, item.all.length);
    for (let index = item.kids.length; index < last; index++) {
      item.kids.push({ label: item.all[index], index, parent: item, level: item.level + 1, kids: null, open: false });
    }
    if (last < item.all.length) {
      item.kids.push({ rest: item.all.length - last, label: -1, index: last, parent: item, level: item.level + 1 });
    }
  }

  visible(item) { // rows below an open item, in order
    const found = [], waiting = [...item.kids].reverse();
    while (waiting.length) {
      const next = waiting.pop();
      found.push(this.row(next));
      if (next.open) for (let index = next.kids.length - 1; index >= 0; index--) waiting.push(next.kids[index]);
    }
    return found;
  }

  render() {
    const head = make('div', 'tree-head');
    head.setAttribute('role', 'row');
    for (const title of ['Label', 'Labels below', 'F1', 'Precision', 'Recall', 'Documents', 'Given']) {
      const cell = make('span', '', title);
      cell.setAttribute('role', 'columnheader');
      head.append(cell);
    }
    this.box.replaceChildren(head, ...this.visible(this.root));
    if (!this.focused?.row?.isConnected) this.rove(this.root.kids[0]);
  }

  row(item) {
    if (item.row) return item.row;
    const row = item.row = make('div', 'row'), cell = (className, ...inside) => {
      const made = make('div', className, ...inside);
      made.setAttribute('role', 'gridcell');
      row.append(made);
      return made;
    };
    row.item = item;
    row.tabIndex = -1;
    row.setAttribute('role', 'row');
    row.setAttribute('aria-level', item.level);
    row.setAttribute('aria-posinset', item.index + 1);
    row.setAttribute('aria-setsize', item.parent.all.length);
    row.style.setProperty('--depth', Math.min(item.level - 1, 14));
    const what = cell('what', make('span', 'twisty'));
    if (item.rest) {
      row.classList.add('more');
      what.append(make('span', 'name', `Show ${number(Math.min(PAGE, item.rest))} of ${counted(item.rest, 'more label')}`));
      return row;
    }
    const { label } = item;
    if (start[label + 1] > start[label]) row.setAttribute('aria-expanded', item.open);
    what.append(named('span', 'name', shown(label)));
    if (parents[label].length > 1) {
      const note = make('span', 'note', `${parents[label].length} parents`);
      note.title = `Also under ${parents[label].filter(above => above !== item.parent.label).map(shown).join(', ')}`;
      what.append(note);
    }
    cell('wide', below(label));
    cell('cell-f1', scoreChip(f1Of(label)));
    cell('wide', points(precisionOf(label)));
    cell('wide', points(recallOf(label)));
    cell('wide', number(actual[label]));
    cell('wide', number(given[label]));
    cell('small', `precision ${points(precisionOf(label))} · recall ${points(recallOf(label))} · `
      + `${number(actual[label])} true, ${number(given[label])} given`);
    this.paint(row);
    return row;
  }

  open(item) {
    if (item.open || item.rest || start[item.label + 1] === start[item.label]) return;
    if (!item.kids) this.fill(item, PAGE);
    item.open = true;
    if (!item.row) return;
    item.row.setAttribute('aria-expanded', 'true');
    if (item.row.isConnected) item.row.after(...this.visible(item));
  }

  close(item) {
    if (!item.open || item === this.root) return;
    item.open = false;
    item.row.setAttribute('aria-expanded', 'false');
    for (let next; (next = item.row.nextElementSibling) && next.item.level > item.level; next.remove()) {
      if (next.item === this.focused) this.rove(item);
    }
  }

  toggle(item) { if (item.open) this.close(item); else this.open(item); }

  more(item, upTo) { // in place of "show more": the next children
    const { parent } = item, from = item.index;
    this.fill(parent, upTo);
    const made = parent.kids.slice(from);
    item.row?.replaceWith(...made.map(kid => this.row(kid)));
    if (this.focused === item) this.rove(made[0]);
    return made[0];
  }

  openAll(wanted) {
    let made = 0;
    const waiting = [...this.root.kids];
    for (let next = 0; next < waiting.length; next++) { // level by level: what is left out lies deepest
      const item = waiting[next];
      if (item.rest || start[item.label + 1] === start[item.label]) continue;
      item.open = wanted && made < MOST_ROWS;
      item.row?.setAttribute('aria-expanded', item.open);
      if (item.open && !item.kids) this.fill(item, PAGE);
      if (item.open) made += item.kids.length;
      if (item.kids) for (const kid of item.kids) waiting.push(kid);
    }
    this.render();
  }

  reveal(path) { // opens everything above the last label of a path, and answers its item
    let item = this.root;
    for (const label of path) {
      this.open(item);
      const index = item.all.indexOf(label), last = item.kids.at(-1);
      if (last.rest && index >= last.index) this.more(last, index + 20);
      item = item.kids[index];
    }
    return item;
  }

  paths(label) { // one for each parent
    if (parents[label].length < 2) return [pathTo(label)];
    return parents[label].slice(0, 8).map(parent => [...pathTo(parent), label]);
  }

  show(label) { // in all its places, scrolled to the first
    const [item] = this.paths(label).map(path => this.reveal(path));
    const row = this.row(item), box = this.box.getBoundingClientRect(), its = row.getBoundingClientRect();
    if (its.top < box.top + 60 || its.bottom > box.bottom - 30) {
      this.box.scrollTop += its.top - box.top - box.height / 3;
    }
    this.rove(item);
    return item;
  }

  choose(label) {
    this.chosen = label;
    this.repaint();
    tellOf(label);
  }

  rove(item) {
    if (this.focused?.row) this.focused.row.tabIndex = -1;
    this.focused = item;
    this.row(item).tabIndex = 0;
  }

  focus(row) { if (row?.item) { this.rove(row.item); row.focus(); } }

  act(item) {
    if (item.rest) this.focus(this.row(this.more(item, item.index + PAGE)));
    else if (item.label === this.chosen) this.toggle(item);
    else { this.choose(item.label); this.open(item); }
  }

  click(item, event) {
    this.focus(item.row);
    if (event.target.closest('.twisty') && !item.rest) this.toggle(item); else this.act(item);
  }

  key(item, event) {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    const { row } = item;
    const deeds = {
      ArrowDown: () => this.focus(row.nextElementSibling),
      ArrowUp: () => this.focus(row.previousElementSibling),
      ArrowRight: () => (item.open ? this.focus(row.nextElementSibling) : this.open(item)),
      ArrowLeft: () => (item.open ? this.close(item) : item.parent !== this.root && this.focus(item.parent.row)),
      Home: () => this.focus(this.root.kids[0].row),
      End: () => this.focus(this.box.lastElementChild),
      Enter: () => this.act(item),
      ' ': () => this.act(item),
      '/': () => at('#query').focus(),
    };
    if (deeds[event.key]) { event.preventDefault(); deeds[event.key](); }
  }

  paint(row) {
    const { label } = row.item, isMatch = this.matches.has(label);
    if (label < 0) return;
    row.classList.toggle('chosen', label === this.chosen);
    row.classList.toggle('match', isMatch);
    row.classList.toggle('current', label === this.current);
    row.setAttribute('aria-selected', label === this.chosen);
    if (isMatch || row.marked) markWords(at('.name', row), shown(label), isMatch ? this.words : []);
    row.marked = isMatch;
  }

  repaint() { for (const row of this.box.querySelectorAll('.row')) this.paint(row); }
}

function below(label) { // how well the labels below do, as a bar of colours
  const bar = make('div', 'below'), seen = new Set([label]), waiting = [label], many = {};
  while (waiting.length) {
    const next = waiting.pop();
    if (next !== label) many[stepOf(f1Of(next))] = (many[stepOf(f1Of(next))] || 0) + 1;
    for (const child of childrenOf(next)) if (!seen.has(child)) { seen.add(child); waiting.push(child); }
  }
  const steps = ['s0', 's1', 's2', 's3', 's4', 'none'].filter(step => many[step]);
  const told = steps.map(step => `${number(many[step])} ${stepWords(step)}`);
  for (const step of steps) {
    const part = make('i', step);
    part.style.flexGrow = many[step];
    bar.append(part);
  }
  if (!steps.length) return bar;
  bar.title = `${counted(seen.size - 1, 'label')} below by F1: ${told.join(', ')}`;
  bar.append(make('span', 'away', bar.title));
  return bar;
}

const stepWords = step => (step === 'none' ? 'without documents'
  : `from ${100 / STEPS * step[1]} to ${100 / STEPS * (Number(step[1]) + 1)}`);

function tellOf(label) { // under the tree: the chosen label in words
  const box = at('.chosen-label'), instead = data.confusions.filter(([, missed]) => missed === label).slice(0, 3);
  if (label < 0) {
    box.replaceChildren(make('p', 'soft', 'Click a label to read about it here; a second click opens and closes it.'));
    return;
  }
  const numbers = actual[label]
    ? `F1 ${points(f1Of(label))}: ${number(actual[label])} ${actual[label] === 1 ? 'document has' : 'documents have'} it,`
      + ` ${number(right[label])} of them got it (recall ${points(recallOf(label))}).`
    : 'No document here has it.';
  const got = given[label] ? ` It was given to ${number(given[label])}${actual[label]
    ? `, rightly to ${number(right[label])} (precision ${points(precisionOf(label))}).` : '.'}` : ' It was never given.';
  const trained = data.training ? ` In training ${number(data.training[label])} had it.` : '';
  const where = tree.paths(label).map(pathName).join('; ');
  box.replaceChildren(make('p', '', named('b', '', where)), make('p', '', numbers + got + trained));
  if (instead.length) {
    const others = instead.flatMap(([, , other, documents], index) => [
      index ? ', ' : '', named('bdi', '', shown(other)), ` (${number(documents)})`]);
    box.append(make('p', 'soft', 'Most often taken for ', ...others, '.'));
  }
  const seen = documentsWith(label);
  if (!seen) return;
  const button = make('button', '', 'Show its documents');
  button.type = 'button';
  button.addEventListener('click', () => showDocuments(label));
  box.append(button);
}

let tree;

function openLabel(label) { // from another part of the page
  const item = tree.show(label);
  tree.choose(label);
  at('#labels').scrollIntoView();
  item.row.focus({ preventScroll: true });
}

function drawLegend() {
  const scale = make('span', 'scale');
  for (let each = 0; each < STEPS; each++) {
    scale.append(make('span', `s${each}`, `${100 / STEPS * each}–${100 / STEPS * (each + 1)}`));
  }
  scale.append(make('span', 'none', 'no documents'));
  at('.legend').append('F1', scale);
}

function drawTree() {
  const twice = parents.filter(above => above.length > 1).length;
  at('#labels .about').textContent = 'Coloured by F1; “Documents” have the label in truth, “Given” got it from the model.'
    + ' “Labels below” shows how the labels under one do.'
    + (twice ? ` ${counted(twice, 'label')} with several parents ${twice === 1 ? 'stands' : 'stand'} under each.` : '');
  tree = new Tree(at('.tree'));
  if (size <= 40) tree.openAll(true);
  else if (roots.length === 1) tree.open(tree.root.kids[0]);
  drawLegend();
  tellOf(-1);
  drawSearch();
  at('#open-all').addEventListener('click', () => tree.openAll(true));
  at('#close-all').addEventListener('click', () => tree.openAll(false));
  at('#order').addEventListener('change', event => {
    tree.order = event.target.value;
    tree.reset();
    searchAgain();
    if (tree.chosen >= 0) tree.show(tree.chosen);
  });
}
