// The page: a text goes to the server, and what comes back lights up the tree.

import { Answer, fits, likeliestPath, numbersOf, Replaced } from './answer.js';
import { at, button, clean, counted, later, make, named, number, options, percent, short } from './base.js';
import { Controls } from './controls.js';
import { Documents } from './documents.js';
import { receiveFiles } from './dropping.js';
import { ask, isAborted, wellFormed } from './server.js';
import { Taxonomy } from './taxonomy.js';
import { Tree } from './tree.js';
import { Why } from './words.js';

const TYPING = 250; // milliseconds without a key until a text is sent
const LOADING = 120; // times that a server is asked again which loads its models
const SLOW = 300; // milliseconds after which one sees that what is shown is of before
const MOST_GIVEN = 12; // paths that are listed
const RUNTIMES = { onnx: ', ONNX', 'onnx-int8': ', ONNX in 8 bits' };
const UNEXPLAINED = 'Which words decided is not known of an exported model: serve the folder of the model itself.';

let models = [], model = null, taxonomy = null, answer = null;
let loading = null, asked = null; // what is under way: models and labels, and the answer to a text

function fail(error) {
  if (isAborted(error)) return;
  at('#message p').textContent = error.message || String(error);
  at('#message').hidden = false;
}
const allIsWell = () => { at('#message').hidden = true; };

const controls = new Controls({ asked: () => classify(), moved: () => light() });
const tree = new Tree(at('#tree'), label => choose(label));
const why = new Why(name => { tree.choose(taxonomy.numbers.get(name)); tellChosen(); });
const documents = new Documents({
  question: () => ({ model: model.name, ...controls.wholeQuestion() }),
  taxonomy: () => taxonomy,
  readAgain: () => start(model?.name, true).catch(fail),
  oneText: text => { at('#text').value = text; classify(); },
  fail,
});
const typing = later(TYPING, () => classify());
const waiting = later(SLOW, isBusy => { for (const box of ['#given', '#tree']) at(box).setAttribute('aria-busy', isBusy); });

// ---- Models.

async function start(wanted, isAgain = false) {
  await load(async signal => {
    ({ models } = await ask('v1/models', null, { signal, patience: LOADING, waits: tellLoading }));
    const { name } = models.find(each => each.name === wanted) ?? models[0];
    options(at('#model'), models.map(each => [each.name, clean(each.name)]), name);
    return labelsOf(name, signal);
  }, isAgain);
}

const labelsOf = (name, signal) => ask(`v1/taxonomy?model=${encodeURIComponent(name)}`, null, { signal });

function tellLoading({ kind }) {
  if (kind === 'loading') at('#told').textContent = 'The models are being loaded …';
}

async function chooseModel(name) {
  try { await load(signal => labelsOf(name, signal)); } catch (error) {
    if (isAborted(error)) return;
    if (model) { at('#model').value = model.name; await classify(); } // by the one of before
    fail(error);
  }
}

// Use the model whose labels are read. A text that is typed meanwhile waits for it.
async function load(read, isAgain = false) {
  loading?.abort();
  asked?.abort();
  const mine = loading = new AbortController();
  waiting.soon(true);
  let labels;
  try { labels = await read(mine.signal); } finally {
    if (loading === mine) { loading = null; at('#told').textContent = ''; waiting.now(false); }
  }
  model = models.find(each => each.name === labels.model);
  show(new Taxonomy(labels));
  await classify(isAgain);
}

function show(labels) {
  taxonomy = labels;
  answer = null;
  why.clear();
  aboutModel();
  controls.show(model);
  at('#query').value = at('#found').textContent = at('#chosen').textContent = '';
  tree.show(taxonomy);
  documents.results.use(taxonomy);
}

function aboutModel() {
  const levels = taxonomy.levelSizes.length > 1 ? ` in ${taxonomy.levelSizes.length} levels` : '';
  const learnt = model.documents ? `, learnt from ${counted(model.documents, 'document')}` : '';
  at('#about-model').textContent = `${model.method}, ${model.encoder}${RUNTIMES[model.runtime] || ''}: `
    + `${counted(taxonomy.size, 'label')}${levels}${learnt}${model.problem ? `. Its folder: ${clean(model.problem)}` : ''}`;
}

// ---- A text.

async function classify(isAgain = false) {
  typing.stop();
  asked?.abort();
  const mine = asked = new AbortController(), text = at('#text').value;
  at('#clear').disabled = !text;
  if (loading) return; // the text is sent when the labels are there
  try {
    if (!model) await start(at('#model').value); // which failed before
    else if (text.trim()) await answerTo(text, mine, isAgain);
    else { allIsWell(); use(null, ''); }
  } catch (error) {
    if (isAborted(error)) return;
    if (model) use(null, ''); // the answer of before is not that of this text
    fail(error);
  }
}

async function answerTo(text, mine, isAgain) {
  at('#told').textContent = 'Classifying …';
  waiting.soon(true);
  const started = performance.now();
  const body = { text: wellFormed(text), model: model.name, all_scores: true, limits: true, ...controls.question() };
  const found = await ask('v1/predict', body, { signal: mine.signal });
  if (mine !== asked) return; // a later text was sent meanwhile
  allIsWell();
  if (!fits(taxonomy, found)) {
    if (isAgain) throw new Replaced();
    await start(model.name, true); // the model was replaced: its labels are read again
    return;
  }
  controls.answered(found.decisions);
  const took = number(Math.ceil(performance.now() - started));
  use(new Answer(taxonomy, found.documents[0]), `${counted(text.length, 'character')}, answered in ${took} ms`);
}

function use(found, words) {
  waiting.now(false);
  answer = found;
  why.clear();
  at('#told').textContent = words;
  light();
}

function light() { // what is given, as tuned or where the slider stands
  const given = answer?.given(controls.threshold) ?? null;
  tree.light(answer, given);
  const labels = given ? numbersOf(given) : [];
  controls.tellOf(labels.length);
  drawGiven(labels);
  tellChosen();
}

function drawGiven(labels) {
  const ends = bySureness(taxonomy.ends(labels));
  const isGiven = new Set(labels), path = label => taxonomy.pathTo(label, above => isGiven.has(above));
  at('#given').replaceChildren(...ends.slice(0, MOST_GIVEN).map(label => make('li', '', pathButton(path(label)))));
  const more = ends.length > MOST_GIVEN ? `and ${counted(ends.length - MOST_GIVEN, 'other path')}: see the tree` : '';
  at('#given-none').textContent = ends.length ? more
    : answer ? 'No label is given. The tree shows what is most probable.' : 'What is given to the text stands here.';
  at('#explain').disabled = !answer || !model.explains;
  at('#explain').title = model.explains ? '' : UNEXPLAINED;
}

function pathButton(path) {
  const label = path.at(-1);
  const made = button('path', '', () => { at('#query').value = ''; search(); tree.reveal(label); choose(label); });
  made.append(...pathParts(path), make('span', 'share', percent(answer.probabilities[label])));
  return made;
}

function pathParts(path) { // from left to right, however each name is read
  const name = (step, index) => named('bdi', index === path.length - 1 ? 'end' : '', step);
  return taxonomy.steps(path).flatMap((step, index) => (index ? [make('span', 'arrow', ' › '), name(step, index)] : [name(step, index)]));
}

// ---- A label.

function choose(label) {
  tree.choose(label);
  tellChosen();
  if (answer && model.explains) explain([label], label);
}

function explain(labels, shown) {
  const question = { text: at('#text').value, model: model.name, ...controls.question() };
  const names = labels.map(label => taxonomy.names[label]);
  why.explain(question, names, taxonomy.names[shown], name => short(taxonomy.shown(taxonomy.numbers.get(name))));
  if (matchMedia('(max-width: 900px)').matches) at('#why').scrollIntoView({ block: 'start' }); // one column: it is elsewhere
}

function explainGiven() { // the likeliest path first, of which the end is shown
  const given = numbersOf(answer.given(controls.threshold)), isGiven = new Set(given);
  const path = given.length ? taxonomy.pathTo(likeliestEnd(given), label => isGiven.has(label))
    : likeliestPath(taxonomy, answer.probabilities);
  explain([...new Set([...path.filter(label => !given.length || isGiven.has(label)), ...bySureness(given)])], path.at(-1));
}

const bySureness = labels => labels.toSorted((one, other) => answer.probabilities[other] - answer.probabilities[one]);
const likeliestEnd = labels => bySureness(taxonomy.ends(labels))[0];

function tellChosen() {
  const label = tree.chosen, box = at('#chosen');
  if (label < 0) { box.textContent = model.explains ? 'Choose a label to see which words decided.' : UNEXPLAINED; return; }
  const limit = answer?.limits?.[label], what = controls.hasThreshold ? 'threshold' : 'stop';
  const upTo = limit >= 0 ? `given up to a ${what} of ${(limit / 100).toFixed(2)}` : `given at no ${what}`;
  const told = answer ? `: ${percent(answer.probabilities[label])}, ${upTo}` : '';
  box.replaceChildren(make('b', '', ...pathParts(taxonomy.pathTo(label))), told);
}

// ---- What people do.

function search() {
  const text = at('#query').value, found = tree.search(text);
  at('#found').textContent = text.trim() ? (found ? counted(found, 'match') : 'No match') : '';
}
const searching = later(80, search);

at('#text').addEventListener('input', () => typing.soon());
at('#text').addEventListener('keydown', event => {
  if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) { event.preventDefault(); typing.now(); }
});
at('#clear').addEventListener('click', () => { at('#text').value = ''; classify(); at('#text').focus(); });
at('#model').addEventListener('change', () => chooseModel(at('#model').value));
at('#explain').addEventListener('click', explainGiven);
at('#query').addEventListener('input', () => searching.soon());
at('#query').addEventListener('keydown', event => {
  if (event.key === 'ArrowDown' || event.key === 'Enter') { event.preventDefault(); searching.now(); tree.focus(0); }
});
at('#fold').addEventListener('click', () => tree.fold());
at('#message button').addEventListener('click', allIsWell);
receiveFiles(file => documents.open(file));
start().catch(fail);
