// ---- What every part uses: the data, numbers in words, elements, and the labels as a graph.

const data = JSON.parse(document.getElementById('data').textContent);
const { names } = data;
const at = (selector, inside = document) => inside.querySelector(selector);

const clean = text => text.replace(/[\p{Cc}\p{Zl}\p{Zp}]/gu, ' ').replace(/\p{Cs}/gu, '\ufffd').trim();
const shown = label => clean(names[label]) || '(no name)';
const number = count => count.toLocaleString('en');
const PLURALS = { match: 'matches' };
const counted = (count, noun) => `${number(count)} ${count === 1 ? noun : PLURALS[noun] || noun + 's'}`;
const points = share => (share === null || share === undefined ? '–' : share === 1 ? '100'
  : share > .999 ? '>99.9' : share > 0 && share < .001 ? '<0.1' : (100 * share).toFixed(1));
const percent = share => (share > 0 && share < .001 ? '<0.1%' : share < 1 && share > .999 ? '>99.9%'
  : `${Number((100 * share).toFixed(share < .1 || share > .9 ? 1 : 0))}%`);
const digitsFor = (...shares) => [1, 2, 3].find(digits => // that tell differences from none; four always do
  shares.every(share => !share || Number((100 * share).toFixed(digits)))) ?? 4;
const unsigned = (share, digits) => (100 * Math.abs(share)).toFixed(digits);
const signed = (share, digits) => (share ? (share < 0 ? '−' : '+') : '') + unsigned(share, digits);

function make(kind, className = '', ...inside) {
  const element = document.createElement(kind);
  if (className) element.className = className;
  element.append(...inside.map(part => (typeof part === 'number' ? String(part) : part)));
  return element;
}

function named(kind, className, text) { // a text of others: it turns nothing else around, and is not translated
  const element = make(kind, className, text);
  element.dir = 'auto';
  element.translate = false;
  return element;
}

function svg(kind, attributes = {}, ...inside) {
  const element = document.createElementNS('http://www.w3.org/2000/svg', kind);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...inside);
  return element;
}

function place(element, from, to) { // along a bar, from 0 to 1
  element.style.left = `${100 * from}%`;
  if (to !== undefined) element.style.width = `${100 * Math.max(to - from, 0)}%`;
  return element;
}

function table(heads, rows) { // the first cell heads its row; columns of numbers stand right
  const numeric = value => typeof value === 'number' || /^[<>−+]?[\d.,]+%?$|^–$/.test(value);
  const side = heads.map((_, index) => (index && rows.every(row => numeric(row[index])) ? 'num' : ''));
  const line = (cells, kind, scope) => make('tr', '', ...cells.map((value, index) => {
    const cell = make(kind(index), side[index], typeof value === 'number' ? number(value) : value);
    if (cell.tagName === 'TH') cell.scope = scope;
    return cell;
  }));
  return make('table', '', make('thead', '', line(heads, () => 'th', 'col')),
    make('tbody', '', ...rows.map(row => line(row, index => (index ? 'td' : 'th'), 'row'))));
}

function options(select, entries) {
  for (const [value, text] of entries) {
    const option = make('option', '', text);
    option.value = value;
    select.append(option);
  }
}

// The labels: the children of label i are list[start[i]] to list[start[i + 1] - 1].
const size = names.length;
const start = new Int32Array(size + 1);
data.childCounts.forEach((count, label) => { start[label + 1] = start[label] + count; });
const list = Int32Array.from(data.children);
const parents = Array.from({ length: size }, () => []);
for (let label = 0; label < size; label++) {
  for (let next = start[label]; next < start[label + 1]; next++) parents[list[next]].push(label);
}
const levelOf = new Int32Array(size);
data.levelSizes.reduce((from, many, index) => levelOf.fill(index + 1, from, from + many) && from + many, 0);
const depth = data.levelSizes.length;
const roots = Array.from({ length: data.levelSizes[0] }, (_, label) => label);
const childrenOf = label => (label < 0 ? [...roots] : Array.from(list.subarray(start[label], start[label + 1])));

const { actual, given, right } = data;
const f1Of = label => (actual[label] ? 2 * right[label] / (actual[label] + given[label]) : null);
const precisionOf = label => (given[label] ? right[label] / given[label] : null);
const recallOf = label => (actual[label] ? right[label] / actual[label] : null);
const frequency = data.training || actual;

function pathTo(label) { // through the first parents
  const path = [];
  for (; label !== undefined; [label] = parents[label]) path.push(label);
  return path.reverse();
}

function pathName(path) {
  const steps = path.map(shown);
  return (steps.length > 12 ? [...steps.slice(0, 5), '…', ...steps.slice(-5)] : steps).join(' › ');
}

const STEPS = 5; // colours of F1
const stepOf = f1 => (f1 === null ? 'none' : `s${Math.min(STEPS - 1, Math.floor(f1 * STEPS))}`);

function scoreChip(f1) { return make('span', `score ${stepOf(f1)}`, points(f1)); }

const LETTERS = { 'ø': 'o', 'ł': 'l', 'đ': 'd', 'ð': 'd', 'ħ': 'h', 'æ': 'ae', 'œ': 'oe', 'þ': 'th' };
function fold(text) { // without case and accents
  if (/^[ -~]*$/.test(text)) return text.toLowerCase();
  const plain = text.normalize('NFKD').replace(/[\u0300-\u036f]/g, '').toUpperCase().toLowerCase(); // ß is ss
  return plain.replace(/[øłđðħæœþ]/g, letter => LETTERS[letter]);
}

// Draw again whenever the width changes, so that text keeps its size.
function drawn(box, draw) {
  let width = 0;
  const redraw = () => {
    const now = Math.floor(box.clientWidth);
    if (now && now !== width) { width = now; draw(width); }
  };
  redraw();
  new ResizeObserver(redraw).observe(box);
  return () => draw(width || 600);
}
