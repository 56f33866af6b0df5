// ---- Whether probabilities mean what they say.

const pointsOff = gap => (gap < .0005 ? 'less than 0.1 points' : counted(Number((100 * gap).toFixed(1)), 'point'));

function drawReliability() {
  const curves = data.reliability, select = at('#reliability-level'), box = at('#curve');
  if (!curves?.length) {
    at('#reliability .panel').replaceChildren(make('p', 'empty-note', 'Reliability was not measured.'));
    return;
  }
  const nameOf = ({ level }) => (level === null ? 'all levels' : `level ${level}`);
  options(select, curves.map((curve, index) => [index, nameOf(curve)]));
  select.closest('.tools').hidden = curves.length < 2;

  function draw(width) {
    const { bins } = curves[Number(select.value)];
    const left = 60, end = width - 12, side = Math.min(end - left, 400), top = 10, bottom = top + side * .86;
    const floor = bottom + 76, height = floor + 46;
    const across = share => left + (end - left) * share, down = share => bottom - (bottom - top) * share;
    const marks = svg('g'), columns = svg('g', { class: 'columns' }), dots = svg('g', { class: 'dots' });
    for (let share = 0; share <= 1; share += .25) {
      marks.append(svg('line', { class: 'grid', x1: left, x2: end, y1: down(share), y2: down(share) }));
      marks.append(svg('line', { class: 'grid', x1: across(share), x2: across(share), y1: top, y2: bottom }));
      marks.append(svg('text', { x: left - 8, y: down(share) + 4, 'text-anchor': 'end' }, `${100 * share}%`));
      marks.append(svg('text', { x: across(share), y: floor + 17, 'text-anchor': 'middle' }, `${100 * share}%`));
    }
    marks.append(svg('line', { class: 'grid', x1: left, x2: end, y1: floor, y2: floor }));
    marks.append(svg('path', { class: 'ideal', d: `M${across(0)} ${down(0)}L${across(1)} ${down(1)}` }));
    marks.append(svg('text', { class: 'axis', x: (left + end) / 2, y: height - 6, 'text-anchor': 'middle' },
      'Probability that the model gave'));
    marks.append(svg('text', { class: 'axis', x: -(top + bottom) / 2, y: 10, 'text-anchor': 'middle',
      transform: 'rotate(-90)' }, 'Share that is true'));
    marks.append(svg('text', { x: left + 4, y: bottom + 20 }, 'how often (logarithmic)'));
    const most = Math.max(...bins.map(bin => bin.count), 1);
    const tall = count => 50 * Math.log1p(count) / Math.log1p(most), wide = (end - left) / data.bins;
    for (const bin of bins) {
      const bar = svg('rect', { x: left + wide * bin.place + 1, width: wide - 2, y: floor - tall(bin.count),
        height: tall(bin.count) }, svg('title', {}, `${number(bin.count)} probabilities`));
      columns.append(bar);
      const words = `${percent(bin.probability)} said, ${percent(bin.share)} true, of ${number(bin.count)}`;
      dots.append(svg('line', { class: 'gap', x1: across(bin.probability), x2: across(bin.probability),
        y1: down(bin.probability), y2: down(bin.share) }));
      dots.append(svg('circle', { cx: across(bin.probability), cy: down(bin.share), r: 4.5 },
        svg('title', {}, words)));
    }
    const line = bins.map(bin => `${across(bin.probability).toFixed(1)} ${down(bin.share).toFixed(1)}`).join('L');
    box.replaceChildren(svg('svg', { width, height, viewBox: `0 0 ${width} ${height}`, role: 'img',
      'aria-label': 'Reliability curve: the share of true labels against their probability; a table follows' },
    marks, columns, ...(line ? [svg('path', { class: 'curve', d: 'M' + line })] : []), dots));
  }

  function tell() {
    const curve = curves[Number(select.value)];
    at('#reliability .saying').replaceChildren('On average a probability is off by ',
      make('b', '', pointsOff(curve.ece)),
      ` (${nameOf(curve)}; expected calibration error ${curve.ece.toFixed(4)}).`);
    const likely = curve.bins.filter(bin => bin.place); // most are hardly above zero, and blur the mean
    const total = likely.reduce((sum, bin) => sum + bin.count, 0);
    const gap = likely.reduce((sum, bin) => sum + bin.count * Math.abs(bin.probability - bin.share), 0) / total;
    if (total) at('#reliability .saying').append(` Of ${percent(1 / data.bins)} and more, it is off by ${pointsOff(gap)}.`);
    const rows = curve.bins.map(bin => [
      `${points(bin.place / data.bins)} to ${points((bin.place + 1) / data.bins)}%`, bin.count,
      `${points(bin.probability)}%`, `${points(bin.share)}%`]);
    at('#reliability details .scroll').replaceChildren(
      table(['Probability', 'How many', 'Mean probability', 'Share true'], rows));
  }

  const redraw = drawn(box, draw);
  at('#reliability details').open = box.parentElement.clientWidth > 800; // there is room beside the chart
  tell();
  select.addEventListener('change', () => { redraw(); tell(); });
}
