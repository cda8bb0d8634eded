// The window of a model as a bar of its parts: what each asked for, and what it was given.

import { h } from './dom.js';
import { counted, number, part as partName, share } from './words.js';

/** The parts in the order in which they stand in a prompt. */
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
 * `used` what the answer really took, if it is there. What the figures rest on is told with `basis`
 * and the name of the `model`; the places of `messages` that were left out, where they are known.
 * `limit` says whether somebody limited the answer, where that is known: what is planned for it is
 * no limit by itself.
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
    basis && restsOn(basis, window, model),
  );
}

/** How many tokens of the window a part has: an answer may take more than was planned for it. */
const drawn = (part, used = 0) =>
  part.name === 'completion' ? Math.max(part.given, used) : part.given;

/** Whether nobody limited the answer. */
const isUnlimited = (limit) => limit?.sent === null;

/** What the pieces of a part are called. */
const PIECES = {
  history: ['message'],
  'last user message': ['message'],
  'open turn': ['message'],
  'system prompt': ['message'],
  tools: ['tool'],
  memories: ['memory', 'memories'],
  'retrieved context': ['block'],
};

/** What there was no room for of a part. Earlier records do not say how much stayed. */
function pieces({ name, dropped, kept }) {
  const [one, many] = PIECES[name] ?? ['piece'];
  if (kept === undefined) return counted(dropped, one, many);
  return `${number(dropped)} of ${counted(kept + dropped, one, many)}`;
}

/** What there was no room for. */
function leftOut(parts, messages = []) {
  const left = parts.filter((part) => part.dropped > 0);
  const which = (part) =>
    part.name === 'history' && messages.length > 0 ? ` (${ranges(messages)})` : '';
  return (
    left.length > 0 &&
    h(
      'p',
      { class: 'notice' },
      `Left out: ${left.map((part) => pieces(part) + which(part)).join(', ')}.`,
      left.some((part) => part.at_least) && ' What they would take was not counted to its end.',
    )
  );
}

/** Places as they are counted by people, those that follow one another as one. */
function ranges(places) {
  const found = [];
  for (const place of places) {
    if (found.at(-1)?.[1] === place) found.at(-1)[1] += 1;
    else found.push([place + 1, place + 1]);
  }
  return found
    .map(([from, to]) => (from === to ? number(from) : `${number(from)}–${number(to)}`))
    .join(', ');
}

/** Whether nobody knows the window of this very model. */
const isGuess = (basis) => ['alike', 'assumed'].includes(basis?.window);

/** What the figures rest on, and what to do where that is little. */
function restsOn(basis, window, model) {
  const { counter, provenance, window: source } = basis;
  const counting = {
    exact: `Counted with ${counter}, as the model counts.`,
    calibrated: `Counted with ${counter}, and in part by a formula that is known to be close.`,
    estimate: `The counts are estimates, made with ${counter}.`,
  }[provenance];
  const sizes = {
    known: '',
    set: ' The window is the one that was set.',
    alike: ' Window taken from a model whose name begins alike;',
    assumed: ` Window assumed: the model is not known, and ${number(window)} tokens are a guess;`,
  };
  return h(
    'p',
    { class: isGuess(basis) ? 'notice' : 'muted' },
    counting,
    sizes[source],
    isGuess(basis) && [
      ' set ',
      h('code', {}, `models.${JSON.stringify(model)}.window`),
      ' to its own.',
    ],
  );
}

/** The bar with a line instead of its table. */
export function windowBar({ window, margin, parts, used }, size) {
  const ordered = inOrder(parts);
  const taken = ordered.reduce((sum, part) => sum + drawn(part, used), margin);
  const free = Math.max(0, window - taken);
  const whole = segments({ ordered, margin, free, used });
  const words = [
    ...ordered.map((part) =>
      part.name === 'completion'
        ? `${partName(part.name)} up to ${number(part.given)}${used === undefined ? '' : `, took ${number(used)}`}`
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
 * A bar that is longer than it may be, with a line and words where it should have ended. Any other
 * is left as it is.
 */
export function upTo(bar, limit, total, words) {
  if (total <= limit) return bar;
  const place = (100 * limit) / total;
  // The words stand where there is more room for them.
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
  const rests = over === 0 && isUnlimited(limit) ? ' No limit was set for the answer.' : '';
  const told =
    taken > window
      ? `Window of ${number(window)} tokens, for which ${number(taken)} are ${number(taken - window)} too many.`
      : `Window of ${number(window)} tokens, of which ${number(taken)} are planned for.`;
  whole.setAttribute('aria-label', `${told}${rests} The table below has every part.`);
  return h(
    'div',
    { class: 'bar-frame' },
    upTo(whole, window, taken, `the window ends${guess}`),
    h(
      'div',
      { class: 'bar-ends', 'aria-hidden': 'true' },
      h('span', {}, '0'),
      over > 0 && h('strong', { class: 'wrong' }, `${number(over)} too many`),
      h(
        'span',
        {},
        taken > window
          ? `${number(taken)} tokens ${over > 0 ? 'needed' : 'in all'}`
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
    const took = isAnswer && used !== undefined && `took ${number(used)}`;
    line.lastChild.textContent =
      isPlanned || took
        ? [isPlanned && `${number(part.given)} planned`, took].filter(Boolean).join(', ')
        : part.dropped > 0
          ? `${pieces(part)} left out`
          : part.given < part.asked
            ? 'gave way'
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
          h('th', { scope: 'col' }, 'Asked'),
          h('th', { scope: 'col' }, over > 0 ? 'Must stay' : 'Given'),
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

/** How full a window was, small enough for a row of a list. Nothing is a share of a guess. */
export function gauge(peak, window, isAssumed = false) {
  if (!window || !peak) return h('span', { class: 'muted' }, '–');
  if (isAssumed) {
    const why = `the model's window is not known; ${number(window)} tokens were assumed`;
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
