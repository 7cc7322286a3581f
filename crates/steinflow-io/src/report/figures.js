// The figures of the page, each drawn from the numbers of its runs.

const MOST_COORDINATES = 6;

// Shares of a sample by evenly wide bins, as a density.
function histogram(values, [low, high], count) {
  const known = finite(values);
  if (!known.length) return { edges: [0, 1], heights: [0] };
  if (!(high > low)) [low, high] = [low - 0.5, low + 0.5];
  const width = (high - low) / count;
  const heights = new Array(count).fill(0);
  for (const x of known) heights[Math.min(Math.floor((x - low) / width), count - 1)] += 1 / (known.length * width);
  return { edges: Array.from({ length: count + 1 }, (_, k) => low + k * width), heights };
}

const binsFor = (count) => Math.min(Math.max(Math.round(Math.sqrt(count)), 8), 40);

// A curve of the target as a layer.
function curve({ low, high, values }, name) {
  const x = values.map((_, k) => low + (high - low) * k / (values.length - 1));
  return { kind: 'line', x, y: values, style: 'target', name };
}

function drawMarginals(parent, runs, names) {
  for (const name of names) {
    const found = runs.map((run) => run.points.names.indexOf(name));
    const columns = runs.map((run, k) => run.points.columns[found[k]]);
    const limits = extent(columns.flat());
    const layers = [];
    if (runs.length === 1) {
      const bars = histogram(columns[0], limits, binsFor(columns[0].length));
      layers.push({ kind: 'bars', ...bars, style: 's0', xValues: bars.edges, yValues: [0, ...bars.heights] });
    } else {
      runs.forEach((run, k) => {
        const { edges, heights } = histogram(columns[k], limits, binsFor(columns[k].length));
        const x = [edges[0], ...edges.slice(1, -1).flatMap((e) => [e, e]), edges[edges.length - 1]];
        const y = heights.flatMap((h) => [h, h]);
        layers.push({ kind: 'line', x, y, style: run.style, name: run.name, yValues: [0, ...y] });
      });
    }
    // Those of runs on one target fall on each other.
    runs.forEach((run, k) => {
      const line = run.marginals[found[k]];
      if (line) layers.push(curve(line, runs.length > 1 ? `target of ${run.name}` : 'target'));
    });
    plot(parent, {
      key: `marginal ${name}`, title: name, layers,
      description: `Distribution of ${name}, from ${formatted(limits[0])} to ${formatted(limits[1])}`,
      x: { label: name }, y: { label: 'density' },
    });
  }
}

// Histograms on the diagonal, pairs below it.
function drawPairs(parent, run, names) {
  const target = figure(parent, 'pairs', `Pairs of ${names.length} coordinates`);
  const columns = names.map((name) => run.points.columns[run.points.names.indexOf(name)]);
  const [cell, margin] = [names.length > 3 ? 150 : 260, 58];
  const size = margin + cell * names.length + 10;
  const svg = element('svg', {
    viewBox: `0 0 ${size} ${size + 24}`, role: 'img', style: `max-width: ${size}px`,
    'aria-label': `Scatter plots of every pair of ${names.join(', ')}`,
  });
  const { density } = run;
  const limits = density ? [density.x, density.y] : columns.map((column) => padded(extent(column), false));
  const along = (k, pixels) => scale(limits[k], pixels, false);
  names.forEach((name, row) => {
    const top = 8 + row * cell;
    const y = along(row, [top + cell - 8, top]);
    for (let column = 0; column <= row; column++) {
      const left = margin + column * cell;
      const x = along(column, [left, left + cell - 8]);
      if (column < row) {
        if (density) drawContours(svg, density, x, y);
        svg.append(element('path', { class: `points ${columns[row].length > 500 ? 'small' : ''} ${density ? 's1' : 's0'}`, d: dots(columns[column], columns[row], x, y) }));
      } else {
        const bars = histogram(columns[row], extent(columns[row]), binsFor(columns[row].length));
        DRAW.bars(svg, { ...bars, style: 's0' }, x, scale([0, Math.max(...bars.heights)], [top + cell - 8, top + 4], false));
      }
      svg.append(element('rect', { class: 'frame', x: left, y: top, width: cell - 8, height: cell - 8 }));
      if (row === names.length - 1) {
        for (const t of linearTicks(x.low, x.high, 4)) {
          svg.append(element('text', { x: x(t), y: top + cell + 6, 'text-anchor': 'middle' }, formatted(t, 3)));
        }
        svg.append(element('text', { class: 'label', x: left + cell / 2, y: top + cell + 24, 'text-anchor': 'middle' }, names[column]));
      }
    }
    if (row > 0) {
      for (const t of linearTicks(y.low, y.high, 4)) {
        svg.append(element('text', { x: margin - 5, y: y(t) + 3.5, 'text-anchor': 'end' }, formatted(t, 3)));
      }
      svg.append(element('text', {
        class: 'label', 'text-anchor': 'middle', transform: `translate(12 ${top + cell / 2}) rotate(-90)`,
      }, name));
    }
  });
  target.querySelector('.holder').replaceChildren(svg);
}

const WORDS = {
  mean_log_density: 'mean log density', velocity_norm: 'velocity norm', bandwidth: 'bandwidth',
  step_size: 'step size',
};

function drawCourse(parent, runs, against) {
  const columns = [...new Set(runs.flatMap((run) => run.trace.columns.map(([name]) => name)))];
  for (const name of columns) {
    const layers = runs.flatMap((run) => {
      const own = run.trace.columns.find(([other]) => other === name);
      return own ? [{ kind: 'line', x: run.trace[against], y: own[1], style: run.style, name: runs.length > 1 ? run.name : '' }] : [];
    });
    const [low, high] = extent(layers.flatMap((layer) => layer.y));
    const title = WORDS[name] ?? name;
    plot(parent, {
      key: `course ${name}`, title, layers,
      description: `${title} against ${against}, between ${formatted(low)} and ${formatted(high)}`,
      x: { label: against, box: true }, y: { label: title, box: true, log: low > 0 && high > 20 * low },
    });
  }
}

function drawDiscrepancy(parent, runs) {
  ['step', 'gradients'].forEach((against, k) => {
    const layers = runs.map((run) => ({
      kind: 'line', x: run.trace.ksd.map((row) => row[k]), y: run.trace.ksd.map((row) => row[2]),
      style: run.style, name: runs.length > 1 ? run.name : '',
    })).filter((layer) => layer.x.length);
    plot(parent, {
      key: `ksd ${against}`, title: `KSD against ${against === 'step' ? 'steps' : against}`, layers,
      x: { label: against, box: true }, y: { label: 'KSD', log: true, box: true },
    });
  });
}

function drawPredictions(parent, { target, rows, observed, mean, low, high, pit, coverage, reliability }) {
  if (observed.length) {
    const limits = extent([...observed, ...mean]);
    plot(parent, {
      key: 'observed', title: `Predicted and observed, with 90 % intervals (${rows} rows)`,
      layers: [
        { kind: 'line', x: limits, y: limits, style: 'target', silent: true },
        { kind: 'intervals', x: observed, low, high, yValues: [...low, ...high] },
        { kind: 'points', x: observed, y: mean, style: 's0' },
      ],
      x: { label: `observed ${target}` }, y: { label: `predicted ${target}` },
    });
  }
  if (reliability.length) {
    plot(parent, {
      key: 'reliability', title: `Calibration: how often classes of ${target} with about the same probability were seen (${rows} rows)`,
      layers: [
        { kind: 'line', x: [0, 1], y: [0, 1], style: 'target', silent: true },
        { kind: 'points', x: reliability.map((c) => c[0]), y: reliability.map((c) => c[1]), style: 's0 large' },
      ],
      x: { label: 'predicted probability', limits: [0, 1] }, y: { label: 'share seen', limits: [0, 1.03] },
    });
  }
  if (pit.length) {
    const total = pit.reduce((a, b) => a + b, 0);
    plot(parent, {
      key: 'pit', title: 'Calibration: rows by tenths of their predictive distribution',
      layers: [
        { kind: 'bars', edges: Array.from({ length: pit.length + 1 }, (_, k) => k / pit.length), heights: pit, style: 's0', unit: 'rows', yValues: [0, ...pit] },
        { kind: 'line', x: [0, 1], y: [total / pit.length, total / pit.length], style: 'target', silent: true },
      ],
      x: { label: 'predictive distribution function at the row (PIT)', limits: [0, 1] }, y: { label: 'rows' },
    });
  }
  if (coverage.length) {
    plot(parent, {
      key: 'coverage', title: 'Coverage: rows inside central intervals',
      layers: [
        { kind: 'line', x: [0, 1], y: [0, 1], style: 'target', silent: true },
        { kind: 'points', x: coverage.map((c) => c[0]), y: coverage.map((c) => c[1]), style: 's0 large' },
      ],
      x: { label: 'promised share', limits: [0, 1] }, y: { label: 'found share', limits: [0, 1.03] },
    });
  }
}

// A place on the line for a particle in one dimension, always the same.
const spread = (count, top) => Array.from({ length: count }, (_, i) => top * (0.05 + 0.3 * ((i * 0.618034) % 1)));

// Particles over the density, one frame or many.
class Animation {
  constructor(parent, run, isLive) {
    this.parent = parent;
    this.figures = element('div', { class: 'plots large' });
    this.slider = element('input', { type: 'range', min: 0, value: 0, 'aria-label': 'frame' });
    this.button = element('button', { type: 'button' }, 'Play');
    this.controls = element('p', { class: 'controls' }, this.button, ' ', this.slider);
    parent.replaceChildren(this.figures, this.controls);
    this.controls.hidden = isLive;
    this.slider.addEventListener('input', () => { this.pause(); this.show(Number(this.slider.value)); });
    this.button.addEventListener('click', () => (this.timer ? this.pause() : this.play()));
    this.update(run);
  }

  update(run) {
    this.run = run;
    this.frames = run.frames ?? { steps: [], values: [run.points.columns] };
    const last = this.frames.values.length - 1;
    this.slider.max = last;
    this.slider.value = last;
    this.draw(last);
  }

  // The axes and the density, and the particles of frame `shown`.
  draw(shown) {
    const { run } = this;
    const last = this.frames.values.length - 1;
    if (last < 1) this.controls.hidden = true;
    const { density, marginals } = run;
    const [xs, ys] = [0, 1].map((k) => this.frames.values.flatMap((frame) => frame[k] ?? []));
    const isPlane = this.frames.values[last].length > 1;
    const top = Math.max(1e-9, ...(marginals[0]?.values ?? [1])) * 1.05;
    const union = (a, b) => (b ? [Math.min(a[0], b[0]), Math.max(a[1], b[1])] : a);
    // The window of the density, not where a lost particle may have gone.
    const xLimits = density?.x ?? union(padded(extent(xs), false), marginals[0] && [marginals[0].low, marginals[0].high]);
    const yLimits = isPlane ? density?.y ?? padded(extent(ys), false) : [0, top];
    const layers = [];
    if (density) layers.push({ kind: 'contours', grid: density });
    if (!isPlane && marginals[0]) layers.push({ ...curve(marginals[0]), silent: true });
    const names = run.points.names;
    this.drawn = plot(this.figures, {
      key: 'animation', title: '', layers, width: 640, height: 480,
      redraw: () => this.draw(Number(this.slider.value)),
      description: `Particles of ${run.name} over the density of the target`,
      x: { label: names[0], limits: xLimits }, y: { label: isPlane ? names[1] : 'density', limits: yLimits },
    });
    this.path = element('path', { class: 'points s1' });
    this.drawn.ink.append(this.path);
    this.heights = isPlane ? null : spread(this.frames.values[last][0].length, top);
    this.show(shown);
  }

  show(k) {
    const [xs, ys] = this.frames.values[k];
    this.path.setAttribute('d', dots(xs, ys ?? this.heights, this.drawn.x, this.drawn.y));
    const step = this.frames.steps[k];
    const lifted = ys ? '' : ', particles spread in height to be told apart';
    const all = xs.length < this.run.points.count && this.run.points.kind === 'particles'
      ? ` (${xs.length} of ${this.run.points.count} particles)` : '';
    this.drawn.target.querySelector('.title').textContent = (step === undefined ? 'Last particles' : `Step ${step}`) + all + lifted;
    this.slider.setAttribute('aria-valuetext', `step ${step}`);
  }

  play() {
    if (Number(this.slider.value) >= Number(this.slider.max)) this.slider.value = 0;
    this.button.textContent = 'Pause';
    this.timer = setInterval(() => {
      this.show(Number(this.slider.value));
      if (Number(this.slider.value) >= Number(this.slider.max)) this.pause();
      else this.slider.value = Number(this.slider.value) + 1;
    }, 70);
  }

  pause() {
    clearInterval(this.timer);
    this.timer = null;
    this.button.textContent = 'Play';
  }
}
