// The list of runs, as they happen.

import { ask, askModel, gateway, listen } from './api.js';
import { copyButton, fill, h, name as named, say, settled } from './dom.js';
import { beginning } from './text.js';
import { gauge } from './window.js';
import {
  about,
  clock,
  counted,
  lasted,
  modelsOf,
  money,
  notAnswered,
  number,
  outcome,
  path,
  place,
  REASONS,
  roundedMoney,
  searchTerms,
  share,
  soFar,
  unpriced,
} from './words.js';

/** How many runs are read at first, and with every wish for more. */
const AT_ONCE = 100;

/** What other gateways record in the same store is told by no event of this one. */
const LOOK_AGAIN = 3000;

/** Sums over all runs are asked for so seldom that it takes this part of the time at most. */
const PART_FOR_SUMS = 1 / 20;

/** What happens within so many milliseconds is drawn at once. */
const DRAWN_AT_ONCE = 150;

/** The gateway reads no more of what is looked for. */
const LONGEST_SEARCH = 400;

/** What shows that something happened to a run. */
const SEEN = ['ended_at', 'outcome', 'iterations', 'output_tokens', 'paused_ms'];

/** Each with the states that it lets through: what nobody works on has stopped, too. */
const FILTERS = [
  ['', 'All', ''],
  ['running', 'Running', 'running'],
  ['whole', 'Whole', 'complete'],
  ['partial', 'Partial', 'partial'],
  ['failed', 'Failed', 'failed'],
  ['stopped', 'Stopped', 'cancelled,left'],
];

/** What a run is called that is in a state. */
const WORDS = [
  ['running', 'running'],
  ['complete', 'whole'],
  ['partial', 'partial'],
  ['failed', 'failed'],
  ['cancelled', 'stopped'],
  ['left', 'broken off'],
];

/** What is told of each run: a heading, a class, what a heading leaves out, and a shorter heading. */
const COLUMNS = [
  ['Outcome'],
  ['Run and model'],
  ['Attempts, steps', 'figure tries', '', 'Attempts'],
  ['Tokens in', 'figure'],
  ['Tokens out', 'figure'],
  ['Fullest window', '', 'how full the window of the model was in the largest call', 'Window'],
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
  let wanted = parameters.get('q') ?? '';
  // Runs of which the row is older than what is known.
  const stale = new Set();
  // What the gateway told last of the latest runs, whatever is looked for.
  let latest = new Set();
  // Of those that are looked for, all are there from this one on, and not more than so many.
  let oldest = '';
  let room = AT_ONCE;
  let mayBeMore = false;
  let sums = null;
  // The state in which each run is in these sums, as far as it is known here.
  let countedAs = new Map();
  // What the gateway found for what is looked for: it knows more of a run than a list tells.
  let answers = new Set();
  // Whether anything has happened since, and when sums are made again at the earliest.
  let isNew = false;
  let nextSums = Infinity;
  let isWaiting = false;
  let searching = new AbortController();

  const body = h('tbody', { role: 'rowgroup' });
  const summary = h('p', { class: 'summary' });
  const nothing = h('div', { class: 'nothing', hidden: true });
  const server = h('ul', { class: 'findings', 'aria-label': 'The upstream', hidden: true });
  const more = h(
    'button',
    { type: 'button', hidden: true, onclick: () => lookUp(oldest).catch(() => {}) },
    `Show ${number(AT_ONCE)} more`,
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
    value: wanted,
    oninput: settled(150, () => {
      wanted = search.value;
      sought();
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
        // What is drawn as cards on a small screen is a table all the same.
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
    sought();
  }

  /** Something else is looked for. What of it is known is there at once. */
  function sought() {
    remember();
    // Nobody waits any more for what was looked for before.
    searching.abort();
    searching = new AbortController();
    [oldest, room, mayBeMore, sums] = ['', AT_ONCE, false, null];
    answers = new Set();
    draw();
    lookUp().catch(() => {});
    addUp();
  }

  /** What is looked for, as the gateway reads it. */
  function query(more = {}) {
    const [, , states] = FILTERS.find(([name]) => name === filter);
    const asked = { outcome: states, q: beginning(searchTerms(wanted), LONGEST_SEARCH), ...more };
    const given = Object.entries(asked).filter(([, value]) => value !== '');
    return new URLSearchParams(given).toString();
  }

  /** Reads those that are looked for, or more of them. */
  async function lookUp(before = '') {
    const search = searching.signal;
    // One more than is shown tells whether there are more.
    const asked = query({ limit: AT_ONCE + 1, before });
    let listed;
    try {
      listed = await ask(`/api/runs?${asked}`, { signal: AbortSignal.any([signal, search]) });
    } catch (error) {
      // Meanwhile something else is looked for.
      if (search.aborted) return;
      throw error;
    }
    if (search.aborted) return;
    mayBeMore = listed.length > AT_ONCE;
    listed = listed.slice(0, AT_ONCE);
    take(listed);
    for (const { id } of listed) {
      answers.add(id);
      // What is found now is in the sums, though it was not known here when they came.
      if (sums && !countedAs.get(id)) countedAs.set(id, stateOf(runs.get(id)));
    }
    if (before) room += AT_ONCE;
    else if (!isPart()) latest = new Set(listed.map(({ id }) => id));
    oldest = listed.at(-1)?.id ?? oldest;
    draw();
  }

  /** Has all recorded runs added up that are looked for. */
  async function addUp() {
    const search = searching.signal;
    const began = Date.now();
    [isNew, nextSums] = [false, Infinity];
    try {
      const either = AbortSignal.any([signal, search]);
      // Both at once, so that it is known in which state a run was that is in the sums.
      const totals = ask(`/api/runs/totals?${query()}`, { signal: either });
      const [told] = await Promise.all([totals, read()]);
      if (search.aborted) return;
      sums = told;
      const recorded = [...runs.values()].filter((run) => run.isRecorded && matches(run));
      countedAs = new Map(recorded.map((run) => [run.id, stateOf(run)]));
    } catch {
      // What was told before is there all the same.
    }
    if (search.aborted) return;
    nextSums = Date.now() + Math.max(LOOK_AGAIN, (Date.now() - began) / PART_FOR_SUMS);
    draw();
  }

  function remember() {
    const query = new URLSearchParams();
    if (filter) query.set('outcome', filter);
    if (wanted) query.set('q', wanted);
    const text = query.toString();
    history.replaceState(null, '', text ? `#/runs?${text}` : '#/runs');
  }

  const matches = (run) => {
    const { word, name } = outcome(run);
    const kind = name === 'left' ? 'stopped' : name;
    if (filter && filter !== kind) return false;
    if (answers.has(run.id)) return true;
    // As the gateway looks for them: in what is shown, and in what is only named.
    const words = wanted.trim().toLowerCase().split(/\s+/);
    const text = [
      run.id,
      called(run),
      ...modelsOf(run),
      word,
      { whole: 'complete', stopped: 'cancelled' }[name] ?? name,
      run.reason,
      run.cut?.path,
      run.stopped_at?.why,
      run.upstream_fault?.message,
      run.unfit?.message,
      remark(run),
    ]
      .join(' ')
      .toLowerCase();
    // What is too long for a list is shown with dots at its end.
    return words.every((word) => text.includes(word.replaceAll(/^…+|…+$/g, '')));
  };

  /** Whether only some of all runs are looked for. */
  const isPart = () => Boolean(filter || wanted.trim());

  const isRunning = (run) => outcome(run).name === 'running';

  /** What a run is in the sums of the gateway. */
  const stateOf = (run) => WORDS.find(([, word]) => word === outcome(run).word)[0];

  function drawSoon() {
    if (isWaiting) return;
    isWaiting = true;
    setTimeout(() => {
      isWaiting = false;
      if (!signal.aborted) draw();
    }, DRAWN_AT_ONCE);
  }

  function draw() {
    const sorted = [...runs.values()].sort((one, other) => (one.id < other.id ? 1 : -1));
    const found = sorted.filter(matches);
    const last = found.filter((run) => !mayBeMore || run.id >= oldest)[room - 1];
    // What has come since takes the place of the oldest, or a list that is left open would grow for ever.
    if (last && last !== found.at(-1)) [oldest, mayBeMore] = [last.id, true];
    // There may be others before the oldest, which nobody has read.
    const there = found.filter((run) => !mayBeMore || run.id >= oldest || isRunning(run));
    forgetAllBut(there);
    // Rows that stay are not touched, or they would lose their focus.
    let at = body.firstChild;
    for (const run of there) {
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
    summarise(sorted, there);
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

  /** Keeps what is shown, what is running, and the latest, by which it is seen what is new. */
  function forgetAllBut(there) {
    const kept = new Set(there);
    for (const run of runs.values()) {
      if (kept.has(run)) continue;
      rows.delete(run.id);
      stale.delete(run.id);
      if (!isRunning(run) && !latest.has(run.id)) runs.delete(run.id);
    }
  }

  /** What is looked for in all recorded runs, and not only in those that are drawn. */
  function summarise(sorted, there) {
    const isPriced = (run) => run.cost || run.partial_cost;
    // Nothing is told of what nobody has given a price.
    table.classList.toggle('priced', Boolean(sums?.cost) || there.some(isPriced));
    summary.textContent = sums ? summed(sums, statesNow()) : '';
    more.hidden = !mayBeMore;
    nothing.hidden = there.length > 0;
    if (there.length > 0) return;
    if (sorted.length > 0 || isPart()) fill(nothing, h('p', {}, 'No run is like that.'));
    else if (!nothing.firstChild) fill(nothing, firstSteps());
  }

  /** How many runs are in which state: as the gateway said, with what has happened since to each. */
  function statesNow() {
    const states = { ...sums.outcomes };
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

  /** Sums in words, and what they are about. */
  function summed({ looked_at, is_all, priced, unpriced: others, cost, ...tokens }, states) {
    const there = WORDS.filter(([name]) => states[name] > 0);
    const words = there.map(([name, word]) => `${number(states[name])} ${word}`);
    const count = there.reduce((sum, [name]) => sum + states[name], 0);
    const all = is_all ? counted(looked_at, 'recorded run') : `the last ${number(looked_at)} runs`;
    if (count === 0) return isPart() ? `none of ${all}` : '';
    const what = isPart() ? `${number(count)} of ${all}` : is_all ? counted(count, 'run') : all;
    const whose = others > 0 ? `for the ${number(priced)} with prices` : 'in all';
    const isOver = there.some(([name]) => name !== 'running');
    return [
      `${what}: ${words.join(', ')}`,
      isOver && `${number(tokens.input_tokens)} tokens in, ${number(tokens.output_tokens)} out`,
      tokens.cache_hit_rate > 0 && `${share(tokens.cache_hit_rate, 1)} of input cached`,
      tokens.cost_ratio > 1 && `cost ratio ${tokens.cost_ratio.toFixed(2)}`,
      cost && `${money(cost)} ${whose}`,
    ]
      .filter(Boolean)
      .join('; ');
  }

  function update(run) {
    const before = runs.get(run.id) ?? {};
    const word = outcome(before).word;
    runs.set(run.id, { ...before, ...run });
    stale.add(run.id);
    const now = outcome(runs.get(run.id)).word;
    isNew ||= now !== word;
    if (now !== word && now !== 'running')
      say(`Run ${run.id} of ${run.model ?? before.model}: ${now}`);
  }

  /** The latest runs, whatever is looked for. */
  async function read() {
    const listed = await ask(`/api/runs?limit=${AT_ONCE}`, { signal });
    // So many have come that nobody knows what was between.
    const isGap =
      latest.size > 0 && listed.length >= AT_ONCE && !listed.some(({ id }) => runs.has(id));
    take(listed);
    latest = new Set(listed.map(({ id }) => id));
    if (isGap) return lookUp();
    draw();
  }

  function take(listed) {
    for (const run of listed) {
      const known = runs.get(run.id);
      // Where the gateway does not know whether somebody works on it, an event may have told that
      // nobody does.
      const left = Boolean(run.left || (run.elsewhere && known?.left));
      if (known) known.isRecorded = true;
      if (known && SEEN.every((name) => known[name] === run[name]) && Boolean(known.left) === left)
        continue;
      const seen = { ...(run.pipeline ? {} : known), ...run, left, isRecorded: true };
      if (known) update(seen);
      else {
        runs.set(run.id, seen);
        isNew = true;
      }
    }
  }

  function heard(name, told) {
    if (!told) return;
    const nothing = { asking: undefined, retrying: undefined, growing: undefined };
    if (name === 'growing') return grow(told);
    if (name === 'began') update({ ...told, left: false });
    else if (name === 'ended') update({ ...told, left: false, ...nothing });
    else if (name === 'left') update({ ...told, left: true, ...nothing });
    else if (name === 'asking' && runs.has(told.run))
      update({ ...nothing, id: told.run, asking: told.number, left: false });
    else if (name === 'retrying' && runs.has(told.run))
      update({ id: told.run, asking: told.number, retrying: told });
    else if (name === 'step' && runs.has(told.run)) {
      const run = runs.get(told.run);
      const input = told.told?.input ?? told.budget?.input_token_count ?? 0;
      update({
        id: told.run,
        ...nothing,
        ...(told.budget && { window_assumed: told.budget.basis?.window === 'assumed' }),
        iterations: told.number,
        input_tokens: (run.input_tokens ?? 0) + input,
        output_tokens: (run.output_tokens ?? 0) + told.tokens,
        window: told.budget?.window || run.window,
        peak_tokens: Math.max(run.peak_tokens ?? 0, input + told.tokens),
      });
    } else if (name === 'lagged') read().catch(() => {});
    else if (name === 'running') {
      for (const id of told.runs)
        if (!runs.has(id)) update({ id, model: '', outcome: null, ended_at: null, iterations: 0 });
      // What was asked of a gateway that is gone is not answered here.
      for (const { id, asking } of [...runs.values()])
        if (asking && !told.runs.includes(id)) update({ id, ...nothing });
    } else return;
    drawSoon();
  }

  /** Shows how much has come of an answer, in its row and nowhere else. */
  function grow(told) {
    const run = runs.get(told.run);
    if (!run || run.ended_at) return;
    Object.assign(run, { growing: told, asking: told.number, cost: told.cost ?? run.cost });
    run.retrying = undefined;
    const row = rows.get(run.id);
    // Where there is more to be drawn, this is drawn with it.
    if (!row || stale.has(run.id)) return;
    const cells = [...line(run).cells];
    [...row.cells].forEach((cell, at) => {
      const isName = cell.tagName === 'TH';
      if (!isName && cell.textContent !== cells[at].textContent) cell.replaceWith(cells[at]);
      if (!isName) return;
      // Whoever is at the name of the run stays there.
      const [why, now] = [cell.querySelector('.why'), cells[at].querySelector('.why')];
      if (why) why.textContent = now.textContent;
      else cell.append(now);
    });
    if (told.cost) table.classList.add('priced');
  }

  /** A list to which nothing will be added says so. */
  function unrecorded() {
    live('off');
    fill(
      nothing,
      h('p', {}, 'This gateway does not record runs (', h('code', {}, 'serve.record'), ').'),
      h('p', {}, 'The ', h('a', { href: '#/bench' }, 'bench'), ' works all the same.'),
    );
    nothing.hidden = runs.size > 0;
  }

  const { has_store: hasStore, record, findings } = await gateway();
  fill(server, ...findings.map(finding));
  server.hidden = findings.length === 0;
  if (!hasStore) return unrecorded();
  await lookUp();
  addUp();
  const again = setInterval(() => {
    if (!document.hidden) read().catch(() => {});
  }, LOOK_AGAIN);
  // A run that lasts shows how long it has.
  const tick = setInterval(() => {
    if (isNew && Date.now() >= nextSums && !document.hidden) addUp();
    for (const run of runs.values()) {
      if (!run.ended_at && !run.left && run.began_at) {
        const cell = rows.get(run.id)?.querySelector('.took');
        if (cell) [cell.textContent] = lasted(run);
      }
    }
  }, 1000);
  signal.addEventListener('abort', () => {
    clearInterval(again);
    clearInterval(tick);
  });
  if (record === 'off') return unrecorded();
  listen('/api/runs/events', heard, signal, live).catch(unrecorded);
}

/** Something that was found out about the upstream, and what says so. */
function finding({ subject, value, source }) {
  return h('li', {}, `${subject}: `, h('strong', {}, value), ` (${source})`);
}

/** Shows whether events arrive. */
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

/** The tokens of the answers, unless neither the provider nor anybody else counted them. */
const output = (run) => number(run.output_unknown ? undefined : run.output_tokens);

/** What is told of a run below its name. Runs are found by these words (`api/totals.rs`). */
function remark(run) {
  const why = run.unfit
    ? `${counted(run.unfit.overflow, 'token')} too many for the window`
    : run.reason
    ? [REASONS[run.reason]?.[2] ?? run.reason, said(run.upstream_fault)].filter(Boolean).join(': ')
    : run.retrying
      ? notAnswered(run.retrying)
      : run.asking
      ? `asking, attempt ${run.asking}${run.growing ? `: ${soFar(run.growing)}` : ''}`
      : run.elsewhere && !run.ended_at && !run.left
        ? 'not at this gateway, but perhaps at another'
        : stopped(run);
  const cut =
    run.cut && run.cut.offset > 0 ? `stops ${place(run.cut.place)} at ${path(run.cut.path)}` : '';
  const left =
    run.dropped_messages > 0 ? `${counted(run.dropped_messages, 'older message')} left out` : '';
  return [why, cut, left].filter(Boolean).join('; ');
}

/** The pipeline and the models of a run. */
function called(run) {
  const [model, ...others] = modelsOf(run);
  const models = others.length > 0 ? `${model} and ${counted(others.length, 'other')}` : model;
  return [run.pipeline, models].filter(Boolean).join(' · ') || '–';
}

function line(run) {
  const { word, sign, name, help } = outcome(run);
  const isText = run.ended_at && run.iterations === 0 && run.outcome === 'complete';
  const isAsked = run.upstream_fault || (run.ended_at && run.input_tokens > 0);
  const attempts = Math.max(run.calls ?? run.iterations, isAsked ? 1 : 0);
  const figures = [
    isText
      ? h('abbr', { title: 'an answer that needed no joining' }, '1')
      : run.pipeline
        ? counted(run.iterations, 'step')
        : number(attempts),
    number(run.growing ? run.growing.input_tokens : run.input_tokens),
    run.growing ? about(number(run.growing.output_tokens)) : output(run),
    gauge(run.peak_tokens ?? 0, run.window, run.window_assumed),
    cost(run),
    h('span', { title: lasted(run).join('') }, lasted(run)[0]),
    run.began_at ? clock(run.began_at) : '–',
  ];
  const told = remark(run);
  const isOfSeveral = modelsOf(run).length > 1;
  return h(
    'tr',
    { role: 'row' },
    h(
      'td',
      { role: 'cell' },
      h(
        'span',
        { class: `badge ${name}`, title: help },
        h('span', { 'aria-hidden': 'true' }, sign),
        word,
      ),
    ),
    h(
      'th',
      { scope: 'row', role: 'rowheader' },
      h('a', { href: `#/runs/${encodeURIComponent(run.id)}` }, run.id),
      h('span', { class: 'model', title: isOfSeveral && modelsOf(run).join(', ') }, named(called(run))),
      told && h('span', { class: 'why' }, told),
    ),
    figures.map((figure, at) => {
      const [label, kind, , short = label] = COLUMNS[at + 2];
      return h('td', { role: 'cell', class: kind, 'data-label': short }, figure);
    }),
  );
}

/** What a run cost, to be compared with others. */
function cost(run) {
  const some = run.partial_cost;
  const told = some
    ? `at least ${roundedMoney(some)}`
    : run.growing && run.cost
      ? about(roundedMoney(run.cost))
      : roundedMoney(run.cost);
  const title = some
    ? `exactly ${money(some)} ${unpriced(some)}`
    : run.cost && `exactly ${money(run.cost)}`;
  return h('span', { title }, told);
}

/** Where a pipeline stopped, and why. One that was taken up again has not. */
function stopped({ outcome, left, stopped_at: at }) {
  if (!at || !(left || ['failed', 'cancelled'].includes(outcome))) return '';
  if (!at.why) return `in ${at.step_id}`;
  return `in ${at.step_id}: ${at.why.length > 120 ? `${beginning(at.why, 119)}…` : at.why}`;
}

/** What an upstream said, in a few words. */
const said = (fault) =>
  fault &&
  [fault.status, fault.message.length > 80 ? `${beginning(fault.message, 79)}…` : fault.message]
    .filter(Boolean)
    .join(' ');

/** What this is, for whoever looks for the first time, and how to use it, for all others. */
function introduction() {
  const address = `${location.origin}/v1`;
  return h(
    'section',
    { class: 'intro', 'aria-labelledby': 'intro-title' },
    h(
      'div',
      {},
      h('h1', { id: 'intro-title' }, 'Model answers, kept whole'),
      h(
        'p',
        {},
        'Overlock stands between your program and its language model. It makes every request fit the model’s window. When an answer is cut off, it asks for the rest and joins the pieces, so that your program gets one whole document.',
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
      'repeats the end and goes on',
      h('mark', { class: 'repeated' }, '"Oslo", "Ber'),
      'gen", "Hull"]}',
    ),
    line('You get', 'one whole document', '{"ports": ["Oslo", "Ber', joint(), 'gen", "Hull"]}'),
  );
}

/** How to see a run if there is none yet. */
function firstSteps() {
  const request = {
    model: 'overlock-demo',
    stream: true,
    response_format: { type: 'json_object' },
    messages: [{ role: 'user', content: 'List the elements as JSON.' }],
  };
  const said = h('p', { role: 'status' });
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
          else fill(said, 'It is in the list.');
        } catch (error) {
          fill(said, error.message);
        }
        button.disabled = false;
      },
    },
    'Run the demonstration',
  );
  return [
    h(
      'p',
      {},
      'Nothing has been recorded yet. A model is built in whose every answer is cut off, so that you can see what happens then:',
    ),
    button,
    said,
  ];
}
