// ---- Documents that a person should look at.

const SIGNS = { right: '✓', wrong: '✗', missed: '○' };
const WORDS = { right: 'given and true', wrong: 'given, not true', missed: 'true, not given' };
const ABOUT = {
  worst: 'The documents with the lowest F1; of equal ones, those first where the model was surest of a wrong label.',
  surprising: 'The documents whose true labels the model thought least probable (the highest log loss). Some of them may'
    + ' be mislabelled: then the model is right.',
};
let showDocuments = () => {};

function drawDocuments() {
  const buttons = { worst: at('#worst'), surprising: at('#surprising') }, filter = at('#of-label');
  const list = at('.examples');
  if (!data.worst.length && !data.surprising.length && data.documents) {
    for (const part of document.querySelectorAll('#documents > :not(h2)')) part.remove();
    at('#documents').append(make('p', 'panel empty-note', 'No documents are kept in this report.'));
    return;
  }
  let kind = 'worst';
  const labelsOf = example => Object.keys(SIGNS).flatMap(sign => example[sign].map(([label]) => label));

  function draw() {
    for (const [name, button] of Object.entries(buttons)) button.setAttribute('aria-pressed', name === kind);
    at('#documents .about').textContent = ABOUT[kind];
    const text = fold(clean(filter.value)), all = data[kind];
    const exact = names.some((_, label) => fold(shown(label)) === text);
    const hit = label => (exact ? fold(shown(label)) === text : fold(shown(label)).includes(text));
    const found = text ? all.filter(example => labelsOf(example).some(hit)) : all;
    at('.matching').textContent = text ? `${number(found.length)} of ${counted(all.length, 'document')}` : '';
    list.replaceChildren(...found.map(exampleCard));
    if (!found.length) {
      list.append(make('p', 'panel empty-note', text ? 'None of these documents has such a label.'
        : kind === 'worst' ? 'Every document got exactly its labels.' : 'There are no documents.'));
    }
  }

  const within = new Set([...data.worst, ...data.surprising].flatMap(labelsOf));
  options(at('#their-labels'), [...within].sort((one, other) => one - other).map(label => [shown(label), '']));
  for (const [name, button] of Object.entries(buttons)) {
    button.addEventListener('click', () => { kind = name; draw(); });
  }
  filter.addEventListener('input', draw);
  showDocuments = label => {
    filter.value = shown(label);
    const some = data[kind].some(example => labelsOf(example).includes(label));
    if (!some) kind = kind === 'worst' ? 'surprising' : 'worst';
    draw();
    at('#documents').scrollIntoView();
  };
  draw();
}

const documentsWith = label => [...data.worst, ...data.surprising].filter(example =>
  Object.keys(SIGNS).some(sign => example[sign].some(([its]) => its === label))).length;

function exampleCard(example, index) {
  const head = make('div', 'example-head', named('h3', '', clean(example.name) || `Document ${index + 1}`),
    make('span', '', `F1 ${points(example.f1)}`), make('span', '', `log loss ${example.loss.toFixed(1)}`));
  const text = named('p', 'text', example.text.replace(/[^\P{Cc}\n]/gu, ' ').replace(/\p{Cs}/gu, '\ufffd').trim()
    + (example.cut ? ' …' : ''));
  if (!text.textContent) text.append(make('span', 'soft', '(no text)'));
  if (text.textContent.length > 350) text.tabIndex = 0; // it may scroll
  const chips = make('div', 'chips');
  for (const sign of Object.keys(SIGNS)) for (const [label, probability] of example[sign]) {
    const mark = make('i', '', SIGNS[sign]), chip = make('span', `chip ${sign}`, mark, named('bdi', '', shown(label)),
      make('small', '', percent(probability)));
    mark.setAttribute('role', 'img');
    mark.setAttribute('aria-label', `${WORDS[sign]}: `);
    chip.title = `${pathName(pathTo(label))}\n${WORDS[sign]}, probability ${percent(probability)}`;
    chips.append(chip);
  }
  if (example.more) chips.append(make('span', 'soft', `and ${counted(example.more, 'more label')}`));
  if (!chips.childElementCount) chips.append(make('span', 'soft', 'No labels, and none given.'));
  const [label, probability, own] = example.surprise;
  const why = make('p', 'why', 'Most surprising: ', named('bdi', '', shown(label)),
    `, which the model thought ${percent(probability)} probable, and which the document ${own ? 'has' : 'does not have'}.`);
  return make('article', 'panel example', head, text, chips, why);
}
