// Formats JSON text without parsing it, since parsing changes numbers such as
// `12345678901234567890` and `1.0`.

/** Deeper lines are indented no further. */
const MAX_INDENT = 60;

/** Indented JSON with unchanged values. The text may be cut anywhere. */
export function formatted(text) {
  const pieces = [];
  let depth = 0;
  let before = '';
  const line = () => pieces.push('\n', '  '.repeat(Math.min(depth, MAX_INDENT)));
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

/** The text of a member of an object, if it has one of that name. */
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
  for (let match = next.exec(text); match; match = next.exec(text)) {
    const at = match.index;
    if (match[0] === '"') next.lastIndex = stringEnd(text, at);
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
