// One run: its window, its attempts, its document, and why it ended as it did.

import { ask, askEach, askText, gateway, listen } from './api.js';
import { copyButton, fill, h, name as named, renewed, saveButton, say } from './dom.js';
import { addAttempts, attemptList, cameAlong, goToAttempt } from './attempts.js';
import { assembled, growth, isSamePart, textView, tree } from './document.js';
import { laidOut, member } from './json.js';
import {
  answeredBy,
  goToStep,
  pipelineVerdict,
  pipelineView,
  taken,
  takenUp,
  worked,
} from './pipeline.js';
import { live } from './runs.js';
import { direction } from './text.js';
import { gauge, windowView } from './window.js';
import {
  about,
  clock,
  counted,
  faultHelp,
  isUnknownEnd,
  lasted,
  modelsOf,
  money,
  notAnswered,
  number,
  outcome,
  path,
  place,
  REASONS,
  soFar,
  unanswered,
  unfitWhy,
  unpriced,
  way,
  whose,
} from './words.js';

/** Longer documents are not sent back to be looked at unless somebody asks. */
const LONG = 2_000_000;

/** Shorter texts need no room to be scrolled in. */
const SHORT = 2000;

const NO_RUN = 'There is no such run: its address may be incomplete, or it was recorded elsewhere.';

export async function showRun(frame, { rest, signal }) {
  document.title = 'Overlock';
  const id = rest[0];
  const address = `/api/runs/${encodeURIComponent(id)}`;
  let run = null;
  let waiting = false;
  const view = runView(frame);

  const { has_store: hasStore, record } = await gateway();
  if (!hasStore) throw new Error('This gateway does not record runs.');
  const read = () => ask(`${address}?text=true&missing=nothing`, { signal });
  // Where only metadata are recorded a run is there when it has ended.
  run = await read();
  if (!run && record === 'off') throw new Error(NO_RUN);

  const draw = () => {
    if (run && !signal.aborted) view.draw(run);
  };
  // A run that lasts shows how long it has.
  const tick = setInterval(() => {
    if (run && !run.ended_at && !run.left && !document.hidden) view.grow(run);
  }, 1000);
  signal.addEventListener('abort', () => clearInterval(tick));
  const drawSoon = () => {
    if (waiting) return;
    waiting = true;
    setTimeout(() => {
      waiting = false;
      draw();
    }, 150);
  };
  const move = (target) => {
    const list = frame.querySelector('#attempts');
    if (target[1] === 'attempts' && target[2] && list) goToAttempt(list, Number(target[2]));
    if (target[1] === 'steps' && target[2]) goToStep(Number(target[2]));
  };
  const moved = (event) => {
    event.preventDefault();
    move(event.detail.rest);
  };
  const main = document.getElementById('main');
  main.addEventListener('moved', moved);
  signal.addEventListener('abort', () => main.removeEventListener('moved', moved));

  draw();
  move(rest);

  /** Says whether events arrive, unless there are none to come. */
  function tellLive(state) {
    if (run?.ended_at) ended('ended');
    else if (run?.left) ended('broken off');
    else live(state);
  }

  /** Whether somebody may still go on with it. */
  const mayGoOn = () => !run?.ended_at || (run.kind === 'pipeline' && run.outcome !== 'complete');

  if (!mayGoOn() || record === 'off') {
    tellLive('off');
    return;
  }

  async function readAgain(left, before) {
    try {
      const fault = run?.upstream_fault;
      const now = await read();
      if (!now) return;
      run = { ...now, left };
      run.upstream_fault ??= left ? fault : undefined;
      draw();
      if (before !== outcome(run).word) say(`The run is ${outcome(run).word}`);
      tellLive('off');
    } catch {
      // What was told is there all the same.
    }
  }

  function heard(name, told) {
    if (name === 'began') {
      run ??= { ...told, steps: [], request: null, has_text: false };
      // Somebody works on it, whatever end it had.
      Object.assign(run, {
        ended_at: null,
        outcome: null,
        left: false,
        error: undefined,
        upstream_fault: undefined,
      });
      tellLive('live');
    } else if (name === 'ended' || name === 'left') {
      const isKnown = name === 'left' ? run?.left : run?.ended_at === told.ended_at;
      if (!isKnown) readAgain(name === 'left', run && outcome(run).word);
      if (run) run.growing = null;
      if (run && name === 'ended') Object.assign(run, told);
      else if (run) run.upstream_fault = told.upstream_fault;
      return name === 'ended' && !mayGoOn();
    } else if (!run) return false;
    else if (name === 'asking') Object.assign(run, { asking: told, growing: null, left: false });
    else if (name === 'retrying') {
      if (told.number <= run.steps.length) return false;
      run.asking = { ...run.asking, number: told.number, retrying: told };
      say(`Attempt ${told.number} was not answered and is made again`);
    } else if (name === 'growing') {
      // What comes twice a second changes what it is about, and nothing else.
      if (run.trace || told.number <= run.steps.length) return false;
      Object.assign(run, { growing: told, cost: told.cost ?? run.cost });
      run.asking = { ...run.asking, number: told.number, retrying: null };
      if (!waiting) view.grow(run);
      return false;
    } else if (name === 'answer') {
      // What was read with the run is in its figures.
      if (!run.trace || told.entry <= run.entries) return false;
      answered(run, told);
    } else if (name === 'resumed') {
      if (!run.trace || told.entry <= run.entries) return false;
      Object.assign(run, takenUp(run, told));
    } else if (name === 'step' && run.trace) {
      if (told.number > run.trace.length) stepped(run, told);
    } else if (name === 'step' && told.number > run.steps.length) {
      attempted(run, told);
      const isJoined = told.result.result === 'grown';
      say(`Attempt ${told.number} was ${isJoined ? 'joined' : 'refused'}`);
    }
    drawSoon();
    return false;
  }

  try {
    await listen(`${address}/events?missing=nothing`, heard, signal, tellLive);
  } catch (error) {
    if (!run) throw error;
  }
  if (!run && !signal.aborted) throw new Error(NO_RUN);
}

/** Says that no events are to come. */
function ended(word) {
  live('off');
  document.getElementById('live-word').textContent = word;
}

/** Adds an attempt to a run. */
function attempted(run, step) {
  run.steps.push(step);
  run.asking = null;
  run.growing = null;
  run.left = false;
  run.iterations = step.number;
  const input = step.told?.input ?? step.budget?.input_token_count ?? 0;
  run.window_assumed = step.budget?.basis?.window === 'assumed';
  took(run, input, step.tokens, step.budget?.window);
  if (step.result.result === 'grown') run.bytes = step.result.offset + step.result.added_bytes;
  run.has_text ||= Boolean(step.result.added);
}

/** Adds a step to a run of a pipeline. */
function stepped(run, event) {
  run.trace.push(event);
  run.answers = 0;
  run.unfinished = undefined;
  run.left = false;
  Object.assign(run, taken(run.trace), worked(run, event));
  say(`Step ${event.step_id} ${event.error ? 'failed' : 'is done'}`);
}

/** Adds an answer to a step of a pipeline that is not done. The step tells of all its answers. */
function answered(run, told) {
  run.answers = (run.answers ?? run.unfinished?.usage.length ?? 0) + 1;
  run.left = false;
  Object.assign(run, answeredBy(run, told));
  took(run, told.usage.input, told.usage.output, told.window);
  run.cached_tokens = (run.cached_tokens ?? 0) + told.usage.cached;
}

/** Adds what a call took. */
function took(run, input, output, window) {
  run.input_tokens = (run.input_tokens ?? 0) + input;
  run.output_tokens = (run.output_tokens ?? 0) + output;
  if (input + output >= (run.peak_tokens ?? 0)) {
    run.window = window || run.window;
    run.peak_tokens = input + output;
  }
}

/** Draws a run, again and again while it goes on. What somebody is at, and what they opened, stays. */
function runView(frame) {
  const sections = new Map();
  let list = null;
  let drawn = null;
  let pipeline = null;
  const arriving = arrivingView();

  /** Puts a section in its place, unless the one that is there is to stay. */
  function put(name, section, staysInUse = false) {
    const before = sections.get(name);
    if (before && staysInUse && before.contains(document.activeElement)) return;
    const next = section() ?? document.createComment(name);
    if (before === next) return;
    if (before) before.replaceWith(next);
    else frame.append(next);
    sections.set(name, next);
  }

  /** Draws what grows while an answer is being written. */
  function grow(run) {
    if (!sections.has('figures')) return;
    sections.set('figures', renewed(sections.get('figures'), figures(run)));
    if (run.asking && !sections.get('asking')?.isConnected) draw(run);
    else if (run.asking) arriving(run);
  }

  function draw(run) {
    document.title = `${run.id} – Overlock`;
    if (sections.size === 0) fill(frame, crumbs(run));
    // With the end comes the text of all that was told without it.
    const isEnd = Boolean(run.ended_at);
    put('head', () => head(run), !isEnd);
    put('figures', () => figures(run));
    if (run.trace) {
      pipeline ??= pipelineView();
      put('pipeline', () => pipeline(run));
      return;
    }
    const whole = assembled(run.steps);
    const choose = (attempt) => {
      history.replaceState(null, '', `#/runs/${encodeURIComponent(run.id)}/attempts/${attempt}`);
      goToAttempt(list, attempt);
    };
    put('no text', () => (run.steps.some(isShown) ? null : noText(run)));
    put('missing', () => {
      if (run.outcome === 'partial' || run.outcome === 'failed') return missing(run, whole);
      return run.left && run.upstream_fault ? fault(run) : null;
    });
    put('window', () => windowSection(run), true);
    if (list && !isEnd && drawn > 0) addAttempts(list, run, drawn);
    else {
      list = attemptList(run);
      put('attempts', () => attemptsSection(run, list));
    }
    drawn = run.steps.length;
    put('asking', () => (run.asking && !isEnd ? arriving(run) : null));
    put('document', () => documents(run, whole, choose), !isEnd);
    put('request', () => requestSection(run), true);
  }

  return { draw, grow };
}

/** What has come of the answer that is being written, as far as it may be shown. */
function arrivingView() {
  const line = h('p', { class: 'waiting' });
  const end = h('pre', {
    class: 'code arriving',
    tabindex: 0,
    role: 'group',
    'aria-label': 'The end of the answer, as it arrives',
    hidden: true,
  });
  const section = h('section', {}, line, end);
  return (run) => {
    const { asking, growing } = run;
    line.textContent = asking.retrying
      ? notAnswered(asking.retrying)
      : `Attempt ${asking.number} is being answered: ${soFar(growing)}.`;
    end.hidden = !growing?.text;
    if (growing?.text && end.textContent !== growing.text) {
      fill(end, growing.text);
      // What is read is left where it is.
      if (end !== document.activeElement) end.scrollTop = end.scrollHeight;
    }
    return section;
  };
}

function crumbs(run) {
  return h(
    'p',
    { class: 'crumbs' },
    h('a', { href: '#/runs' }, 'Runs'),
    ' / ',
    h('span', { class: 'mono' }, run.id),
  );
}

function head(run) {
  const { word, sign, name, help } = outcome(run);
  return h(
    'header',
    { class: 'run-head' },
    h(
      'div',
      {},
      h(
        'h1',
        {},
        h(
          'span',
          { class: `badge large ${name}`, title: help },
          h('span', { 'aria-hidden': 'true' }, sign),
          word,
        ),
        h('span', { class: 'mono' }, named(run.pipeline ?? run.model)),
      ),
      h('p', { class: 'verdict' }, verdict(run)),
    ),
    h(
      'div',
      { class: 'actions', role: 'group', 'aria-label': 'Take along' },
      copyButton('Copy link', async () => location.href.replace(/\/(attempts|steps)\/.*$/, '')),
      copyButton('Copy trace', () => traceText(run)),
      saveButton('Save trace', `${run.id}.trace.json`, () => traceText(run)),
      isRequestKept(run) && copyButton('Copy request', () => requestText(run)),
      isRequestKept(run) &&
        saveButton('Save request', `${run.id}.request.json`, () => requestText(run)),
    ),
  );
}

/** What happened, in a sentence. */
function verdict(run) {
  const steps = run.steps ?? [];
  const grown = steps.filter((step) => step.result?.result === 'grown');
  const isLeft = ({ result }) => result?.failure?.failure === 'cancelled';
  const refused = steps.length - grown.length - steps.filter(isLeft).length;
  const but =
    refused > 0
      ? `; ${counted(refused, 'answer was', 'answers were')} refused and changed nothing`
      : '';
  const seams = grown.filter(({ result }) => !['first', 'kpis'].includes(result.seam)).length;
  const what = isText(run) ? 'text' : 'document';
  const parts = firstsOf(steps);
  if (parts.length > 1 && run.outcome) {
    const total = parts.reduce((sum, part) => sum + bytesOf(steps, part), 0);
    const [why] = run.outcome === 'complete' ? ['All of them are whole.'] : (REASONS[run.reason] ?? ['']);
    return `${number(parts.length)} parts, which are choices or tool calls, of ${counted(total, 'byte')} together, cut and joined at ${counted(seams, 'seam')}. ${why}`;
  }
  if (run.trace) return pipelineVerdict(run);
  if (run.outcome === 'complete' && steps.length === 0)
    return `One answer${run.output_tokens > 0 ? ` of ${counted(run.output_tokens, 'token')}` : ''}, complete as it came: nothing had to be joined, and its text was not kept.`;
  const end = steps.at(-1)?.finish;
  if (run.reason === 'no-finish' && isUnknownEnd(end))
    return `The provider ended the answer with “${end}”${run.bytes > 0 ? `, after ${counted(run.bytes, 'byte')}` : ''}: nobody here can tell whether it is whole.`;
  if (run.outcome === 'complete' && isText(run) && seams === 0)
    return `One answer of ${counted(run.bytes, 'byte')}, complete as it came: nothing had to be joined.`;
  const mended = steps.reduce((sum, step) => sum + (step.mended?.count ?? 0), 0);
  const put = mended > 0 ? `, ${counted(mended, 'thing')} in it mended` : '';
  if (run.outcome === 'complete' && seams === 0)
    return `The document came ${mended > 0 ? '' : 'whole '}in one answer, ${counted(run.bytes, 'byte')} long${put}${but}.`;
  if (run.outcome === 'complete')
    return `Cut ${seams === 1 ? 'once' : `${number(seams)} times`} and joined at ${counted(seams, 'seam')}: one whole ${what} of ${counted(run.bytes, 'byte')}${put}${but}.`;
  const [why] = REASONS[run.reason] ?? [''];
  if (run.outcome === 'partial')
    return `${why} ${run.bytes > 0 ? `${counted(run.bytes, 'byte')} of the ${what} are there` : 'A part of the answer is there'}${but}.`;
  if (run.unfit) return unfitWhy(run.unfit);
  if (run.outcome === 'failed' && run.upstream_fault?.status)
    return `The upstream answered ${run.upstream_fault.status}. There is no document.`;
  if (run.reason === 'cancelled') return `${why} Nothing had come by then.`;
  if (run.outcome === 'failed' && ['refusal', 'no-json'].includes(run.reason)) return why;
  if (run.outcome === 'failed') return `${why} There is no document.`;
  if (run.left)
    return run.keyed
      ? 'Nobody works on it any more: the client disconnected, or the gateway stopped. A request with the same key goes on from here.'
      : 'Nobody works on it any more: whoever did was stopped before it ended. What had been recorded by then is here.';
  if (run.elsewhere && !run.asking)
    return 'It is not at this gateway. Another one that shares the store is working on it, or has stopped: what it records is looked for again and again.';
  return run.asking
    ? `Attempt ${run.asking.number} is being answered${run.asking.way ? `: the model was ${way(run.asking.way)}` : ''}.`
    : 'It has begun.';
}

/** Whether what was answered is a text and no document. */
const isText = (run) => Boolean(run.steps?.[0]?.plain_text);

/** Whether a model was asked, though nothing is kept of an attempt. */
const isAsked = (run) =>
  run.outcome === 'complete' || run.upstream_fault || (run.ended_at && run.input_tokens > 0);

function figures(run) {
  const figure = (label, ...value) => h('div', {}, h('dt', {}, label), h('dd', {}, value));
  const { growing } = run;
  const tokens = (name, isGrowing) =>
    growing
      ? isGrowing
        ? about(number(growing[name]))
        : number(growing[name])
      : name === 'output_tokens' && run.output_unknown
        ? h('abbr', { title: 'the provider did not say, and nobody counted' }, '–')
        : [number(run[name]), whose(run) && h('small', { class: 'whose' }, whose(run))];
  const parts = run.trace ? [] : firstsOf(run.steps);
  const written =
    parts.length > 1
      ? parts.reduce((sum, part) => sum + bytesOf(run.steps, part), 0)
      : (run.bytes ?? 0);
  const bytes = written + (growing?.bytes ?? 0);
  const along = run.trace ? 0 : run.steps.filter(cameAlong).length;
  const attempts = Math.max(run.iterations, isAsked(run) ? 1 : 0, run.asking?.number ?? 0) - along;
  return h(
    'dl',
    { class: 'key-figures' },
    run.trace
      ? figure('Steps', number(run.trace.length))
      : figure(along > 0 ? 'Calls' : 'Attempts', number(attempts)),
    run.trace && models(run, figure),
    figure('Tokens in', tokens('input_tokens')),
    figure('Tokens out', tokens('output_tokens', true)),
    run.cached_tokens > 0 && figure('From a cache', number(run.cached_tokens)),
    run.cost && figure('Cost', growing ? about(money(run.cost)) : money(run.cost)),
    run.partial_cost &&
      figure(
        'Cost',
        money(run.partial_cost),
        h('small', { class: 'whose' }, unpriced(run.partial_cost)),
      ),
    !run.trace &&
      (run.bytes !== undefined || growing) &&
      figure(
        parts.length > 1 ? 'All parts' : isText(run) ? 'Text' : 'Document',
        growing ? about(counted(bytes, 'byte')) : counted(bytes, 'byte'),
      ),
    figure('Fullest window', gauge(run.peak_tokens ?? 0, run.window, run.window_assumed)),
    figure(
      'Took',
      ...lasted(run),
    ),
    figure('Began', clock(run.began_at)),
  );
}

/** All models that were asked. */
function models(run, figure) {
  const names = modelsOf(run);
  const each = names.map((name, at) => [at > 0 && ', ', named(name)]);
  return figure(names.length > 1 ? 'Models' : 'Model', h('span', { class: 'models' }, each));
}

const isShown = ({ result }) => Boolean(result.added || result.raw);

function noText(run) {
  const said = ({ result }) =>
    result.added_bytes > 0 || ['no-json', 'declined', 'cancelled'].includes(result.failure?.failure);
  if (!run.steps.some(said)) return null;
  return h(
    'p',
    { class: 'notice' },
    h('strong', {}, `The text of this run ${run.has_text ? 'is not shown' : 'was not kept'}. `),
    run.has_text
      ? 'It is kept for whoever asks again with the same key, and the gateway shows only what happened. To see the text of runs, set '
      : 'The gateway records only what happened, not what was said. To see the text of future runs, set ',
    h('code', {}, 'serve.record = "full"'),
    '.',
  );
}

/** Why it is not whole, and what there is nevertheless. */
function missing(run, whole) {
  const [why, help] = run.unfit
    ? [unfitWhy(run.unfit), '']
    : (REASONS[run.reason] ?? ['The reason is not known.', '']);
  const cut = run.cut && run.cut.offset > 0 ? run.cut : null;
  const delivered = h('pre', { class: 'delivered' });
  const box = h('div', { hidden: true }, h('h3', {}, 'What is there'), delivered);
  const isDocument = whole.text && !isText(run);
  if (isDocument && whole.text.length < LONG) {
    askEach({ cut: { text: whole.text } }).then(({ cut: { value } }) => {
      fill(delivered, value?.delivered);
      box.hidden = !value?.delivered;
    });
  }
  const closed = async () => (await ask('/api/close', { body: { text: whole.text } })).json;
  return h(
    'section',
    { class: 'missing', 'aria-labelledby': 'missing-title' },
    h(
      'h2',
      { id: 'missing-title' },
      run.outcome === 'partial'
        ? 'What is missing'
        : run.reason === 'no-json'
          ? 'Why there is no document'
          : 'Why there is nothing',
    ),
    h('p', {}, h('strong', {}, why), ' ', run.upstream_fault ? faultHelp(run.upstream_fault) : help),
    run.reason === 'token-limit' && tokenLimit(run),
    run.upstream_fault && fault(run),
    run.unfit && unfit(run),
    cut &&
      h(
        'p',
        {},
        `The document stops ${place(cut.place)} at `,
        h('code', { class: 'path' }, path(cut.path)),
        `, after ${counted(cut.offset, 'byte')}.`,
      ),
    cut &&
      h(
        'p',
        {},
        'Never closed: ',
        openTrail(cut.path).map((step, at) => [
          at > 0 && ' › ',
          h('code', { class: 'path' }, step),
        ]),
      ),
    box,
    isDocument &&
      h(
        'p',
        { class: 'actions' },
        copyButton('Copy closed JSON', closed),
        saveButton('Save closed JSON', `${run.id}.closed.json`, closed),
      ),
  );
}

/** Which limit was reached, and by whose count. */
function tokenLimit(run) {
  const taken = run.steps.reduce((sum, step) => sum + step.tokens, 0);
  if (!run.max_total_tokens || taken < run.max_total_tokens) return null;
  const others =
    taken === run.output_tokens
      ? whose(run)
      : `by the count that the run went by; the provider's own count is ${number(run.output_tokens)}`;
  return h(
    'p',
    {},
    `All answers together may have ${counted(run.max_total_tokens, 'token')}; they had ${number(taken)}${others && `, ${others}`}.`,
  );
}

/** What the upstream said, or what happened on the way to it. */
function fault({ upstream, upstream_fault: { status, message, retried } }) {
  const where = upstream ? [' at ', h('code', {}, upstream)] : '';
  return h(
    'div',
    { class: 'fault' },
    status
      ? h('p', {}, 'The upstream', where, ` answered ${status}:`)
      : h('p', {}, 'The upstream', where, ' gave no answer:'),
    h('pre', { class: 'code', dir: direction(message) }, message || 'nothing'),
    retried && h('p', {}, unanswered(retried)),
  );
}

/** What whoever asked for too much was told, and the window that it was too much for. */
function unfit({ model, unfit: { message, overflow, budget } }) {
  return h(
    'div',
    { class: 'fault' },
    h('p', {}, 'The client was told:'),
    h('pre', { class: 'code' }, message),
    windowView({ ...budget, over: overflow, model }),
  );
}

/** The containers on the way to a cut. */
function openTrail(pointer) {
  const parts = pointer.split('/').slice(1, -1);
  return ['the root', ...parts.map((part) => part.replaceAll('~1', '/').replaceAll('~0', '~'))];
}

function windowSection(run) {
  const planned = run.steps
    .map((step, at) => ({ step, attempt: at + 1 }))
    .filter(({ step }) => step.budget?.window > 0);
  if (planned.length === 0) return null;
  const holder = h('div');
  const label = h('output', { for: 'window-attempt' });
  const show = (at) => {
    const { step, attempt } = planned[at];
    label.textContent = `attempt ${attempt} of ${run.steps.length}`;
    slider.setAttribute('aria-valuetext', label.textContent);
    fill(
      holder,
      windowView({
        window: step.budget.window,
        margin: step.budget.margin,
        parts: step.budget.parts,
        used: step.tokens,
        basis: step.budget.basis,
        limit: step.budget.limit,
        model: run.model,
      }),
    );
  };
  const slider = h('input', {
    id: 'window-attempt',
    type: 'range',
    min: 0,
    max: planned.length - 1,
    step: 1,
    value: '0',
    oninput: () => show(Number(slider.value)),
  });
  show(0);
  return h(
    'section',
    { 'aria-labelledby': 'window-title' },
    h(
      'div',
      { class: 'section-head' },
      h('h2', { id: 'window-title' }, 'The window'),
      planned.length > 1 &&
        h('label', { class: 'slider', for: 'window-attempt' }, h('span', {}, 'of ', label), slider),
    ),
    holder,
  );
}

function attemptsSection(run, list) {
  if (run.steps.length === 0) return null;
  return h(
    'section',
    { 'aria-labelledby': 'attempts-title' },
    h('h2', { id: 'attempts-title' }, 'Attempts'),
    list,
  );
}

/** What was written, part by part: choices and tool calls are documents of their own. */
function documents(run, whole, choose) {
  const [first, ...others] = firstsOf(run.steps);
  if (others.length === 0) return documentSection(run, whole, choose, first);
  return h(
    'div',
    {},
    [first, ...others].map((one) =>
      documentSection(run, assembled(run.steps, one), choose, one, partOf(one)),
    ),
  );
}

/** How long a part of an answer has become. */
function bytesOf(steps, first) {
  const grown = steps.filter(
    (step) => step.result.result === 'grown' && isSamePart(steps, step, first),
  );
  const last = grown.at(-1)?.result;
  return last ? last.offset + last.added_bytes : 0;
}

/** The first attempt of each part of an answer. */
function firstsOf(steps) {
  const firsts = [];
  for (const step of steps)
    if (!firsts.some((first) => isSamePart(steps, step, first))) firsts.push(step);
  return firsts;
}

const partOf = ({ part }) =>
  [
    part?.tool_call !== undefined && `tool call ${part.tool_call + 1}`,
    `choice ${(part?.choice ?? 0) + 1}`,
  ]
    .filter(Boolean)
    .join(' of ');

function documentSection(run, whole, choose, first, part = '') {
  if (!whole.text) return null;
  const isPlain = Boolean(first?.plain_text);
  const holder = h('div', {
    class: isPlain && whole.text.length < SHORT ? 'document short' : 'document',
  });
  const name = isPlain ? 'text' : 'document';
  const label = `${isPlain ? 'Text' : 'Document'}${part && ` of ${part}`}`;
  const id = ['document-title', first?.part?.choice, first?.part?.tool_call].join('-');
  const views = [
    !isPlain && ['Tree', () => tree(whole)],
    ['Text', () => textView(whole, { label })],
  ].filter(Boolean);
  const buttons = views.map(([label, view], at) =>
    h(
      'button',
      {
        type: 'button',
        'aria-pressed': String(at === 0),
        onclick: () => {
          buttons.forEach((button, place) =>
            button.setAttribute('aria-pressed', String(place === at)),
          );
          fill(holder, view());
        },
      },
      label,
    ),
  );
  fill(holder, views[0][1]());
  return h(
    'section',
    { 'aria-labelledby': id },
    h(
      'div',
      { class: 'section-head' },
      h('h2', { id }, `The ${name}${part && ` of ${part}`}`),
      h(
        'div',
        { class: 'actions' },
        views.length > 1 &&
          h('div', { class: 'segmented', role: 'group', 'aria-label': 'Show as' }, buttons),
        copyButton('Copy', async () => whole.text, `${name}${part && ` of ${part}`}`),
        saveButton('Save', `${run.id}.${isPlain ? 'txt' : 'json'}`, async () => whole.text),
      ),
    ),
    h(
      'p',
      { class: 'muted' },
      'Each coloured stretch was written by one attempt; choose one to see it.',
    ),
    growth(whole, choose),
    holder,
  );
}

/** Where only metadata are kept there is a request, and nothing in it. */
const isRequestKept = (run) =>
  Boolean(run.trace ? run.request : run.request?.messages?.some((message) => message.content));

/** A run as the gateway tells it, letter by letter; before it is told anywhere, as it is known. */
async function traceText(run) {
  const text = await askText(`/api/runs/${encodeURIComponent(run.id)}?text=true&missing=nothing`);
  return text ? laidOut(text) : JSON.stringify(run, null, 2);
}

/** The same of its request. */
const requestText = async (run) => laidOut(member(await traceText(run), 'request'));

function requestSection(run) {
  if (!isRequestKept(run)) return null;
  let isAsked = false;
  const details = h(
    'details',
    {
      class: 'full',
      ontoggle: async () => {
        if (!details.open || isAsked) return;
        isAsked = true;
        try {
          details.append(textView({ text: await requestText(run) }, { label: 'Request' }));
        } catch (error) {
          isAsked = false;
          details.append(h('p', { class: 'wrong' }, error.message));
        }
      },
    },
    h('summary', {}, 'What was asked'),
  );
  return h('section', {}, details);
}
