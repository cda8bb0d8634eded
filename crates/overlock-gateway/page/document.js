// A document that several attempts wrote, shown as a tree or as text, with the attempt that wrote
// each part. A document may be cut and may have megabytes, so only what is visible is parsed and
// drawn.

import { fill, h } from './dom.js';
import { beginning, isHalved, isHidden } from './text.js';
import { counted, number } from './words.js';

/**
 * Assembles the document of a run. `pieces` has the place in `text` where each attempt begins.
 */
export function assembled(steps, first = steps[0]) {
  const encoder = new TextEncoder();
  const decoder = new TextDecoder();
  let pieces = [];
  let bytes = 0;
  for (const [place, step] of steps.entries()) {
    const { result } = step;
    if (result.result !== 'grown' || !isSamePart(steps, step, first)) continue;
    // An attempt may replace the end of the document.
    while (pieces.length > 0 && bytes > result.offset) {
      const last = pieces.pop();
      bytes -= last.bytes;
      if (bytes < result.offset) {
        const text = decoder.decode(encoder.encode(last.text).subarray(0, result.offset - bytes));
        pieces.push({ ...last, text, bytes: result.offset - bytes });
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

/** Whether two steps belong to the same document: an answer may have several, such as tool calls. */
export function isSamePart(steps, one, other) {
  // A run that continues one document records no parts.
  const [first, second] = [one, other].map(({ part }) => part ?? steps[0].part ?? { choice: 0 });
  return first.choice === second.choice && first.tool_call === second.tool_call;
}

/** The attempts that wrote a range of the text. */
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

/** The most ranges of attempts that are listed in full. */
const MOST_RANGES = 3;

/** The numbers of attempts, in the colour of the first. */
export function mark(...attempts) {
  const ranges = [];
  for (const attempt of attempts) {
    if (ranges.at(-1)?.[1] === attempt - 1) ranges.at(-1)[1] = attempt;
    else ranges.push([attempt, attempt]);
  }
  const texts = (between) =>
    ranges.map(([from, to]) => (from === to ? `${from}` : `${from}${between}${to}`));
  const words = texts(' to ');
  const last = words.pop();
  return h(
    'span',
    {
      class: `writer w${attempts[0] % 6}`,
      title: `written by attempt${attempts.length > 1 ? 's' : ''} ${words.length > 0 ? `${words.join(', ')} and ` : ''}${last}`,
    },
    h('span', { class: 'unseen' }, 'attempt '),
    ranges.length > MOST_RANGES ? `${attempts[0]} … ${attempts.at(-1)}` : texts('–').join(', '),
  );
}

/** More pieces have no number and no tab stop: the list of attempts has both. */
const NUMBERED_PIECES = 40;

/** The document as a bar: how much each attempt wrote. */
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

/** The end of a long list is always shown, since that is where a document is cut. */
const LAST_CHILDREN = 3;

/** Branches with few children are open at first, down to this depth. */
const FEW_CHILDREN = 40;
const OPEN_DEPTH = 2;
const LONGEST_VALUE = 2000;

/** Shorter branches are shown in one line. */
const SHORT_BRANCH = 90;

/**
 * The document as a tree whose branches are parsed when they are opened. Its `renew` draws a changed
 * document; open branches, focus and scroll position stay.
 */
export function tree(whole) {
  const box = h('div', {
    class: 'tree',
    tabindex: 0,
    role: 'group',
    'aria-label': 'Document as a tree',
  });
  // By the place of each branch: whether it is open and how many of its children are drawn.
  const opened = new Map();
  box.renew = ({ text, pieces }) => {
    const [focused, { scrollTop }] = [document.activeElement, box];
    const hasFocus = box.contains(focused) && box !== focused;
    for (let around = hasFocus && focused.closest('details'); around; ) {
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
    if (hasFocus)
      (box.querySelector(`[data-at="${focused.dataset.at}"]`) ?? box).focus({ preventScroll: true });
  };
  box.renew(whole);
  return box;
}

function branch(drawing, node, name, depth, place) {
  const { text, pieces, opened } = drawing;
  const remember = (state) => opened.set(place, { ...opened.get(place), ...state });
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
      const button = h('button', {
        type: 'button',
        class: 'quiet',
        'data-at': `${place}-more`,
        onclick: () => {
          const some = drawn(next, Math.min(next + CHILDREN_AT_ONCE, last));
          next += some.length;
          remember({ drawn: next });
          item.before(...some);
          some[0].querySelector('summary')?.focus();
          label();
        },
      });
      const item = h('li', { class: 'leaf' }, button);
      const label = () => {
        button.textContent = `${number(last - next)} more: show ${number(Math.min(CHILDREN_AT_ONCE, last - next))}`;
        if (next >= last) item.remove();
      };
      label();
      list.append(item, ...drawn(last, all.length));
    } else list.append(...drawn(next, all.length));
    const lastChild = all.at(-1)?.node;
    // A child that is cut shows the cut itself.
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
    { 'data-at': place, onclick: () => remember({ isOpen: !element.open }) },
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
  // Counting the children of a long branch would parse all of it.
  if (node.end - node.start < 200_000 || depth < OPEN_DEPTH) {
    all = children();
    size.textContent = counted(all.length, isList ? 'item' : 'member');
  }
  // A branch that is open at first stays open when it grows.
  if (depth < OPEN_DEPTH && all?.length <= FEW_CHILDREN && !opened.has(place))
    remember({ isOpen: true });
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

/** A range of the text in which every seam is marked. */
function withSeams(text, pieces, start, end, format = (part) => part) {
  const parts = [];
  let at = start;
  for (
    let piece = pieceAt(pieces, start) + 1;
    piece < pieces.length && pieces[piece].start < end;
    piece += 1
  ) {
    parts.push(
      format(text.slice(at, pieces[piece].start)),
      h('span', { class: 'seam-mark', title: `attempt ${pieces[piece].attempt} begins here` }, '┆'),
    );
    at = pieces[piece].start;
  }
  parts.push(format(text.slice(at, end)));
  return parts;
}

const shortened = (text, most) => (text.length > most ? `${beginning(text, most)}…` : text);

function spaceEnd(text, at) {
  while (at < text.length && ' \n\r\t'.includes(text[at])) at += 1;
  return at;
}

/** The value that begins at a place: where it ends, and whether it is closed. */
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
    // A literal at the end of the text is complete at the root, and may be cut anywhere else.
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

/** The children of a branch, without their children. */
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

/** The height of a row and the width of a character in the style sheet. */
const ROW = 20;
const CHARACTER = 7.85;
const FEWEST_COLUMNS = 36;

/**
 * A text of any length, of which only the visible rows are drawn. Its `renew` draws a changed text
 * and keeps the scroll position.
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

/** Characters that join with the one before them, as in emoji. */
const JOINS = /[\u200c\u200d\ufe0e\ufe0f]/;
const LONGEST_CHARACTER = 16;

/** Where each row begins: at a line break, or where a line is too long for one. */
function rowsOf(text, columns) {
  const starts = [0];
  let lineStart = 0;
  while (lineStart < text.length) {
    const newline = text.indexOf('\n', lineStart);
    const lineEnd = newline < 0 ? text.length : newline + 1;
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

/** About how many columns a character takes. */
function columnsOf(character) {
  if (JOINS.test(character)) return 0;
  if (isHidden(character)) return 8;
  return WIDE.test(character) ? 2 : 1;
}

/** The end of a row that begins at a place in a line. */
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
  // Characters that are joined stay in one row, up to a limit.
  for (let at = end; at < lineEnd && at > Math.max(start, end - LONGEST_CHARACTER); at -= 1) {
    const isInside = isHalved(text, at) || JOINS.test(text[at]) || text[at - 1] === '\u200d';
    if (!isInside) return at;
  }
  return isHalved(text, end) ? end - 1 : end;
}
