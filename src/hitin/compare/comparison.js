// ---- Tables are sorted by a click on a column; what a number hides is told where one points, tabs or taps.
// Tab reaches one such number of a table, arrow keys the others.

function sortBy(head) {
  const table = head.closest('table'), column = [...head.parentElement.children].indexOf(head);
  const falling = head.getAttribute('aria-sort') !== 'descending';
  for (const other of head.parentElement.children) {
    if (other.hasAttribute('aria-sort')) other.setAttribute('aria-sort', 'none');
  }
  head.setAttribute('aria-sort', falling ? 'descending' : 'ascending');
  const value = row => {
    const { order } = row.children[column].dataset;
    return order === undefined || order === '' ? null : Number(order);
  };
  for (const body of table.tBodies) {
    const rows = [...body.rows].sort((one, other) => {
      const [a, b] = [value(one), value(other)];
      if (a === null || b === null) return (a === null) - (b === null); // what is not known stands last
      return falling ? b - a : a - b;
    });
    body.append(...rows);
  }
}

for (const button of document.querySelectorAll('th[aria-sort] button')) {
  button.addEventListener('click', () => sortBy(button.closest('th')));
}

const tip = document.querySelector('.tip');
let shown = null;

function show(element) {
  shown = element;
  tip.hidden = !element;
  if (!element) return;
  tip.textContent = element.dataset.hint;
  const at = element.getBoundingClientRect(), size = tip.getBoundingClientRect();
  const left = Math.min(Math.max(at.left + at.width / 2 - size.width / 2, 8), window.innerWidth - size.width - 8);
  const above = at.top - size.height - 8;
  tip.style.left = `${left}px`;
  tip.style.top = `${above > 4 ? above : at.bottom + 8}px`;
}

const hinted = event => (event.target instanceof Element ? event.target.closest('[data-hint]') : null);
document.addEventListener('pointerover', event => { const found = hinted(event); if (found !== shown) show(found); });
document.addEventListener('focusin', event => show(hinted(event)));
document.addEventListener('focusout', () => show(null));
document.addEventListener('keydown', event => { if (event.key === 'Escape') show(null); });
const follow = () => show(shown === document.activeElement ? shown : null);
document.addEventListener('scroll', follow, { passive: true, capture: true });

const ARROWS = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };

function next(cell, [down, across]) { // the nearest on that side that tells something
  const rows = [...cell.closest('table').tBodies].flatMap(body => [...body.rows]);
  let row = rows.indexOf(cell.parentElement), column = cell.cellIndex, found;
  do found = rows[row += down]?.cells[column += across]; while (found && !found.dataset.hint);
  return found;
}

function walk(event) {
  const cell = event.target.closest('td[data-hint]'), by = ARROWS[event.key];
  if (!cell || !by || event.altKey || event.ctrlKey || event.metaKey) return;
  const to = next(cell, by);
  if (!to) return;
  event.preventDefault();
  event.currentTarget.querySelector('td[tabindex="0"]').tabIndex = -1;
  to.tabIndex = 0;
  to.focus();
}

for (const table of document.querySelectorAll('table.results')) {
  table.querySelector('td[data-hint]')?.setAttribute('tabindex', '0');
  table.addEventListener('keydown', walk);
}
