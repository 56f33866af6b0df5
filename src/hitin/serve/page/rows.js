// Which rows of the tree are open: what is given and what nearly was, what a person has opened, or what was searched for.

import { likeliestPath, numbersOf } from './answer.js';

const NEAR = 3; // labels of a family that are shown though they are not given
const MOST_ROWS = 200000; // where labels with several parents would stand in very many places

export class Rows {
  constructor(taxonomy) {
    this.taxonomy = taxonomy;
    this.answer = this.given = this.found = null;
    this.moved = new Map(); // by key: whether a person has opened or closed it
    this.whole = new Set(); // keys of families that a person wants whole
    this.lead = new Uint8Array(taxonomy.size);
  }

  light(answer, given) {
    const isNew = answer !== this.answer;
    this.answer = answer;
    this.given = given;
    const labels = given ? numbersOf(given) : [];
    this.lead = this.taxonomy.withAbove(labels); // the labels that lead to what is given
    if (answer && !labels.length) for (const label of likeliestPath(this.taxonomy, answer.probabilities)) this.lead[label] = 1;
    if (!isNew) return;
    this.orders = new Map();
    for (const [key, isOpen] of this.moved) if (!isOpen) this.moved.delete(key);
  }

  search(words) { // answers how many labels have all words; only these are shown, and what leads to them
    const labels = words.length ? this.taxonomy.find(words) : null;
    this.found = labels && this.taxonomy.withAbove(labels);
    this.matches = new Set(labels);
    this.moved.clear();
    return labels?.length ?? 0;
  }

  fold() {
    this.moved.clear();
    this.whole.clear();
  }

  reveal(path) { // so that a label can be seen, whatever is given
    let key = '';
    path.forEach((label, index) => {
      if (!this.family(index ? path[index - 1] : -1, key).kids.includes(label)) this.whole.add(key);
      key += `/${label}`;
      if (index < path.length - 1) this.moved.set(key, true);
    });
    return key;
  }

  ordered(label) { // the most probable first
    const kids = this.taxonomy.childrenOf(label);
    if (!this.answer) return kids;
    if (!this.orders.has(label)) {
      const { probabilities } = this.answer;
      this.orders.set(label, kids.toSorted((one, other) => probabilities[other] - probabilities[one]));
    }
    return this.orders.get(label);
  }

  family(label, key) {
    const all = this.ordered(label);
    if (this.found) return { all, kids: all.filter(kid => this.found[kid]), rest: 0 };
    if (!this.answer) return { all, kids: all, rest: 0 };
    let near = 0;
    const some = all.filter(kid => this.given[kid] || this.lead[kid] || near++ < NEAR);
    if (all.length - some.length < 2) return { all, kids: all, rest: 0 };
    return this.whole.has(key) ? { all, kids: all, rest: -1 } : { all, kids: some, rest: all.length - some.length };
  }

  isOpen(label, key) {
    const { children, roots } = this.taxonomy;
    if (!children[label].length) return false;
    if (this.moved.has(key)) return this.moved.get(key);
    const isAbove = marked => children[label].some(child => marked[child]);
    if (this.found) return isAbove(this.found);
    // what is given is open even where nothing below is: one sees what nearly was
    return this.answer ? Boolean(this.given[label]) || isAbove(this.lead) : roots.length === 1 && label === roots[0];
  }

  list() { // all rows that are open, from the top
    const rows = [], waiting = [];
    const enter = (label, key, parent) => { // the family of a label, its first on top
      const { all, kids, rest } = this.family(label, key), places = new Map(all.map((kid, place) => [kid, place + 1]));
      const lastGiven = this.given ? kids.findLastIndex(kid => this.given[kid]) : -1;
      const level = parent ? parent.level + 1 : 1;
      if (rest) waiting.push({ rest, of: all.length, level, parent, label: -1, family: key, key: `${key}/…`, isLast: true });
      for (let index = kids.length - 1; index >= 0; index--) {
        const kid = kids[index];
        waiting.push({
          label: kid, level, parent, family: key, key: `${key}/${kid}`, place: places.get(kid), of: all.length,
          isLast: index === kids.length - 1 && !rest, leadsTo: index <= lastGiven, leadsOn: index < lastGiven,
        });
      }
    };
    enter(-1, '', null);
    while (waiting.length && rows.length < MOST_ROWS) {
      const item = waiting.pop();
      rows.push(item);
      if (item.rest) continue;
      item.hasKids = this.taxonomy.children[item.label].length > 0;
      item.isOpen = this.isOpen(item.label, item.key);
      if (item.isOpen) enter(item.label, item.key, item);
    }
    return rows;
  }
}
