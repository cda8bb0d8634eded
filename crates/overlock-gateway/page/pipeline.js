// A pipeline run: its graph with the path taken, and what each step did.
//
// The run has `pipeline` (its name), `question`, `request` (its input), `definition` (its file),
// `graph` as `{entry, steps: [{id, action, targets: [{name, step}]}]}`, `trace` (the events of its
// steps in order, each with `changed`, the fields of the state that the step wrote, if text is
// shown) and `unfinished` (the answers in an unfinished step). The prompt and answer of a finished
// step are loaded on request.

import { ask } from './api.js';
import { attemptList } from './attempts.js';
import { changeText, compared, comparison } from './blocks.js';
import { copyButton, fill, h, saveButton, svg } from './dom.js';
import { textView } from './document.js';
import { beginning, direction } from './text.js';
import { upTo, windowBar, windowView } from './window.js';
import { counted, duration, money, number, outcome, part as partName } from './words.js';

/** Shorter gaps between two steps are not pauses. */
const SHORTEST_PAUSE = 1000;

/** The number of steps that fit on a screen. */
const FEW = 5;

/** The characters and lines of a long text that are shown at first, so that the graph stays visible. */
const [SHOWN_CHARACTERS, SHOWN_LINES] = [900, 12];

/** Draws a pipeline run and redraws it as it changes. Steps that are drawn stay. */
export function pipelineView() {
  const questionBox = h('div');
  const drawing = h('div', { class: 'graph-frame' });
  const list = h('ol', { class: 'attempts' });
  const now = h('p', { class: 'waiting' });
  const unfinishedBox = h('div');
  const answer = h('div');
  const input = h('div');
  const view = h(
    'div',
    { class: 'pipeline' },
    questionBox,
    answer,
    h(
      'div',
      { class: 'pipeline-grid' },
      h(
        'section',
        { 'aria-labelledby': 'graph-title' },
        h('h2', { id: 'graph-title' }, 'Path taken'),
        drawing,
      ),
      h(
        'section',
        { 'aria-labelledby': 'trace-title' },
        h('h2', { id: 'trace-title' }, 'Steps'),
        list,
        now,
        unfinishedBox,
      ),
    ),
    input,
  );
  let drawn = '';
  let shownUnfinished = null;
  return (run) => {
    const trace = run.trace ?? [];
    if (!questionBox.firstChild && run.question) fill(questionBox, question(run));
    questionBox.hidden = !run.question;
    const current = currentStep(run);
    const mark = markOf(run, current);
    // The graph is only redrawn if it changes, since screen readers announce each redraw.
    const state = JSON.stringify([trace.length, mark]);
    if (state !== drawn) {
      const known = run.graph ?? graphOf(trace);
      const focused = drawing.contains(document.activeElement) && document.activeElement.dataset.step;
      fill(drawing, graph(known, trace, mark, run.id));
      if (focused) drawing.querySelector(`[data-step="${CSS.escape(focused)}"]`)?.focus();
      // A graph that needs scrolling must be reachable by keyboard.
      if (known.steps.length > FEW) {
        drawing.setAttribute('tabindex', 0);
        drawing.setAttribute('role', 'group');
        drawing.setAttribute('aria-label', 'Graph, scrollable');
      }
    }
    drawn = state;
    for (let at = list.children.length; at < trace.length; at += 1)
      list.append(step(run, trace[at], contextBefore(run, at)));
    now.hidden = !current;
    fill(
      now,
      current &&
        `${current} is running${answerCount(run) > 0 ? `: ${counted(answerCount(run), 'answer')} so far` : ''}…`,
    );
    // The same notice is not redrawn, so that it stays open.
    const unfinished = current || isInTrace(run) ? undefined : run.unfinished;
    if (unfinished !== shownUnfinished) fill(unfinishedBox, unfinished && unfinishedNotice(unfinished));
    shownUnfinished = unfinished;
    if (answer.children.length === 0 && run.state?.answer) answer.append(answerSection(run));
    answer.hidden = answer.children.length === 0;
    if (input.children.length === 0 && run.definition) input.append(inputSection(run));
    return view;
  };
}

/** The number of answers in the unfinished step. */
const answerCount = (run) => run.answers ?? run.unfinished?.usage.length ?? 0;

/** Whether the last event, of a failed step, has all answers of the unfinished step. */
const isInTrace = ({ trace, unfinished }) =>
  Boolean(trace.at(-1)?.error) && !(unfinished?.usage.length > (trace.at(-1).calls ?? 0));

/** The answers in an unfinished step of a run that has stopped. */
function unfinishedNotice({ step_id: step, attempts = [], pieces = [], usage }) {
  const [are, them] = usage.length === 1 ? ['is', 'it'] : ['are', 'them'];
  return h(
    'div',
    { class: 'notice' },
    h('strong', {}, `${counted(usage.length, 'answer')} in ${step} ${are} recorded. `),
    `The step is unfinished. A resumed run uses ${them} and does not repeat the calls.`,
    folded('Answers so far', () => [
      attempts.length > 0 && attemptList({ steps: attempts }, 'unfinished-'),
      pieces.length > 0 && pieceList(pieces),
    ]),
  );
}

/** The question of the run. */
function question(run) {
  const text = run.question;
  return [
    h('p', { class: 'verdict question' }, h('strong', {}, 'Question: '), shortened(text)),
    ...(isLong(text) ? wholeQuestion(run) : []),
  ];
}

/** The full question, to read, copy and save. */
function wholeQuestion({ id, question: text }) {
  return [
    h(
      'div',
      { class: 'actions' },
      copyButton('Copy', async () => text, 'question'),
      saveButton('Save question', `${id}.question.txt`, async () => text, 'text/plain'),
    ),
    folded(`All ${number(text.length)} characters`, () => textView({ text }, { label: 'Question' })),
  ];
}

/** The beginning of a long text. */
function shortened(text) {
  const lines = beginning(text, SHOWN_CHARACTERS).split('\n', SHOWN_LINES).join('\n');
  return lines.length < text.length ? `${lines}…` : text;
}

const isLong = (text) => shortened(text) !== text;

/** The answer of the run. */
function answerSection(run) {
  const text = run.state.answer;
  return h(
    'section',
    { 'aria-labelledby': 'answer-title' },
    h(
      'div',
      { class: 'section-head' },
      h('h2', { id: 'answer-title' }, 'The answer'),
      h(
        'div',
        { class: 'actions' },
        copyButton('Copy', async () => text, 'answer'),
        saveButton('Save', `${run.id}.answer.txt`, async () => text, 'text/plain'),
      ),
    ),
    h('p', { class: 'answer', dir: direction(text) }, shortened(text)),
    isLong(text) &&
      folded(`All ${number(text.length)} characters`, () => textView({ text }, { label: 'Answer' })),
  );
}

/** The input of the run: the pipeline file at that time, and the request. */
function inputSection(run) {
  const { file, text } = run.definition;
  const name = file.split(/[\\/]/).at(-1) || 'pipeline.yaml';
  const request = run.request && JSON.stringify(run.request, null, 2);
  return h(
    'section',
    { 'aria-labelledby': 'input-title' },
    h(
      'div',
      { class: 'section-head' },
      h('h2', { id: 'input-title' }, 'Input'),
      h(
        'div',
        { class: 'actions' },
        copyButton('Copy pipeline', async () => text),
        saveButton('Save pipeline', name, async () => text, 'application/yaml'),
      ),
    ),
    folded(`Pipeline ${file}`, () => textView({ text }, { label: 'Pipeline' })),
    request
      ? folded('Question, settings and prompts', () =>
          textView({ text: request }, { label: 'Request' }),
        )
      : withoutText(),
  );
}

const withoutText = () =>
  h(
    'p',
    { class: 'facts' },
    'Prompts and answers are not shown: the gateway shows metadata only. To see them, set ',
    h('code', {}, 'serve.record = "full"'),
    '.',
  );

/** Details whose content is made when they are first opened. */
function folded(label, content) {
  const details = h(
    'details',
    {
      class: 'full',
      ontoggle: async () => {
        if (!details.open || details.children.length > 1) return;
        const waiting = h('p', { class: 'facts', role: 'status' }, 'Loading…');
        details.append(waiting);
        try {
          const made = await content();
          waiting.remove();
          fill(details, details.firstChild, made);
        } catch (error) {
          fill(waiting, h('span', { class: 'wrong' }, `Loading failed: ${error.message}`));
        }
      },
    },
    h('summary', {}, label),
  );
  return details;
}

/** The step that is running, or is next; nothing once the run has ended. */
function currentStep(run) {
  if (run.ended_at || run.interrupted) return undefined;
  const last = run.trace.at(-1);
  if (!last) return run.graph?.entry;
  return last.error ? last.step_id : last.next;
}

/** The step that is running or in which the run stopped, with the outcome of the run. */
function markOf(run, current) {
  const { word, sign } = outcome(run);
  const step = current ?? run.stopped_at?.step_id ?? run.step_id;
  return run.outcome === 'complete' || !step ? undefined : { step, word, sign };
}

/** What happened in a pipeline run, and how to resume it. */
export function pipelineVerdict(run) {
  const more = answerCount(run) > 0 ? ` and ${counted(answerCount(run), 'answer')} in the next` : '';
  const steps = `after ${counted(run.trace.length, 'step')}${more}`;
  const command = run.resume ?? `overlock run --resume ${run.id}`;
  const resume = [
    h('code', { class: 'command' }, command),
    ' ',
    copyButton('Copy', async () => command, 'command'),
    '. To use a changed file, add ',
    h('code', { class: 'command' }, 'PIPELINE'),
    ' after ',
    h('code', { class: 'command' }, 'run'),
    '; to change settings, add ',
    h('code', { class: 'command' }, '--set KEY=VALUE'),
    '.',
  ];
  if (run.outcome === 'complete')
    return `Finished: ${[counted(run.trace.length, 'step'), ...summary(run.trace)].join(', ')}.`;
  // A run can also fail between two steps.
  const which = run.trace.at(-1)?.error
    ? `Step ${run.trace.length}, ${run.step_id},`
    : `Step ${run.step_id}`;
  if (run.outcome === 'failed')
    return [
      `${which} failed: ${run.error}. `,
      run.hint && `Hint: ${run.hint}. `,
      'Earlier steps are recorded. After fixing the problem, resume with ',
      resume,
    ];
  if (run.outcome === 'cancelled')
    return [`Cancelled in step ${run.step_id}, ${steps}. To resume: `, resume];
  if (run.interrupted) {
    const where = run.stopped_at ? ` in step ${run.stopped_at.step_id}` : '';
    return [`Interrupted${where}, ${steps}: the process stopped. To resume: `, resume];
  }
  return `Step ${run.trace.length + 1}, ${currentStep(run) ?? 'the end'}, is running.`;
}

/** Figures about the calls of a finished run. */
function summary(trace) {
  const calls = trace.filter((event) => event.action === 'call_model');
  const joined = calls.filter(
    (event) => !event.error && event.calls - (event.refused ?? 0) > 1,
  ).length;
  const over = trace.filter((event) => event.decision === 'on_over').length;
  return [
    calls.length > 0 && counted(calls.length, 'model call'),
    joined > 0 && counted(joined, 'joined answer'),
    over > 0 && `context over budget ${over === 1 ? 'once' : `${number(over)} times`}`,
  ].filter(Boolean);
}

/** The targets of a step: targets with the same step are one edge with all their names. */
function edgeTargets(targets) {
  const edges = new Map();
  for (const { name, step } of targets) edges.set(step, [...(edges.get(step) ?? []), name]);
  return [...edges].map(([step, names]) => ({ names, step }));
}

/** A graph of the steps taken, for a run whose pipeline file is not shown. */
function graphOf(trace) {
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

const [WIDTH, HEIGHT, GAP] = [200, 44, 30];

/** The letters of a name that fit in a box, less those of a count beside it. */
const LONGEST_NAME = 22;

/** The distance of lines beside the boxes, the width of a letter, and the height of a label. */
const [LANE, LETTER, LINE] = [13, 6.2, 14];

/** How a screen reader is told where the run is. */
const MARKS = {
  running: 'It is at',
  failed: 'It failed in',
  cancelled: 'It was cancelled in',
  interrupted: 'It was interrupted in',
};

/** The steps below one another, with forward jumps on the right and backward jumps on the left. */
function graph({ entry, steps }, trace, mark, run) {
  const places = new Map(steps.map((step, at) => [step.id, at]));
  const visits = new Map();
  for (const event of trace) visits.set(event.step_id, (visits.get(event.step_id) ?? 0) + 1);
  const ways = waysOf(steps, places, trace);
  const jumps = (at, side) => ways.filter((way) => way.at === at && way.side === side);
  const heights = steps.map(({ id }, at) =>
    Math.max(
      HEIGHT + (id === mark?.step ? LINE : 0),
      8 + LINE * Math.max(jumps(at, 'right').length, jumps(at, 'left').length),
    ),
  );
  const tops = [];
  let height = 10;
  for (const size of heights) {
    tops.push(height);
    height += size + GAP;
  }
  const lanes = { right: lanesOf(ways, 'right'), left: lanesOf(ways, 'left') };
  const room = (side) => {
    const beside = ways.filter((way) => way.side === side);
    if (beside.length === 0) return 12;
    const longest = Math.max(...beside.map((way) => way.text.length));
    return 20 + Math.max(LANE * (Math.max(...lanes[side].values()) + 1), LETTER * longest);
  };
  const left = room('left');
  const right = left + WIDTH;
  const down = Math.max(
    0,
    ...ways.filter((way) => way.side === 'down').map((way) => way.text.length),
  );
  const width = Math.max(right + room('right'), left + WIDTH / 2 + 12 + LETTER * down);
  const drawn = (way) => {
    const { at, to, side } = way;
    const among = jumps(at, side);
    // Edges that leave a box on one side start below one another.
    const from = tops[at] + heights[at] - 5 - LINE * (among.length - 1 - among.indexOf(way));
    const lane = 12 + LANE * (lanes[side]?.get(to) ?? 0);
    if (side === 'down')
      return {
        path: `M${left + WIDTH / 2} ${tops[at] + heights[at]}V${tops[to] - 5}`,
        label: [left + WIDTH / 2 + 6, tops[at] + heights[at] + 18],
      };
    return side === 'right'
      ? {
          path: `M${right} ${from}H${right + lane}V${tops[to] + 12}H${right + 5}`,
          label: [right + 5, from - 3],
        }
      : {
          path: `M${left} ${from}H${left - lane}V${tops[to] + 12}H${left - 5}`,
          label: [left - 5, from - 3],
        };
  };
  // Taken edges are drawn over others, and names over all edges.
  const ordered = [...ways].sort((one, other) => Math.sign(one.times) - Math.sign(other.times));
  const lines = ordered.map((way) =>
    svg('path', {
      d: drawn(way).path,
      class: way.times > 0 ? 'edge taken' : 'edge',
      'marker-end': `url(#${way.times > 0 ? 'tip-taken' : 'tip'})`,
    }),
  );
  const names = ordered
    .filter((way) => !way.isPlain)
    .map((way) => {
      const [x, y] = drawn(way).label;
      return svg(
        'text',
        {
          x,
          y,
          class: way.times > 0 ? 'edge-name taken' : 'edge-name',
          'text-anchor': way.side === 'left' ? 'end' : 'start',
        },
        way.label,
        way.rest && svg('tspan', { class: 'weak' }, way.rest),
      );
    });
  const boxes = steps.map((one, at) => {
    const times = visits.get(one.id) ?? 0;
    const marked = one.id === mark?.step ? mark : undefined;
    const state = marked ? ` ${marked.word === 'running' ? 'now' : marked.word}` : '';
    const label = [one.id, times > 0 && one.action, marked?.word].filter(Boolean).join(', ');
    const count = times > 1 ? `×${times}` : '';
    const lead = times > 1 ? `the next of ${counted(times, 'step')}` : 'its step';
    const look = { class: `box${times > 0 ? ' taken' : ''}${state}` };
    return svg(
      times > 0 ? 'a' : 'g',
      times > 0 ? { ...look, ...leadTo(run, trace, one.id) } : look,
      svg('title', {}, times > 0 ? `${label}: to ${lead}` : label),
      svg('rect', { x: left, y: tops[at], width: WIDTH, height: heights[at], rx: 5 }),
      svg('text', { x: left + 10, y: tops[at] + 18, class: 'box-id' }, short(one.id, LONGEST_NAME - count.length)),
      svg('text', { x: left + 10, y: tops[at] + 34, class: 'box-action' }, one.action),
      marked &&
        svg(
          'text',
          { x: left + 10, y: tops[at] + 49, class: 'box-mark' },
          `${marked.sign} ${marked.word}`,
        ),
      count &&
        svg(
          'text',
          { x: right - 8, y: tops[at] + 18, class: 'box-times', 'text-anchor': 'end' },
          count,
        ),
    );
  });
  const tip = (id, name) =>
    svg(
      'marker',
      { id, viewBox: '0 0 8 8', refX: 4, refY: 4, markerWidth: 7, markerHeight: 7, orient: 'auto' },
      svg('path', { d: 'M0 0L8 4L0 8z', class: name }),
    );
  const path = trace.map((event) => event.step_id).join(', ') || 'no step yet';
  return svg(
    'svg',
    {
      class: 'graph',
      viewBox: `0 0 ${width} ${height}`,
      width,
      height,
      role: 'group',
      'aria-label': `The graph of the pipeline, from ${entry}. The run took ${path}.${mark ? ` ${MARKS[mark.word]} ${mark.step}.` : ''}`,
    },
    svg('defs', {}, tip('tip', 'tip'), tip('tip-taken', 'tip taken')),
    lines,
    boxes,
    names,
  );
}

/** Links a box to the first execution of its step, and on further clicks to the next ones. */
function leadTo(run, trace, id) {
  const numbers = trace.filter((event) => event.step_id === id).map((event) => event.number);
  return {
    href: address(run, numbers[0]),
    'data-step': id,
    onclick: (event) => {
      const shown = document.querySelector('.attempts > .chosen')?.dataset.step;
      const next = numbers[(numbers.indexOf(Number(shown)) + 1) % numbers.length];
      event.preventDefault();
      history.replaceState(null, '', address(run, next));
      goToStep(next);
    },
  };
}

/** Scrolls to a step. */
export function goToStep(number) {
  const item = document.getElementById(`step-${number}`);
  if (!item) return false;
  for (const other of item.parentElement.querySelectorAll(':scope > .chosen'))
    other.classList.remove('chosen');
  item.classList.add('chosen');
  item.scrollIntoView({ block: 'start' });
  item.querySelector('h3').focus({ preventScroll: true });
  return true;
}

/** The address of a step. */
const address = (run, number) => `#/runs/${encodeURIComponent(run)}/steps/${number}`;

/** All edges, with how often each was taken and on which side it runs. */
function waysOf(steps, places, trace) {
  const taken = new Map();
  const decisions = new Set(trace.map((event) => `${event.step_id} ${event.decision ?? 'next'}`));
  for (const { step_id: from, next } of trace)
    if (next) taken.set(`${from} ${next}`, (taken.get(`${from} ${next}`) ?? 0) + 1);
  return steps.flatMap((one, at) =>
    edgeTargets(one.targets)
      .filter((target) => places.has(target.step))
      .map((target) => {
        const to = places.get(target.step);
        const times = taken.get(`${one.id} ${target.step}`) ?? 0;
        // Of several names of one edge, those that were taken come first.
        const chosen = target.names.filter((name) => decisions.has(`${one.id} ${name}`));
        const isChosen = times > 0 && chosen.length > 0;
        const others = target.names.filter((name) => !chosen.includes(name));
        const label = `${(isChosen ? chosen : target.names).join(', ')}${times > 1 ? ` ×${times}` : ''}`;
        const rest = isChosen && others.length > 0 ? `, ${others.join(', ')}` : '';
        const side = to === at + 1 ? 'down' : to > at ? 'right' : 'left';
        // An edge without a choice needs no name.
        const isPlain = target.names.join() === 'next';
        return { at, to, times, label, rest, text: isPlain ? '' : label + rest, side, isPlain };
      }),
  );
}

/** The lane for each target of a jump. Jumps to one step share a lane; the shortest is innermost. */
function lanesOf(ways, side) {
  const spans = new Map();
  for (const { at, to } of ways.filter((way) => way.side === side)) {
    const [from, until] = spans.get(to) ?? [to, to];
    spans.set(to, [Math.min(from, at), Math.max(until, at)]);
  }
  const lanes = [];
  const laneOf = new Map();
  const shortest = [...spans].sort(([, one], [, other]) => one[1] - one[0] - (other[1] - other[0]));
  for (const [to, [from, until]] of shortest) {
    const isFree = (lane) => lane.every(([begin, end]) => until < begin || end < from);
    let lane = lanes.findIndex(isFree);
    if (lane < 0) lane = lanes.push([]) - 1;
    lanes[lane].push([from, until]);
    laneOf.set(to, lane);
  }
  return laneOf;
}

const short = (text, most) => (text.length > most ? `${beginning(text, most - 1)}…` : text);

/** The context blocks before a step, and the divider before new blocks. */
function contextBefore({ trace, request }, at) {
  const latest = (pick) => {
    const event = trace.findLast((event, place) => place < at && pick(event));
    return event && pick(event);
  };
  return {
    before: latest((event) => event.changed?.context_blocks) ?? request?.state?.context_blocks ?? [],
    divider: trace[at].divider ?? latest((event) => event.divider),
  };
}

function step(run, event, { before, divider }) {
  const isModel = event.action === 'call_model';
  const facts = [
    event.took_ms !== undefined && duration(event.took_ms),
    isModel && event.model,
    isModel && tokens(event),
    event.calls > 1 && calls(event),
    event.cost && money(event.cost),
    event.hits !== undefined && counted(event.hits, 'hit'),
    typeof event.nodes === 'number' && counted(event.nodes, 'node'),
    typeof event.edges === 'number' && counted(event.edges, 'edge'),
    event.texts !== undefined && counted(event.texts, 'text'),
    event.used !== undefined &&
      event.budget !== undefined &&
      `${number(event.used)} of ${number(event.budget)} ${event.unit ?? ''}`,
    event.query && `for “${short(event.query, 80)}”`,
    event.why,
  ].filter(Boolean);
  const after = event.changed?.context_blocks;
  const flow = [
    ['context_blocks', 'context blocks'],
    ['node_texts', 'texts'],
    ['search_hits', 'hits'],
    ['inbox', 'inbox'],
  ]
    .filter(([field]) => field !== 'context_blocks' || !after)
    .map(([field, name]) => [event.in?.[field], event.out?.[field], name])
    .filter(([from, to]) => from !== to && to !== undefined);
  const sent = [
    ...(event.inbox?.consumed ?? []).map((mail) => `took “${mail.topic}”`),
    ...(event.inbox?.sent ?? []).map((mail) => `sent “${mail.topic}” to ${mail.target_step_id}`),
  ];
  const changes = after && compared(before, after, divider);
  return h(
    'li',
    { class: event.error ? 'attempt refused' : 'attempt', id: `step-${event.number}`, 'data-step': event.number },
    h(
      'div',
      { class: 'attempt-head' },
      h(
        'a',
        {
          class: 'writer w0',
          href: address(run.id, event.number),
          title: `Link to step ${event.number}`,
        },
        h('span', { class: 'unseen' }, 'Step '),
        `${event.number}`,
      ),
      h(
        'h3',
        { tabindex: -1 },
        event.step_id,
        event.decision && h('span', { class: 'decision' }, ` → ${event.decision}`),
      ),
      h('p', { class: 'facts' }, [event.action, ...facts].join(' · ')),
    ),
    event.error && h('p', { class: 'wrong' }, event.error),
    reasonTexts(event).map((sentence) => h('p', { class: 'decided' }, sentence)),
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
    isModel && event.window && call(run, event),
    after && blocks(changes, before, after),
  );
}

/** The answers of a step. Earlier records lack the number that were not joined. */
function calls({ calls, refused = 0, error }) {
  if (refused > 0) return `${counted(calls, 'answer')}, ${number(refused)} not joined`;
  return error ? counted(calls, 'answer') : `joined from ${counted(calls, 'answer')}`;
}

/** The totals of the recorded steps of a run. */
export function totalsOf(trace) {
  // The next event of a step that failed and was resumed includes its earlier calls.
  const steps = trace.filter((event, at) => at === trace.length - 1 || !event.error);
  // A step without an answer used no tokens.
  const used = (event) => event.usage ?? (event.error ? undefined : planned(event));
  const called = steps.filter(used);
  const sum = (pick) => called.reduce((sum, event) => sum + (pick(used(event)) ?? 0), 0);
  const models = {};
  for (const event of called.filter(({ model }) => model)) tally(models, event.model, used(event));
  const peak = (event) => event.peak_tokens ?? event.input_tokens + (event.output_tokens ?? 0);
  const fullest = called.reduce(
    (most, event) => (most && peak(most) > peak(event) ? most : event),
    undefined,
  );
  return {
    iterations: trace.length,
    input_tokens: sum(({ input }) => input),
    output_tokens: sum(({ output }) => output),
    cached_tokens: called.some((event) => used(event).cached !== undefined)
      ? sum(({ cached }) => cached)
      : undefined,
    peak_tokens: fullest ? peak(fullest) : 0,
    window: fullest?.window?.tokens ?? 0,
    models,
    ...costOf(called),
  };
}

/** Adds the tokens of a call to those of its model. */
function tally(models, model, { input = 0, output = 0, cached }) {
  const before = models[model] ?? { input: 0, output: 0 };
  models[model] = { ...before, input: before.input + input, output: before.output + output };
  if (cached !== undefined) models[model].cached = (before.cached ?? 0) + cached;
}

/** The cost of calls, as far as their models have prices. */
function costOf(calls) {
  const known = calls.filter(({ cost }) => cost).map(({ cost }) => cost);
  const without = [...new Set(calls.filter(({ cost }) => !cost).map(({ model }) => model))];
  if (without.length === 0) return { cost: added(known), partial_cost: undefined };
  const partial_cost = known.length > 0 ? { ...added(known), without } : undefined;
  return { cost: undefined, partial_cost };
}

/** The models and the cost of a run with one more answer of an unfinished step. */
export function withAnswer(run, { model = run.model, usage, cost, entry }) {
  const { without = Object.keys(run.models ?? {}), ...partial } = run.partial_cost ?? {};
  const before = run.cost
    ? [{ cost: run.cost }]
    : [run.partial_cost && { cost: partial }, ...without.map((model) => ({ model }))];
  const models = { ...run.models };
  tally(models, model, usage);
  return { entries: entry, models, ...costOf([...before.filter(Boolean), { model, cost }]) };
}

/** The exact sum of amounts. */
function added(costs) {
  if (costs.length === 0) return undefined;
  const parts = costs.map(({ amount }) => amount.split('.'));
  const places = Math.max(...parts.map(([, part = '']) => part.length));
  const sum = parts.reduce(
    (sum, [whole, part = '']) => sum + BigInt(whole + part.padEnd(places, '0')),
    0n,
  );
  const digits = String(sum).padStart(places + 1, '0');
  const at = digits.length - places;
  const amount = [digits.slice(0, at), digits.slice(at).replace(/0+$/, '')];
  return { ...costs[0], amount: amount.filter(Boolean).join('.') };
}

/** The time worked on a run, with one more step: a gap before the step is a pause. */
export function workedTime({ last_at: last, began_at: began, paused_ms: paused = 0 }, event) {
  const gap = event.at - (last ?? began);
  return {
    last_at: event.at + event.took_ms,
    paused_ms: gap >= SHORTEST_PAUSE ? paused + gap : paused,
  };
}

/** The time worked on a resumed run. Without a recorded end, the length of the pause is an upper limit. */
export function resumedTime(run, { at, ended_at: ended, entry }) {
  const gap = at - (ended ?? run.last_at ?? run.began_at);
  const isPause = gap >= SHORTEST_PAUSE;
  return {
    entries: entry,
    last_at: at,
    paused_ms: (run.paused_ms ?? 0) + (isPause ? gap : 0),
    paused_at_most: run.paused_at_most || (isPause && !ended),
  };
}

/** The tokens of the calls of a step, and who counted them. */
function tokens(event) {
  const used = event.usage ?? (event.error ? undefined : planned(event));
  if (!used)
    return event.window
      ? `no answer (${counted(event.window.input_token_count, 'token')} prepared)`
      : undefined;
  const counter = { provider: 'counted by the provider', us: 'counted by Overlock' }[event.counted_by];
  const cached = used.cached > 0 ? ` (${number(used.cached)} from a cache)` : '';
  return [`${number(used.input)} tokens in${cached}, ${number(used.output)} out`, counter]
    .filter(Boolean)
    .join(', ');
}

const planned = (event) =>
  event.input_tokens === undefined
    ? undefined
    : { input: event.input_tokens, output: event.output_tokens };

/** Why a step took its decision, with the figures. */
function reasonTexts(event) {
  if (event.action === 'manage_context_budget') return [budgetText(event)].filter(Boolean);
  if (event.action === 'call_model') return reductions(event);
  if (event.action === 'set_variables' && event.context_tokens_before !== undefined) {
    const [was, is] = [event.context_tokens_before, event.context_tokens_after];
    const change = is < was ? `${number(was - is)} freed` : `${number(is - was)} more`;
    return [`The context went from ${counted(was, 'token')} to ${number(is)}: ${change}.`];
  }
  if (event.action === 'fetch_node_texts' && (event.skipped ?? []).length > 0) {
    const { skipped, texts } = event;
    return [
      `${number(skipped.length)} of ${counted(skipped.length + texts, 'text')} ${skipped.length === 1 ? 'was' : 'were'} left out: each is larger than the remainder of the budget of ${number(event.budget)} ${event.unit}.`,
    ];
  }
  if (event.action === 'loop_guard' && event.decision)
    return [
      event.decision === 'on_deny'
        ? `Denied: passed ${number(event.passed)} of ${number(event.max_turn_loops)} times already.`
        : `Passed ${number(event.passed)} of ${number(event.max_turn_loops)} times.`,
    ];
  if (event.action === 'route' && event.said)
    return [`The answer says “${short(event.said, 80)}”.`];
  return [];
}

/** The parts of a prompt that were reduced. */
function reductions({ window }) {
  const reduced = (window?.parts ?? []).filter((part) => part.given < part.asked);
  return reduced.map(({ part, asked, given }) =>
    part === 'completion'
      ? `Answer: ${number(given)} of ${number(asked)} requested tokens, because the window of ${number(window.tokens)} has no more.`
      : `${partName(part)}: ${number(given)} of ${number(asked)} requested tokens${part === 'history' && window.dropped_messages > 0 ? `: ${counted(window.dropped_messages, 'message was', 'messages were')} left out` : ''}.`,
  );
}

/** The figures of a budget of context. */
function figures(event) {
  const nodes = event.nodes ?? [];
  const [limit, current] = [event.max_context_tokens, event.current_context_tokens];
  const needed = event.context_tokens ?? current;
  const compacted = nodes.filter((node) => node.compacted);
  const added = Math.max(0, needed - current);
  const repeats = nodes.filter((node) => node.repeats);
  return {
    nodes,
    limit,
    current,
    needed,
    added,
    free: Math.max(0, limit - current),
    compacted,
    freed: compacted.reduce((sum, node) => sum + node.tokens_raw - node.tokens_final, 0),
    repeats,
    // Separators are counted with the new texts, if there are any.
    repeated:
      repeats.length === nodes.length
        ? added
        : Math.min(
            added,
            repeats.reduce((sum, node) => sum + node.tokens_final, 0),
          ),
  };
}

/** What a context budget decided, and why. */
function budgetText(event) {
  const { nodes, limit, current, needed, added, free, compacted, freed } = figures(event);
  if (nodes.length === 0)
    return `No new texts: ${number(current)} of ${number(limit)} tokens are used.`;
  const texts = counted(nodes.length, 'text');
  const requested = `${texts} with ${number(added + freed)} tokens; ${number(free)} of ${number(limit)} were free`;
  const compaction =
    compacted.length > 0
      ? `; ${compacted.length === nodes.length ? 'all' : number(compacted.length)} compacted (${reasons(compacted)}, −${counted(freed, 'token')})`
      : '';
  if (needed > limit) {
    const decision = event.error ? '' : `; ${event.decision} led to ${event.next}`;
    return `${requested}${compaction}: ${number(needed - limit)} over the budget, none added${decision}.`;
  }
  const was = compaction && needed + freed > limit ? ', which was needed to fit' : '';
  return `${requested}${compaction}${was}: ${compaction ? number(added) : 'all'} added.`;
}

/** Why texts were compacted. */
function reasons(nodes) {
  const why = nodes.map(({ policy, threshold }) =>
    policy === 'threshold' && threshold
      ? `above the threshold of ${number(threshold.limit)}`
      : ({ always: 'always', demand: 'requested by a message', threshold: 'above the threshold' }[
          policy
        ] ?? policy),
  );
  return [...new Set(why)].join('; ');
}

/** The budget of `manage_context_budget` as a bar: current, new, repeated and free tokens. */
function budget(event) {
  const { nodes, limit, current, needed, added, repeats, repeated } = figures(event);
  const fresh = added - repeated;
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
  const parts = [
    `${number(current)} before`,
    nodes.length > repeats.length &&
      `${number(fresh)} of ${counted(nodes.length - repeats.length, 'new text')}`,
    repeats.length > 0 &&
      `${number(repeated)} of ${counted(repeats.length, 'repeated text')}`,
    needed <= limit && `${number(limit - needed)} free`,
  ].filter(Boolean);
  return h(
    'div',
    { class: 'window' },
    upTo(
      h(
        'div',
        {
          class: 'bar small',
          role: 'img',
          'aria-label': `Of ${number(limit)} tokens of context: ${parts.join(', ')}.`,
        },
        piece('part-history', current, 'before'),
        piece('part-context', fresh, 'new'),
        piece('part-memories', repeated, 'repeated'),
        piece('part-free', Math.max(0, limit - needed), 'free'),
      ),
      limit,
      needed,
      'the budget ends',
    ),
    h('p', { class: 'facts' }, `${number(needed)} of ${number(limit)} tokens: ${parts.join(' · ')}`),
    nodes.length > 0 && folded(`List of ${counted(nodes.length, 'text')}`, () => texts(event)),
  );
}

/** What happened to each new text. */
function texts({ nodes }) {
  const note = (node) =>
    [
      node.compacted ? 'compacted' : 'unchanged',
      node.policy,
      node.threshold &&
        `${number(node.threshold.tokens)} with it, threshold ${number(node.threshold.limit)}`,
      node.reason?.replaceAll('_', ' '),
      node.repeats &&
        (node.repeats.same
          ? `repeats block ${number(node.repeats.block)}`
          : `repeats block ${number(node.repeats.block)} in another form`),
    ]
      .filter(Boolean)
      .join(', ');
  const rows = nodes
    .slice(0, 100)
    .map((node) =>
      h(
        'tr',
        {},
        h('th', { scope: 'row' }, h('code', {}, node.path ?? node.id)),
        h('td', {}, number(node.tokens_raw)),
        h('td', {}, number(node.tokens_final)),
        h('td', { class: 'note' }, note(node)),
      ),
    );
  return [
    h(
      'div',
      { class: 'scroller', tabindex: 0, role: 'group', 'aria-label': 'New texts' },
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
        h('tbody', {}, rows),
      ),
    ),
    nodes.length > 100 &&
      h('p', { class: 'facts' }, `${counted(nodes.length - 100, 'text')} more are in the trace.`),
  ];
}

/** The window of a call, with its prompt and answer. */
function call(run, event) {
  const { window } = event;
  const parts = window.parts.map(({ part, asked, given }) => ({ name: part, asked, given }));
  const view = {
    window: window.tokens,
    margin: window.margin,
    parts,
    // The window is that of the first call. Earlier records lack its separate output tokens.
    used: event.calls > 1 ? event.first_output_tokens : event.output_tokens,
  };
  return h(
    'div',
    { class: 'window' },
    event.calls > 1 && h('p', { class: 'facts' }, firstCall(event)),
    windowBar(view, 'small'),
    folded('Prompt and answer', async () => {
      const address = `/api/runs/${encodeURIComponent(run.id)}/steps/${event.number}`;
      return exchange(run, event, await ask(`${address}?text=true`), view);
    }),
  );
}

const firstCall = ({ calls }) => `Window of the first of ${number(calls)} calls`;

/** The prompt and the answer of a model. */
function exchange(run, event, shown, view) {
  const { window } = event;
  const entry = (title, text, label) =>
    h('div', { class: 'entry' }, h('h4', {}, title), textView({ text }, { label }));
  const attempts = shown.attempts ?? [];
  const pieces = shown.pieces ?? [];
  return [
    !shown.asked && withoutText(),
    (shown.asked ?? []).map(({ role, content }) =>
      entry(
        `Prompt, ${role}`,
        typeof content === 'string' ? content : JSON.stringify(content, null, 2),
        `Prompt as ${role} in step ${event.number}`,
      ),
    ),
    shown.answer !== undefined &&
      entry('Answer', shown.answer, `Answer in step ${event.number}`),
    attempts.length > 0 &&
      (attempts.length > 1 || attempts[0].cut || attempts[0].result.result !== 'grown') &&
      h(
        'div',
        { class: 'entry' },
        h('h4', {}, `The answer came in ${counted(attempts.length, 'attempt')}`),
        attemptList({ steps: attempts }, `step-${event.number}-`),
      ),
    pieces.length > 1 &&
      h(
        'div',
        { class: 'entry' },
        h('h4', {}, `The answer came in ${counted(pieces.length, 'piece')}`),
        pieceList(pieces),
      ),
    h('h4', {}, event.calls > 1 ? firstCall(event) : 'Window'),
    windowView(view),
    h(
      'p',
      { class: 'facts' },
      `Counted by ${window.counter} (${window.provenance}); ${counted(window.message_count, 'message')}${window.dropped_messages > 0 ? `, ${number(window.dropped_messages)} left out` : ''}${window.memory_count > 0 ? `, ${counted(window.memory_count, 'memory', 'memories')}` : ''}.`,
    ),
  ];
}

/** A text that came in pieces, piece by piece. */
const pieceList = (pieces) =>
  h(
    'ol',
    { class: 'pieces' },
    pieces.map((one, at) =>
      h(
        'li',
        {},
        `${counted(one.added_bytes, 'byte')}${one.is_cut ? ', cut off' : ', the end'}`,
        one.added !== undefined && textView({ text: one.added }, { label: `Piece ${at + 1}` }),
      ),
    ),
  );

/** The context before and after a step. */
function blocks(changes, before, after) {
  return folded(comparison(changes), () => [
    ...changes.after.map((change, at) =>
      h(
        'div',
        { class: 'entry' },
        h('h4', {}, `${at + 1}: ${changeText(change)}`),
        textView({ text: after[at] }, { label: `Context block ${at + 1}` }),
      ),
    ),
    ...changes.removed.map((at) =>
      h(
        'div',
        { class: 'entry' },
        h('h4', {}, `Removed: block ${at + 1} before`),
        textView({ text: before[at] }, { label: `Context block ${at + 1} before` }),
      ),
    ),
  ]);
}
