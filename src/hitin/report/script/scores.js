// ---- The head of the page, the scores over all documents, baselines, and the levels.

const SCORES = [
  ['micro_f1', 'Micro-F1', 'All decisions together, so frequent labels count most.'],
  ['macro_f1', 'Macro-F1', 'The mean over all labels; one without documents counts zero.'],
  ['hierarchical_f1', 'Hierarchical F1', 'With all labels above added: a near miss counts in part.'],
  ['samples_f1', 'Samples-F1', 'The mean over documents.'],
  ['exact_match', 'Exact match', 'Documents with exactly the right labels.'],
  ['precision', 'Precision', 'Of the labels given, those that are right.'],
  ['recall', 'Recall', 'Of the true labels, those that were given.'],
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

function verdict(difference) { // "better" and "worse" only where the interval leaves out zero
  const { value, low, high } = difference, much = points(Math.abs(value));
  if (low === undefined) return make('div', 'verdict-cell', signed(value));
  const [kind, words] = low > 0 ? ['better', `▲ ${much} better`] : high < 0 ? ['worse', `▼ ${much} worse`]
    : ['even', `≈ ${signed(value)}`];
  return make('div', 'verdict-cell', make('span', `verdict ${kind}`, words),
    make('span', 'soft', `${signed(low)} to ${signed(high)}`));
}

function drawBaselines() {
  for (const baseline of data.baselines) {
    const { scores, differences } = baseline, rows = [];
    for (const [name, title] of SCORES) {
      if (!scores[name]) continue;
      const mine = data.scores[name].value, theirs = scores[name].value;
      rows.push([title, points(mine), points(theirs), verdict(differences[name] || { value: mine - theirs })]);
    }
    const box = make('div', 'panel scroll', table(['Score', 'This model', named('span', '', clean(baseline.name)),
      'Difference, and its 95% interval'], rows));
    box.prepend(named('h3', '', `Beside ${clean(baseline.name)}`));
    at('.baselines').append(box);
  }
  if (data.baselines.some(({ differences }) => Object.keys(differences).length)) {
    at('.baselines').append(make('p', 'about', '“Better” and “worse” stand only where the interval of the difference'
      + ' leaves out zero; otherwise other documents might turn the order round.'));
  }
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
  const rows = data.levels.map(level => [`Level ${level.level}`, level.labels, barCell(level.micro_f1),
    barCell(level.macro_f1), points(level.precision.value), points(level.recall.value), sum(actual, level.level),
    sum(given, level.level)]);
  const heads = ['', 'Labels', 'Micro-F1', 'Macro-F1', 'Precision', 'Recall', 'True labels', 'Given labels'];
  const whole = table(heads, rows);
  for (const cell of whole.querySelectorAll('.bar')) cell.closest('td').className = 'bar-cell';
  at('#levels .panel').append(whole);
}
