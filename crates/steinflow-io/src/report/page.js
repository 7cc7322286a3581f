// Puts the figures where the page has room for them, and follows a run that is under way.

const byId = (id) => document.getElementById(id);
let page = JSON.parse(byId('data').textContent);
const hidden = new Set();
const STYLES = 8;

// Coordinates that all runs have.
function sharedNames() {
  const [first, ...others] = page.runs.map((run) => new Set(run.points.names));
  return [...first].filter((name) => others.every((names) => names.has(name)));
}

let chosen = sharedNames().slice(0, MOST_COORDINATES);
let against = 'step';

function menu(label, options, value, change) {
  const select = element('select', {}, ...options.map((option) => element('option', {}, option)));
  select.value = value;
  select.addEventListener('change', () => change(select.value));
  return element('label', {}, `${label} `, select);
}

// A section's controls, made once, and the place for its plots.
function placeOf(id, makeControls = () => []) {
  const section = byId(id);
  if (!section) return null;
  if (!section.querySelector('.plots')) {
    const controls = makeControls();
    if (controls.length) section.append(element('p', { class: 'controls' }, ...controls));
    // In print a legend stays, unlike what can only be clicked on.
    if (page.runs.length > 1) section.append(element('p', { class: 'legend' }, ...legend()));
    section.append(element('div', { class: 'plots' }));
  }
  return section.querySelector('.plots');
}

function coordinateMenus() {
  const names = sharedNames();
  if (names.length <= MOST_COORDINATES) return [];
  const menus = chosen.map((name, k) => menu(`${k + 1}`, names, name, (value) => {
    chosen[k] = value;
    for (const id of ['marginals', 'pairs']) byId(id)?.querySelector('.plots').replaceChildren();
    draw();
  }));
  return [`Coordinates, of ${page.runs[0].points.dim}: `, ...menus];
}

function legend() {
  return page.runs.map((run) => {
    const button = element('button', { type: 'button', class: `key ${run.style}`, 'aria-pressed': 'true' }, run.name);
    button.addEventListener('click', () => {
      hidden.has(run.name) ? hidden.delete(run.name) : hidden.add(run.name);
      for (const key of document.querySelectorAll('button.key')) {
        key.setAttribute('aria-pressed', String(!hidden.has(key.textContent)));
      }
      draw();
    });
    return button;
  });
}

let animation = null;

function draw() {
  page.runs.forEach((run, k) => {
    run.style = page.runs.length > 1 ? `s${k % STYLES}${k >= STYLES ? ' dashed' : ''}` : 's0';
  });
  const shown = page.runs.filter((run) => !hidden.has(run.name));
  const [first] = page.runs;
  const names = [...new Set(chosen)];
  if (byId('animation')) {
    if (animation) animation.update(first);
    else animation = new Animation(byId('animation'), first, page.live);
  }
  const axis = () => [menu('Against', ['step', 'gradients', 'seconds'], against, (value) => {
    against = value;
    draw();
  })];
  const places = {
    marginals: placeOf('marginals', coordinateMenus),
    pairs: placeOf('pairs'),
    course: placeOf('course', axis),
    discrepancy: placeOf('discrepancy'),
    predictions: placeOf('predictions'),
  };
  if (!shown.length) return;
  if (places.marginals && first.points.columns[0]?.length) drawMarginals(places.marginals, shown, names);
  if (places.pairs) drawPairs(places.pairs, first, names);
  if (places.course && shown.some((run) => run.trace.step.length)) drawCourse(places.course, shown, against);
  if (places.discrepancy) drawDiscrepancy(places.discrepancy, shown);
  if (places.predictions) drawPredictions(places.predictions, first.predictions);
}

// Asks the run's own server for the numbers of now, until it is gone.
async function followRun() {
  for (let failures = 0; failures < 3;) {
    try {
      const answer = await fetch('state', { cache: 'no-store' });
      if (!answer.ok) throw new Error(answer.statusText);
      page = await answer.json();
      // Escaped by the server, as the page itself is.
      byId('now').innerHTML = page.now;
      byId('numbers').innerHTML = page.numbers;
      draw();
      failures = 0;
    } catch {
      failures += 1;
    }
    await new Promise((resolve) => setTimeout(resolve, 250));
  }
  byId('status').textContent = 'The run has ended, and this is the last that was seen of it; '
    + '`steinflow report RUN` makes the page that stays.';
}

draw();
if (page.live) followRun();
addEventListener('beforeprint', () => {
  for (const details of document.querySelectorAll('details')) details.open = true;
});
document.documentElement.dataset.drawn = 'yes';
