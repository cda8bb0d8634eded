// A document that several attempts wrote: put together from its steps, and shown as a tree or as
// text, with who wrote what. A document may be cut, and may have megabytes: nothing is parsed or
// drawn before it is looked at.

import { fill, h } from './dom.js';
import { beginning, isHalved, isHidden } from './text.js';
import { counted, number } from './words.js';

/**
 * Puts the document of a run together. `pieces` say where the text of each attempt begins, and
 * `end` where the text ends; places are characters of `text`.
 */
export function assembled(steps, first = steps[0]) {
  const encoder = new TextEncoder();
  const decoder = new TextDecoder();
  let pieces = [];
  let bytes = 0;
  for (const [place, step] of steps.entries()) {
    const { result } = step;
    if (result.result !== 'grown' || !isSamePart(steps, step, first)) continue;
    // The end of what was there may have been taken back.
    while (pieces.length > 0 && bytes > result.offset) {
      const last = pieces.pop();
      bytes -= last.bytes;
      if (bytes < result.offset) {
        const kept = decoder.decode(encoder.encode(last.text).subarray(0, result.offset - bytes));
        pieces.push({ ...last, text: kept, bytes: result.offset - bytes });
        bytes = result.offset;
      }
    }
    const text = result.added ?? '';
    if (text === '') continue;
    const length = encoder.encode(text).length;
    pieces.push({ attempt: place + 1, text, bytes: length });
    bytes += length;
  }
  let start = 0;
  const text = pieces.map((piece) => piece.text).join('');
  pieces = pieces.map(({ attempt, text, bytes }) => {
    const piece = { attempt, start, bytes };
    start += text.length;
    return piece;
  });
  return { text, pieces, bytes };
}

/** Whether two steps are of the same document: an answer may have several, such as tool calls. */
export function isSamePart(steps, one, other) {
  // Who goes on with one document says of no step which it is of.
  const [first, second] = [one, other].map(({ part }) => part ?? steps[0].part ?? { choice: 0 });
  return first.choice === second.choice && first.tool_call === second.tool_call;
}

/** The attempts that wrote a stretch of the text. */
function writers(pieces, start, end) {
  const first = pieceAt(pieces, start);
  const last = pieceAt(pieces, Math.max(start, end - 1));
  return pieces.slice(first, last + 1).map(({ attempt }) => attempt);
}

/** The piece that holds a place. */
function pieceAt(pieces, at) {
  let [low, high] = [0, pieces.length - 1];
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (pieces[middle].start <= at) low = middle;
    else high = middle - 1;
  }
  return low;
}

/** The numbers of more stretches of attempts would take more room than what they wrote. */
const MOST_STRETCHES = 3;

/** The numbers of attempts, in a colour that comes again and figures that do not. */
export function mark(...attempts) {
  const stretches = [];
  for (const attempt of attempts) {
    if (stretches.at(-1)?.[1] === attempt - 1) stretches.at(-1)[1] = attempt;
    else stretches.push([attempt, attempt]);
  }
  const told = (between) =>
    stretches.map(([from, to]) => (from === to ? `${from}` : `${from}${between}${to}`));
  const words = told(' to ');
  const last = words.pop();
  return h(
    'span',
    {
      class: `writer w${attempts[0] % 6}`,
      title: `written by attempt${attempts.length > 1 ? 's' : ''} ${words.length > 0 ? `${words.join(', ')} and ` : ''}${last}`,
    },
    h('span', { class: 'unseen' }, 'attempt '),
    stretches.length > MOST_STRETCHES ? `${attempts[0]} … ${attempts.at(-1)}` : told('–').join(', '),
  );
}

/** More pieces have no number, and are no stops of the keyboard: the list of attempts has them too. */
const NUMBERED_PIECES = 40;

/** The whole document as one bar: how much each attempt brought. */
export function growth(whole, choose) {
  const areFew = whole.pieces.length <= NUMBERED_PIECES;
  return h(
    'ol',
    {
      class: areFew ? 'growth few' : 'growth',
      'aria-label': 'How much of the document each attempt wrote',
    },
    whole.pieces.map((piece) =>
      h(
        'li',
        { style: { 'flex-grow': piece.bytes } },
        h(
          'button',
          {
            type: 'button',
            class: `w${piece.attempt % 6}`,
            'data-attempt': piece.attempt,
            title: `attempt ${piece.attempt}: ${number(piece.bytes)} bytes`,
            'aria-label': `Attempt ${piece.attempt}: ${number(piece.bytes)} bytes`,
            tabindex: areFew ? null : -1,
            onclick: () => choose(piece.attempt),
          },
          areFew ? `${piece.attempt}` : '',
        ),
      ),
    ),
  );
}

// --- As a tree ---

const CHILDREN_AT_ONCE = 100;

/** The end of a long list is shown with its beginning: there a document is cut. */
const LAST_CHILDREN = 3;

/** Branches with so few children are open from the start, as far down as this. */
const FEW_CHILDREN = 40;
const OPEN_DEPTH = 2;
const LONGEST_VALUE = 2000;

/** Branches that are shorter are told in one line. */
const SHORT_BRANCH = 90;

/**
 * The document as a tree whose branches are read when they are opened. Its `renew` draws what the
 * document has become; what somebody opened stays open, and whoever is somewhere in it stays there.
 */
export function tree(whole) {
  const box = h('div', {
    class: 'tree',
    tabindex: 0,
    role: 'group',
    'aria-label': 'Document as a tree',
  });
  // Of each branch, by its place, whether it is open and how much of it is drawn.
  const opened = new Map();
  box.renew = ({ text, pieces }) => {
    const [held, { scrollTop }] = [document.activeElement, box];
    const isHeld = box.contains(held) && box !== held;
    for (let around = isHeld && held.closest('details'); around; ) {
      const { at } = around.firstChild.dataset;
      opened.set(at, { ...opened.get(at), isOpen: around.open });
      around = around.parentElement.closest('details');
    }
    const root = nodeAt(text, spaceEnd(text, 0));
    fill(
      box,
      root
        ? h('ul', {}, branch({ text, pieces, opened }, root, null, 0, '0'))
        : h('p', { class: 'muted' }, 'There is no document.'),
    );
    box.scrollTop = scrollTop;
    if (isHeld)
      (box.querySelector(`[data-at="${held.dataset.at}"]`) ?? box).focus({ preventScroll: true });
  };
  box.renew(whole);
  return box;
}

function branch(drawing, node, name, depth, place) {
  const { text, pieces, opened } = drawing;
  const keep = (what) => opened.set(place, { ...opened.get(place), ...what });
  const label = name !== null && [
    h(
      'span',
      { class: typeof name === 'number' ? 'index' : 'key' },
      typeof name === 'number' ? `${name}` : shortened(name, 200),
    ),
    ': ',
  ];
  const written = mark(...writers(pieces, node.start, node.end));
  if (node.kind === 'leaf')
    return h(
      'li',
      { class: 'leaf' },
      written,
      h('span', { class: 'value' }, label, leaf(text, pieces, node)),
    );
  const isList = text[node.start] === '[';
  const list = h('ul');
  const children = () => childrenOf(text, node);
  let all = null;
  const drawn = (from, to) =>
    all
      .slice(from, to)
      .map((child, at) =>
        branch(
          drawing,
          child.node,
          isList ? from + at : child.name,
          depth + 1,
          `${place}-${from + at}`,
        ),
      );
  const show = () => {
    all ??= children();
    const last = Math.max(0, all.length - LAST_CHILDREN);
    let next = Math.min(opened.get(place)?.drawn ?? CHILDREN_AT_ONCE, all.length);
    list.append(...drawn(0, next));
    if (next < last) {
      const said = h('button', {
        type: 'button',
        class: 'quiet',
        'data-at': `${place}-more`,
        onclick: () => {
          const some = drawn(next, Math.min(next + CHILDREN_AT_ONCE, last));
          next += some.length;
          keep({ drawn: next });
          item.before(...some);
          some[0].querySelector('summary')?.focus();
          tell();
        },
      });
      const item = h('li', { class: 'leaf' }, said);
      const tell = () => {
        said.textContent = `${number(last - next)} more: show ${number(Math.min(CHILDREN_AT_ONCE, last - next))}`;
        if (next >= last) item.remove();
      };
      tell();
      list.append(item, ...drawn(last, all.length));
    } else list.append(...drawn(next, all.length));
    const lastChild = all.at(-1)?.node;
    // What is cut inside shows it there.
    if (!node.isClosed && (!lastChild || lastChild.isClosed))
      list.append(
        h(
          'li',
          { class: 'leaf cut' },
          h('span', { class: 'scissors', 'aria-hidden': 'true' }, '✂'),
          ' cut here',
        ),
      );
  };
  const size = h('span', { class: 'muted' });
  const isShort = node.isClosed && node.end - node.start <= SHORT_BRANCH;
  const inside = isShort
    ? h(
        'span',
        { class: 'inline' },
        withSeams(text, pieces, node.start, node.end, (part) => part.replaceAll(/\s+/g, ' ')),
      )
    : [isList ? '[…] ' : '{…} ', size];
  const summary = h(
    'summary',
    { 'data-at': place, onclick: () => keep({ isOpen: !element.open }) },
    written,
    h(
      'span',
      { class: 'value' },
      label,
      inside,
      !node.isClosed && h('span', { class: 'open-end' }, ' not closed'),
    ),
  );
  const element = h(
    'details',
    {
      ontoggle: () => {
        if (element.open && !list.firstChild) show();
      },
    },
    summary,
    list,
  );
  // Only small ones are counted without being asked: a long one costs a look at all of it.
  if (node.end - node.start < 200_000 || depth < OPEN_DEPTH) {
    all = children();
    size.textContent = counted(all.length, isList ? 'item' : 'member');
  }
  // What is small enough to be open from the start stays so when it grows.
  if (depth < OPEN_DEPTH && all?.length <= FEW_CHILDREN && !opened.has(place))
    keep({ isOpen: true });
  if (opened.get(place)?.isOpen ?? (!node.isClosed || depth === 0)) {
    show();
    element.open = true;
  }
  return h('li', {}, element);
}

function leaf(text, pieces, node) {
  const end = node.start + beginning(text.slice(node.start, node.end), LONGEST_VALUE).length;
  const shown = withSeams(text, pieces, node.start, end);
  const kind = text[node.start] === '"' ? 'string' : 'literal';
  return h(
    'span',
    { class: kind },
    shown,
    node.end > end && `… ${number(node.end - end)} characters more`,
    !node.isClosed && h('span', { class: 'scissors', title: 'cut here' }, '✂'),
  );
}

/** A stretch of the text in which every seam is marked. */
function withSeams(text, pieces, start, end, told = (part) => part) {
  const parts = [];
  let at = start;
  for (
    let piece = pieceAt(pieces, start) + 1;
    piece < pieces.length && pieces[piece].start < end;
    piece += 1
  ) {
    parts.push(
      told(text.slice(at, pieces[piece].start)),
      h('span', { class: 'seam-mark', title: `attempt ${pieces[piece].attempt} begins here` }, '┆'),
    );
    at = pieces[piece].start;
  }
  parts.push(told(text.slice(at, end)));
  return parts;
}

const shortened = (text, most) => (text.length > most ? `${beginning(text, most)}…` : text);

function spaceEnd(text, at) {
  while (at < text.length && ' \n\r\t'.includes(text[at])) at += 1;
  return at;
}

/** The value that begins at a place: where it ends, and whether it does. */
function nodeAt(text, start) {
  if (start >= text.length) return null;
  const first = text[start];
  if (first === '"') {
    const end = stringEnd(text, start);
    return { kind: 'leaf', start, end: Math.min(end, text.length), isClosed: end <= text.length };
  }
  if (first !== '{' && first !== '[') {
    let end = start;
    while (end < text.length && !',]} \n\r\t'.includes(text[end])) end += 1;
    // A literal alone is whole; where it stands in something it may have been cut.
    return {
      kind: 'leaf',
      start,
      end: Math.max(end, start + 1),
      isClosed: end < text.length || start === 0,
    };
  }
  let depth = 0;
  for (let at = start; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code === 0x22) at = stringEnd(text, at) - 1;
    else if (code === 0x7b || code === 0x5b) depth += 1;
    else if (code === 0x7d || code === 0x5d) {
      depth -= 1;
      if (depth === 0) return { kind: 'branch', start, end: at + 1, isClosed: true };
    }
  }
  return { kind: 'branch', start, end: text.length, isClosed: false };
}

/** The place after a string; beyond the text if it is not closed. */
function stringEnd(text, start) {
  for (let at = text.indexOf('"', start + 1); at >= 0; at = text.indexOf('"', at + 1)) {
    let slashes = 0;
    while (text.charCodeAt(at - 1 - slashes) === 0x5c) slashes += 1;
    if (slashes % 2 === 0) return at + 1;
  }
  return text.length + 1;
}

/** What a branch holds, without a look into it. */
function childrenOf(text, node) {
  const isList = text[node.start] === '[';
  const end = node.isClosed ? node.end - 1 : node.end;
  const children = [];
  let at = spaceEnd(text, node.start + 1);
  while (at < end) {
    let name = null;
    if (!isList) {
      const keyEnd = stringEnd(text, at);
      // A key that was cut has no value.
      if (text[at] !== '"' || keyEnd > end) break;
      name = unescaped(text.slice(at, keyEnd));
      at = spaceEnd(text, keyEnd);
      if (text[at] !== ':') break;
      at = spaceEnd(text, at + 1);
    }
    if (at >= end) break;
    const child = nodeAt(text, at);
    children.push({ name, node: child });
    at = spaceEnd(text, Math.max(child.end, at + 1));
    if (text[at] === ',') at = spaceEnd(text, at + 1);
  }
  return children;
}

function unescaped(string) {
  try {
    return JSON.parse(string);
  } catch {
    return string.slice(1, -1);
  }
}

// --- As text ---

/** The height of a row and the width of a character, as the style has them. */
const ROW = 20;
const CHARACTER = 7.85;
const FEWEST_COLUMNS = 36;

/**
 * A text of any length, of which only the rows that are seen are drawn. Its `renew` draws what the
 * text has become, and nobody who reads in it is moved.
 */
export function textView(whole, { label }) {
  let { text, pieces = [] } = whole;
  const sheet = h('div', { class: 'sheet' });
  let columns = 0;
  let starts = [];
  const box = h(
    'div',
    {
      class: 'pages',
      tabindex: 0,
      role: 'group',
      onscroll: () => draw(),
    },
    sheet,
  );
  let drawn = [-1, -1];
  function layOut() {
    const fit = Math.max(FEWEST_COLUMNS, Math.floor((box.clientWidth - 40) / CHARACTER));
    if (fit === columns) return;
    columns = fit;
    starts = rowsOf(text, columns);
    sheet.style.height = `${starts.length * ROW}px`;
    drawn = [-1, -1];
  }
  function draw() {
    layOut();
    const first = Math.max(0, Math.floor(box.scrollTop / ROW) - 20);
    const last = Math.min(
      starts.length,
      Math.ceil((box.scrollTop + (box.clientHeight || 600)) / ROW) + 20,
    );
    if (first === drawn[0] && last === drawn[1]) return;
    drawn = [first, last];
    const rows = [];
    for (let row = first; row < last; row += 1) {
      const [start, end] = [starts[row], starts[row + 1] ?? text.length];
      rows.push(
        h(
          'div',
          { class: 'row', style: { top: `${row * ROW}px` } },
          coloured(text, pieces, start, end),
        ),
      );
    }
    fill(sheet, rows);
  }
  box.renew = (whole, name = label) => {
    ({ text, pieces = [] } = whole);
    box.setAttribute('aria-label', `${name}, ${number(text.length)} characters`);
    columns = 0;
    draw();
  };
  new ResizeObserver(() => draw()).observe(box);
  box.renew(whole);
  return box;
}

function coloured(text, pieces, start, end) {
  if (pieces.length === 0) return text.slice(start, end).replace(/\n$/, '');
  const parts = [];
  let at = start;
  for (let place = pieceAt(pieces, start); place < pieces.length && at < end; place += 1) {
    const stop = Math.min(end, pieces[place + 1]?.start ?? text.length);
    const begins = pieces[place].start === at;
    if (stop > at)
      parts.push(
        h(
          'span',
          {
            class: `by w${pieces[place].attempt % 6}${begins ? ' begins' : ''}`,
            'data-attempt': begins ? pieces[place].attempt : null,
          },
          text.slice(at, stop).replace(/\n$/, ''),
        ),
      );
    at = Math.max(at, stop);
  }
  return parts;
}

/** Characters that are twice as wide as others. */
const WIDE =
  /[\u1100-\u115e\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6\p{Emoji_Presentation}\u{20000}-\u{3fffd}]/u;

/** What continues the character before it; several may be one picture. */
const JOINS = /[\u200c\u200d\ufe0e\ufe0f]/;
const LONGEST_CHARACTER = 16;

/** Where each row begins: at a line break, or where a line is too long for one. */
function rowsOf(text, columns) {
  const starts = [0];
  let lineStart = 0;
  while (lineStart < text.length) {
    const found = text.indexOf('\n', lineStart);
    const lineEnd = found < 0 ? text.length : found + 1;
    let at = rowEnd(text, lineStart, lineEnd, columns);
    while (at < lineEnd - 1) {
      starts.push(at);
      at = rowEnd(text, at, lineEnd, columns);
    }
    if (lineEnd < text.length) starts.push(lineEnd);
    lineStart = lineEnd;
  }
  return starts;
}

/** How many columns a character takes, at least about. */
function columnsOf(character) {
  if (JOINS.test(character)) return 0;
  if (isHidden(character)) return 8;
  return WIDE.test(character) ? 2 : 1;
}

/** The place after as much of a line as there is room for. */
function rowEnd(text, start, lineEnd, columns) {
  let end = Math.min(start + columns, lineEnd);
  const row = text.slice(start, end);
  if (WIDE.test(row) || isHidden(row)) {
    let room = columns;
    end = start;
    for (const character of row) {
      room -= columnsOf(character);
      if (room < 0) break;
      end += character.length;
    }
  }
  // What makes one character stays together, as long as it is one that somebody would write.
  for (let at = end; at < lineEnd && at > Math.max(start, end - LONGEST_CHARACTER); at -= 1) {
    const isInside = isHalved(text, at) || JOINS.test(text[at]) || text[at - 1] === '\u200d';
    if (!isInside) return at;
  }
  return isHalved(text, end) ? end - 1 : end;
}
