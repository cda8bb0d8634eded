// The list of runs, as they happen.

import { ApiError, ask, listen } from './api.js';
import { fill, h, say, settled, svg } from './dom.js';
import { gauge } from './window.js';
import {
  clock,
  counted,
  duration,
  money,
  number,
  outcome,
  path,
  place,
  total,
} from './words.js';

/** How many runs are read at first, and with every wish for more. */
const AT_ONCE = 100;
const MOST = 1000;

/** What other gateways record in the same store is told by no event of this one. */
const LOOK_AGAIN = 3000;

/** What shows that something happened to a run. */
const SEEN = ['ended_at', 'outcome', 'iterations'];

const FILTERS = [
  ['', 'All'],
  ['running', 'Running'],
  ['whole', 'Whole'],
  ['partial', 'Partial'],
  ['failed', 'Failed'],
  ['stopped', 'Stopped'],
];

export async function showRuns(frame, { parameters, signal }) {
  document.title = 'Overlock';
  const runs = new Map();
  const rows = new Map();
  let limit = AT_ONCE;
  let filter = FILTERS.some(([name]) => name === parameters.get('outcome'))
    ? parameters.get('outcome')
    : '';
  let wanted = parameters.get('q') ?? '';
  let mayBeMore = false;

  const body = h('tbody');
  const summary = h('p', { class: 'summary' });
  const nothing = h('div', { class: 'nothing', hidden: true });
  const more = h(
    'button',
    {
      type: 'button',
      hidden: true,
      onclick: () => {
        limit = MOST;
        read();
      },
    },
    `Show the last ${number(MOST)}`,
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
    placeholder: 'run, model, reason, path',
    value: wanted,
    oninput: settled(150, () => {
      wanted = search.value;
      remember();
      draw();
    }),
  });

  let table;
  const heads = [
    ['Outcome'],
    ['Run and model'],
    ['Attempts, steps', 'figure tries'],
    ['Tokens in', 'figure wide'],
    ['Tokens out', 'figure wide'],
    ['Fullest window', 'wide wider'],
    ['Cost', 'figure wide cost'],
    ['Took', 'figure'],
    ['Began', 'figure wide wider'],
  ];
  fill(
    frame,
    introduction(),
    h(
      'section',
      { 'aria-labelledby': 'runs-title' },
      h('div', { class: 'list-head' }, h('h2', { id: 'runs-title' }, 'Runs'), summary),
      h(
        'div',
        { class: 'tools', role: 'group', 'aria-label': 'Which runs' },
        h('div', { class: 'segmented', role: 'group', 'aria-label': 'Outcome' }, buttons),
        h('label', { class: 'search', for: 'search' }, 'Search', search),
      ),
      (table = h(
        'table',
        { class: 'figures list' },
        h('caption', { class: 'unseen' }, 'Runs, the latest first'),
        h(
          'thead',
          {},
          h(
            'tr',
            {},
            heads.map(([label, kind]) => h('th', { scope: 'col', class: kind }, label)),
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
    remember();
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
    // What nobody works on has stopped, too.
    const kind = name === 'left' ? 'stopped' : name;
    if (filter && filter !== kind) return false;
    const words = wanted.trim().toLowerCase().split(/\s+/);
    const text = [
      run.id,
      run.model,
      word,
      run.reason,
      run.cut?.path,
      run.pipeline,
      run.stopped_at?.step_id,
      run.stopped_at?.why,
      run.upstream_fault?.status,
      run.upstream_fault?.message,
    ]
      .join(' ')
      .toLowerCase();
    return words.every((word) => text.includes(word));
  };

  function draw() {
    const sorted = [...runs.values()].sort((one, other) => (one.id < other.id ? 1 : -1));
    const there = sorted.filter(matches);
    // Rows that stay are not touched, or they would lose their focus.
    let at = body.firstChild;
    for (const run of there) {
      const row = rows.get(run.id) ?? drawn(run);
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
    rows.get(run.id)?.replaceWith(row);
    rows.set(run.id, row);
    return row;
  }

  function summarise(sorted, there) {
    const count = (name) => sorted.filter((run) => outcome(run).name === name).length;
    const parts = ['running', 'whole', 'partial', 'failed', 'stopped', 'left']
      .filter((name) => count(name) > 0)
      .map((name) => `${number(count(name))} ${name}`);
    const shown = there.length < sorted.length ? `; ${number(there.length)} shown` : '';
    const cost = total(there.map((run) => run.cost));
    // Nothing is told of what nobody has given a price.
    table.classList.toggle('priced', Boolean(cost));
    const priced = there.filter((run) => run.cost).length;
    const whose = priced < there.length ? `for the ${number(priced)} with prices` : 'in all';
    const paid = cost ? `; ${money(cost)} ${whose}` : '';
    const all = `${counted(sorted.length, 'run')}: ${parts.join(', ')}${shown}${paid}`;
    summary.textContent = sorted.length === 0 ? '' : all;
    more.hidden = !mayBeMore || limit >= MOST;
    nothing.hidden = there.length > 0;
    if (there.length > 0) return;
    if (sorted.length > 0) fill(nothing, h('p', {}, 'No run is like that.'));
    else if (!nothing.firstChild) fill(nothing, firstSteps());
  }

  function update(run) {
    const before = runs.get(run.id) ?? {};
    const word = outcome(before).word;
    runs.set(run.id, { ...before, ...run });
    const there = rows.get(run.id);
    const hadFocus = there?.contains(document.activeElement);
    const row = drawn(runs.get(run.id));
    if (hadFocus) row.querySelector('a').focus();
    const now = outcome(runs.get(run.id)).word;
    if (now !== word && now !== 'running')
      say(`Run ${run.id} of ${run.model ?? before.model}: ${now}`);
  }

  async function read() {
    const listed = await ask(`/api/runs?limit=${limit}`, { signal });
    mayBeMore = listed.length >= limit;
    for (const run of listed) {
      const known = runs.get(run.id);
      if (known && SEEN.every((name) => known[name] === run[name]) && (known.left || !run.left))
        continue;
      const seen = { ...known, ...run, left: Boolean(run.left || (known?.left && !run.ended_at)) };
      if (known) update(seen);
      else {
        runs.set(run.id, seen);
        drawn(seen);
      }
    }
    draw();
  }

  function heard(name, told) {
    if (!told) return;
    if (name === 'began') update({ ...told, left: false });
    else if (name === 'ended') update({ ...told, left: false, asking: undefined });
    else if (name === 'left') update({ ...told, left: true, asking: undefined });
    else if (name === 'asking' && runs.has(told.run))
      update({ id: told.run, asking: told.number, left: false });
    else if (name === 'step' && runs.has(told.run)) {
      const run = runs.get(told.run);
      const input = told.budget?.input_token_count ?? 0;
      update({
        id: told.run,
        asking: undefined,
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
    } else return;
    draw();
  }

  /** A list to which nothing will be added says so. */
  function unrecorded(error) {
    if (!(error instanceof ApiError) || error.code !== 'not-recorded') throw error;
    live('off');
    fill(
      nothing,
      h('p', {}, 'This gateway does not record runs (', h('code', {}, 'serve.record'), ').'),
      h('p', {}, 'The ', h('a', { href: '#/bench' }, 'bench'), ' works all the same.'),
    );
    nothing.hidden = runs.size > 0;
  }

  try {
    await read();
  } catch (error) {
    return unrecorded(error);
  }
  const again = setInterval(() => {
    if (!document.hidden) read().catch(() => {});
  }, LOOK_AGAIN);
  // A run that lasts shows how long it has.
  const tick = setInterval(() => {
    for (const run of runs.values()) {
      if (!run.ended_at && !run.left && run.began_at) {
        const cell = rows.get(run.id)?.querySelector('.took');
        if (cell) cell.textContent = duration(Date.now() - run.began_at);
      }
    }
  }, 1000);
  signal.addEventListener('abort', () => {
    clearInterval(again);
    clearInterval(tick);
  });
  listen('/api/runs/events', heard, signal, live).catch(unrecorded);
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

function line(run) {
  const { word, sign, name } = outcome(run);
  const took = run.ended_at ? run.ended_at - run.began_at : undefined;
  const why = run.reason
    ? [run.reason.replaceAll('-', ' '), said(run.upstream_fault)].filter(Boolean).join(': ')
    : run.asking
      ? `asking, attempt ${run.asking}`
      : stopped(run);
  const cut =
    run.cut && run.cut.offset > 0 ? `stops ${place(run.cut.place)} at ${path(run.cut.path)}` : '';
  const isText = run.ended_at && run.iterations === 0 && run.outcome === 'complete';
  const attempts = run.upstream_fault ? Math.max(run.iterations, 1) : run.iterations;
  return h(
    'tr',
    {},
    h(
      'td',
      {},
      h('span', { class: `badge ${name}` }, h('span', { 'aria-hidden': 'true' }, sign), word),
    ),
    h(
      'th',
      { scope: 'row' },
      h('a', { href: `#/runs/${encodeURIComponent(run.id)}` }, run.id),
      h('span', { class: 'model' }, [run.pipeline, run.model].filter(Boolean).join(' · ') || '–'),
      (why || cut) && h('span', { class: 'why' }, [why, cut].filter(Boolean).join('; ')),
    ),
    h(
      'td',
      { class: 'figure tries' },
      isText
        ? h('abbr', { title: 'an answer that needed no joining' }, '1')
        : run.pipeline
          ? run.ended_at
            ? counted(attempts, 'step')
            : '–'
          : number(attempts),
    ),
    h('td', { class: 'figure wide' }, number(run.input_tokens)),
    h('td', { class: 'figure wide' }, number(run.output_tokens)),
    h('td', { class: 'wide wider' }, gauge(run.peak_tokens ?? 0, run.window)),
    h('td', { class: 'figure wide cost' }, money(run.cost)),
    h(
      'td',
      { class: 'figure took' },
      took === undefined
        ? run.left || !run.began_at
          ? '–'
          : duration(Date.now() - run.began_at)
        : duration(took),
    ),
    h('td', { class: 'figure wide wider' }, run.began_at ? clock(run.began_at) : '–'),
  );
}

/** Where a pipeline stopped, and why. One that was taken up again has not. */
function stopped({ outcome, stopped_at: at }) {
  if (!at || !['failed', 'cancelled'].includes(outcome)) return '';
  if (!at.why) return `in ${at.step_id}`;
  return `in ${at.step_id}: ${at.why.length > 120 ? `${at.why.slice(0, 119)}…` : at.why}`;
}

/** What an upstream said, in a few words. */
const said = (fault) =>
  fault &&
  [fault.status, fault.message.length > 80 ? `${fault.message.slice(0, 79)}…` : fault.message]
    .filter(Boolean)
    .join(' ');

/** What this is, for whoever looks for the first time. */
function introduction() {
  return h(
    'section',
    { class: 'intro', 'aria-labelledby': 'intro-title' },
    h(
      'div',
      {},
      h('h1', { id: 'intro-title' }, 'Model calls, kept whole'),
      h(
        'p',
        {},
        'What goes in is made to fit the window. What comes out cut off is asked for again, joined where it repeats, and handed over as one document.',
      ),
    ),
    figure(),
  );
}

/** Three answers that overlap become one document. */
function figure() {
  const box = (x, y, width, name) => svg('rect', { x, y, width, height: 12, rx: 2, class: name });
  return svg(
    'svg',
    {
      class: 'figure',
      viewBox: '0 0 300 74',
      role: 'img',
      'aria-label':
        'Three cut answers, each repeating the end of the one before, become one document.',
    },
    box(0, 0, 110, 'f1'),
    box(86, 16, 110, 'f2'),
    box(172, 32, 128, 'f3'),
    box(86, 0, 24, 'seam'),
    box(86, 16, 24, 'seam'),
    box(172, 16, 24, 'seam'),
    box(172, 32, 24, 'seam'),
    box(0, 58, 98, 'f1'),
    box(98, 58, 86, 'f2'),
    box(184, 58, 116, 'f3'),
    svg('path', { d: 'M98 50v24M184 50v24', class: 'mark' }),
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
          await ask('/v1/chat/completions', { body: { ...request, stream: false } });
          said.textContent = 'It is in the list.';
        } catch (error) {
          said.textContent = error.message;
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
      'Nothing has been recorded yet. A scripted model is built in whose every answer is cut:',
    ),
    button,
    said,
    h(
      'p',
      {},
      'Or point the ',
      h('code', {}, 'base_url'),
      ' of any OpenAI client at ',
      h('code', {}, `${location.origin}/v1`),
      '.',
    ),
  ];
}
