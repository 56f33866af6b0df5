// The words that decided: those of the text that speak for a label and against it, by weight.

import { at, button, counted, make, named, number, percent, signed } from './base.js';
import { ask, isAborted, wellFormed } from './server.js';

const STRENGTHS = 4; // that can be told apart
const MOST_LISTED = 12;
const MOST_LABELS = 16; // that the server explains at once
const EXACT = .01; // the share up to which weights add up, as a rule

export class Why {
  constructor(shows) { // `shows` hears of the label whose words are shown
    this.shows = shows;
    this.clear();
  }

  clear() { // another text, another model: nothing is explained
    this.asked?.abort();
    this.found = new Map(); // explanations by label
    this.pressed = null;
    at('#why').hidden = true;
  }

  // Ask for explanations of labels by name, and show one of them.
  async explain(question, names, pressed, shownAs) {
    this.shownAs = shownAs;
    this.asked?.abort();
    const asked = this.asked = new AbortController(), wanted = this.missing(names).slice(0, MOST_LABELS);
    at('#why').hidden = false;
    at('#why-more').textContent = '';
    this.pressed = pressed;
    if (wanted.length) {
      this.wait(`Explaining ${wanted.length === 1 ? shownAs(wanted[0]) : `${wanted.length} labels`} …`);
      try {
        const body = { ...question, text: wellFormed(question.text), labels: wanted, units: 'utf-16' };
        const { explanations } = await ask('v1/explain', body, { signal: asked.signal });
        for (const each of explanations) this.found.set(each.label, each);
      } catch (error) {
        if (!isAborted(error)) this.refuse(error);
        return;
      }
    }
    this.text = question.text;
    const left = this.missing(names).length;
    if (left) at('#why-more').textContent = `${number(names.length - left)} of ${counted(names.length, 'label')}: “Explain” goes on.`;
    this.show(this.pressed);
  }

  missing(names) { return names.filter(name => !this.found.has(name)); }

  wait(words) {
    at('#why').setAttribute('aria-busy', 'true');
    at('#why-told').textContent = words;
    at('#why-body').hidden = true;
    this.drawChoices();
  }

  refuse(error) {
    at('#why').removeAttribute('aria-busy');
    at('#why-told').textContent = error.message;
  }

  drawChoices() {
    at('#why-labels').replaceChildren(...Array.from(this.found.keys(), name => {
      const choice = button('choice-button', '', () => this.show(name));
      choice.append(named('bdi', '', this.shownAs(name)));
      choice.setAttribute('aria-pressed', name === this.pressed);
      return choice;
    }));
  }

  show(name) {
    const explanation = this.found.get(name);
    this.pressed = name;
    this.shows(name);
    at('#why').removeAttribute('aria-busy');
    this.drawChoices();
    const { words, probability, score, baseline, error } = explanation;
    at('#why-told').replaceChildren(named('b', '', this.shownAs(name)), `, ${percent(probability)}: `
      + `its score before calibration (log-odds) is ${signed(score)} with these words, ${signed(baseline)} without.`
      + (error > EXACT ? ` The weights add up to the difference but for ${percent(error)}.` : ''));
    at('#why-body').hidden = false;
    const most = Math.max(...words.map(word => Math.abs(word.weight)), 1e-9);
    at('#words').replaceChildren(...marks(this.text, words, most));
    this.list(explanation, most);
  }

  list({ words, score, baseline }, most) { // the weightiest, and how all add up
    const sorted = words.toSorted((one, other) => Math.abs(other.weight) - Math.abs(one.weight));
    const others = sorted.slice(MOST_LISTED), rest = others.reduce((total, word) => total + word.weight, 0);
    at('#why-body tbody').replaceChildren(...sorted.slice(0, MOST_LISTED).map(word => line(word, most)));
    at('#why-body tfoot').replaceChildren(...(others.length ? [sum(counted(others.length, 'other'), rest)] : []),
      sum('without any word', baseline), sum('score', score));
  }
}

const side = weight => (weight > 0 ? 'for' : weight < 0 ? 'against' : '');

function marks(text, words, most) { // the text in parts, each word coloured by its weight
  const parts = [];
  let from = 0;
  for (const { start, end, weight } of words) {
    if (start < from || end > text.length) continue; // not of this text
    const strength = Math.ceil(STRENGTHS * Math.abs(weight) / most - .25);
    const word = make('span', strength > 0 ? `word ${side(weight)} s${strength}` : '', text.slice(start, end));
    word.title = `${signed(weight, 3)} ${side(weight)}`.trim();
    parts.push(text.slice(from, start), word);
    from = end;
  }
  return [...parts, text.slice(from)];
}

function line({ text, weight }, most) {
  const head = named('th', '', text), bar = make('span', 'weight', make('i', side(weight)));
  head.scope = 'row';
  bar.firstChild.style.width = `${100 * Math.abs(weight) / most}%`;
  return make('tr', '', head, make('td', 'num', signed(weight, 3)), make('td', '', bar));
}

function sum(words, weight) {
  const head = make('th', '', words);
  head.scope = 'row';
  return make('tr', '', head, make('td', 'num', signed(weight, 3)), make('td'));
}
