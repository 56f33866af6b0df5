// Words that were searched for, marked in a text, without regard to case and accents.

import { fold, make } from './base.js';

export function marked(text, words) { // parts of the text, marked or not
  const starts = [], ends = [];
  let plain = '', from = 0;
  for (const letter of text) { // where each folded letter stands in the text itself
    const part = fold(letter);
    plain += part;
    for (let unit = 0; unit < part.length; unit++) { starts.push(from); ends.push(from + letter.length); }
    from += letter.length;
  }
  const isMarked = new Uint8Array(text.length);
  for (const word of words) {
    for (let next = -1; (next = plain.indexOf(word, next + 1)) >= 0;) {
      isMarked.fill(1, starts[next], ends[next + word.length - 1]);
    }
  }
  const parts = [];
  for (let first = 0, to; first < text.length; first = to) {
    for (to = first + 1; to < text.length && isMarked[to] === isMarked[first]; to++);
    const part = text.slice(first, to);
    parts.push(isMarked[first] ? make('mark', '', part) : part);
  }
  return parts;
}
