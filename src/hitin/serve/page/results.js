// What was said of many documents: a table of some at a time, and files to keep.

import { at, clean, counted, make, named, number, percent, rest } from './base.js';
import { csvOf } from './tables.js';

const ROWS = 100; // of the table on a page
const SHOWN = 300; // letters of a text in the table
const BETWEEN = ' | '; // several labels in a cell, as hitin reads them
const TYPES = { csv: 'text/csv', jsonl: 'application/x-ndjson' };

export class Results {
  constructor(chosen) { // `chosen` hears of a text by its number
    this.chosen = chosen;
    const turn = by => { this.page += by; this.draw(); at('#results .scroll').scrollTop = 0; };
    at('#order').addEventListener('change', () => turn(-this.page));
    at('#previous-page').addEventListener('click', () => turn(-1));
    at('#next-page').addEventListener('click', () => turn(1));
    at('#results tbody').addEventListener('click', event => this.choose(event.target.closest('tr')));
  }

  begin(texts, taxonomy, model) {
    const answers = Array(texts.length).fill(null);
    Object.assign(this, { texts, taxonomy, model, answers, page: 0, decisions: null, marked: -1, isOld: false });
    at('#results').hidden = true;
    at('#results tbody').replaceChildren();
  }

  add(from, records, decisions) {
    this.decisions = decisions ?? this.decisions;
    records.forEach((record, index) => { this.answers[from + index] = record; });
  }

  use(taxonomy) { // of the model that is chosen now: another one, perhaps
    this.isOld = this.taxonomy?.id !== taxonomy.id;
    if (this.taxonomy) this.tell(this.answers.filter(Boolean).length);
  }

  drawFirst() { // while others are on their way: the table, until it is full
    if (at('#results tbody').rows.length < Math.min(ROWS, this.texts.length)) this.draw();
    else this.tell(this.answers.filter(Boolean).length);
  }

  draw() {
    const rows = this.sorted(), first = this.page * ROWS;
    at('#results').hidden = !rows.length;
    at('#results tbody').replaceChildren(...rows.slice(first, first + ROWS).map(index => this.line(index)));
    this.tell(rows.length);
  }

  tell(many) { // how many there are, and which of them are shown
    const pages = Math.ceil(many / ROWS), first = this.page * ROWS;
    at('#made-with').textContent = this.words(many);
    at('#results').classList.toggle('old', this.isOld);
    at('#pages').hidden = pages < 2;
    at('#page-words').textContent = `${number(first + 1)} to ${number(Math.min(first + ROWS, many))} of ${number(many)}`;
    rest(at('#previous-page'), this.page === 0);
    rest(at('#next-page'), this.page >= pages - 1);
  }

  words(many) {
    const wrong = this.answers.filter(each => each?.problem).length, done = many - wrong, all = this.texts.length;
    const part = `${done < all ? `${number(done)} of ` : ''}${counted(all, 'text')} classified by ${clean(this.model)}`;
    const how = this.decisions ? ` (${this.decisions.words})` : '', refused = wrong ? `, ${number(wrong)} refused` : '';
    return `${part}${how}${refused}${this.isOld ? '. The model has changed since.' : ''}`;
  }

  sorted() { // the numbers of the texts that have an answer
    const rows = Array.from(this.answers.keys()).filter(index => this.answers[index]);
    if (at('#order').value === 'file') return rows;
    const sure = new Map(rows.map(index => [index, Math.max(0, ...this.sureness(index))]));
    return rows.sort((one, other) => sure.get(one) - sure.get(other));
  }

  sureness(index) { // the probability of the end of each path
    const { labels = [], scores = {} } = this.answers[index], { numbers, names } = this.taxonomy;
    return this.taxonomy.ends(labels.map(name => numbers.get(name))).map(label => scores[names[label]]);
  }

  line(index) {
    const { paths = [], problem } = this.answers[index], sure = this.sureness(index);
    const open = named('button', 'link', clean(this.texts[index].slice(0, SHOWN)) || '(empty)');
    open.type = 'button';
    const path = (text, each) => named('div', '', clean(text) + (sure.length > 1 ? ` (${percent(sure[each])})` : ''));
    const told = problem ? [make('span', 'problem', problem)] : paths.length ? paths.map(path) : [make('span', 'soft', 'no label')];
    const row = make('tr', index === this.marked ? 'chosen' : '', make('td', 'num soft', number(index + 1)), make('td', 'start', open),
      make('td', 'paths', ...told), make('td', 'num', sure.length ? percent(Math.max(...sure)) : '–'));
    row.number = index;
    return row;
  }

  choose(row) {
    if (!row) return;
    this.marked = row.number;
    for (const each of at('#results tbody').rows) each.classList.toggle('chosen', each === row);
    this.chosen(row.number);
  }

  csv({ columns, body }) { // the file's own columns, and three more
    const rows = Array.from(this.answers.keys()).filter(index => this.answers[index]).map(index => {
      const { paths = [], labels = [] } = this.answers[index], sure = this.sureness(index);
      return [...columns.map((_, column) => body[index][column] ?? ''), paths.join(BETWEEN), labels.join(BETWEEN), sure.join(BETWEEN)];
    });
    return csvOf([[...columns, 'predicted paths', 'predicted labels', 'probability'], ...rows]);
  }

  jsonLines({ body, idColumn }) { // the records of `hitin predict --with-text`
    return this.texts.map((text, index) => {
      const id = idColumn < 0 ? {} : { id: body[index][idColumn] ?? '' };
      return this.answers[index] ? `${JSON.stringify({ ...id, text, ...this.answers[index] })}\n` : '';
    }).join('');
  }
}

export function download(name, suffix, content) {
  const link = make('a'), address = URL.createObjectURL(new Blob([content], { type: TYPES[suffix] }));
  link.href = address;
  link.download = `${name.replace(/\.\w+$/, '')}-labels.${suffix}`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 10000);
}
