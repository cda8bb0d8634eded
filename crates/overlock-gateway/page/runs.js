// The list of runs, updated live.

import { ask, askModel, gateway, listen } from './api.js';
import { copyButton, fill, h, name as named, say, settled } from './dom.js';
import { beginning } from './text.js';
import { gauge } from './window.js';
import {
  approximate,
  clock,
  counted,
  modelsOf,
  money,
  number,
  outcome,
  path,
  place,
  progressText,
  REASONS,
  retryingText,
  roundedMoney,
  searchTerms,
  share,
  timeTaken,
  unpriced,
} from './words.js';

/** How many runs are read at first, and each time more are requested. */
const PAGE_SIZE = 100;

/** How often the list is read again: no event reports what other gateways record in the store. */
const REFRESH_MS = 3000;

/** The largest part of the time that requests for totals may take. */
const TOTALS_LOAD = 1 / 20;

/** Events within this time are drawn together. */
const DRAW_DELAY_MS = 150;

/** The gateway ignores the rest of a longer search text. */
const LONGEST_SEARCH = 400;

/** The fields that show that a run has changed. */
const CHANGING = ['ended_at', 'outcome', 'iterations', 'output_tokens', 'paused_ms'];

/** The filters: the state that passes, and its label. */
const FILTERS = [
  ['', 'All'],
  ['running', 'Running'],
  ['complete', 'Complete'],
  ['partial', 'Partial'],
  ['failed', 'Failed'],
  ['cancelled', 'Cancelled'],
  ['interrupted', 'Interrupted'],
];

/** The states of runs at the gateway. */
const STATES = FILTERS.slice(1).map(([name]) => name);

/** The columns: heading, class, tooltip and short heading. */
const COLUMNS = [
  ['Outcome'],
  ['Run and model'],
  ['Attempts, steps', 'figure tries', '', 'Attempts'],
  ['Tokens in', 'figure'],
  ['Tokens out', 'figure'],
  ['Peak window use', '', 'how full the window of the model was in the largest call', 'Window'],
  ['Cost', 'figure cost', 'rounded to six places; the run itself has the exact amount'],
  ['Took', 'figure took'],
  ['Began', 'figure'],
];

export async function showRuns(frame, { parameters, signal }) {
  document.title = 'Overlock';
  const runs = new Map();
  const rows = new Map();
  let filter = FILTERS.some(([name]) => name === parameters.get('outcome'))
    ? parameters.get('outcome')
    : '';
  let searchText = parameters.get('q') ?? '';
  // Runs whose row has to be drawn again.
  const stale = new Set();
  // The latest runs of the gateway, regardless of the search.
  let latest = new Set();
  // The oldest run that the search has loaded, and how many runs are shown.
  let oldest = '';
  let limit = PAGE_SIZE;
  let mayBeMore = false;
  let totals = null;
  // The state in which the totals count each run, as far as known.
  let countedAs = new Map();
  // The runs that the gateway found: it searches more fields than the list has.
  let matching = new Set();
  // Whether a run has changed since the totals were read, and when to read them again.
  let isNew = false;
  let nextTotals = Infinity;
  let isWaiting = false;
  let searching = new AbortController();

  const body = h('tbody', { role: 'rowgroup' });
  const summary = h('p', { class: 'summary' });
  const nothing = h('div', { class: 'nothing', hidden: true });
  const server = h('ul', { class: 'findings', 'aria-label': 'The upstream', hidden: true });
  const more = h(
    'button',
    { type: 'button', hidden: true, onclick: () => load(oldest).catch(() => {}) },
    `Show ${number(PAGE_SIZE)} more`,
  );
  const buttons = FILTERS.map(([name, label]) =>
    h(
      'button',
      { type: 'button', 'aria-pressed': String(name === filter), onclick: () => choose(name) },
      label,
    ),
  );
  const search = h('input', {
    id: 'search',
    type: 'search',
    placeholder: 'run, model, reason, error',
    value: searchText,
    oninput: settled(150, () => {
      searchText = search.value;
      searchAgain();
    }),
  });

  let table;
  fill(
    frame,
    introduction(),
    h(
      'section',
      { 'aria-labelledby': 'runs-title' },
      h('div', { class: 'list-head' }, h('h2', { id: 'runs-title' }, 'Runs'), summary),
      server,
      h(
        'div',
        { class: 'tools', role: 'group', 'aria-label': 'Which runs' },
        h('div', { class: 'segmented', role: 'group', 'aria-label': 'Outcome' }, buttons),
        h('label', { class: 'search', for: 'search' }, 'Search', search),
      ),
      (table = h(
        'table',
        // On a small screen the rows are drawn as cards, so the roles are set explicitly.
        { class: 'figures list', role: 'table' },
        h('caption', { class: 'unseen' }, 'Runs, the latest first'),
        h(
          'thead',
          { role: 'rowgroup' },
          h(
            'tr',
            { role: 'row' },
            COLUMNS.map(([label, kind, about]) =>
              h('th', { scope: 'col', role: 'columnheader', class: kind, title: about }, label),
            ),
          ),
        ),
        body,
      )),
      nothing,
      h('p', { class: 'more' }, more),
    ),
  );

  function choose(name) {
    filter = name;
    buttons.forEach((button, place) =>
      button.setAttribute('aria-pressed', String(FILTERS[place][0] === name)),
    );
    searchAgain();
  }

  /** Starts a search. Matching runs that are known already are shown at once. */
  function searchAgain() {
    updateAddress();
    searching.abort();
    searching = new AbortController();
    [oldest, limit, mayBeMore, totals] = ['', PAGE_SIZE, false, null];
    matching = new Set();
    draw();
    load().catch(() => {});
    loadTotals();
  }

  /** The query string of the search. */
  function query(more = {}) {
    const terms = beginning(searchTerms(searchText), LONGEST_SEARCH);
    const parameters = Object.entries({ outcome: filter, q: terms, ...more });
    return new URLSearchParams(parameters.filter(([, value]) => value !== '')).toString();
  }

  /** Loads the first page of the search, or the page before a run. */
  async function load(before = '') {
    const search = searching.signal;
    // One run more than is shown says whether there are more.
    const address = `/api/runs?${query({ limit: PAGE_SIZE + 1, before })}`;
    let listed;
    try {
      listed = await ask(address, { signal: AbortSignal.any([signal, search]) });
    } catch (error) {
      // Another search has begun.
      if (search.aborted) return;
      throw error;
    }
    if (search.aborted) return;
    mayBeMore = listed.length > PAGE_SIZE;
    listed = listed.slice(0, PAGE_SIZE);
    merge(listed);
    for (const { id } of listed) {
      matching.add(id);
      // The totals include this run, though it was unknown here when they were read.
      if (totals && !countedAs.get(id)) countedAs.set(id, stateOf(runs.get(id)));
    }
    if (before) limit += PAGE_SIZE;
    else if (!isPart()) latest = new Set(listed.map(({ id }) => id));
    oldest = listed.at(-1)?.id ?? oldest;
    draw();
  }

  /** Loads the totals of all recorded runs that match the search. */
  async function loadTotals() {
    const search = searching.signal;
    const began = Date.now();
    [isNew, nextTotals] = [false, Infinity];
    try {
      const either = AbortSignal.any([signal, search]);
      // Both at once, so that the state in which the totals count each run is known.
      const [loaded] = await Promise.all([
        ask(`/api/runs/totals?${query()}`, { signal: either }),
        refresh(),
      ]);
      if (search.aborted) return;
      totals = loaded;
      const recorded = [...runs.values()].filter((run) => run.isRecorded && matches(run));
      countedAs = new Map(recorded.map((run) => [run.id, stateOf(run)]));
    } catch {
      // The earlier totals stay on display.
    }
    if (search.aborted) return;
    nextTotals = Date.now() + Math.max(REFRESH_MS, (Date.now() - began) / TOTALS_LOAD);
    draw();
  }

  function updateAddress() {
    const query = new URLSearchParams();
    if (filter) query.set('outcome', filter);
    if (searchText) query.set('q', searchText);
    const text = query.toString();
    history.replaceState(null, '', text ? `#/runs?${text}` : '#/runs');
  }

  const matches = (run) => {
    if (filter && filter !== stateOf(run)) return false;
    if (matching.has(run.id)) return true;
    // The fields that the gateway searches, and the words that the list shows for them.
    const words = searchText.trim().toLowerCase().split(/\s+/);
    const text = [
      run.id,
      names(run),
      ...modelsOf(run),
      stateOf(run),
      run.reason,
      run.cut?.path,
      run.stopped_at?.why,
      run.upstream_fault?.message,
      run.unfit?.message,
      remark(run),
    ]
      .join(' ')
      .toLowerCase();
    // The list shortens long texts with an ellipsis.
    return words.every((word) => text.includes(word.replaceAll(/^…+|…+$/g, '')));
  };

  /** Whether the search leaves out some runs. */
  const isPart = () => Boolean(filter || searchText.trim());

  const stateOf = (run) => outcome(run).word;

  const isRunning = (run) => stateOf(run) === 'running';

  function drawSoon() {
    if (isWaiting) return;
    isWaiting = true;
    setTimeout(() => {
      isWaiting = false;
      if (!signal.aborted) draw();
    }, DRAW_DELAY_MS);
  }

  function draw() {
    const sorted = [...runs.values()].sort((one, other) => (one.id < other.id ? 1 : -1));
    const matched = sorted.filter(matches);
    const last = matched.filter((run) => !mayBeMore || run.id >= oldest)[limit - 1];
    // New runs push out the oldest, so that an open list does not grow without limit.
    if (last && last !== matched.at(-1)) [oldest, mayBeMore] = [last.id, true];
    // Older runs are hidden: between them there may be runs that were not loaded.
    const shown = matched.filter((run) => !mayBeMore || run.id >= oldest || isRunning(run));
    forgetAllBut(shown);
    // Unchanged rows stay in the document, so that they keep the focus.
    let at = body.firstChild;
    for (const run of shown) {
      const before = rows.get(run.id);
      const row = before && !stale.has(run.id) ? before : drawn(run);
      if (at === before && before) at = row;
      if (row === at) at = at.nextSibling;
      else body.insertBefore(row, at);
    }
    while (at) {
      const next = at.nextSibling;
      at.remove();
      at = next;
    }
    summarise(sorted, shown);
  }

  function drawn(run) {
    const row = line(run);
    const before = rows.get(run.id);
    const hadFocus = before?.contains(document.activeElement);
    before?.replaceWith(row);
    rows.set(run.id, row);
    stale.delete(run.id);
    if (hadFocus) row.querySelector('a').focus();
    return row;
  }

  /** Keeps shown runs, running ones, and the latest, which show which runs are new. */
  function forgetAllBut(shown) {
    const kept = new Set(shown);
    for (const run of runs.values()) {
      if (kept.has(run)) continue;
      rows.delete(run.id);
      stale.delete(run.id);
      if (!isRunning(run) && !latest.has(run.id)) runs.delete(run.id);
    }
  }

  /** Shows the totals of all matching runs, not only of those in the list. */
  function summarise(sorted, shown) {
    const isPriced = (run) => run.cost || run.partial_cost;
    // Without prices there is no cost column.
    table.classList.toggle('priced', Boolean(totals?.cost) || shown.some(isPriced));
    summary.textContent = totals ? totalsText(totals, stateCounts()) : '';
    more.hidden = !mayBeMore;
    nothing.hidden = shown.length > 0;
    if (shown.length > 0) return;
    if (sorted.length > 0 || isPart()) fill(nothing, h('p', {}, 'No matching runs'));
    else if (!nothing.firstChild) fill(nothing, firstSteps());
  }

  /** The number of runs in each state: the gateway's totals, updated by later events. */
  function stateCounts() {
    const states = { ...totals.outcomes };
    const add = (state, one) => (states[state] = (states[state] ?? 0) + one);
    for (const run of runs.values()) {
      const before = countedAs.get(run.id);
      const now = matches(run) ? stateOf(run) : undefined;
      if (before === now) continue;
      if (before) add(before, -1);
      if (now) add(now, 1);
    }
    return states;
  }

  /** The totals as a line of text. */
  function totalsText({ looked_at, is_all, priced, unpriced: others, cost, ...tokens }, states) {
    const present = STATES.filter((name) => states[name] > 0);
    const words = present.map((name) => `${number(states[name])} ${name}`);
    const count = present.reduce((sum, name) => sum + states[name], 0);
    const all = is_all ? counted(looked_at, 'recorded run') : `the last ${number(looked_at)} runs`;
    if (count === 0) return isPart() ? `none of ${all}` : '';
    const what = isPart() ? `${number(count)} of ${all}` : is_all ? counted(count, 'run') : all;
    const scope = others > 0 ? `for the ${number(priced)} with prices` : 'in total';
    const hasEnded = present.some(([name]) => name !== 'running');
    return [
      `${what}: ${words.join(', ')}`,
      hasEnded && `${number(tokens.input_tokens)} tokens in, ${number(tokens.output_tokens)} out`,
      tokens.cache_hit_rate > 0 && `${share(tokens.cache_hit_rate, 1)} of input cached`,
      tokens.cost_ratio > 1 && `cost ratio ${tokens.cost_ratio.toFixed(2)}`,
      cost && `${money(cost)} ${scope}`,
    ]
      .filter(Boolean)
      .join('; ');
  }

  function update(run) {
    const before = runs.get(run.id) ?? {};
    const word = stateOf(before);
    runs.set(run.id, { ...before, ...run });
    stale.add(run.id);
    const now = stateOf(runs.get(run.id));
    isNew ||= now !== word;
    if (now !== word && now !== 'running')
      say(`Run ${run.id} of ${run.model ?? before.model}: ${now}`);
  }

  /** Reads the latest runs, regardless of the search. */
  async function refresh() {
    const listed = await ask(`/api/runs?limit=${PAGE_SIZE}`, { signal });
    // If all of them are new, there may be others between them and the known runs.
    const isGap =
      latest.size > 0 && listed.length >= PAGE_SIZE && !listed.some(({ id }) => runs.has(id));
    merge(listed);
    latest = new Set(listed.map(({ id }) => id));
    if (isGap) return load();
    draw();
  }

  function merge(listed) {
    for (const run of listed) {
      const known = runs.get(run.id);
      // For a run of another gateway, an event may have reported the interruption.
      const interrupted = Boolean(run.interrupted || (run.elsewhere && known?.interrupted));
      if (known) known.isRecorded = true;
      if (known && CHANGING.every((name) => known[name] === run[name]) && Boolean(known.interrupted) === interrupted)
        continue;
      const merged = { ...(run.pipeline ? {} : known), ...run, interrupted, isRecorded: true };
      if (known) update(merged);
      else {
        runs.set(run.id, merged);
        isNew = true;
      }
    }
  }

  function onEvent(name, data) {
    if (!data) return;
    const idle = { asking: undefined, retrying: undefined, growing: undefined };
    if (name === 'growing') return grow(data);
    if (name === 'began') update({ ...data, interrupted: false });
    else if (name === 'ended') update({ ...data, interrupted: false, ...idle });
    else if (name === 'interrupted') update({ ...data, interrupted: true, ...idle });
    else if (name === 'asking' && runs.has(data.run))
      update({ ...idle, id: data.run, asking: data.number, interrupted: false });
    else if (name === 'retrying' && runs.has(data.run))
      update({ id: data.run, asking: data.number, retrying: data });
    else if (name === 'step' && runs.has(data.run)) {
      const run = runs.get(data.run);
      const input = data.reported?.input ?? data.budget?.input_token_count ?? 0;
      update({
        id: data.run,
        ...idle,
        ...(data.budget && { window_assumed: data.budget.basis?.window === 'assumed' }),
        iterations: data.number,
        input_tokens: (run.input_tokens ?? 0) + input,
        output_tokens: (run.output_tokens ?? 0) + data.tokens,
        window: data.budget?.window || run.window,
        peak_tokens: Math.max(run.peak_tokens ?? 0, input + data.tokens),
      });
    } else if (name === 'lagged') refresh().catch(() => {});
    else if (name === 'running') {
      for (const id of data.runs)
        if (!runs.has(id)) update({ id, model: '', outcome: null, ended_at: null, iterations: 0 });
      // Calls of a gateway that has stopped get no answer.
      for (const { id, asking } of [...runs.values()])
        if (asking && !data.runs.includes(id)) update({ id, ...idle });
    } else return;
    drawSoon();
  }

  /** Updates the row of a run whose answer grows. */
  function grow(data) {
    const run = runs.get(data.run);
    if (!run || run.ended_at) return;
    Object.assign(run, { growing: data, asking: data.number, cost: data.cost ?? run.cost });
    run.retrying = undefined;
    const row = rows.get(run.id);
    // A stale row will be redrawn as a whole.
    if (!row || stale.has(run.id)) return;
    const cells = [...line(run).cells];
    [...row.cells].forEach((cell, at) => {
      const isName = cell.tagName === 'TH';
      if (!isName && cell.textContent !== cells[at].textContent) cell.replaceWith(cells[at]);
      if (!isName) return;
      // The cell with the link stays, so that it keeps the focus.
      const [why, now] = [cell.querySelector('.why'), cells[at].querySelector('.why')];
      if (why) why.textContent = now.textContent;
      else cell.append(now);
    });
    if (data.cost) table.classList.add('priced');
  }

  /** Shows that the gateway records no runs. */
  function showUnrecorded() {
    live('off');
    fill(
      nothing,
      h('p', {}, 'This gateway does not record runs (', h('code', {}, 'serve.record'), ').'),
      h('p', {}, 'The ', h('a', { href: '#/playground' }, 'playground'), ' works without them.'),
    );
    nothing.hidden = runs.size > 0;
  }

  const { has_store: hasStore, record, findings } = await gateway();
  fill(server, ...findings.map(finding));
  server.hidden = findings.length === 0;
  if (!hasStore) return showUnrecorded();
  await load();
  loadTotals();
  const poll = setInterval(() => {
    if (!document.hidden) refresh().catch(() => {});
  }, REFRESH_MS);
  // A running run shows its duration.
  const tick = setInterval(() => {
    if (isNew && Date.now() >= nextTotals && !document.hidden) loadTotals();
    for (const run of runs.values()) {
      if (!run.ended_at && !run.interrupted && run.began_at) {
        const cell = rows.get(run.id)?.querySelector('.took');
        if (cell) [cell.textContent] = timeTaken(run);
      }
    }
  }, 1000);
  signal.addEventListener('abort', () => {
    clearInterval(poll);
    clearInterval(tick);
  });
  if (record === 'off') return showUnrecorded();
  listen('/api/runs/events', onEvent, signal, live).catch(showUnrecorded);
}

/** A finding about the upstream, and its source. */
function finding({ subject, value, source }) {
  return h('li', {}, `${subject}: `, h('strong', {}, value), ` (${source})`);
}

/** Shows the state of the event stream. */
export function live(state) {
  const words = {
    live: 'live',
    connecting: 'connecting…',
    waiting: 'reconnecting…',
    off: 'not live',
  };
  document.getElementById('live').dataset.state = state;
  document.getElementById('live-word').textContent = words[state];
}

/** The tokens of the answers, if they were counted. */
const output = (run) => number(run.output_unknown ? undefined : run.output_tokens);

/** The remark on a run below its id. The search finds runs by these words (`searchTerms`). */
function remark(run) {
  const why = run.unfit
    ? `${counted(run.unfit.overflow, 'token')} too many for the window`
    : run.reason
    ? [REASONS[run.reason]?.[2] ?? run.reason, faultText(run.upstream_fault)].filter(Boolean).join(': ')
    : run.retrying
      ? retryingText(run.retrying)
      : run.asking
      ? `attempt ${run.asking}: ${progressText(run.growing)}`
      : run.elsewhere && !run.ended_at && !run.interrupted
        ? 'perhaps running at another gateway'
        : stopPlace(run);
  const cut =
    run.cut && run.cut.offset > 0 ? `stops ${place(run.cut.place)} at ${path(run.cut.path)}` : '';
  const left =
    run.dropped_messages > 0 ? `${counted(run.dropped_messages, 'older message')} left out` : '';
  return [why, cut, left].filter(Boolean).join('; ');
}

/** The pipeline and the models of a run. */
function names(run) {
  const [model, ...others] = modelsOf(run);
  const models = others.length > 0 ? `${model} and ${counted(others.length, 'other')}` : model;
  return [run.pipeline, models].filter(Boolean).join(' · ') || '–';
}

function line(run) {
  const { word, sign, help } = outcome(run);
  const isText = run.ended_at && run.iterations === 0 && run.outcome === 'complete';
  const isCalled = run.upstream_fault || (run.ended_at && run.input_tokens > 0);
  const attempts = Math.max(run.calls ?? run.iterations, isCalled ? 1 : 0);
  const figures = [
    isText
      ? h('abbr', { title: 'a complete answer, nothing to join' }, '1')
      : run.pipeline
        ? counted(run.iterations, 'step')
        : number(attempts),
    number(run.growing ? run.growing.input_tokens : run.input_tokens),
    run.growing ? approximate(number(run.growing.output_tokens)) : output(run),
    gauge(run.peak_tokens ?? 0, run.window, run.window_assumed),
    cost(run),
    h('span', { title: timeTaken(run).join('') }, timeTaken(run)[0]),
    run.began_at ? clock(run.began_at) : '–',
  ];
  const note = remark(run);
  const isOfSeveral = modelsOf(run).length > 1;
  return h(
    'tr',
    { role: 'row' },
    h(
      'td',
      { role: 'cell' },
      h(
        'span',
        { class: `badge ${word}`, title: help },
        h('span', { 'aria-hidden': 'true' }, sign),
        word,
      ),
    ),
    h(
      'th',
      { scope: 'row', role: 'rowheader' },
      h('a', { href: `#/runs/${encodeURIComponent(run.id)}` }, run.id),
      h('span', { class: 'model', title: isOfSeveral && modelsOf(run).join(', ') }, named(names(run))),
      note && h('span', { class: 'why' }, note),
    ),
    figures.map((figure, at) => {
      const [label, kind, , short = label] = COLUMNS[at + 2];
      return h('td', { role: 'cell', class: kind, 'data-label': short }, figure);
    }),
  );
}

/** The cost of a run, rounded for the list. */
function cost(run) {
  const partial = run.partial_cost;
  const rounded = partial
    ? `at least ${roundedMoney(partial)}`
    : run.growing && run.cost
      ? approximate(roundedMoney(run.cost))
      : roundedMoney(run.cost);
  const title = partial
    ? `exactly ${money(partial)} ${unpriced(partial)}`
    : run.cost && `exactly ${money(run.cost)}`;
  return h('span', { title }, rounded);
}

/** Where a pipeline stopped and why, unless it was resumed. */
function stopPlace({ outcome, interrupted, stopped_at: at }) {
  if (!at || !(interrupted || ['failed', 'cancelled'].includes(outcome))) return '';
  if (!at.why) return `in ${at.step_id}`;
  return `in ${at.step_id}: ${at.why.length > 120 ? `${beginning(at.why, 119)}…` : at.why}`;
}

/** The fault of an upstream, shortened. */
const faultText = (fault) =>
  fault &&
  [fault.status, fault.message.length > 80 ? `${beginning(fault.message, 79)}…` : fault.message]
    .filter(Boolean)
    .join(' ');

/** What Overlock does, and how to use it. */
function introduction() {
  const address = `${location.origin}/v1`;
  return h(
    'section',
    { class: 'intro', 'aria-labelledby': 'intro-title' },
    h(
      'div',
      {},
      h('h1', { id: 'intro-title' }, 'Complete model answers'),
      h(
        'p',
        {},
        'Overlock is a gateway between your program and its language model. It makes every request fit the model’s context window. When an answer is cut off, it asks the model to continue and joins the pieces, so that your program gets one complete document.',
      ),
      h(
        'p',
        { class: 'use' },
        'To use it, set the ',
        h('code', {}, 'base_url'),
        ' of any OpenAI client to ',
        h('code', { class: 'path' }, address),
        ' ',
        copyButton('Copy', async () => address, 'address'),
      ),
    ),
    example(),
  );
}

/** Two answers, one of them cut, become one document. */
function example() {
  const cut = () => h('span', { class: 'scissors', role: 'img', 'aria-label': 'cut here' }, '✂');
  const joint = () => h('span', { class: 'joint', role: 'img', 'aria-label': 'seam' }, '┃');
  const line = (label, about, ...text) =>
    h('div', {}, h('dt', {}, label), h('dd', {}, h('code', {}, text), h('span', {}, about)));
  return h(
    'dl',
    { class: 'example' },
    line('Answer 1', 'is cut off', '{"ports": ["Oslo", "Ber', cut()),
    line(
      'Answer 2',
      'repeats the end and continues',
      h('mark', { class: 'repeated' }, '"Oslo", "Ber'),
      'gen", "Hull"]}',
    ),
    line('You get', 'one complete document', '{"ports": ["Oslo", "Ber', joint(), 'gen", "Hull"]}'),
  );
}

/** How to get a first run. */
function firstSteps() {
  const request = {
    model: 'overlock-demo',
    stream: true,
    response_format: { type: 'json_object' },
    messages: [{ role: 'user', content: 'List the elements as JSON.' }],
  };
  const status = h('p', { role: 'status' });
  const button = h(
    'button',
    {
      type: 'button',
      class: 'primary',
      onclick: async () => {
        button.disabled = true;
        try {
          const run = await askModel({ ...request, stream: false });
          if (run) location.hash = `#/runs/${encodeURIComponent(run)}`;
          else fill(status, 'The run is in the list.');
        } catch (error) {
          fill(status, error.message);
        }
        button.disabled = false;
      },
    },
    'Run the demo',
  );
  return [
    h(
      'p',
      {},
      'No runs recorded yet. A demo model with truncated answers is built in. Try it:',
    ),
    button,
    status,
  ];
}
