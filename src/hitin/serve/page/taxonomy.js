// The labels as a graph. They are numbered from the top, level by level; one may stand under several parents.

import { clean, fold, short } from './base.js';

const BETWEEN = ' > ';

export class Taxonomy {
  constructor({ id, labels, edges, level_sizes: levelSizes }) {
    this.id = id; // of these labels in this order
    this.names = labels;
    this.size = labels.length;
    this.levelSizes = levelSizes;
    this.parents = Array.from(labels, () => []);
    this.children = Array.from(labels, () => []);
    for (const [parent, child] of edges) {
      this.parents[child].push(parent);
      this.children[parent].push(child);
    }
    this.roots = Array.from(labels.keys()).filter(label => !this.parents[label].length);
    this.numbers = new Map(labels.map((name, label) => [name, label]));
  }

  childrenOf(label) { return label < 0 ? this.roots : this.children[label]; }

  shown(label) { return clean(this.names[label]) || '(no name)'; }

  shownUnder(parent, label) { // a label that is called by its whole path is called by its end
    const above = parent >= 0 ? this.names[parent] + BETWEEN : '';
    const name = this.names[label];
    return above && name.startsWith(above) ? clean(name.slice(above.length)) || '(no name)' : this.shown(label);
  }

  pathTo(label, isWanted = () => true) { // through the first parent that is wanted, or else the first
    const path = [label];
    for (let above; (above = this.parents[path[0]]).length;) path.unshift(above.find(isWanted) ?? above[0]);
    return path;
  }

  steps(path) { return path.map((label, index) => short(this.shownUnder(index ? path[index - 1] : -1, label))); }

  withAbove(labels) { // Uint8Array: 1 for these and all above them
    const marked = new Uint8Array(this.size), waiting = [...labels];
    while (waiting.length) {
      const label = waiting.pop();
      if (marked[label]) continue;
      marked[label] = 1;
      waiting.push(...this.parents[label]);
    }
    return marked;
  }

  ends(labels) { // those that are above no other of them
    const above = new Set(), waiting = labels.flatMap(label => this.parents[label]);
    while (waiting.length) {
      const label = waiting.pop();
      if (above.has(label)) continue;
      above.add(label);
      waiting.push(...this.parents[label]);
    }
    return labels.filter(label => !above.has(label));
  }

  find(words) { // the labels that have all of the words
    this.folded ??= this.names.map(fold);
    const found = [];
    for (let label = 0; label < this.size; label++) {
      if (words.every(word => this.folded[label].includes(word))) found.push(label);
    }
    return found;
  }
}
