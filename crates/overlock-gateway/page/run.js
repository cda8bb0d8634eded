// One run: its window, its attempts, its document, and how it ended.

import { ApiError, ask, askEach, askText, gateway, listen } from './api.js';
import { copyButton, fill, h, name as named, renew, saveButton, say } from './dom.js';
import {
  addAttempts,
  attemptList,
  goToAttempt,
  renewAttempts,
  sharesFirstCall,
  textStop,
} from './attempts.js';
import { assembled, growth, isSamePart, textView, tree } from './document.js';
import { formatted, member } from './json.js';
import {
  goToStep,
  pipelineVerdict,
  pipelineView,
  resumedTime,
  totalsOf,
  withAnswer,
  workedTime,
} from './pipeline.js';
import { live } from './runs.js';
import { beginning, direction } from './text.js';
import { gauge, windowView } from './window.js';
import {
  approximate,
  clock,
  counted,
  countedBy,
  faultDone,
  faultHelp,
  faultWhy,
  isUnknownEnd,
  leftOut,
  modelsOf,
  money,
  number,
  outcome,
  path,
  place,
  progressText,
  REASONS,
  retriedText,
  retryingText,
  sentence,
  share,
  strategyText,
  timeTaken,
  unfitWhy,
  unpriced,
} from './words.js';

/** Longer documents are sent to the gateway for analysis only on request. */
const LONG = 2_000_000;

/** Shorter texts need no scroll box. */
const SHORT = 2000;

const notFound = () =>
  new ApiError(404, '', 'The address may be incomplete, or the run was recorded elsewhere.');

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
  // With metadata only, a run is recorded when it ends.
  run = await read();
  if (!run && record === 'off') throw notFound();

  const draw = () => {
    if (run && !signal.aborted) view.draw(run);
  };
  // A running run shows its duration.
  const tick = setInterval(() => {
    if (run && !run.ended_at && !run.interrupted && !document.hidden) view.grow(run);
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
    const [, kind, name] = target;
    if (!['attempts', 'steps'].includes(kind) || !name || !run) return view.showMissing(null);
    const exists = kind === 'steps' ? goToStep(Number(name)) : list && goToAttempt(list, Number(name));
    view.showMissing(exists ? null : { kind, name }, run);
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

  /** Shows the state of the connection, or that no more events will arrive. */
  function showLive(state) {
    if (run?.ended_at) showEnd('ended');
    else if (run?.interrupted) showEnd('interrupted');
    else live(state);
  }

  /** Whether the run may still change. */
  const isOpenEnded = () => !run?.ended_at || (run.kind === 'pipeline' && run.outcome !== 'complete');

  if (!isOpenEnded() || record === 'off') {
    showLive('off');
    return;
  }

  async function readAgain(interrupted, before) {
    try {
      const fault = run?.upstream_fault;
      const now = await read();
      if (!now) return;
      run = { ...now, interrupted };
      run.upstream_fault ??= interrupted ? fault : undefined;
      draw();
      if (before !== outcome(run).word) say(`The run is ${outcome(run).word}`);
      showLive('off');
    } catch {
      // The data from events stays on display.
    }
  }

  function onEvent(name, data) {
    if (name === 'began') {
      run ??= { ...data, steps: [], request: null, has_text: false };
      // A resumed run loses the end it had.
      Object.assign(run, {
        ended_at: null,
        outcome: null,
        interrupted: false,
        error: undefined,
        upstream_fault: undefined,
      });
      showLive('live');
    } else if (name === 'ended' || name === 'interrupted') {
      const isKnown = name === 'interrupted' ? run?.interrupted : run?.ended_at === data.ended_at;
      if (!isKnown) readAgain(name === 'interrupted', run && outcome(run).word);
      if (run) run.growing = null;
      if (run && name === 'ended') Object.assign(run, data);
      else if (run) run.upstream_fault = data.upstream_fault;
      return name === 'ended' && !isOpenEnded();
    } else if (!run) return false;
    else if (name === 'asking') Object.assign(run, { asking: data, growing: null, interrupted: false });
    else if (name === 'retrying') {
      if (data.number <= run.steps.length) return false;
      run.asking = { ...run.asking, number: data.number, retrying: data };
      say(`Attempt ${data.number} failed and is retried`);
    } else if (name === 'growing') {
      // This event arrives twice a second, so it redraws only the figures and the arriving text.
      if (run.trace || data.number <= run.steps.length) return false;
      Object.assign(run, { growing: data, cost: data.cost ?? run.cost });
      run.asking = { ...run.asking, number: data.number, retrying: null };
      if (!waiting) view.grow(run);
      return false;
    } else if (name === 'answer') {
      // The figures of the run include answers that were read with it.
      if (!run.trace || data.entry <= run.entries) return false;
      addAnswer(run, data);
    } else if (name === 'resumed') {
      if (!run.trace || data.entry <= run.entries) return false;
      Object.assign(run, resumedTime(run, data));
    } else if (name === 'step' && run.trace) {
      if (data.number > run.trace.length) addStep(run, data);
    } else if (name === 'step' && data.number > run.steps.length) {
      addAttempt(run, data);
      const result = isRejected(data)
        ? 'rejected by the upstream'
        : data.result.result === 'grown'
          ? 'joined'
          : 'not joined';
      say(`Attempt ${data.number} was ${result}`);
    }
    drawSoon();
    return false;
  }

  try {
    await listen(`${address}/events?missing=nothing`, onEvent, signal, showLive);
  } catch (error) {
    if (!run) throw error;
  }
  if (!run && !signal.aborted) throw notFound();
}

/** Shows that no more events will arrive. */
function showEnd(word) {
  live('off');
  document.getElementById('live-word').textContent = word;
}

/** Adds an attempt to a run. */
function addAttempt(run, step) {
  run.steps.push(step);
  run.asking = null;
  run.growing = null;
  run.interrupted = false;
  run.iterations = step.number;
  const input = step.reported?.input ?? step.budget?.input_token_count ?? 0;
  if (step.budget) run.window_assumed = step.budget.basis?.window === 'assumed';
  addTokens(run, input, step.tokens, step.budget?.window);
  if (step.result.result === 'grown') run.bytes = step.result.offset + step.result.added_bytes;
  run.has_text ||= Boolean(step.result.added);
}

/** Adds a step to a run of a pipeline. */
function addStep(run, event) {
  run.trace.push(event);
  run.answers = 0;
  run.unfinished = undefined;
  run.interrupted = false;
  Object.assign(run, totalsOf(run.trace), workedTime(run, event));
  say(`Step ${event.step_id} ${event.error ? 'failed' : 'is done'}`);
}

/** Adds an answer to an unfinished step of a pipeline. The event of the step has all its answers. */
function addAnswer(run, answer) {
  run.answers = (run.answers ?? run.unfinished?.usage.length ?? 0) + 1;
  run.interrupted = false;
  Object.assign(run, withAnswer(run, answer));
  addTokens(run, answer.usage.input, answer.usage.output, answer.window);
  const { cached } = answer.usage;
  if (cached !== undefined) run.cached_tokens = (run.cached_tokens ?? 0) + cached;
}

/** Adds the tokens of a call. */
function addTokens(run, input, output, window) {
  run.input_tokens = (run.input_tokens ?? 0) + input;
  run.output_tokens = (run.output_tokens ?? 0) + output;
  if (input + output >= (run.peak_tokens ?? 0)) {
    run.window = window || run.window;
    run.peak_tokens = input + output;
  }
}

/** Draws a run and redraws it as it changes. Focus and opened elements stay. */
function runView(frame) {
  const sections = new Map();
  let list = null;
  let drawn = null;
  let isOver = false;
  let pipeline = null;
  let missingPart = null;
  const [head, windows, request] = [headView(), windowSection(), requestSection()];
  const documents = documentsView((run, attempt) => {
    history.replaceState(null, '', `#/runs/${encodeURIComponent(run.id)}/attempts/${attempt}`);
    goToAttempt(list, attempt);
  });
  const arriving = arrivingView();

  /** Puts a section in its place, unless it is there already. */
  function put(name, section) {
    const before = sections.get(name);
    const next = section ?? document.createComment(name);
    if (before === next) return;
    if (before) before.replaceWith(next);
    else frame.append(next);
    sections.set(name, next);
  }

  /** Shows that the attempt or step of the address does not exist. */
  function showMissing(target, run) {
    missingPart = target;
    if (!sections.has('missing part')) return;
    const notice = missingNotice(run, missingPart);
    put('missing part', notice);
    if (notice) say(notice.textContent);
  }

  /** Redraws what changes while an answer is being written. */
  function grow(run) {
    if (!sections.has('figures')) return;
    renew(sections.get('figures'), figures(run));
    if (run.asking && !sections.get('asking')?.isConnected) draw(run);
    else if (run.asking) arriving(run);
  }

  function draw(run) {
    document.title = `${run.id} – Overlock`;
    if (sections.size === 0) fill(frame, crumbs(run));
    const isEnd = Boolean(run.ended_at);
    put('head', head(run));
    put('missing part', missingNotice(run, missingPart));
    put('figures', figures(run));
    if (run.trace) {
      pipeline ??= pipelineView();
      put('pipeline', pipeline(run));
      return;
    }
    const parts = partsOf(run);
    put('no text', run.steps.some(isShown) ? null : noText(run));
    put('incomplete', incomplete(run, parts));
    put('window', windows(run));
    if (drawn > 0) {
      addAttempts(list, run, drawn);
      // The end of a run brings the texts of its attempts.
      if (isEnd !== isOver) renewAttempts(list, run);
    } else {
      list = attemptList(run);
      put('attempts', attemptsSection(run, list));
    }
    [drawn, isOver] = [run.steps.length, isEnd];
    const hadFocus = sections.get('asking')?.contains(document.activeElement);
    put('asking', run.asking && !isEnd ? arriving(run) : null);
    // The arriving answer has become the last attempt.
    if (hadFocus && !sections.get('asking').contains(document.activeElement))
      list.lastElementChild?.querySelector('h3')?.focus({ preventScroll: true });
    put('document', documents(run, parts));
    put('request', request(run));
  }

  return { draw, grow, showMissing };
}

/** A notice that an attempt or step does not exist. */
function missingNotice(run, target) {
  if (!target) return null;
  const [one, count] =
    target.kind === 'steps' ? ['step', run.trace?.length ?? 0] : ['attempt', run.steps?.length ?? 0];
  // It may have arrived meanwhile.
  if (Number(target.name) >= 1 && Number(target.name) <= count) return null;
  return h(
    'p',
    { class: 'notice' },
    h('strong', {}, `There is no ${one} ${beginning(target.name, 20)}. `),
    count > 0
      ? `This run has ${counted(count, one)}${run.ended_at ? '' : ' so far'}.`
      : 'No attempts of this run are recorded.',
  );
}

/**
 * The parts of an answer, each a separate document or text: its first attempt, its name if there are
 * several, its text, and where it stops if it is incomplete.
 */
function partsOf(run) {
  const firsts = firstsOf(run.steps);
  return firsts.map((first) => {
    const isOnly = firsts.length === 1;
    return {
      first,
      name: isOnly ? '' : partOf(first),
      file: [run.id, ...(isOnly ? [] : partOf(first).split(' of ').reverse())]
        .join('.')
        .replaceAll(' ', '-'),
      isCall: first.part?.tool_call !== undefined,
      whole: assembled(run.steps, first),
      ...(isOnly ? { cut: run.cut } : stopOf(run.steps, first)),
    };
  });
}

/** Where an incomplete part of several stops. */
function stopOf(steps, first) {
  const own = steps.filter((step) => isSamePart(steps, step, first));
  const last = own.findLast(({ result }) => result.result === 'grown');
  if (!last) return { stop: 'before any text' };
  if (last.plain_text) return { stop: textStop(last) };
  return { cut: last.cut };
}

/** The answer that is being written, as far as it may be shown. */
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
      ? retryingText(asking.retrying)
      : `Attempt ${asking.number}: ${progressText(growing)}.`;
    end.hidden = !growing?.text;
    if (growing?.text && end.textContent !== growing.text) {
      fill(end, growing.text);
      // The scroll position stays while the text has the focus.
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

/** The outcome of a run, and the buttons to copy and save its data. */
function headView() {
  const title = h('h1');
  const text = h('p', { class: 'verdict' });
  const actions = h('div', { class: 'actions', role: 'group', 'aria-label': 'Copy and save' });
  const view = h('header', { class: 'run-head' }, h('div', {}, title, text), actions);
  let run = null;
  return (next) => {
    const isFirst = !run;
    run = next;
    const { word, sign, help } = outcome(run);
    fill(
      title,
      h(
        'span',
        { class: `badge large ${word}`, title: help },
        h('span', { 'aria-hidden': 'true' }, sign),
        word,
      ),
      h('span', { class: 'mono' }, named(run.pipeline ?? run.model)),
    );
    fill(text, verdict(run));
    if (isFirst)
      actions.append(
        copyButton('Copy link', async () => location.href),
        copyButton('Copy trace', () => traceText(run)),
        saveButton('Save trace', `${run.id}.trace.json`, () => traceText(run)),
      );
    // A run that is followed from its beginning gets its request at the end.
    if (hasRequest(run) && actions.children.length === 3)
      actions.append(
        copyButton('Copy request', () => requestText(run)),
        saveButton('Save request', `${run.id}.request.json`, () => requestText(run)),
      );
    return view;
  };
}

/** Whether the upstream rejected a call, so that there was no answer to it. */
const isRejected = ({ result }) => result?.failure?.failure === 'refused';

/** What happened, in a sentence or two. */
function verdict(run) {
  const at = (run.steps ?? []).findIndex(({ budget }) => leftOut(budget));
  if (at < 0) return whatHappened(run);
  const left = leftOut(run.steps[at].budget);
  return `${whatHappened(run)} ${at === 0 ? '' : `In attempt ${at + 1}, `}${left}.`;
}

/** Why a run is not complete. */
const whyOf = (run) =>
  (run.reason === 'model-error' && faultWhy(run.upstream_fault)) || (REASONS[run.reason]?.[0] ?? '');

function whatHappened(run) {
  const steps = run.steps ?? [];
  const grown = steps.filter((step) => step.result?.result === 'grown');
  const isCancelled = ({ result }) => result?.failure?.failure === 'cancelled';
  const rejected = steps.filter(isRejected).length;
  const unjoined = steps.length - grown.length - steps.filter(isCancelled).length - rejected;
  const but = [
    unjoined > 0 && `; ${counted(unjoined, 'answer was', 'answers were')} not joined and changed nothing`,
    rejected > 0 && `; ${counted(rejected, 'call was', 'calls were')} rejected by the upstream`,
  ]
    .filter(Boolean)
    .join('');
  const seams = grown.filter(({ result }) => !['first', 'kpis'].includes(result.seam)).length;
  const what = isText(run) ? 'text' : 'document';
  const parts = firstsOf(steps);
  if (parts.length > 1 && run.outcome) {
    const total = parts.reduce((sum, part) => sum + bytesOf(steps, part), 0);
    const open = partsOf(run).filter(isOpen);
    const which =
      run.outcome === 'complete'
        ? 'All of them are complete.'
        : open.length > 0
          ? `${open.length === 1 ? 'One part is' : `${number(open.length)} parts are`} incomplete: ${open.map(({ name }) => name).join(', ')}. ${whyOf(run)}`
          : whyOf(run);
    const joined = seams > 0 ? `, joined at ${counted(seams, 'seam')}` : '';
    return `${number(parts.length)} parts (choices or tool calls) with ${counted(total, 'byte')} in total${joined}${but}. ${which}`;
  }
  if (run.trace) return pipelineVerdict(run);
  if (run.outcome === 'complete' && steps.length === 0)
    return `One complete answer${run.output_tokens > 0 ? ` of ${counted(run.output_tokens, 'token')}` : ''}, nothing to join. Its text was not recorded.`;
  const end = steps.at(-1)?.finish;
  if (run.reason === 'no-finish' && isUnknownEnd(end))
    return `The provider ended the answer with “${end}”${run.bytes > 0 ? `, after ${counted(run.bytes, 'byte')}` : ''}. It may be incomplete.`;
  if (run.outcome === 'complete' && isText(run) && seams === 0)
    return `One complete answer of ${counted(run.bytes, 'byte')}, nothing to join.`;
  const fixes = steps.reduce((sum, step) => sum + (step.mended?.count ?? 0), 0);
  const repaired = fixes > 0 ? `, repaired with ${counted(fixes, 'fix', 'fixes')}` : '';
  if (run.outcome === 'complete' && seams === 0)
    return `One answer with the complete document of ${counted(run.bytes, 'byte')}${repaired}${but}.`;
  if (run.outcome === 'complete')
    return `Cut ${seams === 1 ? 'once' : `${number(seams)} times`} and joined at ${counted(seams, 'seam')}: one complete ${what} of ${counted(run.bytes, 'byte')}${repaired}${but}.`;
  const why = whyOf(run);
  if (run.outcome === 'partial')
    return `${why} ${run.bytes > 0 ? `${counted(run.bytes, 'byte')} of the ${what} were received` : 'A part of the answer was received'}${but}.`;
  if (run.unfit) return unfitWhy(run.unfit);
  if (run.reason === 'cancelled') return `${why} No text had arrived.`;
  if (run.outcome === 'failed' && ['refusal', 'no-json'].includes(run.reason)) return why;
  if (run.outcome === 'failed') return `${why} There is no document.`;
  if (run.interrupted)
    return run.keyed
      ? 'Interrupted: the client disconnected, or the gateway stopped. A request with the same idempotency key resumes the run.'
      : 'Interrupted: the process stopped before the run ended. What it had recorded is shown.';
  if (run.elsewhere && !run.asking)
    return 'This gateway is not running it. Another gateway with the same store may be: this page updates with what it records.';
  return run.asking
    ? `Waiting for the answer to attempt ${run.asking.number}${run.asking.strategy ? `: the model was ${strategyText(run.asking.strategy)}` : ''}.`
    : 'Running.';
}

/** Whether the answer is plain text and not a document. */
const isText = (run) => Boolean(run.steps?.[0]?.plain_text);

/** Whether a model was called, even if no attempt is recorded. */
const isCalled = (run) =>
  run.outcome === 'complete' || run.upstream_fault || (run.ended_at && run.input_tokens > 0);

function figures(run) {
  const figure = (label, ...value) => h('div', {}, h('dt', {}, label), h('dd', {}, value));
  const { growing } = run;
  const tokens = (name, isGrowing) =>
    growing
      ? isGrowing
        ? approximate(number(growing[name]))
        : number(growing[name])
      : name === 'output_tokens' && run.output_unknown
        ? h('abbr', { title: 'not reported by the provider, and not counted' }, '–')
        : [number(run[name]), countedBy(run) && h('small', { class: 'note' }, countedBy(run))];
  const parts = run.trace ? [] : firstsOf(run.steps);
  const written =
    parts.length > 1
      ? parts.reduce((sum, part) => sum + bytesOf(run.steps, part), 0)
      : (run.bytes ?? 0);
  const bytes = written + (growing?.bytes ?? 0);
  const shared = run.trace ? 0 : run.steps.filter(sharesFirstCall).length;
  const attempts = Math.max(run.iterations, isCalled(run) ? 1 : 0, run.asking?.number ?? 0) - shared;
  return h(
    'dl',
    { class: 'key-figures' },
    run.trace
      ? figure('Steps', number(run.trace.length))
      : figure(shared > 0 ? 'Calls' : 'Attempts', number(attempts)),
    run.trace && models(run, figure),
    figure('Tokens in', tokens('input_tokens')),
    figure('Tokens out', tokens('output_tokens', true)),
    run.cached_tokens !== undefined && cachedInput(run, figure),
    run.overhead_tokens > 0 && run.cost_ratio && costRatio(run, figure),
    run.cost && figure('Cost', growing ? approximate(money(run.cost)) : money(run.cost)),
    run.partial_cost &&
      figure(
        'Cost',
        money(run.partial_cost),
        h('small', { class: 'note' }, unpriced(run.partial_cost)),
      ),
    !run.trace &&
      (run.bytes !== undefined || growing) &&
      figure(
        parts.length > 1 ? 'All parts' : isText(run) ? 'Text' : 'Document',
        growing ? approximate(counted(bytes, 'byte')) : counted(bytes, 'byte'),
      ),
    figure('Peak window use', gauge(run.peak_tokens ?? 0, run.window, run.window_assumed)),
    figure('Took', ...timeTaken(run)),
    figure('Began', clock(run.began_at)),
  );
}

/** The input tokens from a prompt cache, and their share. */
function cachedInput({ cached_tokens: cached, input_tokens: input }, figure) {
  const part = input > 0 && h('small', { class: 'note' }, share(cached, input));
  return figure('Cached input', number(cached), part);
}

/** The tokens paid relative to one uncut answer, where there was more than one call. */
function costRatio(run, figure) {
  const title = `${number(run.overhead_tokens)} tokens more than one uncut answer`;
  return figure('Cost ratio', h('abbr', { title }, `${run.cost_ratio.toFixed(2)} ×`));
}

/** All models that were called. */
function models(run, figure) {
  const names = modelsOf(run);
  const each = names.map((name, at) => [at > 0 && ', ', named(name)]);
  return figure(names.length > 1 ? 'Models' : 'Model', h('span', { class: 'models' }, each));
}

const isShown = ({ result, refusal }) => Boolean(result.added || result.raw || refusal);

function noText(run) {
  const hadText = ({ result }) =>
    result.added_bytes > 0 || ['no-json', 'declined', 'cancelled'].includes(result.failure?.failure);
  if (!run.steps.some(hadText)) return null;
  return h(
    'p',
    { class: 'notice' },
    h('strong', {}, `The text of this run ${run.has_text ? 'is not shown' : 'was not recorded'}. `),
    run.has_text
      ? 'It is stored for retries with the same idempotency key, and the gateway shows metadata only. To see the text of runs, set '
      : 'The gateway records metadata only. To see the text of future runs, set ',
    h('code', {}, 'serve.record = "full"'),
    '.',
  );
}

/** Whether a part of an answer is incomplete. */
const isOpen = ({ cut, stop }) => Boolean(cut?.offset > 0 || stop);

function incomplete(run, parts) {
  if (run.outcome === 'partial' || run.outcome === 'failed') return failureSection(run, parts);
  return run.interrupted && run.upstream_fault ? fault(run) : null;
}

/** Why a run is not complete, and what was received nevertheless. */
function failureSection(run, parts) {
  const [, help] = run.unfit ? [] : (REASONS[run.reason] ?? []);
  const why = run.unfit ? unfitWhy(run.unfit) : whyOf(run) || 'The reason is unknown.';
  return h(
    'section',
    { class: 'missing', 'aria-labelledby': 'missing-title' },
    h(
      'h2',
      { id: 'missing-title' },
      run.outcome === 'partial'
        ? 'Why it is incomplete'
        : run.reason === 'no-json'
          ? 'Why there is no document'
          : 'Why it failed',
    ),
    h('p', {}, h('strong', {}, why), ' ', run.upstream_fault ? faultHelp(run.upstream_fault) : help),
    run.reason === 'token-limit' && tokenLimit(run),
    run.upstream_fault && fault(run),
    run.unfit && unfit(run),
    run.outcome === 'partial' && parts.filter((part) => isOpen(part) || !part.name).map(stopped),
  );
}

/** Where a part of an answer stops, and what was received of it. */
function stopped({ first, name, file, isCall, whole, cut: known, stop }) {
  const cut = known?.offset > 0 ? known : null;
  const isDocument = whole.text && !first.plain_text;
  const delivered = h('pre', { class: 'delivered' });
  const box = h('div', { hidden: true }, h(name ? 'h4' : 'h3', {}, 'Received so far'), delivered);
  if (isDocument && whole.text.length < LONG) {
    askEach({ cut: { text: whole.text } }).then(({ cut: { value } }) => {
      fill(delivered, value?.delivered);
      box.hidden = !value?.delivered;
    });
  }
  const closed = async () => (await ask('/api/close', { body: { text: whole.text } })).json;
  const stops = isCall ? 'The arguments stop' : `The ${first.plain_text ? 'text' : 'document'} stops`;
  return [
    name && h('h3', {}, sentence(name).slice(0, -1)),
    stop && h('p', {}, `${first.plain_text ? stops : 'It stops'} ${stop}.`),
    cut &&
      h(
        'p',
        {},
        `${stops} ${place(cut.place)} at `,
        h('code', { class: 'path' }, path(cut.path)),
        `, after ${counted(cut.offset, 'byte')}.`,
      ),
    cut &&
      h(
        'p',
        {},
        'Unclosed: ',
        openTrail(cut.path).map((step, at) => [
          at > 0 && ' › ',
          h('code', { class: 'path' }, step),
        ]),
      ),
    box,
    isDocument &&
      isCall &&
      h('p', { class: 'muted' }, 'They are not closed, because a cut tool call must not look complete.'),
    isDocument &&
      !isCall &&
      h(
        'p',
        { class: 'actions' },
        copyButton('Copy closed JSON', closed, name && `of ${name}`),
        saveButton('Save closed JSON', `${file}.closed.json`, closed),
      ),
  ];
}

/** Which limit was reached, and who counted. */
function tokenLimit(run) {
  const used = run.steps.reduce((sum, step) => sum + step.tokens, 0);
  if (!run.max_total_tokens || used < run.max_total_tokens) return null;
  const note =
    used === run.output_tokens
      ? countedBy(run)
      : `by the count used for the limit; the provider's own count is ${number(run.output_tokens)}`;
  return h(
    'p',
    {},
    `The limit for all answers together is ${counted(run.max_total_tokens, 'token')}; they had ${number(used)}${note && `, ${note}`}.`,
  );
}

/** The message of the upstream, or the error of the connection to it. */
function fault({ upstream, upstream_fault: fault }) {
  const { message, retried } = fault;
  const where = upstream ? [' at ', h('code', {}, upstream)] : '';
  return h(
    'div',
    { class: 'fault' },
    h('p', {}, 'The upstream', where, ` ${faultDone(fault)}:`),
    h('pre', { class: 'code', dir: direction(message) }, message || '(no message)'),
    retried && h('p', {}, retriedText(retried)),
  );
}

/** The error that the client got for a request over the limit, and the window. */
function unfit({ model, unfit: { message, overflow, budget } }) {
  return h(
    'div',
    { class: 'fault' },
    h('p', {}, 'Error sent to the client:'),
    h('pre', { class: 'code' }, message),
    windowView({ ...budget, over: overflow, model }),
  );
}

/** The open containers at a cut. */
function openTrail(pointer) {
  const parts = pointer.split('/').slice(1, -1);
  return ['root', ...parts.map((part) => part.replaceAll('~1', '/').replaceAll('~0', '~'))];
}

/** The window of each attempt. The chosen attempt stays when the run changes. */
function windowSection() {
  let run = null;
  let planned = [];
  let shown = '';
  const holder = h('div');
  const label = h('output', { for: 'window-attempt' });
  const show = (at) => {
    const { step, attempt } = planned[at];
    label.textContent = `attempt ${attempt} of ${run.steps.length}`;
    slider.setAttribute('aria-valuetext', label.textContent);
    const state = JSON.stringify([attempt, step.tokens, step.budget]);
    if (state === shown) return;
    shown = state;
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
    max: 0,
    step: 1,
    value: '0',
    oninput: () => show(Number(slider.value)),
  });
  const chosen = h(
    'label',
    { class: 'slider', for: 'window-attempt' },
    h('span', {}, 'of ', label),
    slider,
  );
  const view = h(
    'section',
    { 'aria-labelledby': 'window-title' },
    h('div', { class: 'section-head' }, h('h2', { id: 'window-title' }, 'Token budget'), chosen),
    holder,
  );
  return (next) => {
    run = next;
    planned = run.steps
      .map((step, at) => ({ step, attempt: at + 1 }))
      .filter(({ step }) => step.budget?.window > 0);
    if (planned.length === 0) return null;
    chosen.hidden = planned.length === 1;
    slider.max = planned.length - 1;
    show(Number(slider.value));
    return view;
  };
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

/** The text of each part: choices and tool calls are separate documents. */
function documentsView(choose) {
  const all = h('div', { class: 'documents' });
  const views = [];
  return (run, parts) => {
    const sections = parts.map((part, at) => {
      views[at] ??= documentView((attempt) => choose(run, attempt), part);
      return views[at](part);
    });
    // Sections that are there stay in place.
    all.append(...sections.filter((section) => section && section.parentElement !== all));
    return all.firstChild ? all : null;
  };
}

/** The length of a part of an answer. */
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

/** One document or text, redrawn while it grows. Focus and scroll position stay. */
function documentView(choose, { first }) {
  const isPlain = Boolean(first.plain_text);
  const word = isPlain ? 'text' : 'document';
  const id = ['document-title', first.part?.choice, first.part?.tool_call].join('-');
  const title = h('h2', { id });
  const tools = h('div', { class: 'actions' });
  const holder = h('div');
  let part = null;
  let bar = null;
  let shown = isPlain ? 'Text' : 'Tree';
  const label = () => `${isPlain ? 'Text' : 'Document'}${part.name && ` of ${part.name}`}`;
  const make = {
    Tree: () => tree(part.whole),
    Text: () => textView(part.whole, { label: label() }),
  };
  const boxes = {};
  /** Shows the current text in the chosen view. */
  const show = () => {
    if (boxes[shown]) boxes[shown].renew(part.whole, label());
    boxes[shown] ??= make[shown]();
    if (holder.firstChild !== boxes[shown]) fill(holder, boxes[shown]);
  };
  const buttons = ['Tree', 'Text'].map((name) =>
    h(
      'button',
      {
        type: 'button',
        'aria-pressed': String(name === shown),
        onclick: () => {
          shown = name;
          for (const button of buttons)
            button.setAttribute('aria-pressed', String(button.textContent === name));
          show();
        },
      },
      name,
    ),
  );
  const view = h(
    'section',
    { 'aria-labelledby': id },
    h(
      'div',
      { class: 'section-head' },
      title,
      h(
        'div',
        { class: 'actions' },
        !isPlain && h('div', { class: 'segmented', role: 'group', 'aria-label': 'Show as' }, buttons),
        tools,
      ),
    ),
    h(
      'p',
      { class: 'muted' },
      'Each coloured section was written by one attempt. Select one to see that attempt.',
    ),
    holder,
  );
  return (next) => {
    if (!next.whole.text) return null;
    const before = part;
    part = next;
    const name = `${word}${part.name && ` of ${part.name}`}`;
    if (part.name !== before?.name) {
      fill(title, `The ${name}`);
      fill(
        tools,
        copyButton('Copy', async () => part.whole.text, name),
        saveButton('Save', `${part.file}.${isPlain ? 'txt' : 'json'}`, async () => part.whole.text),
      );
    }
    if (before && isSame(before.whole, part.whole)) return view;
    holder.className = isPlain && part.whole.text.length < SHORT ? 'document short' : 'document';
    const focused = bar?.contains(document.activeElement) && document.activeElement.dataset.attempt;
    const grown = growth(part.whole, choose);
    if (bar) bar.replaceWith(grown);
    else holder.before(grown);
    bar = grown;
    if (focused) bar.querySelector(`[data-attempt="${focused}"]`)?.focus({ preventScroll: true });
    show();
    return view;
  };
}

/** Whether the same attempts wrote the same text. */
const isSame = (one, other) =>
  one.text === other.text && JSON.stringify(one.pieces) === JSON.stringify(other.pieces);

/** Whether the request was recorded. With metadata only, a request has no content. */
const hasRequest = ({ trace, request }) =>
  Boolean(
    trace ? request : request?.input?.length || request?.messages?.some(({ content }) => content),
  );

/** The JSON of a run, as the gateway sends it; before the run is recorded, as the page knows it. */
async function traceText(run) {
  const text = await askText(`/api/runs/${encodeURIComponent(run.id)}?text=true&missing=nothing`);
  // The gateway sends `null` for a run that is not recorded yet.
  return text === 'null' ? JSON.stringify(run, null, 2) : formatted(text);
}

/** The JSON of its request. */
const requestText = async (run) => formatted(member(await traceText(run), 'request'));

/** The request of the client. */
function requestSection() {
  let shown = null;
  let isLoaded = false;
  const details = h(
    'details',
    {
      class: 'full',
      ontoggle: async () => {
        if (!details.open || isLoaded) return;
        isLoaded = true;
        try {
          details.append(textView({ text: await requestText(shown) }, { label: 'Request' }));
        } catch (error) {
          isLoaded = false;
          details.append(h('p', { class: 'wrong' }, error.message));
        }
      },
    },
    h('summary', {}, 'Request'),
  );
  const view = h('section', {}, details);
  return (run) => {
    if (!hasRequest(run)) return null;
    shown = run;
    return view;
  };
}
