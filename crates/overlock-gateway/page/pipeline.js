// A run of a pipeline: its graph with the path taken, and what each step did.
//
// Expects of the run: `pipeline` (its name), `question`, `graph` as
// `{entry, steps: [{id, action, targets: [{name, step}]}]}`, and `trace`, the events of its steps in
// order, each with `changed`, the fields of the state that the step wrote, where text is shown.

import { copyButton, fill, h, svg } from './dom.js';
import { textView } from './document.js';
import { beginning, direction } from './text.js';
import { counted, duration, number, share } from './words.js';

/** Draws a run of a pipeline, again and again while it goes on. Steps that are drawn stay. */
export function pipelineView() {
  const asked = h('p', { class: 'verdict' });
  const drawing = h('div');
  const list = h('ol', { class: 'attempts' });
  const now = h('p', { class: 'waiting' });
  const answer = h('div');
  const view = h(
    'div',
    { class: 'pipeline' },
    asked,
    answer,
    h(
      'div',
      { class: 'pipeline-grid' },
      h(
        'section',
        { 'aria-labelledby': 'graph-title' },
        h('h2', { id: 'graph-title' }, 'The path taken'),
        drawing,
      ),
      h(
        'section',
        { 'aria-labelledby': 'trace-title' },
        h('h2', { id: 'trace-title' }, 'Steps'),
        list,
        now,
      ),
    ),
  );
  let drawn = '';
  return (run) => {
    const trace = run.trace ?? [];
    fill(asked, run.question && [h('strong', {}, 'Asked: '), run.question]);
    asked.hidden = !run.question;
    const current = going(run);
    // Each change of the drawing would be told again to those who cannot see it.
    const picture = JSON.stringify([trace.length, current, Boolean(run.error)]);
    if (picture !== drawn) fill(drawing, graph(run.graph ?? drawnFrom(trace), trace, current));
    drawn = picture;
    for (let at = list.children.length; at < trace.length; at += 1)
      list.append(step(trace[at], before(trace, at)));
    now.hidden = !current;
    fill(
      now,
      current &&
        `${current} is being done${run.answering ? `: ${counted(run.answering.answers, 'answer')} so far` : ''}…`,
    );
    if (answer.children.length === 0 && run.state?.answer) answer.append(answered(run.state.answer));
    answer.hidden = answer.children.length === 0;
    return view;
  };
}

/** What came of it. */
function answered(text) {
  return h(
    'section',
    { 'aria-labelledby': 'answer-title' },
    h(
      'div',
      { class: 'section-head' },
      h('h2', { id: 'answer-title' }, 'The answer'),
      copyButton('Copy', async () => text, 'answer'),
    ),
    h('p', { class: 'answer', dir: direction(text) }, text),
  );
}

/** The step that is being done, or would be next; nothing once the run has ended. */
function going(run) {
  if (run.ended_at || run.left) return undefined;
  const last = run.trace.at(-1);
  if (!last) return run.graph?.entry;
  return last.error ? last.step_id : last.next;
}

/** What happened in a run of a pipeline, in a sentence, with what to do about it. */
export function pipelineVerdict(run) {
  const steps = `after ${counted(run.trace.length, 'step')}`;
  const resume = h('code', { class: 'command' }, `overlock run --resume ${run.id}`);
  if (run.outcome === 'complete') return `It came to its end ${steps}.`;
  // A run may fail between two steps, too.
  const which = run.trace.at(-1)?.error
    ? `Step ${run.trace.length}, ${run.step_id},`
    : `Step ${run.step_id}`;
  if (run.outcome === 'failed')
    return [
      `${which} failed: ${run.error}. `,
      'What was done before it is kept; once it is mended, go on with ',
      resume,
    ];
  if (run.outcome === 'cancelled')
    return [`Somebody stopped it in step ${run.step_id}, ${steps}. To go on: `, resume];
  if (run.left) return [`Whoever worked on it is gone, ${steps}. To go on: `, resume];
  return `Step ${run.trace.length + 1}, ${going(run) ?? 'its end'}, is being done.`;
}

/** Ways that lead to the same step are one line with both their names. */
function joinedWays(targets) {
  const ways = new Map();
  for (const { name, step } of targets) ways.set(step, [...(ways.get(step) ?? []), name]);
  return [...ways].map(([step, names]) => ({ names, step }));
}

/** Of a run whose file is not told, only what it came by is known. */
function drawnFrom(trace) {
  const steps = new Map();
  for (const event of trace) {
    const step = steps.get(event.step_id) ?? {
      id: event.step_id,
      action: event.action,
      targets: [],
    };
    if (event.next && !step.targets.some((target) => target.step === event.next))
      step.targets.push({ name: event.decision ?? 'next', step: event.next });
    steps.set(event.step_id, step);
  }
  return { entry: trace[0]?.step_id, steps: [...steps.values()] };
}

const [WIDTH, HEIGHT, GAP] = [200, 44, 34];

/** Lines beside the boxes are so far apart, and a letter of a label is so wide. */
const [LANE, LETTER] = [13, 6.5];

/** Steps one below the other; whoever jumps goes around: forward on the right, back on the left. */
function graph({ entry, steps }, trace, current) {
  const places = new Map(steps.map((step, at) => [step.id, at]));
  const visits = new Map();
  const taken = new Map();
  const decisions = new Set(trace.map((event) => `${event.step_id} ${event.decision ?? 'next'}`));
  for (const event of trace) {
    visits.set(event.step_id, (visits.get(event.step_id) ?? 0) + 1);
    if (event.next)
      taken.set(
        `${event.step_id} ${event.next}`,
        (taken.get(`${event.step_id} ${event.next}`) ?? 0) + 1,
      );
  }
  // One that failed and was done later did not fail.
  const last = trace.at(-1);
  const failed = last?.error ? last.step_id : undefined;
  // Whoever goes back needs room on the left for the line and its name.
  const goesBack = steps.flatMap((step, at) =>
    step.targets.filter((target) => places.get(target.step) <= at),
  );
  const left =
    10 +
    (goesBack.length > 0
      ? 14 +
        LANE * goesBack.length +
        LETTER * Math.max(...goesBack.map((target) => target.name.length + 3))
      : 0);
  const top = (at) => 8 + at * (HEIGHT + GAP);
  const lines = [];
  const boxes = [];
  let [right, back, width] = [0, 0, left + WIDTH + 76];
  for (const [at, one] of steps.entries()) {
    for (const target of joinedWays(one.targets)) {
      const to = places.get(target.step);
      if (to === undefined) continue;
      const times = taken.get(`${one.id} ${target.step}`) ?? 0;
      const [from, into] = [top(at) + HEIGHT, top(to)];
      let [path, x, y] = ['', left + WIDTH / 2 + 6, from + 14];
      if (to === at + 1) path = `M${left + WIDTH / 2} ${from}V${into - 5}`;
      else if (to > at) {
        const side = left + WIDTH + 16 + LANE * right++;
        path = `M${left + WIDTH} ${from - 12}H${side}V${into + 14}H${left + WIDTH + 5}`;
        [x, y] = [side + 4, from + 4];
      } else {
        const side = left - 14 - LANE * back++;
        path = `M${left} ${from - 12}H${side}V${into + HEIGHT / 2}H${left - 5}`;
        [x, y] = [side - 4, into + HEIGHT + 16];
      }
      // Of several ways to one step, those that were taken come first.
      const chosen = target.names.filter((name) => decisions.has(`${one.id} ${name}`));
      const others = target.names.filter((name) => !chosen.includes(name));
      const strong = times > 0 && chosen.length > 0 ? chosen : target.names;
      const weak = strong === chosen ? others : [];
      const label = `${strong.join(', ')}${times > 1 ? ` ×${times}` : ''}`;
      const rest = weak.length > 0 ? `, ${weak.join(', ')}` : '';
      if (to > at) width = Math.max(width, x + LETTER * (label + rest).length + 6);
      lines.push(
        svg('path', {
          d: path,
          class: times > 0 ? 'edge taken' : 'edge',
          'marker-end': `url(#${times > 0 ? 'tip-taken' : 'tip'})`,
        }),
        (label !== 'next' || rest) &&
          svg(
            'text',
            {
              x,
              y,
              class: times > 0 ? 'edge-name taken' : 'edge-name',
              'text-anchor': to < at || to === at ? 'end' : 'start',
            },
            label,
            rest && svg('tspan', { class: 'weak' }, rest),
          ),
      );
    }
    const times = visits.get(one.id) ?? 0;
    const state = one.id === current ? ' now' : one.id === failed ? ' failed' : '';
    const name = `box${times > 0 ? ' taken' : ''}${state}`;
    boxes.push(
      svg(
        'g',
        { class: name },
        svg('rect', { x: left, y: top(at), width: WIDTH, height: HEIGHT, rx: 5 }),
        svg('text', { x: left + 10, y: top(at) + 18, class: 'box-id' }, short(one.id, 22)),
        svg('text', { x: left + 10, y: top(at) + 34, class: 'box-action' }, one.action),
        times > 1 &&
          svg(
            'text',
            { x: left + WIDTH - 8, y: top(at) + 18, class: 'box-times', 'text-anchor': 'end' },
            `×${times}`,
          ),
      ),
    );
  }
  const tip = (id, name) =>
    svg(
      'marker',
      { id, viewBox: '0 0 8 8', refX: 4, refY: 4, markerWidth: 7, markerHeight: 7, orient: 'auto' },
      svg('path', { d: 'M0 0L8 4L0 8z', class: name }),
    );
  const went = trace.map((event) => event.step_id).join(', ') || 'nothing yet';
  const height = top(steps.length);
  return svg(
    'svg',
    {
      class: 'graph',
      viewBox: `0 0 ${width} ${height}`,
      width,
      height,
      role: 'img',
      'aria-label': `The graph of the pipeline, from ${entry}. The run went through ${went}.${current ? ` It is at ${current}.` : ''}`,
    },
    svg('defs', {}, tip('tip', 'tip'), tip('tip-taken', 'tip taken')),
    lines,
    boxes,
  );
}

const short = (text, most) => (text.length > most ? `${beginning(text, most - 1)}…` : text);

/** The context blocks that a step found. */
function before(trace, at) {
  for (let place = at - 1; place >= 0; place -= 1) {
    if (trace[place].changed?.context_blocks) return trace[place].changed.context_blocks;
  }
  return [];
}

function step(event, found) {
  const facts = [
    event.took_ms !== undefined && duration(event.took_ms),
    event.input_tokens !== undefined && `${number(event.input_tokens)} tokens in`,
    event.output_tokens !== undefined && `${number(event.output_tokens)} out`,
    event.hits !== undefined && counted(event.hits, 'hit'),
    event.texts !== undefined && counted(event.texts, 'text'),
    event.used !== undefined &&
      event.budget !== undefined &&
      `${number(event.used)} of ${number(event.budget)} ${event.unit ?? ''}`,
    event.query && `for “${short(event.query, 80)}”`,
    event.why,
  ].filter(Boolean);
  const flow = [
    ['context_blocks', 'context blocks'],
    ['node_texts', 'texts'],
    ['search_hits', 'hits'],
    ['inbox', 'inbox'],
  ]
    .map(([field, name]) => [event.in?.[field], event.out?.[field], name])
    .filter(([from, to]) => from !== to && to !== undefined);
  const sent = [
    ...(event.inbox?.consumed ?? []).map((mail) => `took “${mail.topic}”`),
    ...(event.inbox?.sent ?? []).map((mail) => `sent “${mail.topic}” to ${mail.target_step_id}`),
  ];
  const after = event.changed?.context_blocks;
  return h(
    'li',
    { class: event.error ? 'attempt refused' : 'attempt', id: `step-${event.number}` },
    h(
      'div',
      { class: 'attempt-head' },
      h('span', { class: 'writer w0' }, `${event.number}`),
      h(
        'h3',
        { tabindex: -1 },
        event.step_id,
        event.decision && h('span', { class: 'decision' }, ` → ${event.decision}`),
      ),
      h('p', { class: 'facts' }, [event.action, ...facts].join(' · ')),
    ),
    event.error && h('p', { class: 'wrong' }, event.error),
    (event.warnings ?? []).length > 0 &&
      h(
        'ul',
        { class: 'warnings' },
        event.warnings.map((text) => h('li', {}, text)),
      ),
    flow.length > 0 &&
      h(
        'p',
        { class: 'facts' },
        flow.map(([from, to, name]) => `${name} ${number(from)} → ${number(to)}`).join(' · '),
      ),
    sent.length > 0 && h('p', { class: 'facts' }, sent.join(' · ')),
    event.max_context_tokens !== undefined && budget(event),
    after && blocks(found, after),
  );
}

/** What `manage_context_budget` weighed: what was there, what would come, and what there is room for. */
function budget(event) {
  const [most, there] = [event.max_context_tokens, event.current_context_tokens];
  const wanted = event.context_tokens ?? there;
  const comes = Math.max(0, wanted - there);
  const piece = (name, tokens, label) =>
    tokens > 0 &&
    h(
      'span',
      {
        class: `segment ${name}`,
        style: { 'flex-grow': tokens },
        title: `${label}: ${number(tokens)} tokens`,
      },
      h('span', { class: 'segment-name' }, label),
    );
  const table =
    (event.nodes ?? []).length > 0 &&
    h(
      'div',
      { class: 'scroller', tabindex: 0, role: 'group', 'aria-label': 'Texts that were weighed' },
      h(
        'table',
        { class: 'figures parts nodes' },
        h(
          'thead',
          {},
          h(
            'tr',
            {},
            ['Text', 'Raw', 'Final', 'Form'].map((label) => h('th', { scope: 'col' }, label)),
          ),
        ),
        h(
          'tbody',
          {},
          event.nodes
            .slice(0, 100)
            .map((node) =>
              h(
                'tr',
                {},
                h('th', { scope: 'row' }, h('code', {}, node.path ?? node.id)),
                h('td', {}, number(node.tokens_raw)),
                h('td', {}, number(node.tokens_final)),
                h(
                  'td',
                  { class: 'note' },
                  [node.compacted ? 'compacted' : 'as it is', node.policy, node.reason]
                    .filter(Boolean)
                    .join(', '),
                ),
              ),
            ),
        ),
      ),
    );
  return h(
    'div',
    { class: 'window' },
    h(
      'div',
      {
        class: wanted > most ? 'bar small over' : 'bar small',
        role: 'img',
        'aria-label': `${number(there)} tokens of context were there, ${number(comes)} would come, ${number(most)} are allowed.`,
      },
      piece('part-history', there, 'there'),
      piece('part-context', comes, 'new'),
      piece('part-free', Math.max(0, most - wanted), 'free'),
    ),
    h(
      'p',
      { class: 'facts' },
      `${number(wanted)} of ${number(most)} tokens (${share(wanted, most)}): ${wanted > most ? 'over, so nothing was added' : 'fits'}`,
    ),
    table,
  );
}

function blocks(found, after) {
  const kept = after.filter((block) => found.includes(block)).length;
  const label = `Context blocks: ${number(found.length)} before, ${number(after.length)} after (${number(after.length - kept)} new)`;
  const details = h(
    'details',
    {
      class: 'full',
      ontoggle: () => {
        if (!details.open || details.children.length > 1) return;
        details.append(
          ...after.map((block, at) =>
            h(
              'div',
              { class: 'entry' },
              h('h4', {}, `${at + 1}: ${found.includes(block) ? 'was there' : 'new'}`),
              textView({ text: block }, { label: `Context block ${at + 1}` }),
            ),
          ),
        );
      },
    },
    h('summary', {}, label),
  );
  return details;
}
