// JSON as text: laid out and taken apart without being read, since a number that is read may come
// out as another one (`12345678901234567890`, `1.0`).

/** Deeper than this nobody sees how deep a line is. */
const MOST_INDENTED = 60;

/** A text of JSON on many lines, with every value as it was written. It may stop anywhere. */
export function laidOut(text) {
  const pieces = [];
  let depth = 0;
  let before = '';
  const line = () => pieces.push('\n', '  '.repeat(Math.min(depth, MOST_INDENTED)));
  for (const { token } of tokens(text)) {
    const isEnd = token === '}' || token === ']';
    if (isEnd) depth = Math.max(0, depth - 1);
    const isEmpty = isEnd && (before === '{' || before === '[');
    if (!isEmpty && (isEnd || ['{', '[', ','].includes(before))) line();
    pieces.push(token === ':' ? ': ' : token);
    if (token === '{' || token === '[') depth += 1;
    before = token;
  }
  return pieces.join('');
}

/** The text of a member of an object, if it is there. */
export function member(text, name) {
  let depth = 0;
  let from = -1;
  let [key, before] = ['', ''];
  for (const { token, at } of tokens(text)) {
    if (depth === 1 && (token === ',' || token === '}')) {
      if (from >= 0) return text.slice(from, at).trim();
      key = '';
    }
    if (depth === 1 && token === ':' && key === '') {
      key = before;
      if (key === JSON.stringify(name)) from = at + 1;
    }
    if (token === '{' || token === '[') depth += 1;
    if (token === '}' || token === ']') depth -= 1;
    before = token;
  }
  return undefined;
}

function* tokens(text) {
  const next = /[{}[\],:"]|[^\s{}[\],:"]+/g;
  for (let found = next.exec(text); found; found = next.exec(text)) {
    const at = found.index;
    if (found[0] === '"') next.lastIndex = stringEnd(text, at);
    yield { token: text.slice(at, next.lastIndex), at };
  }
}

function stringEnd(text, from) {
  for (let at = text.indexOf('"', from + 1); at >= 0; at = text.indexOf('"', at + 1)) {
    let slashes = 0;
    while (text[at - 1 - slashes] === '\\') slashes += 1;
    if (slashes % 2 === 0) return at + 1;
  }
  return text.length;
}
