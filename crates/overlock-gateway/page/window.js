// The window of a model as a bar and a table of its parts: tokens requested and granted.

import { h } from './dom.js';
import { counted, number, part as partName, share } from './words.js';

/** The parts in the order of a prompt. */
const ORDER = [
  'system prompt',
  'tools',
  'memories',
  'history',
  'retrieved context',
  'last user message',
  'open turn',
  'frame',
  'completion',
];

const NAMES = {
  'system prompt': 'system',
  'last user message': 'question',
  'open turn': 'turn',
  'retrieved context': 'context',
  completion: 'answer',
};

const shade = (name) => `part-${NAMES[name] ?? name}`;

/**
 * The bar and its table.
 *
 * `window` and `margin` are tokens, `parts` is `[{name, asked, given, at_least?, dropped?, kept?}]`, and
 * `used` the tokens of the answer, if there is one. `basis` and `model` say how the counts and the
 * window were found, `messages` which messages were left out, and `limit` whether the answer has a
 * limit: the tokens planned for it are not a limit.
 */
export function windowView({ window, margin, parts, used, over = 0, basis, model, messages, limit }) {
  const ordered = inOrder(parts);
  const taken = ordered.reduce((sum, part) => sum + drawn(part, used), margin);
  const free = Math.max(0, window - taken);
  return h(
    'div',
    { class: 'window' },
    bar({ ordered, margin, free, used, window, taken, over, isGuess: isGuess(basis), limit }),
    table({ ordered, margin, free, used, window, over, limit }),
    leftOut(ordered, messages),
    basis && basisNote(basis, window, model),
  );
}

/** The tokens of a part in the bar: an answer may take more than was planned for it. */
const drawn = (part, used = 0) =>
  part.name === 'completion' ? Math.max(part.given, used) : part.given;

/** Whether the answer has no limit. */
const isUnlimited = (limit) => limit?.sent === null;

/** The names of the pieces of a part. */
const PIECES = {
  history: ['message'],
  'last user message': ['message'],
  'open turn': ['message'],
  'system prompt': ['message'],
  tools: ['tool'],
  memories: ['memory', 'memories'],
  'retrieved context': ['block'],
};

/** The pieces of a part that were left out. Earlier records lack the number that stayed. */
function pieces({ name, dropped, kept }) {
  const [one, many] = PIECES[name] ?? ['piece'];
  if (kept === undefined) return counted(dropped, one, many);
  return `${number(dropped)} of ${counted(kept + dropped, one, many)}`;
}

/** The notice about everything that was left out. */
function leftOut(parts, messages = []) {
  const dropped = parts.filter((part) => part.dropped > 0);
  const which = (part) =>
    part.name === 'history' && messages.length > 0 ? ` (${ranges(messages)})` : '';
  return (
    dropped.length > 0 &&
    h(
      'p',
      { class: 'notice' },
      `Left out: ${dropped.map((part) => pieces(part) + which(part)).join(', ')}.`,
      dropped.some((part) => part.at_least) && ' Their size is a minimum.',
    )
  );
}

/** Places, counted from 1, with consecutive ones as a range. */
function ranges(places) {
  const joined = [];
  for (const place of places) {
    if (joined.at(-1)?.[1] === place) joined.at(-1)[1] += 1;
    else joined.push([place + 1, place + 1]);
  }
  return joined
    .map(([from, to]) => (from === to ? number(from) : `${number(from)}–${number(to)}`))
    .join(', ');
}

/** Whether the window of this very model is unknown. */
const isGuess = (basis) => ['alike', 'assumed'].includes(basis?.window);

/** How the counts and the window were found, and what to do if they are guesses. */
function basisNote(basis, window, model) {
  const { counter, provenance, window: source } = basis;
  const counting = {
    exact: `Counted with ${counter}, the tokenizer of the model.`,
    calibrated: `Counted with ${counter}, partly estimated by a calibrated formula.`,
    estimate: `The counts are estimates, made with ${counter}.`,
  }[provenance];
  const sizes = {
    known: '',
    set: ' The window is from the configuration.',
    alike: ' The window is that of a model with a similar name;',
    assumed: ` The model is unknown, and a window of ${number(window)} tokens is assumed;`,
  };
  return h(
    'p',
    { class: isGuess(basis) ? 'notice' : 'muted' },
    counting,
    sizes[source],
    isGuess(basis) && [
      ' set ',
      h('code', {}, `models.${JSON.stringify(model)}.window`),
      ' to correct it.',
    ],
  );
}

/** The bar with a line of figures instead of the table. */
export function windowBar({ window, margin, parts, used }, size) {
  const ordered = inOrder(parts);
  const taken = ordered.reduce((sum, part) => sum + drawn(part, used), margin);
  const free = Math.max(0, window - taken);
  const whole = segments({ ordered, margin, free, used });
  const words = [
    ...ordered.map((part) =>
      part.name === 'completion'
        ? `${partName(part.name)} up to ${number(part.given)}${used === undefined ? '' : `, used ${number(used)}`}`
        : `${partName(part.name)} ${number(part.given)}`,
    ),
    `Margin ${number(margin)}`,
    `Free ${number(free)}`,
  ];
  whole.classList.add(size);
  whole.setAttribute('aria-label', `Window of ${number(window)} tokens`);
  return [
    upTo(whole, window, taken, 'the window ends'),
    h('p', { class: 'facts' }, `Window of ${number(window)} tokens: ${words.join(' · ')}`),
  ];
}

const inOrder = (parts) =>
  [...parts].sort((one, other) => ORDER.indexOf(one.name) - ORDER.indexOf(other.name));

/**
 * A bar with a labelled line at its limit, if it is longer than the limit.
 */
export function upTo(bar, limit, total, words) {
  if (total <= limit) return bar;
  const place = (100 * limit) / total;
  // The label is on the side that has more room.
  const side = place <= 50 ? { left: `${place}%` } : { right: `${100 - place}%` };
  bar.classList.add('over');
  return h(
    'div',
    { class: 'axis' },
    bar,
    h('span', { class: 'limit', style: { left: `${place}%` }, 'aria-hidden': 'true' }),
    h('span', { class: 'beyond', style: { left: `${place}%` }, 'aria-hidden': 'true' }),
    h(
      'p',
      { class: 'limit-words' },
      h(
        'strong',
        { style: side },
        place <= 50 && '▲ ',
        `${words} at ${number(limit)}`,
        place > 50 && ' ▲',
      ),
    ),
  );
}

function segments({ ordered, margin, free, used }) {
  const segment = (name, tokens, label, more) =>
    tokens > 0 &&
    h(
      'span',
      {
        class: `segment ${name}`,
        style: { 'flex-grow': tokens },
        title: `${label}: ${number(tokens)} tokens`,
      },
      h('span', { class: 'segment-name' }, label),
      more,
    );
  const parts = ordered.map((part) => {
    const isAnswer = part.name === 'completion';
    const tokens = drawn(part, used);
    const filled = isAnswer && used !== undefined && tokens > 0;
    return segment(
      shade(part.name),
      tokens,
      partName(part.name),
      filled && h('span', { class: 'used', style: { width: `${(100 * used) / tokens}%` } }),
    );
  });
  return h(
    'div',
    { class: 'bar', role: 'img' },
    parts,
    segment('part-margin', margin, 'Margin'),
    segment('part-free', free, 'Free'),
  );
}

function bar({ ordered, margin, free, used, window, taken, over, isGuess, limit }) {
  const whole = segments({ ordered, margin, free, used });
  const guess = isGuess ? ', a guess' : '';
  const unlimited = over === 0 && isUnlimited(limit) ? ' The answer has no limit.' : '';
  const label =
    taken > window
      ? `Window of ${number(window)} tokens: ${number(taken)} tokens are ${number(taken - window)} over the limit.`
      : `Window of ${number(window)} tokens, of which ${number(taken)} are planned for.`;
  whole.setAttribute('aria-label', `${label}${unlimited} The table below has every part.`);
  return h(
    'div',
    { class: 'bar-frame' },
    upTo(whole, window, taken, `the window ends${guess}`),
    h(
      'div',
      { class: 'bar-ends', 'aria-hidden': 'true' },
      h('span', {}, '0'),
      over > 0 && h('strong', { class: 'wrong' }, `${number(over)} over the limit`),
      h(
        'span',
        {},
        taken > window
          ? `${number(taken)} tokens ${over > 0 ? 'needed' : 'in total'}`
          : `${number(window)} tokens${guess}`,
      ),
    ),
  );
}

function table({ ordered, margin, free, used, window, over, limit }) {
  const row = (name, label, asked, given, note) =>
    h(
      'tr',
      {},
      h(
        'th',
        { scope: 'row' },
        h('span', { class: `swatch ${name}`, 'aria-hidden': 'true' }),
        label,
      ),
      h('td', {}, asked),
      h('td', {}, given),
      h('td', { class: 'share' }, typeof note === 'number' ? share(note, window) : ''),
      h('td', { class: 'note' }, typeof note === 'string' ? note : ''),
    );
  const rows = ordered.map((part) => {
    const isAnswer = part.name === 'completion';
    const asked =
      isAnswer && limit?.asked === null
        ? 'no limit'
        : `${part.at_least ? '≥ ' : ''}${number(part.asked)}`;
    const isPlanned = isAnswer && over === 0 && isUnlimited(limit);
    const given = isPlanned ? 'no limit' : number(part.given);
    const line = row(shade(part.name), partName(part.name), asked, given, drawn(part, used));
    const usage = isAnswer && used !== undefined && `used ${number(used)}`;
    line.lastChild.textContent =
      isPlanned || usage
        ? [isPlanned && `${number(part.given)} planned`, usage].filter(Boolean).join(', ')
        : part.dropped > 0
          ? `${pieces(part)} left out`
          : part.given < part.asked
            ? 'reduced'
            : '';
    return line;
  });
  return h(
    'div',
    { class: 'scroller', tabindex: 0, role: 'group', 'aria-label': 'Parts of the window' },
    h(
      'table',
      { class: 'figures parts' },
      h(
        'thead',
        {},
        h(
          'tr',
          {},
          h('th', { scope: 'col' }, 'Part'),
          h('th', { scope: 'col' }, 'Requested'),
          h('th', { scope: 'col' }, over > 0 ? 'Required' : 'Granted'),
          h('th', { scope: 'col' }, 'Share'),
          h('th', { scope: 'col' }, 'Note'),
        ),
      ),
      h(
        'tbody',
        {},
        rows,
        row('part-margin', 'Margin', '', number(margin), margin),
        free > 0 && row('part-free', 'Free', '', number(free), free),
      ),
    ),
  );
}

/** How full a window was, for a row of a list. An assumed window has no share. */
export function gauge(peak, window, isAssumed = false) {
  if (!window || !peak) return h('span', { class: 'muted' }, '–');
  if (isAssumed) {
    const why = `the model is unknown; a window of ${number(window)} tokens is assumed`;
    return h('abbr', { title: why }, `${number(peak)} of ?`);
  }
  const full = Math.min(1, peak / window);
  return h(
    'span',
    { class: 'gauge', title: `${number(peak)} of ${number(window)} tokens` },
    h(
      'span',
      { class: 'gauge-bar', 'aria-hidden': 'true' },
      h('span', { class: 'gauge-fill', style: { width: `${Math.max(2, 100 * full)}%` } }),
    ),
    h('span', { class: 'gauge-word' }, share(peak, window)),
  );
}
