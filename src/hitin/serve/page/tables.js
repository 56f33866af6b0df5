// Files of many texts: CSV and TSV as spreadsheets write them, JSON lines, and plain lines; and CSV written again.

const SEPARATORS = [',', ';', '\t'];
const TEXT_NAMES = ['text', 'token', 'doc_token']; // as hitin itself looks for them
const LOOKED_AT = 50; // rows, to guess the separator and the column of the texts
const LOOKED_INTO = 50000; // characters, for the same

export async function contentOf(file) { // its text: UTF-8, UTF-16 with a mark, or else the usual one of Windows
  const bytes = new Uint8Array(await file.arrayBuffer());
  const mark = bytes[0] === 0xff && bytes[1] === 0xfe ? 'utf-16le' : bytes[0] === 0xfe && bytes[1] === 0xff ? 'utf-16be' : null;
  try {
    return { text: new TextDecoder(mark || 'utf-8', { fatal: !mark }).decode(bytes), encoding: mark || 'utf-8' };
  } catch {
    return { text: new TextDecoder('windows-1252').decode(bytes), encoding: 'windows-1252' };
  }
}

export const linesOf = text => text.split(/\r\n|\n|\r/).filter(line => line.trim());

export function parse(text, separator) { // rows of cells; quotes hold separators, lines and doubled quotes
  const rows = [];
  let row = [], at = 0;
  const end = () => { if (row.length > 1 || row[0]?.trim()) rows.push(row); row = []; };
  while (at < text.length) {
    let cell = '';
    if (text[at] === '"') {
      for (let from = at + 1, to; ; from = to + 2) { // up to a quote that is not doubled
        to = text.indexOf('"', from);
        if (to < 0) to = text.length;
        cell += text.slice(from, to);
        at = to + 1;
        if (text[at] !== '"') break;
        cell += '"';
      }
    }
    const from = at;
    while (at < text.length && text[at] !== separator && text[at] !== '\n' && text[at] !== '\r') at++;
    row.push(cell + text.slice(from, at));
    if (at >= text.length) break;
    if (text[at] === separator) {
      at++;
      if (at >= text.length) row.push('');
      continue;
    }
    at += text[at] === '\r' && text[at + 1] === '\n' ? 2 : 1;
    end();
  }
  end();
  return rows;
}

const plainNames = cells => cells.map(cell => cell.trim().toLowerCase());
const hasTextName = cells => TEXT_NAMES.some(name => plainNames(cells).includes(name));

// The separator that makes the most columns of the first rows, as many of each.
export function separatorOf(text, name = '') {
  if (/\.(tsv|tab)$/i.test(name)) return '\t';
  const start = text.slice(0, LOOKED_INTO), isCut = text.length > LOOKED_INTO;
  const worth = separator => {
    const rows = parse(start, separator), some = rows.slice(0, isCut && rows.length > 1 ? -1 : undefined).slice(0, LOOKED_AT);
    const widths = some.map(row => row.length), isNamed = hasTextName(rows[0] ?? []);
    return Math.min(...widths) === Math.max(...widths) ? widths[0] + 1000 * isNamed : widths[0] / 100 + 100 * isNamed;
  };
  return SEPARATORS.reduce((best, other) => (worth(other) > worth(best) ? other : best));
}

function objectsOf(lines) { // JSON lines: objects, or none if a line is something else
  const objects = [];
  for (const line of lines) {
    let found;
    try { found = JSON.parse(line); } catch { return null; }
    if (typeof found !== 'object' || found === null || Array.isArray(found)) return null;
    objects.push(found);
  }
  return objects;
}

const cellOf = value => (value === undefined || value === null ? '' : typeof value === 'string' ? value
  : Array.isArray(value) ? value.map(cellOf).join(' ') : typeof value === 'object' ? JSON.stringify(value) : String(value));

// What a file holds: { rows, hasHeader } of cells, whatever it was.
export function tableOf(text, name) {
  if (/\.(jsonl|ndjson)$/i.test(name)) {
    const objects = objectsOf(linesOf(text));
    if (!objects) throw new Error('The file is not JSON lines: each line holds an object, {"text": "..."}.');
    const columns = [...new Set(objects.slice(0, 1000).flatMap(Object.keys))];
    return { rows: [columns, ...objects.map(each => columns.map(column => cellOf(each[column])))], hasHeader: true };
  }
  const rows = parse(text, separatorOf(text, name));
  return { rows, hasHeader: looksNamed(rows) };
}

function looksNamed(rows) { // whether the first row names columns: short, all different, and the texts below are longer
  const [first, ...others] = rows.slice(0, LOOKED_AT);
  if (first && hasTextName(first)) return true;
  if (!others.length) return false;
  const names = plainNames(first);
  const width = cells => Math.max(...cells.map(cell => cell.length));
  return new Set(names).size === names.length && names.every(Boolean) && width(first) < 40
    && others.filter(row => width(row) > width(first)).length > others.length / 2;
}

export function textColumn(rows, hasHeader) { // by its name, or else that of the longest cells
  const names = hasHeader ? plainNames(rows[0]) : [];
  const named = TEXT_NAMES.map(name => names.indexOf(name)).find(index => index >= 0);
  if (named !== undefined) return named;
  const some = rows.slice(hasHeader ? 1 : 0, LOOKED_AT), width = Math.max(1, ...some.map(row => row.length));
  const lengths = Array.from({ length: width }, (_, index) => some.reduce((sum, row) => sum + (row[index]?.length || 0), 0));
  return lengths.indexOf(Math.max(...lengths));
}

// A cell that a spreadsheet could take for a formula gets an apostrophe in front; a number does not.
export function safeCell(text) {
  const isNumber = /^[-+]?\d+([.,]\d+)?$/.test(text);
  const safe = /^[=+\-@\t\r]/.test(text) && !isNumber ? `'${text}` : text;
  return /[",;\t\r\n]/.test(safe) || safe !== safe.trim() ? `"${safe.replaceAll('"', '""')}"` : safe;
}

export const csvOf = rows => `\ufeff${rows.map(row => row.map(safeCell).join(',')).join('\r\n')}\r\n`;
