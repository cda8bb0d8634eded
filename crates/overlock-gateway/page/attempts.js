// The attempts of a run, in order: how each was asked for, how it was joined, where it stops.

import { fill, h, renew } from './dom.js';
import { isSamePart, mark, textView } from './document.js';
import { beginning, ending } from './text.js';
import {
  counted,
  duration,
  failure,
  isUnknownEnd,
  number,
  path,
  place,
  seam,
  twoCounts,
  unanswered,
  way,
} from './words.js';

/** More than these are folded; those that failed are always shown. */
const SHOWN_FIRST = 12;
const SHOWN_LAST = 6;

/** So many characters are shown on each side of a seam and before a cut. */
const AROUND = 80;

/** The list of attempts. `within` tells the attempts of one list from those of another on the page. */
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

/** Adds the attempts to a list that came since so many were in it. */
export function addAttempts(list, run, since) {
  list.append(...run.steps.slice(since).map((step, at) => attempt(run, step, since + at)));
}

/** Draws what is told otherwise now of the attempts in a list. */
export function renewAttempts(list, run) {
  for (const item of list.querySelectorAll(':scope > .attempt')) {
    const index = Number(item.dataset.attempt) - 1;
    renew(item, attempt(run, run.steps[index], index));
  }
}

/** Stands for attempts that all went well. */
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

/** Brings an attempt into sight, folded or not. */
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

/** Whether a step is of another part of the first answer, and took no call of its own. */
export const cameAlong = (step, index) => index > 0 && step.iteration === 1 && !step.budget;

/** Its number leads to it, and can be copied and shared. */
const toItself = (run, attempt) =>
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
  // What a server would not have was answered by nobody, and takes nothing.
  const isRejected = result.failure?.failure === 'refused';
  const before = index === 0 ? run.began_at : run.steps[index - 1].at;
  const isAlong = cameAlong(step, index);
  const took = step.at !== undefined && before && !isAlong ? step.at - before : undefined;
  const asked = isAlong
    ? 'came with attempt 1'
    : step.way
      ? way(step.way)
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
    asked,
    grown && result.seam !== 'first' && result.seam !== 'kpis' && seam(result.seam),
    !isRejected && step.budget && `${number(step.told?.input ?? step.budget.input_token_count)} tokens in`,
    !isRejected && `${number(step.tokens)} out`,
    !isRejected && twoCounts(step),
    took !== undefined && duration(took),
    step.finish && `provider said “${step.finish}”`,
    step.kpi !== null && step.kpi !== undefined && `${step.kpi} % by its own account`,
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
      within ? mark(number_) : toItself(run, number_),
      h('h3', { tabindex: -1 }, grown ? headline(result) : failed(result.failure)),
      h('p', { class: 'facts' }, facts.join(' · ')),
    ),
    warnings(step),
    mended(step),
    grown && result.added ? excerpt(run, step, index) : null,
    grown ? stop(run, step) : null,
    !grown && (result.raw || step.refusal) ? wrote(result.raw || step.refusal) : null,
    grown && result.added
      ? full(`All of its ${counted(result.added_bytes, 'byte')}`, { text: result.added })
      : null,
  );
}

/** What the model wrote that could not be joined. */
function wrote(raw) {
  const begin = [...raw.trim().slice(0, 2 * AROUND)].slice(0, AROUND).join('');
  const isAll = raw.trim().length <= begin.length;
  return [
    h(
      'p',
      { class: 'excerpt' },
      h('span', { class: 'label' }, 'wrote'),
      h('code', {}, visible(begin), !isAll && '…'),
    ),
    full('All that the model wrote', { text: raw }),
  ];
}

/** Whether an answer was to correct a whole document. */
const isCorrection = ({ seam: name, failure: why }) =>
  name === 'corrected' || why?.failure === 'uncorrected';

/** What became of an answer that brought nothing. */
function failed(why) {
  if (why.failure === 'uncorrected') return `Not corrected: ${failure(why)}`;
  if (why.failure === 'declined') return `Declined: ${failure(why)}`;
  if (why.failure === 'cancelled') return `Not joined: ${failure(why)}`;
  if (why.failure === 'refused') return `Rejected: ${failure(why)}`;
  if (why.failure === 'no-json') return `No document: ${failure(why)}`;
  return `Refused: ${failure(why)}`;
}

/** So many changes are listed. */
const LISTED_FIXES = 12;

/** What had to be put right in an answer, and the answer before it was. */
function mended({ mended: told, result }) {
  if (!told) return null;
  const { fixes, count, original } = told;
  const more = count - Math.min(fixes.length, LISTED_FIXES);
  return h(
    'div',
    { class: 'mended' },
    h(
      'p',
      { class: 'excerpt' },
      h('span', { class: 'label' }, 'mended'),
      h('span', {}, `${counted(count, 'thing')} in the answer as it came:`),
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
        side('As it came', original),
        result.added && side('As it was joined', result.added),
      ),
  );
}

/** So much of a text stands beside another. */
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
  if (result.seam === 'kpis') return 'Said what can be counted';
  if (result.seam === 'corrected') return `Corrected: ${counted(result.added_bytes, 'byte')}`;
  const repeated = result.overlap > 0 ? `, ${counted(result.overlap, 'character')} repeated` : '';
  return `Joined: ${counted(result.added_bytes, 'byte')} added${repeated}`;
}

function warnings(step) {
  const grown = step.result.result === 'grown';
  const told = [
    step.retried && unanswered(step.retried),
    grown && step.refusal && `The model declines: ${step.refusal}`,
    step.finish === 'content_filter' && 'The provider ended the answer: content_filter',
    step.plain_text &&
      isUnknownEnd(step.finish) &&
      `The provider ended the answer with “${step.finish}”, which does not tell whether it is whole.`,
    step.broken && `The answer broke off: ${step.broken}`,
    step.progress === 'slipped' && 'The share that the model says it has delivered fell.',
  ].filter(Boolean);
  return (
    told.length > 0 &&
    h(
      'ul',
      { class: 'warnings' },
      told.map((text) => h('li', {}, text)),
    )
  );
}

/** The seam: what was there, what of it was repeated, and how it goes on. */
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
  const kept = ending(
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
      h('span', { class: 'old' }, '…', visible(kept)),
      repeated &&
        h(
          'mark',
          { class: 'repeated', title: 'written by the attempt before, and repeated by this one' },
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

/** The end of the document as it was before an attempt, without what the attempt took back. */
function baseBefore(run, index) {
  let end = run.steps[index].result.offset;
  let text = '';
  for (let place = index - 1; place >= 0 && text.length < 4000; place -= 1) {
    const step = run.steps[place];
    const { result } = step;
    if (result.result !== 'grown' || !result.added || !isSamePart(run.steps, step, run.steps[index])) continue;
    const bytes = new TextEncoder().encode(result.added);
    // What lies beyond the place where a later attempt joins was replaced by it.
    const kept = Math.min(bytes.length, end - result.offset);
    if (kept > 0)
      text = new TextDecoder().decode(bytes.subarray(Math.max(0, kept - 4000), kept)) + text;
    end = Math.min(end, result.offset);
  }
  return text;
}

function stop(run, step) {
  const { result, cut } = step;
  const isLast = step === run.steps.at(-1);
  const isLeft = isLast && run.reason === 'cancelled';
  if (!cut && !step.plain_text)
    return h(
      'p',
      { class: 'excerpt whole-end' },
      h('span', { class: 'label' }, 'ends'),
      h('span', {}, 'the document is whole'),
    );
  const isCut = cut || isLeft || textStop(step);
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
    : isLeft
      ? 'when the client closed the connection'
      : isCut
        ? textStop(step)
        : `${isUnknownEnd(step.finish) ? '' : 'by itself: '}the provider says “${step.finish}”`;
  return h(
    'p',
    { class: 'excerpt' },
    h('span', { class: 'label' }, isCut ? 'stops' : 'ends'),
    end,
    h('span', { class: 'where' }, where),
  );
}

/** Where an answer stops that is not whole, by what the provider says. */
const CUTS = {
  length: 'at the limit of its call',
  content_filter: 'where the filter ended it',
};

/** Where a text stops that is not whole; nothing if it ended. */
export const textStop = ({ broken, finish }) =>
  broken || !finish || Object.hasOwn(CUTS, finish) ? (CUTS[finish] ?? 'before it was done') : '';

/** Line breaks would tear an excerpt apart. */
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
