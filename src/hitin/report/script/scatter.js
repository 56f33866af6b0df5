// ---- F1 of each label against its frequency: a point a label.

const BINS = [1, 3, 10, 30, 100, 300, 1e3, 3e3, 1e4, 3e4, 1e5, 3e5, 1e6, 1e7, 1e9];
const NEAR = 30; // pixels within which a label is pointed at

function frequencyBins(labels) { // their labels and mean F1, of labels that have documents here
  return BINS.slice(0, -1).map((from, index) => {
    const inside = labels.filter(label => frequency[label] >= from && frequency[label] < BINS[index + 1]);
    const scored = inside.map(f1Of).filter(f1 => f1 !== null);
    return { from, to: BINS[index + 1], labels: inside.length, scored: scored.length,
      mean: scored.length ? scored.reduce((sum, f1) => sum + f1, 0) / scored.length : null,
      never: scored.filter(f1 => f1 === 0).length };
  }).filter(bin => bin.labels);
}

function drawScatter() {
  const box = at('#scatter'), select = at('#scatter-level'), tip = make('div', 'tip');
  const what = data.training ? 'training documents' : 'documents here';
  const all = names.map((_, label) => label);
  const order = all.slice().sort((one, other) => frequency[one] - frequency[other]
    || (f1Of(one) ?? -1) - (f1Of(other) ?? -1));
  const empty = all.filter(label => !actual[label]).length;
  at('#frequency .about').textContent = `Each point is a label: to the right those with many ${what}, at the top those`
    + ' that the model gets right. Point at one to see its name, click to find it in the taxonomy.';
  options(select, [['', 'all levels'], ...data.levelSizes.map((_, level) => [level + 1, `level ${level + 1} only`])]);
  select.closest('.tools').hidden = depth < 2;
  const live = make('div', 'away');
  live.setAttribute('role', 'status');
  const key = make('div', 'chart-key', make('span', '', make('i', 'dot'), 'a label'));
  if (size > empty) key.append(make('span', '', make('i', 'stroke'), 'mean F1 at that frequency'));
  if (empty) key.append(make('span', '', make('i', 'dot grey'), `no documents here (${number(empty)})`));
  box.before(key);
  box.append(tip, live);
  tip.setAttribute('aria-hidden', 'true');

  let spots = [], ring = null, picked = -1, picture = null;
  const chosenLevel = () => Number(select.value);
  const visible = label => !chosenLevel() || levelOf[label] === chosenLevel();

  function draw(width) {
    const height = Math.max(280, Math.min(430, width * .55));
    const left = 44, end = width - 14, top = 12, bottom = height - (empty ? 74 : 50), strip = height - 52;
    const most = frequency.reduce((high, count) => Math.max(high, count), 1), none = frequency.some(count => !count);
    const from = left + (none ? 44 : 16);
    const across = count => (count ? from + (end - from) * Math.log(count) / Math.log(Math.max(most, 10)) : left + 16);
    const down = f1 => bottom - (bottom - top) * f1;
    const marks = svg('g'), dots = svg('g', { class: 'points' });
    for (let share = 0; share <= 1; share += .25) {
      marks.append(svg('line', { class: 'grid', x1: left, x2: end, y1: down(share), y2: down(share) }));
      marks.append(svg('text', { x: left - 8, y: down(share) + 4, 'text-anchor': 'end' }, String(100 * share)));
    }
    const last = strip + (empty ? 14 : -2);
    const tick = (count, text) => {
      marks.append(svg('line', { class: 'grid', x1: across(count), x2: across(count), y1: top, y2: last }));
      marks.append(svg('text', { x: across(count), y: last + 17, 'text-anchor': 'middle' }, text));
    };
    if (none) tick(0, '0');
    for (let count = 1; count <= Math.max(most, 10); count *= 10) tick(count, number(count));
    marks.append(svg('text', { class: 'axis', x: (left + end) / 2, y: height - 2, 'text-anchor': 'middle' },
      `${what[0].toUpperCase()}${what.slice(1)} with the label (logarithmic)`));
    marks.append(svg('text', { class: 'axis', x: -(top + bottom) / 2, y: 11, 'text-anchor': 'middle',
      transform: 'rotate(-90)' }, 'F1'));
    if (empty) marks.append(svg('text', { x: left - 8, y: strip + 4, 'text-anchor': 'end' }, 'none'));

    const radius = size > 1500 ? 3 : size > 300 ? 3.8 : 5;
    spots = all.map(label => {
      const f1 = f1Of(label), wide = frequency[label] ? 9 : 22; // nudged, so that equal ones do not hide each other
      const x = across(frequency[label]) + (label * .618034 % 1 - .5) * wide;
      return { label, x, y: f1 === null ? strip + (label * .754878 % 1 - .5) * 18 : down(f1) };
    });
    for (const { label, x, y } of spots) {
      const dot = svg('circle', { cx: x.toFixed(1), cy: y.toFixed(1), r: radius });
      if (!actual[label]) dot.classList.add('empty');
      if (!visible(label)) dot.classList.add('off');
      dots.append(dot);
    }
    const means = frequencyBins(all.filter(visible)).filter(bin => bin.mean !== null).map(bin => {
      const middle = Math.min((across(bin.from) + across(Math.min(bin.to, most))) / 2, end);
      return `${middle.toFixed(1)} ${down(bin.mean).toFixed(1)}`;
    });
    ring = svg('circle', { class: 'ring', r: radius + 3.5, visibility: 'hidden' });
    picture?.remove();
    picture = svg('svg', { width, height, viewBox: `0 0 ${width} ${height}`, tabindex: 0, role: 'application',
      'aria-roledescription': 'chart', 'aria-label': `F1 of ${counted(size, 'label')} against their frequency` },
    svg('desc', {}, 'Arrow keys go from label to label by frequency, Enter opens one in the taxonomy. A table of means'
      + ' follows the chart.'),
    marks, dots, ...(means.length ? [svg('path', { class: 'mean', d: 'M' + means.join('L') })] : []), ring);
    box.prepend(picture);
    picture.addEventListener('pointermove', event => pick(nearest(event)));
    picture.addEventListener('pointerleave', () => { if (document.activeElement !== picture) pick(-1); });
    picture.addEventListener('blur', () => pick(-1));
    picture.addEventListener('click', event => { pick(nearest(event)); if (picked >= 0) openLabel(picked); });
    picture.addEventListener('keydown', walk);
    picked = -1;
    tip.replaceChildren();
  }

  function nearest(event) {
    const from = picture.getBoundingClientRect(), x = event.clientX - from.left, y = event.clientY - from.top;
    let best = -1, least = NEAR * NEAR;
    for (const spot of spots) {
      const away = (spot.x - x) ** 2 + (spot.y - y) ** 2;
      if (away < least && visible(spot.label)) { best = spot.label; least = away; }
    }
    return best;
  }

  function pick(label, aloud = false) {
    if (label === picked) return;
    picked = label;
    ring.setAttribute('visibility', label < 0 ? 'hidden' : 'visible');
    tip.replaceChildren();
    if (label < 0) return;
    const { x, y } = spots[label], f1 = f1Of(label);
    ring.setAttribute('cx', x);
    ring.setAttribute('cy', y);
    const trained = data.training ? `${counted(data.training[label], 'document')} in training, ` : '';
    const words = `${f1 === null ? 'no F1' : `F1 ${points(f1)}`}; ${trained}${number(actual[label])} here`;
    const path = pathTo(label).slice(0, -1);
    tip.append(named('b', '', shown(label)), ...(path.length ? [named('div', '', pathName(path))] : []), words);
    const room = box.clientWidth, over = x > room / 2;
    tip.style.left = over ? 'auto' : `${x + 14}px`;
    tip.style.right = over ? `${room - x + 14}px` : 'auto';
    tip.style.top = `${Math.max(0, y - 20)}px`;
    if (aloud) live.textContent = `${shown(label)}: ${words}`;
  }

  function walk(event) {
    const by = { ArrowRight: 1, ArrowDown: -1, ArrowUp: 1, ArrowLeft: -1, PageUp: 25, PageDown: -25 }[event.key];
    const line = order.filter(visible);
    if (event.key === 'Enter' && picked >= 0) openLabel(picked);
    else if (event.key === 'Home') pick(line[0], true);
    else if (event.key === 'End') pick(line.at(-1), true);
    else if (event.key === 'Escape') pick(-1);
    else if (by) {
      const from = line.indexOf(picked);
      pick(line[from < 0 ? 0 : Math.min(Math.max(from + by, 0), line.length - 1)], true);
    } else return;
    event.preventDefault();
  }

  function tabulate() {
    const rows = frequencyBins(all.filter(visible)).map(({ from, to, labels, scored, mean, never }) => [
      to - 1 === from ? number(from) : `${number(from)} to ${number(to - 1)}`, labels, scored, points(mean), never]);
    const zero = all.filter(label => visible(label) && !frequency[label]);
    const scored = zero.map(f1Of).filter(f1 => f1 !== null);
    if (zero.length) {
      rows.unshift(['0', zero.length, scored.length,
        points(scored.length ? scored.reduce((sum, f1) => sum + f1, 0) / scored.length : null),
        scored.filter(f1 => f1 === 0).length]);
    }
    const heads = [`${what[0].toUpperCase()}${what.slice(1)}`, 'Labels', 'With documents here', 'Mean F1', 'F1 zero'];
    at('#frequency details .scroll').replaceChildren(table(heads, rows));
  }

  const redraw = drawn(box, draw);
  tabulate();
  select.addEventListener('change', () => { redraw(); tabulate(); });
}
