// ---- The head of the page, the scores over all documents, baselines, and the levels.

const SCORES = [
  ['micro_f1', 'Micro-F1', 'All decisions together, so frequent labels count most.'],
  ['macro_f1', 'Macro-F1', 'The mean over all labels; one without documents counts zero.'],
  ['hierarchical_f1', 'Hierarchical F1', 'With all labels above added: a near miss counts in part.'],
  ['samples_f1', 'Samples-F1', 'The mean over documents.'],
  ['exact_match', 'Exact match', 'Documents with exactly the right labels.'],
  ['precision', 'Precision', 'Of the labels given, those that are right.'],
  ['recall', 'Recall', 'Of the true labels, those that were given.'],
  ['hierarchical_precision', 'Hierarchical precision', 'Of the labels given and all above them, those that are right.'],
  ['hierarchical_recall', 'Hierarchical recall', 'Of the true labels, those that were given or stand above one given.'],
  ['macro_f1_present', 'Macro-F1, labels seen', 'The mean over labels that some document here has.'],
  ...Object.keys(data.scores).filter(name => name.startsWith('precision_at_')).map(name => {
    const k = Number(name.slice(13));
    return [name, `Precision at ${k}`, k === 1 ? 'Documents whose most probable label is true.'
      : `Of the ${k} most probable labels, those that are true.`];
  }),
  ['path_consistency', 'Path consistency', 'Documents given no label without those above it.'],
].filter(([name]) => data.scores[name]);

const interval = ({ low, high }) => (low === undefined ? '' : `${points(low)} – ${points(high)}`);

function drawHead() {
  const { about } = data;
  at('h1').textContent = clean(about.model) || 'Evaluation';
  const levels = depth > 1 ? ` on ${depth} levels` : '';
  at('.lead').append('Scored on ', make('b', '', counted(data.documents, 'document')), ' with ',
    make('b', '', counted(size, 'label')), `${levels}.`);
  const mean = data.scores.labels_given, facts = [['Method', about.method], ['Text encoder', about.encoder],
    ['Documents from', about.files.join(', ')], ['Labels given to a document', mean && mean.value.toFixed(1)],
    ['Decisions', about.decisions]];
  for (const [term, value] of facts) {
    if (value) at('.facts').append(make('div', '', make('dt', '', term), named('dd', '', clean(value))));
  }
  at('footer').append(`Made by ${clean(about.made_by)}. The numbers stand in .json and .csv files beside this page.`);
}

function drawScores() {
  const known = SCORES.some(([name]) => data.scores[name].low !== undefined);
  at('#scores .about').textContent = 'All scores are out of 100.' + (known
    ? ' Beside each, and as the strong piece of its bar, stands its 95% interval: where the score might as well lie'
      + ' had other documents of the same kind been taken.' : '');
  for (const [name, title, words] of SCORES) {
    const figure = data.scores[name], bar = make('div', 'range');
    bar.append(place(make('span', 'fill'), 0, figure.value));
    if (figure.low !== undefined) bar.append(place(make('span', 'interval'), figure.low, figure.high));
    bar.append(place(make('span', 'point'), figure.value));
    const value = make('div', 'value', points(figure.value));
    if (figure.low !== undefined) {
      value.append(make('span', 'away', ', interval '), make('small', '', interval(figure)));
    }
    const card = make('div', 'card', make('h3', '', title), value, bar, make('p', '', words));
    card.dataset.score = name;
    at('.cards').append(card);
  }
}

function besides(mine, theirs, difference) { // "better" and "worse" only where the interval leaves out zero
  const cell = make('div', 'beside-cell', make('b', '', points(theirs)));
  if (!difference || difference.low === undefined) {
    cell.append(make('span', 'soft', signed(mine - theirs, digitsFor(mine - theirs))));
    return cell;
  }
  const { value, low, high } = difference, digits = digitsFor(value, low, high), much = unsigned(value, digits);
  const [kind, words] = low > 0 ? ['better', `▲ ${much} better`] : high < 0 ? ['worse', `▼ ${much} worse`]
    : ['even', `≈ ${signed(value, digits)}`];
  cell.append(make('span', `verdict ${kind}`, words),
    make('span', 'soft', `${signed(low, digits)} to ${signed(high, digits)}`));
  return cell;
}

function drawBaselines() {
  const { baselines } = data;
  if (!baselines.length) return;
  const rows = SCORES.filter(([name]) => baselines.some(({ scores }) => scores[name])).map(([name, title]) => {
    const mine = data.scores[name].value;
    return [title, points(mine), ...baselines.map(({ scores, differences }) => (scores[name]
      ? besides(mine, scores[name].value, differences[name]) : make('span', 'soft', 'not measured')))];
  });
  const heads = ['Score', 'This model', ...baselines.map(({ name }) => named('span', '', clean(name)))];
  const known = baselines.some(({ differences }) => Object.values(differences).some(({ low }) => low !== undefined));
  at('.baselines').append(make('h3', '', 'Beside other models on the same documents'), make('p', 'about', known
    ? 'Behind the score of each other model: how much better or worse this one is, and the 95% interval of that'
      + ' difference. Where the interval holds zero (≈), other documents might turn the order round.'
    : 'Behind the score of each other model: by how much this one scores more.'),
  make('div', 'panel scroll', table(heads, rows)));
}

function barCell(figure) {
  const bar = make('div', 'bar', place(make('span', 'length'), 0, figure.value));
  if (figure.low !== undefined) bar.append(place(make('span', 'whisker'), figure.low, figure.high));
  const cell = make('div', '', make('span', 'text', points(figure.value)), bar);
  cell.title = interval(figure) && `95% interval ${interval(figure)}`;
  cell.append(make('span', 'away', cell.title));
  return cell;
}

function drawLevels() {
  const ends = data.levelSizes.reduce((sums, many) => [...sums, sums.at(-1) + many], [0]);
  const sum = (counts, level) => counts.slice(ends[level - 1], ends[level]).reduce((total, one) => total + one, 0);
  const rows = data.levels.map(({ level, labels, micro_f1, macro_f1, precision, recall }) => {
    const has = sum(actual, level), got = sum(given, level); // as for a label: no share of nothing
    return [`Level ${level}`, labels, barCell(micro_f1), barCell(macro_f1), points(got ? precision.value : null),
      points(has ? recall.value : null), has, got];
  });
  const heads = ['', 'Labels', 'Micro-F1', 'Macro-F1', 'Precision', 'Recall', 'True labels', 'Given labels'];
  const whole = table(heads, rows);
  for (const cell of whole.querySelectorAll('.bar')) cell.closest('td').className = 'bar-cell';
  at('#levels .panel').append(whole);
}
