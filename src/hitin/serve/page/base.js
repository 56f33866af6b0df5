// What every part uses: elements, numbers in words, texts of others.

export const at = (selector, inside = document) => inside.querySelector(selector);

export const clean = text => text.replace(/[\p{Cc}\p{Zl}\p{Zp}]/gu, ' ').replace(/\p{Cs}/gu, '\ufffd').trim();
const LONGEST = 160; // letters of a name, but where it is shown in one line
export const short = name => (name.length > LONGEST ? `${Array.from(name.slice(0, LONGEST)).slice(0, -1).join('')}…` : name);
export const number = count => count.toLocaleString('en');
const PLURALS = { match: 'matches' };
export const counted = (count, noun) => `${number(count)} ${count === 1 ? noun : PLURALS[noun] || `${noun}s`}`;
export const percent = share => (share > 0 && share < .001 ? '<0.1%' : share < 1 && share > .999 ? '>99.9%'
  : `${Number((100 * share).toFixed(share < .1 || share > .9 ? 1 : 0))}%`);
export const signed = (value, digits = 2) => {
  const text = Math.abs(value).toFixed(digits);
  return Number(text) === 0 ? text : (value < 0 ? '−' : '+') + text;
};

export function make(kind, className = '', ...inside) {
  const element = document.createElement(kind);
  if (className) element.className = className;
  element.append(...inside.map(part => (typeof part === 'number' ? String(part) : part)));
  return element;
}

export function named(kind, className, text) { // a text of others: it turns nothing else around, and is not translated
  const element = make(kind, className, text);
  element.dir = 'auto';
  element.translate = false;
  return element;
}

export function button(className, text, deed) {
  const made = make('button', className, text);
  made.type = 'button';
  made.addEventListener('click', deed);
  return made;
}

// A button that cannot be used now keeps the focus; one that is `disabled` would lose it.
export const rest = (element, isResting) => element.setAttribute('aria-disabled', isResting);
document.addEventListener('click', event => {
  if (event.target.closest('[aria-disabled=true]')) event.stopImmediatePropagation();
}, true);

export function options(select, entries, chosen) { // [value, text] each
  select.replaceChildren(...entries.map(([value, text]) => {
    const option = make('option', '', text);
    option.value = value;
    option.selected = value === chosen;
    return option;
  }));
}

const LETTERS = { 'ø': 'o', 'ł': 'l', 'đ': 'd', 'ð': 'd', 'ħ': 'h', 'æ': 'ae', 'œ': 'oe', 'þ': 'th' };
export function fold(text) { // without case and accents
  if (/^[ -~]*$/.test(text)) return text.toLowerCase();
  const plain = text.normalize('NFKD').replace(/[\u0300-\u036f]/g, '').toUpperCase().toLowerCase(); // ß is ss
  return plain.replace(/[øłđðħæœþ]/g, letter => LETTERS[letter]);
}

export const pause = (milliseconds, signal) => new Promise((done, fail) => {
  const timer = setTimeout(done, milliseconds);
  signal?.addEventListener('abort', () => { clearTimeout(timer); fail(signal.reason); }, { once: true });
});

export function later(milliseconds, deed) { // the last call counts; `now` does not wait
  let timer = 0;
  const now = (...given) => { clearTimeout(timer); deed(...given); };
  const soon = (...given) => { clearTimeout(timer); timer = setTimeout(deed, milliseconds, ...given); };
  return { now, soon, stop: () => clearTimeout(timer) };
}
