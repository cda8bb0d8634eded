// The list of runs, as they happen.

import { ask, gateway, listen } from './api.js';
import { copyButton, fill, h, name as named, say, settled } from './dom.js';
import { beginning } from './text.js';
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
  REASONS,
  roundedMoney,
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
  let limit = AT_ONCE;
  let filter = FILTERS.some(([name]) => name === parameters.get('outcome'))
    ? parameters.get('outcome')
    : '';
  let wanted = parameters.get('q') ?? '';
  let mayBeMore = false;

  const body = h('tbody', { role: 'rowgroup' });
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
  function unrecorded() {
    live('off');
    fill(
      nothing,
      h('p', {}, 'This gateway does not record runs (', h('code', {}, 'serve.record'), ').'),
      h('p', {}, 'The ', h('a', { href: '#/bench' }, 'bench'), ' works all the same.'),
    );
    nothing.hidden = runs.size > 0;
  }

  const { has_store: hasStore, record } = await gateway();
  if (!hasStore) return unrecorded();
  await read();
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
  if (record === 'off') return unrecorded();
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
  const why = run.unfit
    ? `${counted(run.unfit.overflow, 'token')} too many for the window`
    : run.reason
    ? [REASONS[run.reason]?.[2] ?? run.reason, said(run.upstream_fault)].filter(Boolean).join(': ')
    : run.asking
      ? `asking, attempt ${run.asking}`
      : stopped(run);
  const cut =
    run.cut && run.cut.offset > 0 ? `stops ${place(run.cut.place)} at ${path(run.cut.path)}` : '';
  const isText = run.ended_at && run.iterations === 0 && run.outcome === 'complete';
  const isAsked = run.upstream_fault || (run.ended_at && run.input_tokens > 0);
  const attempts = isAsked ? Math.max(run.iterations, 1) : run.iterations;
  const figures = [
    isText
      ? h('abbr', { title: 'an answer that needed no joining' }, '1')
      : run.pipeline
        ? run.ended_at
          ? counted(attempts, 'step')
          : '–'
        : number(attempts),
    number(run.input_tokens),
    number(run.output_tokens),
    gauge(run.peak_tokens ?? 0, run.window),
    h('span', { title: run.cost && `exactly ${money(run.cost)}` }, roundedMoney(run.cost)),
    took === undefined
      ? run.left || !run.began_at
        ? '–'
        : duration(Date.now() - run.began_at)
      : duration(took),
    run.began_at ? clock(run.began_at) : '–',
  ];
  const called = [run.pipeline, run.model].filter(Boolean).join(' · ') || '–';
  return h(
    'tr',
    { role: 'row' },
    h(
      'td',
      { role: 'cell' },
      h('span', { class: `badge ${name}` }, h('span', { 'aria-hidden': 'true' }, sign), word),
    ),
    h(
      'th',
      { scope: 'row', role: 'rowheader' },
      h('a', { href: `#/runs/${encodeURIComponent(run.id)}` }, run.id),
      h('span', { class: 'model' }, named(called)),
      (why || cut) && h('span', { class: 'why' }, [why, cut].filter(Boolean).join('; ')),
    ),
    figures.map((figure, at) => {
      const [label, kind, , short = label] = COLUMNS[at + 2];
      return h('td', { role: 'cell', class: kind, 'data-label': short }, figure);
    }),
  );
}

/** Where a pipeline stopped, and why. */
function stopped({ stopped_at: at }) {
  if (!at) return '';
  if (!at.why) return `in ${at.step_id}`;
  return `in ${at.step_id}: ${at.why.length > 120 ? `${at.why.slice(0, 119)}…` : at.why}`;
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
          await ask('/v1/chat/completions', { body: { ...request, stream: false } });
          fill(said, 'It is in the list.');
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
