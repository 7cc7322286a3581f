// A small plotting library: axes, layers, a readout under the pointer or the arrow keys, and a closer look.
'use strict';

const NS = 'http://www.w3.org/2000/svg';

// An element with attributes and children; text children are never read as markup.
function element(name, attributes = {}, ...children) {
  const made = SVG_NAMES.has(name) ? document.createElementNS(NS, name) : document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}
const SVG_NAMES = new Set(['svg', 'g', 'path', 'text', 'line', 'rect', 'circle', 'image', 'clipPath']);

const finite = (values) => values.filter((x) => x !== null && Number.isFinite(x));
const extent = (values) =>
  finite(values).reduce(([a, b], x) => [Math.min(a, x), Math.max(b, x)], [Infinity, -Infinity]);

function formatted(x, digits = 4) {
  if (x === null || !Number.isFinite(x)) return '–';
  if (x === 0) return '0';
  const size = Math.abs(x);
  const text = size >= 1e-3 && size < 1e6 ? String(Number(x.toPrecision(digits)))
    : x.toExponential(Math.max(digits - 2, 0));
  return text.replace('-', '−');
}

// Places 1, 2 or 5 times a power of ten apart.
function linearTicks(low, high, count) {
  const rough = (high - low) / count;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((k) => k * power).find((s) => s >= rough * 0.999);
  const ticks = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + step * 1e-9; k++) ticks.push(k * step);
  // Multiples of a step are not exact: 0.30000000000000004.
  return ticks.map((x) => Number(x.toPrecision(12)));
}

function logTicks(low, high, count) {
  const [first, last] = [Math.floor(Math.log10(low)), Math.ceil(Math.log10(high))];
  const every = Math.max(1, Math.ceil((last - first) / count));
  const factors = last - first > 3 ? [1] : last - first > 1 ? [1, 3] : [1, 2, 5];
  const ticks = [];
  for (let e = first; e <= last; e += every) for (const f of factors) ticks.push(f * 10 ** e);
  const inside = ticks.filter((x) => x >= low * 0.999 && x <= high * 1.001);
  return inside.length > 1 ? inside : linearTicks(low, high, count);
}

// From values to pixels. Limits that are one point get some room.
function scale([low, high], pixels, log) {
  if (!(low <= high)) [low, high] = log ? [1, 10] : [0, 1];
  if (low === high) {
    const room = Math.abs(low) * 0.1 || 1;
    [low, high] = log ? [low / 2, high * 2] : [low - room, high + room];
  }
  const f = log ? Math.log10 : (x) => x;
  const [a, b] = [f(low), f(high)];
  const map = (x) => pixels[0] + (f(x) - a) / (b - a) * (pixels[1] - pixels[0]);
  const at = (pixel) => {
    const back = a + (pixel - pixels[0]) / (pixels[1] - pixels[0]) * (b - a);
    return log ? 10 ** back : back;
  };
  return Object.assign(map, { low, high, log, at });
}

function padded([low, high], log) {
  if (log) return [low / (high / low) ** 0.04, high * (high / low) ** 0.04];
  const room = (high - low) * 0.04;
  return [low - room, high + room];
}

// A figure with a caption and a readout, made once under a key, so that what has the focus keeps it
// when the plot is drawn again.
function figure(parent, key, title) {
  let found = [...parent.children].find((child) => child.dataset.key === key);
  if (!found) {
    const readout = element('output', { class: 'readout' });
    const caption = element('figcaption', {}, element('span', { class: 'title' }),
      element('span', { class: 'controls' }));
    found = element('figure', { 'data-key': key }, caption, element('div', { class: 'holder' }), readout);
    parent.append(found);
  }
  found.querySelector('.title').textContent = title;
  return found;
}

const toggled = new Map();

// A box that makes an axis logarithmic.
function logBox(figure, axis, isLog, redraw) {
  const controls = figure.querySelector('.controls');
  let box = controls.querySelector(`[data-axis="${axis}"]`);
  if (!box) {
    box = element('input', { type: 'checkbox', 'data-axis': axis });
    controls.append(element('label', {}, box, ` log ${axis}`));
    box.addEventListener('change', () => {
      toggled.set(figure.dataset.key + axis, box.checked);
      box.redraw();
    });
  }
  box.checked = isLog;
  box.redraw = redraw;
}

// Draws a plot into `parent`: {key, title, x, y, layers}; an axis is {label, limits, log, box}, a
// layer one of line, step, bars, points, intervals, contours. `box` offers a logarithmic axis. `redraw` is
// for plots that are drawn on afterwards.
function plot(parent, options) {
  const target = figure(parent, options.key, options.title);
  const redraw = options.redraw ?? (() => plot(parent, options));
  const near = zoomed.get(options.key);
  const { width = 400, height = 260, layers } = options;
  const axes = {};
  for (const name of ['x', 'y']) {
    const own = options[name];
    const values = layers.flatMap((layer) => layer[`${name}Values`] ?? layer[name] ?? []);
    const limits = own.limits ?? extent(values);
    const positive = limits[0] > 0;
    const log = positive && (toggled.get(options.key + name) ?? own.log ?? false);
    if (own.box && positive) logBox(target, name, log, redraw);
    axes[name] = { label: own.label, log, limits: near?.[name] ?? own.limits ?? padded(limits, log) };
  }
  const count = { x: Math.max(2, Math.round(width / 80)), y: Math.max(2, Math.round(height / 50)) };
  const ticksOf = (s, n) => (s.log ? logTicks : linearTicks)(s.low, s.high, n);
  const y = scale(axes.y.limits, [height - 40, 10], axes.y.log);
  const yTicks = ticksOf(y, count.y).map((t) => [t, formatted(t, 5)]);
  const left = 24 + 6.3 * Math.max(0, ...yTicks.map(([, text]) => text.length));
  const x = scale(axes.x.limits, [left, width - 12], axes.x.log);
  const svg = element('svg', {
    viewBox: `0 0 ${width} ${height}`, role: 'img', tabindex: 0,
    'aria-label': options.description ?? `${options.title}: ${axes.y.label} against ${axes.x.label}`,
  });
  for (const t of ticksOf(x, count.x)) {
    svg.append(
      element('line', { class: 'grid', x1: x(t), x2: x(t), y1: 10, y2: height - 40 }),
      element('text', { x: x(t), y: height - 26, 'text-anchor': 'middle' }, formatted(t, 5)));
  }
  for (const [t, text] of yTicks) {
    svg.append(
      element('line', { class: 'grid', x1: left, x2: width - 12, y1: y(t), y2: y(t) }),
      element('text', { x: left - 5, y: y(t) + 3.5, 'text-anchor': 'end' }, text));
  }
  svg.append(
    element('text', { class: 'label', x: (left + width - 12) / 2, y: height - 8, 'text-anchor': 'middle' },
      axes.x.label),
    element('text', {
      class: 'label', 'text-anchor': 'middle',
      transform: `translate(11 ${(height - 30) / 2}) rotate(-90)`,
    }, axes.y.label));
  const id = `clip-${options.key.replace(/[^a-z0-9]/gi, '-')}`;
  const clip = element('clipPath', { id },
    element('rect', { x: left, y: 10, width: width - 12 - left, height: height - 50 }));
  const ink = element('g', { 'clip-path': `url(#${id})` });
  svg.append(clip, ink, element('rect', {
    class: 'frame', x: left, y: 10, width: width - 12 - left, height: height - 50,
  }));
  const spots = layers.flatMap((layer) => DRAW[layer.kind](ink, layer, x, y) ?? []);
  const byBoth = layers.some((layer) => layer.kind === 'points')
    || layers.filter((layer) => layer.kind === 'line').length > 1;
  const holder = target.querySelector('.holder');
  const hadFocus = holder.contains(document.activeElement);
  holder.replaceChildren(svg);
  if (hadFocus) svg.focus({ preventScroll: true });
  follow(target, svg, spots, byBoth);
  zoom(target, svg, options.key, { x, y }, redraw);
  return { target, svg, ink, x, y };
}

// Limits that somebody has zoomed to, by the plot's key.
const zoomed = new Map();

// A closer look: a frame drawn with the pointer, two fingers, or + and −; a double click, 0 or the button
// shows the whole again.
function zoom(target, svg, key, scales, redraw) {
  const look = (limits) => {
    if (limits) zoomed.set(key, limits);
    else zoomed.delete(key);
    redraw();
  };
  const between = (s, a, b) => [s.at(a), s.at(b)].sort((u, v) => u - v);
  const box = svg.querySelector('.frame');
  const [left, top] = ['x', 'y'].map((name) => Number(box.getAttribute(name)));
  const [right, bottom] = [left + Number(box.getAttribute('width')), top + Number(box.getAttribute('height'))];
  const inside = (event) => {
    const shown = svg.getBoundingClientRect();
    const ratio = svg.viewBox.baseVal.width / shown.width;
    const clamp = (value, low, high) => Math.min(Math.max(value, low), high);
    return [clamp((event.clientX - shown.left) * ratio, left, right), clamp((event.clientY - shown.top) * ratio, top, bottom)];
  };
  // `factor` times as much of both axes, about a place.
  const about = ([px, py], factor) => look({
    x: between(scales.x, px + (left - px) * factor, px + (right - px) * factor),
    y: between(scales.y, py + (top - py) * factor, py + (bottom - py) * factor),
  });
  const middle = [(left + right) / 2, (top + bottom) / 2];
  const mark = element('rect', { class: 'zoom', visibility: 'hidden' });
  svg.append(mark);
  const [begun, now] = [new Map(), new Map()];
  svg.addEventListener('pointerdown', (event) => {
    begun.set(event.pointerId, inside(event));
    now.set(event.pointerId, inside(event));
    svg.setPointerCapture(event.pointerId);
  });
  svg.addEventListener('pointermove', (event) => {
    if (!begun.has(event.pointerId)) return;
    now.set(event.pointerId, inside(event));
    if (begun.size > 1) return mark.setAttribute('visibility', 'hidden');
    const [[a, b], [c, d]] = [begun.get(event.pointerId), now.get(event.pointerId)];
    for (const [name, value] of Object.entries({ x: Math.min(a, c), y: Math.min(b, d), width: Math.abs(a - c), height: Math.abs(b - d) })) {
      mark.setAttribute(name, value);
    }
    mark.setAttribute('visibility', 'visible');
  });
  const forget = () => {
    begun.clear();
    now.clear();
    mark.setAttribute('visibility', 'hidden');
  };
  svg.addEventListener('pointercancel', forget);
  svg.addEventListener('pointerup', (event) => {
    const [from, to] = [[...begun.values()], [...now.values()]];
    if (!begun.has(event.pointerId)) return;
    forget();
    const distance = ([[a, b], [c, d]]) => Math.hypot(a - c, b - d);
    if (from.length > 1) {
      const centre = [(from[0][0] + from[1][0]) / 2, (from[0][1] + from[1][1]) / 2];
      about(centre, Math.max(distance(from), 1) / Math.max(distance(to), 1));
    } else if (Math.abs(from[0][0] - to[0][0]) > 8 && Math.abs(from[0][1] - to[0][1]) > 8) {
      look({ x: between(scales.x, from[0][0], to[0][0]), y: between(scales.y, from[0][1], to[0][1]) });
    } else if (Math.abs(from[0][0] - to[0][0]) > 8) {
      look({ x: between(scales.x, from[0][0], to[0][0]), y: [scales.y.low, scales.y.high] });
    }
  });
  svg.addEventListener('dblclick', () => look(null));
  svg.addEventListener('keydown', (event) => {
    if (event.key === '+' || event.key === '=') about(middle, 0.5);
    else if (event.key === '-') about(middle, 2);
    else if (event.key === '0') look(null);
  });
  const controls = target.querySelector('.controls');
  controls.querySelector('.whole')?.remove();
  if (zoomed.has(key)) {
    const whole = element('button', { type: 'button', class: 'whole' }, 'whole');
    whole.addEventListener('click', () => look(null));
    controls.append(whole);
  }
}

const place = (x) => x.toFixed(1);

// Each draws a layer and gives the spots that can be pointed at.
const DRAW = {
  line(ink, layer, x, y) {
    let path = '';
    let pen = 'M';
    const spots = [];
    layer.x.forEach((at, i) => {
      const [px, py] = [x(at), y(layer.y[i])];
      if (layer.y[i] === null || !Number.isFinite(px) || !Number.isFinite(py)) {
        pen = 'M';
        return;
      }
      path += pen + place(px) + ' ' + place(py);
      pen = 'L';
      if (!layer.silent) spots.push({ px, py, text: `${layer.name ? layer.name + ': ' : ''}${formatted(layer.y[i])} at ${formatted(at, 6)}` });
    });
    ink.append(element('path', { class: `line ${layer.style}`, d: path }));
    return spots;
  },
  bars(ink, layer, x, y) {
    return layer.heights.map((height, i) => {
      const [from, to] = [layer.edges[i], layer.edges[i + 1]];
      const [a, b] = [x(from), x(to)];
      ink.append(element('rect', {
        class: `bar ${layer.style}`, x: place(a), width: place(Math.max(b - a - 0.5, 0.5)),
        y: place(y(height)), height: place(Math.max(y(0) - y(height), 0)),
      }));
      const text = `${formatted(height)} ${layer.unit ?? ''} from ${formatted(from)} to ${formatted(to)}`;
      return { px: (a + b) / 2, py: y(height), text };
    });
  },
  points(ink, layer, x, y) {
    ink.append(element('path', { class: `points ${layer.style}`, d: dots(layer.x, layer.y, x, y) }));
    return layer.x.map((at, i) => ({
      px: x(at), py: y(layer.y[i]), text: `${formatted(at)}, ${formatted(layer.y[i])}`,
    })).filter((spot) => Number.isFinite(spot.px) && Number.isFinite(spot.py));
  },
  intervals(ink, layer, x, y) {
    const lines = layer.x.map((at, i) => `M${place(x(at))} ${place(y(layer.low[i]))}V${place(y(layer.high[i]))}`);
    ink.append(element('path', { class: 'line interval', d: lines.filter((d) => !d.includes('N')).join('') }));
  },
  contours(ink, { grid }, x, y) {
    drawContours(ink, grid, x, y);
  },
};

// All points as one path of strokes without length, which is fast and prints sharply.
function dots(xs, ys, x, y) {
  let path = '';
  for (let i = 0; i < xs.length; i++) {
    if (xs[i] !== null && ys[i] !== null) path += `M${place(x(xs[i]))} ${place(y(ys[i]))}h0`;
  }
  return path;
}

// log π below its maximum at which lines are drawn: about one to four standard deviations.
const LEVELS = [-0.125, -0.5, -1.125, -2, -3.125, -4.5, -8];

function drawContours(ink, grid, x, y) {
  const { side } = grid;
  const at = (k, [low, high]) => low + (high - low) * k / (side - 1);
  const value = (i, j) => grid.values[i * side + j] ?? -1e9;
  const canvas = element('canvas', { width: side, height: side });
  const context = canvas.getContext('2d');
  const image = context.createImageData(side, side);
  for (let i = 0; i < side; i++) {
    for (let j = 0; j < side; j++) {
      const k = 4 * ((side - 1 - i) * side + j);
      image.data.set([70, 120, 190, 150 * Math.exp(value(i, j) / 2)], k);
    }
  }
  context.putImageData(image, 0, 0);
  const [left, right, top, bottom] = [x(grid.x[0]), x(grid.x[1]), y(grid.y[1]), y(grid.y[0])];
  ink.append(element('image', {
    href: canvas.toDataURL(), x: left, y: top, width: right - left, height: bottom - top,
    preserveAspectRatio: 'none',
  }));
  for (const level of LEVELS) {
    let path = '';
    for (let i = 0; i + 1 < side; i++) {
      for (let j = 0; j + 1 < side; j++) {
        const corners = [[i, j], [i, j + 1], [i + 1, j + 1], [i + 1, j]];
        const crossings = [];
        for (let k = 0; k < 4; k++) {
          const [a, b] = [corners[k], corners[(k + 1) % 4]];
          const [u, v] = [value(...a) - level, value(...b) - level];
          if ((u > 0) !== (v > 0)) {
            const t = u / (u - v);
            const row = a[0] + t * (b[0] - a[0]);
            const column = a[1] + t * (b[1] - a[1]);
            crossings.push(place(x(at(column, grid.x))) + ' ' + place(y(at(row, grid.y))));
          }
        }
        for (let k = 0; k + 1 < crossings.length; k += 2) path += `M${crossings[k]}L${crossings[k + 1]}`;
      }
    }
    ink.append(element('path', { class: 'contour', d: path }));
  }
}

// Says the value nearest to the pointer, or walks along them with the arrow keys.
function follow(target, svg, spots, byBoth) {
  if (!spots.length) return;
  const readout = target.querySelector('.readout');
  const mark = element('circle', { class: 'mark', r: 4, visibility: 'hidden' });
  svg.append(mark);
  let current = -1;
  const show = (index) => {
    current = index;
    mark.setAttribute('cx', spots[index].px);
    mark.setAttribute('cy', spots[index].py);
    mark.setAttribute('visibility', 'visible');
    readout.textContent = spots[index].text;
  };
  svg.addEventListener('pointermove', (event) => {
    const box = svg.getBoundingClientRect();
    const ratio = svg.viewBox.baseVal.width / box.width;
    const [px, py] = [(event.clientX - box.left) * ratio, (event.clientY - box.top) * ratio];
    const distance = (spot) => (spot.px - px) ** 2 + (byBoth ? (spot.py - py) ** 2 : 0);
    let best = 0;
    spots.forEach((spot, i) => { if (distance(spot) < distance(spots[best])) best = i; });
    show(best);
  });
  svg.addEventListener('keydown', (event) => {
    const move = { ArrowRight: 1, ArrowLeft: -1, ArrowUp: 10, ArrowDown: -10 }[event.key];
    if (!move) return;
    event.preventDefault();
    show(Math.min(Math.max(current + move, 0), spots.length - 1));
  });
  const hide = () => {
    mark.setAttribute('visibility', 'hidden');
    readout.textContent = '';
  };
  svg.addEventListener('pointerleave', hide);
  svg.addEventListener('blur', hide);
}
