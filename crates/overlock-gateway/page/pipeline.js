// A run of a pipeline: its graph with the path taken, and what each step did.
//
// Expects of the run: `pipeline` (its name), `question`, `request` (what it was begun with),
// `definition` (its file), `graph` as `{entry, steps: [{id, action, targets: [{name, step}]}]}`, and
// `trace`, the events of its steps in order, each with `changed`, the fields of the state that the
// step wrote, where text is shown, and `unfinished`, what was answered in a step that is not done.
// What a model was asked and answered in one that is done is read when it is wanted.

import { ask } from './api.js';
import { attemptList } from './attempts.js';
import { compared, comparison, told } from './blocks.js';
import { copyButton, fill, h, saveButton, svg } from './dom.js';
import { textView } from './document.js';
import { beginning, direction } from './text.js';
import { upTo, windowBar, windowView } from './window.js';
import { counted, duration, money, number, outcome, part as partName } from './words.js';

/** What is shorter goes by between two steps, too. */
const SHORTEST_PAUSE = 1000;

/** So many steps are seen at once. */
const FEW = 5;

/** Of a longer text so many characters and lines are shown at first: it stands above the graph. */
const [SHOWN_CHARACTERS, SHOWN_LINES] = [900, 12];

/** Draws a run of a pipeline, again and again while it goes on. Steps that are drawn stay. */
export function pipelineView() {
  const asked = h('div');
  const drawing = h('div', { class: 'graph-frame' });
  const list = h('ol', { class: 'attempts' });
  const now = h('p', { class: 'waiting' });
  const kept = h('div');
  const answer = h('div');
  const begun = h('div');
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
        kept,
      ),
    ),
    begun,
  );
  let drawn = '';
  let told = null;
  return (run) => {
    const trace = run.trace ?? [];
    if (!asked.firstChild && run.question) fill(asked, question(run));
    asked.hidden = !run.question;
    const current = going(run);
    const mark = markOf(run, current);
    // Each change of the drawing would be told again to those who cannot see it.
    const picture = JSON.stringify([trace.length, mark]);
    if (picture !== drawn) {
      const known = run.graph ?? drawnFrom(trace);
      const focused = drawing.contains(document.activeElement) && document.activeElement.dataset.step;
      fill(drawing, graph(known, trace, mark, run.id));
      if (focused) drawing.querySelector(`[data-step="${CSS.escape(focused)}"]`)?.focus();
      // What is higher than a screen has to be reached by the keyboard, too.
      if (known.steps.length > FEW) {
        drawing.setAttribute('tabindex', 0);
        drawing.setAttribute('role', 'group');
        drawing.setAttribute('aria-label', 'The graph, which can be scrolled');
      }
    }
    drawn = picture;
    for (let at = list.children.length; at < trace.length; at += 1)
      list.append(step(run, trace[at], contextBefore(run, at)));
    now.hidden = !current;
    fill(
      now,
      current &&
        `${current} is being done${answers(run) > 0 ? `: ${counted(answers(run), 'answer')} so far` : ''}…`,
    );
    // What was opened stays open.
    const left = current || isTold(run) ? undefined : run.unfinished;
    if (left !== told) fill(kept, left && unfinished(left));
    told = left;
    if (answer.children.length === 0 && run.state?.answer) answer.append(answered(run));
    answer.hidden = answer.children.length === 0;
    if (begun.children.length === 0 && run.definition) begun.append(begunWith(run));
    return view;
  };
}

/** How many answers there are in the step that is not done. */
const answers = (run) => run.answers ?? run.unfinished?.usage.length ?? 0;

/** Whether the last step tells of all answers: one that failed goes on with what it had. */
const isTold = ({ trace, unfinished }) =>
  Boolean(trace.at(-1)?.error) && !(unfinished?.usage.length > (trace.at(-1).calls ?? 0));

/** What was answered in a step that nobody is at. */
function unfinished({ step_id: step, attempts = [], pieces = [], usage }) {
  const [are, them] = usage.length === 1 ? ['is', 'it'] : ['are', 'any of them'];
  return h(
    'div',
    { class: 'notice' },
    h('strong', {}, `${counted(usage.length, 'answer')} in ${step} ${are} kept. `),
    `The step is not done; whoever goes on with the run uses what was answered, and asks for ${them} no second time.`,
    folded('What was answered so far', () => [
      attempts.length > 0 && attemptList({ steps: attempts }, 'unfinished-'),
      pieces.length > 0 && pieceList(pieces),
    ]),
  );
}

/** What was asked. */
function question(run) {
  const text = run.question;
  return [
    h('p', { class: 'verdict question' }, h('strong', {}, 'Asked: '), atFirst(text)),
    ...(isLong(text) ? wholeQuestion(run) : []),
  ];
}

/** All of a question, to be read, copied and saved. */
function wholeQuestion({ id, question: text }) {
  return [
    h(
      'div',
      { class: 'actions' },
      copyButton('Copy', async () => text, 'question'),
      saveButton('Save question', `${id}.question.txt`, async () => text, 'text/plain'),
    ),
    folded(`All ${number(text.length)} characters`, () => textView({ text }, { label: 'Asked' })),
  ];
}

/** What is shown of a text before somebody wants all of it. */
function atFirst(text) {
  const lines = beginning(text, SHOWN_CHARACTERS).split('\n', SHOWN_LINES).join('\n');
  return lines.length < text.length ? `${lines}…` : text;
}

const isLong = (text) => atFirst(text) !== text;

/** What came of it. */
function answered(run) {
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
    h('p', { class: 'answer', dir: direction(text) }, atFirst(text)),
    isLong(text) &&
      folded(`All ${number(text.length)} characters`, () => textView({ text }, { label: 'Answer' })),
  );
}

/** What the run was begun with: the pipeline as it was then, and what it was given. */
function begunWith(run) {
  const { file, text } = run.definition;
  const name = file.split(/[\\/]/).at(-1) || 'pipeline.yaml';
  const given = run.request && JSON.stringify(run.request, null, 2);
  return h(
    'section',
    { 'aria-labelledby': 'begun-title' },
    h(
      'div',
      { class: 'section-head' },
      h('h2', { id: 'begun-title' }, 'What it was begun with'),
      h(
        'div',
        { class: 'actions' },
        copyButton('Copy pipeline', async () => text),
        saveButton('Save pipeline', name, async () => text, 'application/yaml'),
      ),
    ),
    folded(`The pipeline, ${file}`, () => textView({ text }, { label: 'Pipeline' })),
    given
      ? folded('The question, settings and prompts', () =>
          textView({ text: given }, { label: 'Request' }),
        )
      : withoutText(),
  );
}

const withoutText = () =>
  h(
    'p',
    { class: 'facts' },
    'What was asked and answered is not shown: the gateway tells metadata only. With ',
    h('code', {}, 'serve.record = "full"'),
    ' it is.',
  );

/** Something that is made when it is opened for the first time. */
function folded(label, content) {
  const details = h(
    'details',
    {
      class: 'full',
      ontoggle: async () => {
        if (!details.open || details.children.length > 1) return;
        const waiting = h('p', { class: 'facts', role: 'status' }, 'Reading…');
        details.append(waiting);
        try {
          const made = await content();
          waiting.remove();
          fill(details, details.firstChild, made);
        } catch (error) {
          fill(waiting, h('span', { class: 'wrong' }, `It cannot be read: ${error.message}`));
        }
      },
    },
    h('summary', {}, label),
  );
  return details;
}

/** The step that is being done, or would be next; nothing once the run has ended. */
function going(run) {
  if (run.ended_at || run.left) return undefined;
  const last = run.trace.at(-1);
  if (!last) return run.graph?.entry;
  return last.error ? last.step_id : last.next;
}

/** The step that is worked on, or in which the run stopped, with how that is told of a run. */
function markOf(run, current) {
  const { word, sign, name } = outcome(run);
  const step = current ?? run.stopped_at?.step_id ?? run.step_id;
  return run.outcome === 'complete' || !step ? undefined : { step, word, sign, name };
}

/** What happened in a run of a pipeline, in a sentence, with what to do about it. */
export function pipelineVerdict(run) {
  const more = answers(run) > 0 ? ` and ${counted(answers(run), 'answer')} in the next` : '';
  const steps = `after ${counted(run.trace.length, 'step')}${more}`;
  const command = run.resume ?? `overlock run --resume ${run.id}`;
  const resume = [
    h('code', { class: 'command' }, command),
    ' ',
    copyButton('Copy', async () => command, 'command'),
    '. A mended file is taken with ',
    h('code', { class: 'command' }, 'PIPELINE'),
    ' after ',
    h('code', { class: 'command' }, 'run'),
    ', other settings with ',
    h('code', { class: 'command' }, '--set KEY=VALUE'),
    '.',
  ];
  if (run.outcome === 'complete') return `It came to its end ${steps}${summary(run.trace)}.`;
  // A run may fail between two steps, too.
  const which = run.trace.at(-1)?.error
    ? `Step ${run.trace.length}, ${run.step_id},`
    : `Step ${run.step_id}`;
  if (run.outcome === 'failed')
    return [
      `${which} failed: ${run.error}. `,
      run.hint && `What would help: ${run.hint}. `,
      'What was done before it is kept; once it is mended, go on with ',
      resume,
    ];
  if (run.outcome === 'cancelled')
    return [`Somebody stopped it in step ${run.step_id}, ${steps}. To go on: `, resume];
  if (run.left) {
    const where = run.stopped_at ? ` since step ${run.stopped_at.step_id}` : '';
    return [`Whoever worked on it is gone${where}, ${steps}. To go on: `, resume];
  }
  return `Step ${run.trace.length + 1}, ${going(run) ?? 'its end'}, is being done.`;
}

/** What happened on the way, in a few figures. */
function summary(trace) {
  const calls = trace.filter((event) => event.action === 'call_model');
  const joined = calls.filter(
    (event) => !event.error && event.calls - (event.refused ?? 0) > 1,
  ).length;
  const over = trace.filter((event) => event.decision === 'on_over').length;
  const times = over === 1 ? 'once' : `${number(over)} times`;
  const parts = [
    calls.length > 0 && `${number(calls.length)} asked a model`,
    joined > 0 && `${counted(joined, 'answer', 'answers')} had to be joined`,
    over > 0 && `${times} the context would have been over its budget`,
  ].filter(Boolean);
  return parts.length > 0 ? `: ${parts.join(', ')}` : '';
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

const [WIDTH, HEIGHT, GAP] = [200, 44, 30];

/** So many letters of a name have room in a box, less those of a count beside it. */
const LONGEST_NAME = 22;

/** Lines beside the boxes are so far apart, a letter of a label is so wide, and a label so high. */
const [LANE, LETTER, LINE] = [13, 6.2, 14];

/** How it is told of a step that it is the last which a run came to. */
const MARKS = {
  running: 'It is at',
  failed: 'It failed in',
  stopped: 'It was stopped in',
  left: 'It broke off in',
};

/** Steps one below the other; whoever jumps goes around: forward on the right, back on the left. */
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
    // Those that leave a box on one side leave it one below the other.
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
  // What was taken lies over what was not, and names over all lines.
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
    const state = marked ? ` ${marked.name === 'running' ? 'now' : marked.name}` : '';
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
  const went = trace.map((event) => event.step_id).join(', ') || 'nothing yet';
  return svg(
    'svg',
    {
      class: 'graph',
      viewBox: `0 0 ${width} ${height}`,
      width,
      height,
      role: 'group',
      'aria-label': `The graph of the pipeline, from ${entry}. The run went through ${went}.${mark ? ` ${MARKS[mark.name]} ${mark.step}.` : ''}`,
    },
    svg('defs', {}, tip('tip', 'tip'), tip('tip-taken', 'tip taken')),
    lines,
    boxes,
    names,
  );
}

/** A box leads to what its step did first, and from there on to what it did next. */
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

/** Brings a step into sight. */
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

/** Where a step of a run is. */
const address = (run, number) => `#/runs/${encodeURIComponent(run)}/steps/${number}`;

/** All ways between steps, with how often each was taken and on which side it runs. */
function waysOf(steps, places, trace) {
  const taken = new Map();
  const decisions = new Set(trace.map((event) => `${event.step_id} ${event.decision ?? 'next'}`));
  for (const { step_id: from, next } of trace)
    if (next) taken.set(`${from} ${next}`, (taken.get(`${from} ${next}`) ?? 0) + 1);
  return steps.flatMap((one, at) =>
    joinedWays(one.targets)
      .filter((target) => places.has(target.step))
      .map((target) => {
        const to = places.get(target.step);
        const times = taken.get(`${one.id} ${target.step}`) ?? 0;
        // Of several ways to one step, those that were taken come first.
        const chosen = target.names.filter((name) => decisions.has(`${one.id} ${name}`));
        const isChosen = times > 0 && chosen.length > 0;
        const others = target.names.filter((name) => !chosen.includes(name));
        const label = `${(isChosen ? chosen : target.names).join(', ')}${times > 1 ? ` ×${times}` : ''}`;
        const rest = isChosen && others.length > 0 ? `, ${others.join(', ')}` : '';
        const side = to === at + 1 ? 'down' : to > at ? 'right' : 'left';
        // Where there is no choice the boxes say enough.
        const isPlain = target.names.join() === 'next';
        return { at, to, times, label, rest, text: isPlain ? '' : label + rest, side, isPlain };
      }),
  );
}

/** The lane for each step that is jumped to: ways to one step share it, the shortest is innermost. */
function lanesOf(ways, side) {
  const spans = new Map();
  for (const { at, to } of ways.filter((way) => way.side === side)) {
    const [from, until] = spans.get(to) ?? [to, to];
    spans.set(to, [Math.min(from, at), Math.max(until, at)]);
  }
  const lanes = [];
  const found = new Map();
  const shortest = [...spans].sort(([, one], [, other]) => one[1] - one[0] - (other[1] - other[0]));
  for (const [to, [from, until]] of shortest) {
    const isFree = (lane) => lane.every(([begin, end]) => until < begin || end < from);
    let lane = lanes.findIndex(isFree);
    if (lane < 0) lane = lanes.push([]) - 1;
    lanes[lane].push([from, until]);
    found.set(to, lane);
  }
  return found;
}

const short = (text, most) => (text.length > most ? `${beginning(text, most - 1)}…` : text);

/** The context blocks that a step found, and what divides older from newer ones. */
function contextBefore({ trace, request }, at) {
  const latest = (pick) => {
    const event = trace.findLast((event, place) => place < at && pick(event));
    return event && pick(event);
  };
  return {
    found: latest((event) => event.changed?.context_blocks) ?? request?.state?.context_blocks ?? [],
    divider: trace[at].divider ?? latest((event) => event.divider),
  };
}

function step(run, event, { found, divider }) {
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
  const fates = after && compared(found, after, divider);
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
    decided(event).map((sentence) => h('p', { class: 'decided' }, sentence)),
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
    after && blocks(fates, found, after),
  );
}

/** What became of several answers. Earlier records do not tell how many were refused. */
function calls({ calls, refused = 0, error }) {
  if (refused > 0) return `${counted(calls, 'answer')}, ${number(refused)} refused`;
  return error ? counted(calls, 'answer') : `joined from ${counted(calls, 'answer')}`;
}

/** What the recorded steps of a run took together. */
export function taken(trace) {
  // A step that failed and was taken up again tells all that it took in the next event.
  const steps = trace.filter((event, at) => at === trace.length - 1 || !event.error);
  // Of a step that nobody answered nothing was taken.
  const used = (event) => event.usage ?? (event.error ? undefined : planned(event));
  const asked = steps.filter(used);
  const sum = (pick) => asked.reduce((sum, event) => sum + (pick(used(event)) ?? 0), 0);
  const models = {};
  for (const event of asked.filter(({ model }) => model)) tally(models, event.model, used(event));
  const peak = (event) => event.peak_tokens ?? event.input_tokens + (event.output_tokens ?? 0);
  const fullest = asked.reduce(
    (most, event) => (most && peak(most) > peak(event) ? most : event),
    undefined,
  );
  return {
    iterations: trace.length,
    input_tokens: sum(({ input }) => input),
    output_tokens: sum(({ output }) => output),
    cached_tokens: asked.some((event) => used(event).cached !== undefined)
      ? sum(({ cached }) => cached)
      : undefined,
    peak_tokens: fullest ? peak(fullest) : 0,
    window: fullest?.window?.tokens ?? 0,
    models,
    ...costOf(asked),
  };
}

/** Adds what a model took. */
function tally(models, model, { input = 0, output = 0, cached }) {
  const before = models[model] ?? { input: 0, output: 0 };
  models[model] = { ...before, input: before.input + input, output: before.output + output };
  if (cached !== undefined) models[model].cached = (before.cached ?? 0) + cached;
}

/** What calls cost together, as far as their models have prices. */
function costOf(calls) {
  const known = calls.filter(({ cost }) => cost).map(({ cost }) => cost);
  const without = [...new Set(calls.filter(({ cost }) => !cost).map(({ model }) => model))];
  if (without.length === 0) return { cost: added(known), partial_cost: undefined };
  const partial_cost = known.length > 0 ? { ...added(known), without } : undefined;
  return { cost: undefined, partial_cost };
}

/** Who was asked and what that cost, with one answer more of a step that is not done. */
export function answeredBy(run, { model = run.model, usage, cost, entry }) {
  const { without = Object.keys(run.models ?? {}), ...partial } = run.partial_cost ?? {};
  const before = run.cost
    ? [{ cost: run.cost }]
    : [run.partial_cost && { cost: partial }, ...without.map((model) => ({ model }))];
  const models = { ...run.models };
  tally(models, model, usage);
  return { entries: entry, models, ...costOf([...before.filter(Boolean), { model, cost }]) };
}

/** Amounts together, to their last place. */
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

/** When a run was worked on, with one step more: what nobody did before it is a pause. */
export function worked({ last_at: last, began_at: began, paused_ms: paused = 0 }, event) {
  const gap = event.at - (last ?? began);
  return {
    last_at: event.at + event.took_ms,
    paused_ms: gap >= SHORTEST_PAUSE ? paused + gap : paused,
  };
}

/** When a run was worked on, once somebody takes it up: without an end, nobody knows when it was left. */
export function takenUp(run, { at, ended_at: ended, entry }) {
  const gap = at - (ended ?? run.last_at ?? run.began_at);
  const isPause = gap >= SHORTEST_PAUSE;
  return {
    entries: entry,
    last_at: at,
    paused_ms: (run.paused_ms ?? 0) + (isPause ? gap : 0),
    paused_at_most: run.paused_at_most || (isPause && !ended),
  };
}

/** What the calls of a step took, and who says so. */
function tokens(event) {
  const used = event.usage ?? (event.error ? undefined : planned(event));
  if (!used)
    return event.window
      ? `nothing taken: no answer to the ${number(event.window.input_token_count)} tokens that were to be sent`
      : undefined;
  const whose = { provider: 'by the provider’s count', us: 'by our count' }[event.counted_by];
  const cached = used.cached > 0 ? ` (${number(used.cached)} from a cache)` : '';
  return [`${number(used.input)} tokens in${cached}, ${number(used.output)} out`, whose]
    .filter(Boolean)
    .join(' ');
}

const planned = (event) =>
  event.input_tokens === undefined
    ? undefined
    : { input: event.input_tokens, output: event.output_tokens };

/** Why a step went as it did, with the figures: what was asked for, what there was, what was freed. */
function decided(event) {
  if (event.action === 'manage_context_budget') return [weighed(event)].filter(Boolean);
  if (event.action === 'call_model') return gaveWay(event);
  if (event.action === 'set_variables' && event.context_tokens_before !== undefined) {
    const [was, is] = [event.context_tokens_before, event.context_tokens_after];
    const change = is < was ? `${number(was - is)} freed` : `${number(is - was)} more`;
    return [`The context went from ${counted(was, 'token')} to ${number(is)}: ${change}.`];
  }
  if (event.action === 'fetch_node_texts' && (event.skipped ?? []).length > 0) {
    const { skipped, texts } = event;
    return [
      `${number(skipped.length)} of ${counted(skipped.length + texts, 'text')} ${skipped.length === 1 ? 'was' : 'were'} left out: each asked for more than was left of ${number(event.budget)} ${event.unit}.`,
    ];
  }
  if (event.action === 'loop_guard' && event.decision)
    return [
      event.decision === 'on_deny'
        ? `Passed ${number(event.passed)} of ${number(event.max_turn_loops)} times before, so not again.`
        : `Passed ${number(event.passed)} of ${number(event.max_turn_loops)} times.`,
    ];
  if (event.action === 'route' && event.said)
    return [`The answer says “${short(event.said, 80)}”.`];
  return [];
}

/** What of a prompt did not go in as it was. */
function gaveWay({ window }) {
  const gave = (window?.parts ?? []).filter((part) => part.given < part.asked);
  return gave.map(({ part, asked, given }) =>
    part === 'completion'
      ? `The answer asked for ${number(asked)} tokens and had ${number(given)}: the window of ${number(window.tokens)} has no more.`
      : `${partName(part)} asked for ${number(asked)} tokens and had ${number(given)}${part === 'history' && window.dropped_messages > 0 ? `: ${counted(window.dropped_messages, 'message was', 'messages were')} left out` : ''}.`,
  );
}

/** The figures of a budget of context. */
function figures(event) {
  const nodes = event.nodes ?? [];
  const [most, there] = [event.max_context_tokens, event.current_context_tokens];
  const wanted = event.context_tokens ?? there;
  const smaller = nodes.filter((node) => node.compacted);
  const comes = Math.max(0, wanted - there);
  const again = nodes.filter((node) => node.repeats);
  return {
    nodes,
    most,
    there,
    wanted,
    comes,
    free: Math.max(0, most - there),
    smaller,
    freed: smaller.reduce((sum, node) => sum + node.tokens_raw - node.tokens_final, 0),
    again,
    // What stands between texts goes with those that are new, if there are any.
    repeated:
      again.length === nodes.length
        ? comes
        : Math.min(
            comes,
            again.reduce((sum, node) => sum + node.tokens_final, 0),
          ),
  };
}

/** What a budget of context decided, and why. */
function weighed(event) {
  const { nodes, most, there, wanted, comes, free, smaller, freed } = figures(event);
  if (nodes.length === 0)
    return `Nothing asked to be let in: ${number(there)} of ${number(most)} tokens are taken.`;
  const texts = counted(nodes.length, 'text');
  const asked = `${texts} asked for ${number(comes + freed)} tokens, and ${number(free)} of ${number(most)} were free`;
  const shrunk =
    smaller.length > 0
      ? `${smaller.length === nodes.length ? 'all' : number(smaller.length)} of them ${smaller.length === 1 ? 'was' : 'were'} made smaller (${reasons(smaller)}), which freed ${number(freed)}`
      : '';
  if (wanted > most) {
    const leads = event.error ? '' : `, and ${event.decision} led to ${event.next}`;
    return `${asked}${shrunk && `; ${shrunk}`}: ${number(wanted - most)} too many, so none was let in${leads}.`;
  }
  const without = wanted + freed > most ? ', without which they would not have fitted' : '';
  return shrunk
    ? `${asked}; ${shrunk}${without}: ${number(comes)} came in.`
    : `${asked}: all of them came in.`;
}

/** Why texts were made smaller. */
function reasons(nodes) {
  const why = nodes.map(({ policy, threshold }) =>
    policy === 'threshold' && threshold
      ? `above the threshold of ${number(threshold.limit)}`
      : ({ always: 'always', demand: 'asked for by mail', threshold: 'above the threshold' }[
          policy
        ] ?? policy),
  );
  return [...new Set(why)].join('; ');
}

/** What `manage_context_budget` weighed: what was there, what would come, and what there is room for. */
function budget(event) {
  const { nodes, most, there, wanted, comes, again, repeated } = figures(event);
  const fresh = comes - repeated;
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
    `${number(there)} there`,
    nodes.length > again.length &&
      `${number(fresh)} of ${counted(nodes.length - again.length, 'new text')}`,
    again.length > 0 &&
      `${number(repeated)} of ${counted(again.length, 'text that is', 'texts that are')} there already`,
    wanted <= most && `${number(most - wanted)} free`,
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
          'aria-label': `Of ${number(most)} tokens of context: ${parts.join(', ')}.`,
        },
        piece('part-history', there, 'there'),
        piece('part-context', fresh, 'new'),
        piece('part-memories', repeated, 'again'),
        piece('part-free', Math.max(0, most - wanted), 'free'),
      ),
      most,
      wanted,
      'the budget ends',
    ),
    h('p', { class: 'facts' }, `${number(wanted)} of ${number(most)} tokens: ${parts.join(' · ')}`),
    nodes.length > 0 &&
      folded(`The ${counted(nodes.length, 'text')}, one by one`, () => texts(event)),
  );
}

/** What became of each text that was weighed. */
function texts({ nodes }) {
  const note = (node) =>
    [
      node.compacted ? 'compacted' : 'as it is',
      node.policy,
      node.threshold &&
        `${number(node.threshold.tokens)} with it, threshold ${number(node.threshold.limit)}`,
      node.reason?.replaceAll('_', ' '),
      node.repeats &&
        (node.repeats.same
          ? `repeats block ${number(node.repeats.block)}`
          : `block ${number(node.repeats.block)} shows it in another form`),
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
        h('tbody', {}, rows),
      ),
    ),
    nodes.length > 100 &&
      h('p', { class: 'facts' }, `${counted(nodes.length - 100, 'text')} more are in the trace.`),
  ];
}

/** The window of a call, and what was asked and answered in it. */
function call(run, event) {
  const { window } = event;
  const parts = window.parts.map(({ part, asked, given }) => ({ name: part, asked, given }));
  const view = {
    window: window.tokens,
    margin: window.margin,
    parts,
    // The window is that of the first call; earlier records do not tell what only that took.
    used: event.calls > 1 ? event.first_output_tokens : event.output_tokens,
  };
  return h(
    'div',
    { class: 'window' },
    event.calls > 1 && h('p', { class: 'facts' }, firstCall(event)),
    windowBar(view, 'small'),
    folded('What was asked and answered', async () => {
      const address = `/api/runs/${encodeURIComponent(run.id)}/steps/${event.number}`;
      return exchange(run, event, await ask(`${address}?text=true`), view);
    }),
  );
}

const firstCall = ({ calls }) => `The window of the first of ${number(calls)} calls`;

/** What a model was asked and what it answered. */
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
        `Asked, ${role}`,
        typeof content === 'string' ? content : JSON.stringify(content, null, 2),
        `Asked as ${role} in step ${event.number}`,
      ),
    ),
    shown.answer !== undefined &&
      entry('Answered', shown.answer, `Answered in step ${event.number}`),
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
    h('h4', {}, event.calls > 1 ? firstCall(event) : 'The window'),
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
function blocks(fates, found, after) {
  return folded(comparison(fates), () => [
    ...fates.after.map((fate, at) =>
      h(
        'div',
        { class: `entry fate-${fate.kind}` },
        h('h4', {}, `${at + 1}: ${told(fate)}`),
        textView({ text: after[at] }, { label: `Context block ${at + 1}` }),
      ),
    ),
    ...fates.gone.map((at) =>
      h(
        'div',
        { class: 'entry fate-gone' },
        h('h4', {}, `Left out: block ${at + 1} of those before`),
        textView({ text: found[at] }, { label: `Context block ${at + 1} before` }),
      ),
    ),
  ]);
}
