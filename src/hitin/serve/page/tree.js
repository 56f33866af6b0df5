// The taxonomy on the screen. Of the open rows only those in view are made, so that any number of labels stays quick.

import { fold, make, named, number, percent } from './base.js';
import { marked } from './marking.js';
import { Rows } from './rows.js';

const BESIDE = 8; // rows made above and below those in view
const MOST_GUIDES = 12; // levels that are drawn further in

export class Tree {
  constructor(box, chosen) { // `chosen` hears of a label that a person has chosen
    this.box = box;
    this.tell = chosen;
    this.space = make('div', 'tree-space');
    this.space.setAttribute('role', 'presentation');
    box.replaceChildren(this.space);
    this.made = new Map(); // rows on the page, by key
    this.chosen = -1;
    this.words = [];
    box.addEventListener('scroll', () => this.draw(), { passive: true });
    new ResizeObserver(() => this.draw()).observe(box);
    const onRow = (kind, deed) => box.addEventListener(kind, event => {
      const row = event.target.closest('.row');
      if (row) deed(row.item, event);
    });
    onRow('click', (item, event) => this.click(item, event));
    onRow('keydown', (item, event) => this.key(item, event));
    onRow('focusin', item => { this.focused = item.key; this.rove(); });
  }

  show(taxonomy) {
    this.taxonomy = taxonomy;
    this.rows = new Rows(taxonomy);
    for (const row of this.made.values()) row.remove();
    this.made.clear();
    this.chosen = -1;
    this.focused = null;
    this.words = [];
    this.box.scrollTop = 0;
    this.list();
  }

  light(answer, given) {
    const isNew = answer !== this.rows.answer;
    this.rows.light(answer, given);
    if (isNew && !this.box.contains(document.activeElement) && !this.rows.found) { // another text is read from the top
      this.box.scrollTop = 0;
      this.focused = null;
    }
    this.list();
  }

  search(text) {
    this.words = fold(text).split(/\s+/).filter(Boolean);
    const found = this.rows.search(this.words);
    this.box.scrollTop = 0;
    this.list();
    return found;
  }

  fold() {
    this.rows.fold();
    this.list();
  }

  reveal(label) { // and scroll to it
    const path = this.taxonomy.pathTo(label, above => this.rows.given?.[above]);
    if (this.rows.found) this.rows.found = null;
    this.focused = this.rows.reveal(path);
    this.list();
    this.scrollTo(this.items.findIndex(item => item.key === this.focused));
  }

  choose(label) {
    this.chosen = label;
    this.draw();
  }

  list() {
    this.items = this.rows.list();
    this.places = new Map(this.items.map((item, index) => [item.key, index]));
    while (this.focused && !this.places.has(this.focused)) this.focused = this.focused.slice(0, this.focused.lastIndexOf('/'));
    this.focused ||= this.items[0]?.key;
    this.draw();
  }

  get height() { return parseFloat(getComputedStyle(this.box).getPropertyValue('--row')) || 32; }

  draw() {
    if (!this.items) return;
    const { height, box } = this, hadFocus = this.space.contains(document.activeElement);
    this.space.style.height = `${height * this.items.length}px`;
    const from = Math.max(Math.floor(box.scrollTop / height) - BESIDE, 0);
    const to = Math.min(Math.ceil((box.scrollTop + box.clientHeight) / height) + BESIDE, this.items.length);
    const wanted = new Set([this.places.get(this.focused), ...Array.from({ length: Math.max(to - from, 0) }, (_, index) => from + index)]
      .filter(index => index !== undefined).sort((one, other) => one - other));
    const keys = new Set(Array.from(wanted, index => this.items[index].key));
    for (const [key, row] of this.made) if (!keys.has(key)) { row.remove(); this.made.delete(key); }
    let next = this.space.firstChild;
    for (const index of wanted) {
      const row = this.row(this.items[index], index * height);
      if (row === next) next = next.nextSibling; else this.space.insertBefore(row, next);
    }
    this.rove();
    if (hadFocus && !this.space.contains(document.activeElement)) this.made.get(this.focused)?.focus({ preventScroll: true });
  }

  row(item, top) {
    let row = this.made.get(item.key);
    if (!row) {
      row = make('div', 'row', make('span', 'guides'), make('span', 'twisty'), make('span', 'node'));
      row.append(named('span', 'name', ''), make('span', 'bar', make('i')), make('span', 'share'));
      row.setAttribute('role', 'treeitem');
      row.tabIndex = -1;
      this.made.set(item.key, row);
    }
    row.item = item;
    row.style.top = `${top}px`;
    this.paint(row, item);
    return row;
  }

  paint(row, item) {
    const [guides, , , name, bar, share] = row.children, { label } = item;
    const { answer, given } = this.rows, isGiven = Boolean(given?.[label]);
    guides.replaceChildren(...this.guides(item));
    row.className = `row${isGiven ? ' lit' : ''}${label >= 0 && label === this.chosen ? ' chosen' : ''}${item.rest ? ' more' : ''}`
      + (answer && !item.rest ? '' : ' bare');
    row.setAttribute('aria-level', item.level);
    bar.hidden = share.hidden = !answer || Boolean(item.rest);
    if (item.rest) {
      name.textContent = item.rest < 0 ? 'Show fewer' : `Show all ${number(item.of)}`;
      row.setAttribute('aria-label', `${name.textContent} labels${item.parent ? ` of ${this.taxonomy.shown(item.parent.label)}` : ''}`);
      return;
    }
    const text = this.taxonomy.shownUnder(item.parent?.label ?? -1, label);
    const isMatch = Boolean(this.rows.found && this.rows.matches.has(label));
    name.replaceChildren(...(isMatch ? marked(text, this.words) : [text]));
    name.title = this.taxonomy.shown(label);
    const told = answer ? percent(answer.probabilities[label]) : '';
    share.textContent = told;
    bar.firstChild.style.width = answer ? `${100 * answer.probabilities[label]}%` : '0';
    row.setAttribute('aria-label', [text, told, isGiven && 'given'].filter(Boolean).join(', '));
    row.setAttribute('aria-posinset', item.place);
    row.setAttribute('aria-setsize', item.of);
    row.setAttribute('aria-selected', label === this.chosen);
    if (item.hasKids) row.setAttribute('aria-expanded', item.isOpen); else row.removeAttribute('aria-expanded');
  }

  guides(item) { // the lines from the top to a row, lit where they lead to a label that is given
    const lines = [], isGiven = this.rows.given?.[item.label];
    for (let each = item; each.parent; each = each.parent) {
      const own = each === item, kind = own ? (each.isLast ? 'end' : 'branch') : each.isLast ? 'none' : 'pass';
      const lit = own ? `${isGiven ? ' lit-here' : ''}${each.leadsTo ? ' lit-to' : ''}${each.leadsOn ? ' lit-on' : ''}`
        : each.leadsOn ? ' lit-to lit-on' : '';
      lines.unshift(make('i', kind + lit));
    }
    return lines.slice(-MOST_GUIDES);
  }

  rove() { for (const [key, row] of this.made) row.tabIndex = key === this.focused ? 0 : -1; }

  scrollTo(index) {
    const { box, height } = this, top = index * height;
    if (top < box.scrollTop) box.scrollTop = top;
    else if (top + height > box.scrollTop + box.clientHeight) box.scrollTop = top + height - box.clientHeight;
    this.draw();
  }

  focus(index) {
    const item = this.items[Math.min(Math.max(index, 0), this.items.length - 1)];
    this.focused = item.key;
    this.scrollTo(this.places.get(item.key));
    this.made.get(item.key).focus({ preventScroll: true });
  }

  toggle(item, isOpen = !item.isOpen) {
    if (!item.hasKids || isOpen === item.isOpen) return;
    this.rows.moved.set(item.key, isOpen);
    this.list();
  }

  act(item) {
    if (!item.rest) { this.tell(item.label); return; }
    if (item.rest < 0) this.rows.whole.delete(item.family); else this.rows.whole.add(item.family);
    this.list();
  }

  click(item, event) {
    this.focus(this.places.get(item.key));
    if (event.target.closest('.twisty') && !item.rest) this.toggle(item); else this.act(item);
  }

  key(item, event) {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    const here = this.places.get(item.key), page = Math.max(Math.floor(this.box.clientHeight / this.height) - 1, 1);
    const deeds = {
      ArrowDown: () => this.focus(here + 1),
      ArrowUp: () => this.focus(here - 1),
      PageDown: () => this.focus(here + page),
      PageUp: () => this.focus(here - page),
      ArrowRight: () => (item.isOpen ? this.focus(here + 1) : this.toggle(item, true)),
      ArrowLeft: () => (item.isOpen ? this.toggle(item, false) : item.parent && this.focus(this.places.get(item.parent.key))),
      Home: () => this.focus(0),
      End: () => this.focus(this.items.length - 1),
      Enter: () => this.act(item),
      ' ': () => this.act(item),
      '/': () => document.querySelector('#query').focus(),
    };
    if (deeds[event.key]) { event.preventDefault(); deeds[event.key](); }
  }
}
