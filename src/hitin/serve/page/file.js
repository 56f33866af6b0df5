// A file of texts that a person chose or dropped: how it is read, and which of its columns holds the texts.

import { at, clean, counted, number, options } from './base.js';
import { contentOf, linesOf, tableOf, textColumn } from './tables.js';

const IS_TABLE = /\.(csv|tsv|tab|jsonl|ndjson)$/i;
const HAS_KEYS = /\.(jsonl|ndjson)$/i; // whose columns always have names
const ID_NAMES = ['id', 'doc_id']; // as hitin itself looks for them

export class TextFile {
  constructor({ changed, oneText, fail }) { // `changed` hears of other texts, `oneText` of a file that is one
    Object.assign(this, { changed, oneText, fail });
    at('#reading').addEventListener('change', () => this.read());
    at('#header').addEventListener('change', () => this.readColumns(at('#column').value));
    at('#column').addEventListener('change', () => this.readTexts());
  }

  async open(file) {
    const { name } = file, isTable = IS_TABLE.test(name), reading = isTable ? 'table' : 'text';
    try { // all is read before anything is changed: a file that cannot be read leaves the one of before
      const { text, encoding } = await contentOf(file), content = text.replace(/^\ufeff/, '');
      if (!content.trim()) throw new Error(`There is no text in ${clean(name)}.`);
      const found = rowsOf(content, name, reading);
      Object.assign(this, { name, content, encoding });
      at('#reading').value = reading;
      at('#reading-label').hidden = isTable;
      at('#documents').hidden = !isTable && linesOf(content).length < 2;
      this.use(found);
    } catch (error) { this.fail(error); }
  }

  read() { this.use(rowsOf(this.content, this.name, at('#reading').value)); }

  use({ rows, hasHeader }) {
    const reading = at('#reading').value;
    if (reading === 'text') this.oneText(this.content.trim());
    this.rows = rows;
    at('#header').checked = hasHeader;
    at('#header-label').hidden = reading !== 'table' || HAS_KEYS.test(this.name);
    this.readColumns();
  }

  readColumns(chosen) { // a column that a person has chosen is kept
    const hasHeader = this.hasHeader = at('#header').checked, width = this.rows.reduce((most, row) => Math.max(most, row.length), 1);
    const name = index => (hasHeader && clean(this.rows[0][index] ?? '')) || `column ${index + 1}`;
    this.columns = Array.from({ length: width }, (_, index) => name(index));
    this.idColumn = hasHeader ? this.columns.findIndex(each => ID_NAMES.includes(each)) : -1;
    options(at('#column'), this.columns.map((each, index) => [String(index), each]), chosen ?? String(textColumn(this.rows, hasHeader)));
    at('#column-label').hidden = width < 2;
    this.readTexts();
  }

  readTexts() {
    const column = Number(at('#column').value);
    this.body = this.hasHeader ? this.rows.slice(1) : this.rows;
    this.texts = this.body.map(row => row[column] ?? '');
    const odd = this.body.filter(row => row.length !== this.columns.length).length;
    const how = this.encoding === 'windows-1252' ? ', read as Windows-1252' : '';
    at('#documents-title').textContent = `${clean(this.name)}: ${counted(this.texts.length, 'text')}${how}`
      + (odd ? `; ${counted(odd, 'row')} with fewer cells than others: are quotes missing?` : '');
    at('#run').textContent = this.texts.length === 1 ? 'Classify it' : `Classify all ${number(this.texts.length)}`;
    at('#run').disabled = !this.texts.length;
    this.changed();
  }
}

function rowsOf(content, name, reading) { // { rows, hasHeader } of cells
  if (reading === 'table') return tableOf(content, name);
  const texts = reading === 'lines' ? linesOf(content) : [content.trim()];
  return { rows: texts.map(text => [text]), hasHeader: false };
}
