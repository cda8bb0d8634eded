// The attempts of a run, in order: how each was requested, how it was joined, where it stops.

import { fill, h, renew } from './dom.js';
import { isSamePart, mark, textView } from './document.js';
import { beginning, ending } from './text.js';
import {
  counted,
  countNote,
  duration,
  failure,
  isUnknownEnd,
  number,
  path,
  place,
  retriedText,
  seam,
  strategyText,
} from './words.js';

/** Longer lists are folded; failed attempts are always shown. */
const SHOWN_FIRST = 12;
const SHOWN_LAST = 6;

/** The characters that are shown on each side of a seam and before a cut. */
const AROUND = 80;

/** The list of attempts. `within` is a prefix for element ids where a page has several lists. */
export function attemptList(run, within = '') {
  const steps = run.steps;
  const items = (from, to) =>
    steps.slice(from, to).map((step, at) => attempt(run, step, from + at, within));
  const list = h('ol', { class: 'attempts', id: `${within}attempts` });
  if (steps.length <= SHOWN_FIRST + SHOWN_LAST + 5) {
    fill(list, items(0, steps.length));
  } else {
    const last = steps.length - SHOWN_LAST;
    fill(list, items(0, SHOWN_FIRST));
    for (let from = SHOWN_FIRST; from < last;) {
      if (steps[from].result.result === 'failed') {
        list.append(...items(from, from + 1));
        from += 1;
        continue;
      }
      let to = from;
      while (to < last && steps[to].result.result !== 'failed') to += 1;
      list.append(folded(from, to, items));
      from = to;
    }
    list.append(...items(last, steps.length));
  }
  return list;
}

/** Adds the attempts from `since` on to a list. */
export function addAttempts(list, run, since) {
  list.append(...run.steps.slice(since).map((step, at) => attempt(run, step, since + at)));
}

/** Updates the attempts of a list that have changed. */
export function renewAttempts(list, run) {
  for (const item of list.querySelectorAll(':scope > .attempt')) {
    const index = Number(item.dataset.attempt) - 1;
    renew(item, attempt(run, run.steps[index], index));
  }
}

/** A placeholder for attempts that were all joined. */
function folded(from, to, items) {
  const item = h(
    'li',
    { class: 'folded', 'data-from': from + 1, 'data-to': to },
    h(
      'button',
      { type: 'button', class: 'quiet', onclick: () => unfold() },
      `Attempts ${from + 1} to ${to}, all joined: show them`,
    ),
  );
  const unfold = () => {
    const shown = items(from, to);
    item.replaceWith(...shown);
    shown[0].querySelector('h3').focus();
  };
  item.unfold = unfold;
  return item;
}

/** Scrolls to an attempt, and unfolds it if needed. */
export function goToAttempt(list, attempt) {
  for (const item of list.querySelectorAll('.folded')) {
    if (Number(item.dataset.from) <= attempt && attempt <= Number(item.dataset.to)) item.unfold();
  }
  const item = list.querySelector(`.attempt[data-attempt="${attempt}"]`);
  if (!item) return false;
  for (const other of list.querySelectorAll('.chosen')) other.classList.remove('chosen');
  item.classList.add('chosen');
  item.scrollIntoView({ block: 'center' });
  item.querySelector('h3').focus({ preventScroll: true });
  return true;
}

/** Whether a step is another part of the first answer, and so has no call of its own. */
export const sharesFirstCall = (step, index) => index > 0 && step.iteration === 1 && !step.budget;

/** A link to an attempt. */
const attemptLink = (run, attempt) =>
  h(
    'a',
    {
      class: `writer w${attempt % 6}`,
      href: `#/runs/${encodeURIComponent(run.id)}/attempts/${attempt}`,
      title: `Link to attempt ${attempt}`,
    },
    h('span', { class: 'unseen' }, 'Attempt '),
    `${attempt}`,
  );

function attempt(run, step, index, within = '') {
  const number_ = index + 1;
  const { result } = step;
  const grown = result.result === 'grown';
  // A call that the server rejected has no answer and no tokens.
  const isRejected = result.failure?.failure === 'refused';
  const before = index === 0 ? run.began_at : run.steps[index - 1].at;
  const isShared = sharesFirstCall(step, index);
  const took = step.at !== undefined && before && !isShared ? step.at - before : undefined;
  const request = isShared
    ? 'part of the answer of attempt 1'
    : step.strategy
      ? strategyText(step.strategy)
      : step.kpis
        ? 'asked what can be counted'
        : isCorrection(result)
          ? 'asked to correct the document'
          : within
            ? "the step's own prompt"
            : "the client's own request";
  const facts = [
    step.part?.tool_call !== undefined && `tool call ${step.part.tool_call + 1}`,
    step.part?.choice > 0 && `choice ${step.part.choice + 1}`,
    request,
    grown && result.seam !== 'first' && result.seam !== 'kpis' && seam(result.seam),
    !isRejected && step.budget && `${number(step.reported?.input ?? step.budget.input_token_count)} tokens in`,
    !isRejected && `${number(step.tokens)} out`,
    !isRejected && countNote(step),
    took !== undefined && duration(took),
    step.finish && `finish reason “${step.finish}”`,
    step.suspicious && `something may be missing (${step.suspicious.suspicion})`,
    step.kpi !== null && step.kpi !== undefined && `${step.kpi} % by the model’s own count`,
  ].filter(Boolean);
  return h(
    'li',
    {
      class: grown ? 'attempt' : 'attempt refused',
      'data-attempt': number_,
      id: `${within}attempt-${number_}`,
    },
    h(
      'div',
      { class: 'attempt-head' },
      within ? mark(number_) : attemptLink(run, number_),
      h('h3', { tabindex: -1 }, grown ? headline(result) : failureHeadline(result.failure)),
      h('p', { class: 'facts' }, facts.join(' · ')),
    ),
    warnings(step),
    repairs(step),
    grown && result.added ? excerpt(run, step, index) : null,
    grown ? stop(run, step) : null,
    !grown && (result.raw || step.refusal) ? rawAnswer(result.raw || step.refusal) : null,
    grown && result.added
      ? full(`All ${counted(result.added_bytes, 'byte')}`, { text: result.added })
      : null,
  );
}

/** An answer that could not be joined. */
function rawAnswer(raw) {
  const begin = [...raw.trim().slice(0, 2 * AROUND)].slice(0, AROUND).join('');
  const isAll = raw.trim().length <= begin.length;
  return [
    h(
      'p',
      { class: 'excerpt' },
      h('span', { class: 'label' }, 'wrote'),
      h('code', {}, visible(begin), !isAll && '…'),
    ),
    full('Full answer of the model', { text: raw }),
  ];
}

/** Whether a call asked to correct a whole document. */
const isCorrection = ({ seam: name, failure: why }) =>
  name === 'corrected' || why?.failure === 'uncorrected';

/** The headline of an attempt that added nothing. */
function failureHeadline(why) {
  if (why.failure === 'uncorrected') return `Not corrected: ${failure(why)}`;
  if (why.failure === 'declined') return `Declined: ${failure(why)}`;
  if (why.failure === 'refused') return `Rejected: ${failure(why)}`;
  if (why.failure === 'no-json') return `No document: ${failure(why)}`;
  return `Not joined: ${failure(why)}`;
}

/** The most fixes that are listed. */
const LISTED_FIXES = 12;

/** The repairs of an answer, and the answer before them. */
function repairs({ mended: report, result }) {
  if (!report) return null;
  const { fixes, count, original } = report;
  const more = count - Math.min(fixes.length, LISTED_FIXES);
  return h(
    'div',
    { class: 'repairs' },
    h(
      'p',
      { class: 'excerpt' },
      h('span', { class: 'label' }, 'repaired'),
      h('span', {}, `${counted(count, 'fix', 'fixes')}:`),
    ),
    h(
      'ul',
      { class: 'fixes' },
      fixes
        .slice(0, LISTED_FIXES)
        .map((fix) => h('li', {}, h('code', {}, fix.kind), ` at byte ${number(fix.offset)}`)),
      more > 0 && h('li', {}, `and ${number(more)} more`),
    ),
    original &&
      h(
        'div',
        { class: 'beside' },
        side('Received', original),
        result.added && side('Repaired', result.added),
      ),
  );
}

/** The characters that are shown of each of two texts side by side. */
const BESIDE = 4000;

function side(label, text) {
  const shown = beginning(text, BESIDE);
  return h(
    'figure',
    {},
    h('figcaption', {}, label),
    h(
      'pre',
      { class: 'code', tabindex: 0, role: 'group', 'aria-label': label },
      shown,
      shown.length < text.length && `… ${number(text.length - shown.length)} characters more`,
    ),
  );
}

function headline(result) {
  if (result.seam === 'first') return `First: ${counted(result.added_bytes, 'byte')}`;
  if (result.seam === 'kpis') return 'Named what can be counted';
  if (result.seam === 'corrected') return `Corrected: ${counted(result.added_bytes, 'byte')}`;
  const repeated = result.overlap > 0 ? `, ${counted(result.overlap, 'character')} repeated` : '';
  return `Joined: ${counted(result.added_bytes, 'byte')} added${repeated}`;
}

function warnings(step) {
  const grown = step.result.result === 'grown';
  const texts = [
    step.retried && retriedText(step.retried),
    grown && step.refusal && `The model declined: ${step.refusal}`,
    step.finish === 'content_filter' && 'The provider ended the answer: content_filter',
    step.plain_text &&
      isUnknownEnd(step.finish) &&
      `The provider ended the answer with “${step.finish}”, which does not say whether it is complete.`,
    step.broken && `The answer broke off: ${step.broken}`,
    step.progress === 'slipped' && 'The model’s own progress count fell.',
  ].filter(Boolean);
  return (
    texts.length > 0 &&
    h(
      'ul',
      { class: 'warnings' },
      texts.map((text) => h('li', {}, text)),
    )
  );
}

/** The seam: the text before it, the repeated text, and the new text. */
function excerpt(run, step, index) {
  const { result } = step;
  const begin = h(
    'span',
    { class: 'new' },
    visible(beginning(result.added, AROUND)).trimEnd(),
    result.added.length > AROUND && '…',
  );
  if (result.seam === 'first')
    return h(
      'p',
      { class: 'excerpt' },
      h('span', { class: 'label' }, 'begins'),
      h('code', {}, begin),
    );
  const base = baseBefore(run, index);
  const characters = [...ending(base, 2 * result.overlap + AROUND)];
  const repeatedFrom = Math.max(0, characters.length - result.overlap);
  const repeated = characters.slice(repeatedFrom).join('');
  const before = ending(
    characters.slice(0, repeatedFrom).join(''),
    Math.max(16, 60 - repeated.length),
  );
  return h(
    'p',
    { class: 'excerpt' },
    h('span', { class: 'label' }, 'joins'),
    h(
      'code',
      {},
      h('span', { class: 'old' }, '…', visible(before)),
      repeated &&
        h(
          'mark',
          { class: 'repeated', title: 'repeated from the attempt before' },
          repeated.length > AROUND && '…',
          visible(ending(repeated, AROUND)),
        ),
      h(
        'span',
        { class: 'joint', title: seam(result.seam), role: 'img', 'aria-label': 'seam' },
        '┃',
      ),
      begin,
    ),
    h('span', { class: 'unseen' }, seam(result.seam)),
  );
}

/** The end of the document before an attempt, without the text that the attempt replaced. */
function baseBefore(run, index) {
  let end = run.steps[index].result.offset;
  let text = '';
  for (let place = index - 1; place >= 0 && text.length < 4000; place -= 1) {
    const step = run.steps[place];
    const { result } = step;
    if (result.result !== 'grown' || !result.added || !isSamePart(run.steps, step, run.steps[index])) continue;
    const bytes = new TextEncoder().encode(result.added);
    // A later attempt replaced the text behind the place where it was joined.
    const length = Math.min(bytes.length, end - result.offset);
    if (length > 0)
      text = new TextDecoder().decode(bytes.subarray(Math.max(0, length - 4000), length)) + text;
    end = Math.min(end, result.offset);
  }
  return text;
}

function stop(run, step) {
  const { result, cut } = step;
  const isLast = step === run.steps.at(-1);
  const isCancelled = isLast && run.reason === 'cancelled';
  if (!cut && !step.plain_text)
    return h(
      'p',
      { class: 'excerpt complete-end' },
      h('span', { class: 'label' }, 'ends'),
      h('span', {}, 'the document is complete'),
    );
  const isCut = cut || isCancelled || textStop(step);
  const end = result.added
    ? h(
        'code',
        {},
        h('span', { class: 'new' }, '…', visible(ending(result.added, AROUND))),
        isCut && h('span', { class: 'scissors', role: 'img', 'aria-label': 'cut here' }, '✂'),
      )
    : null;
  const where = cut
    ? [`${place(cut.place)} at `, h('code', { class: 'path' }, path(cut.path))]
    : isCancelled
      ? 'when the client closed the connection'
      : isCut
        ? textStop(step)
        : `${isUnknownEnd(step.finish) ? '' : 'complete, '}finish reason “${step.finish}”`;
  return h(
    'p',
    { class: 'excerpt' },
    h('span', { class: 'label' }, isCut ? 'stops' : 'ends'),
    end,
    h('span', { class: 'where' }, where),
  );
}

/** Where an incomplete answer stops, by finish reason. */
const CUTS = {
  length: 'at the limit of its call',
  content_filter: 'where the content filter ended it',
};

/** Where an incomplete text stops; empty if the text is complete. */
export const textStop = ({ broken, finish }) =>
  broken || !finish || Object.hasOwn(CUTS, finish) ? (CUTS[finish] ?? 'before its end') : '';

/** An excerpt in one line. */
const visible = (text) => text.replace(/[ \t\r]*\n\s*/g, '↵');

function full(label, whole) {
  const details = h(
    'details',
    {
      class: 'full',
      ontoggle: () => {
        if (details.open && details.children.length === 1)
          details.append(textView(whole, { label }));
      },
    },
    h('summary', {}, label),
  );
  return details;
}
