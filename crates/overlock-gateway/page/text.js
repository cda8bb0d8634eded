// Shows untrusted text so that it hides nothing and does not reorder the text around it. `dom.js`
// passes all text through here; copying gives the original text.
//
// Invisible characters and direction controls are shown by their code point. Right-to-left text is
// isolated, stretch by stretch, so that marks between two texts keep their place.

/** Invisible characters and lone surrogates. */
const HIDDEN =
  /[\0-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufdd0-\ufdef\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb\ufffe\uffff\u{1bca0}-\u{1bca3}\u{1d173}-\u{1d17a}\u{e0000}-\u{e0fff}\p{Cs}]|\r(?!\n)/u;

const EACH_HIDDEN = new RegExp(HIDDEN, 'gu');

/** Right-to-left letters, with their marks and digits. */
const LEFTWARD =
  '\\u0590-\\u061b\\u061d-\\u08ff\\ufb1d-\\ufdcf\\ufdf0-\\ufdff\\ufe70-\\ufefc\\u{10800}-\\u{10fff}\\u{1e800}-\\u{1efff}';

/** Right-to-left stretches: within one line, and within one string if the text is JSON. */
const STRETCH = new RegExp(
  `[${LEFTWARD}](?:(?:\\\\.|[^"\\\\\\n])*[${LEFTWARD}])?(?: ?\\d[\\d.,:/%]*)?`,
  'gu',
);

const IS_LEFTWARD = new RegExp(`[${LEFTWARD}]`, 'u');

/** The letter that decides the direction of a text. */
const FIRST_LETTER = /\p{L}/u;

/** Characters that are legitimate after certain others. */
const JOINERS = /[\u200c\u200d]/;
const PICTURE = /\p{Extended_Pictographic}/u;
const PICTURE_END = /[\p{Extended_Pictographic}\p{Emoji_Modifier}\ufe0f]/u;
const JOINED =
  /[\p{Script=Arabic}\p{Script=Syriac}\p{Script=Devanagari}\p{Script=Bengali}\p{Script=Gurmukhi}\p{Script=Gujarati}\p{Script=Oriya}\p{Script=Tamil}\p{Script=Telugu}\p{Script=Kannada}\p{Script=Malayalam}\p{Script=Sinhala}\p{Script=Khmer}\p{Script=Mongolian}]/u;
const VARIANTS = /[\ufe00-\ufe0f\u{e0100}-\u{e01ef}\u180b-\u180d\u180f]/u;
const VARIED = /[\p{Emoji}\p{S}\p{Script=Han}\p{Script=Mongolian}]/u;

/** Names of the most common and the most harmful ones. */
const NAMES = {
  '\0': 'null',
  '\x1b': 'escape',
  '\u00ad': 'soft hyphen',
  '\u061c': 'Arabic letter mark',
  '\u200b': 'zero width space',
  '\u200c': 'zero width non-joiner',
  '\u200d': 'zero width joiner',
  '\u200e': 'left-to-right mark',
  '\u200f': 'right-to-left mark',
  '\u2028': 'line separator',
  '\u2029': 'paragraph separator',
  '\u202a': 'left-to-right embedding',
  '\u202b': 'right-to-left embedding',
  '\u202c': 'end of embedding or override',
  '\u202d': 'left-to-right override',
  '\u202e': 'right-to-left override',
  '\u2060': 'word joiner',
  '\u2066': 'left-to-right isolate',
  '\u2067': 'right-to-left isolate',
  '\u2068': 'first strong isolate',
  '\u2069': 'end of isolate',
  '\ufeff': 'zero width no-break space',
};

/** A text as nodes; mostly one. */
export function shown(text) {
  if (!IS_LEFTWARD.test(text)) return marked(text);
  const nodes = [];
  let at = 0;
  for (const { 0: stretch, index } of text.matchAll(STRETCH)) {
    const isolated = document.createElement('bdi');
    isolated.append(...marked(stretch));
    nodes.push(...marked(text.slice(at, index)), isolated);
    at = index + stretch.length;
  }
  return [...nodes, ...marked(text.slice(at))];
}

/** The same for attributes, which cannot hold elements. */
export function plain(text) {
  const visible = text.replaceAll(EACH_HIDDEN, (character, at) =>
    isLegitimate(text, character, at) ? character : `⟨${code(character)}⟩`,
  );
  return IS_LEFTWARD.test(visible) ? visible.replaceAll(STRETCH, '\u2068$&\u2069') : visible;
}

/** The direction of a text that is not JSON. */
export function direction(text) {
  const [letter] = text.match(FIRST_LETTER) ?? [''];
  return IS_LEFTWARD.test(letter) ? 'rtl' : 'ltr';
}

/** Whether a text has a character that may have to be marked. */
export const isHidden = (text) => HIDDEN.test(text);

/** The invisible characters of a text, with their counts. */
export function hidden(text) {
  const counts = new Map();
  for (const { 0: character, index } of text.matchAll(EACH_HIDDEN)) {
    if (!isLegitimate(text, character, index)) counts.set(character, (counts.get(character) ?? 0) + 1);
  }
  return counts;
}

/** The number of code points of a text. */
export function characters(text) {
  let count = 0;
  for (const _ of text) count += 1;
  return count;
}

/** At most so many UTF-16 units from the beginning of a text, without half of a character. */
export function beginning(text, most) {
  if (text.length <= most) return text;
  return text.slice(0, isHalved(text, most) ? most - 1 : most);
}

/** The same from its end. */
export function ending(text, most) {
  const from = text.length - most;
  if (from <= 0) return text;
  return text.slice(isHalved(text, from) ? from + 1 : from);
}

/** The first lone surrogate: its code point and its place. */
export function halfCharacter(text) {
  const at = text.search(/\p{Cs}/u);
  return at < 0 ? null : { at, code: code(text[at]) };
}

/** Whether a place is between the two surrogates of a character. */
export const isHalved = (text, at) =>
  (text.charCodeAt(at) & 0xfc00) === 0xdc00 && (text.charCodeAt(at - 1) & 0xfc00) === 0xd800;

function marked(text) {
  if (text === '') return [];
  if (!HIDDEN.test(text)) return [text];
  const nodes = [];
  let at = 0;
  for (const { 0: character, index } of text.matchAll(EACH_HIDDEN)) {
    if (isLegitimate(text, character, index)) continue;
    if (index > at) nodes.push(text.slice(at, index));
    nodes.push(mark(character));
    at = index + character.length;
  }
  if (at < text.length) nodes.push(text.slice(at));
  return nodes;
}

/** Shows the code point of a character and holds the character itself, which is copied. */
function mark(character) {
  const holder = document.createElement('span');
  const original = document.createElement('span');
  original.append(character);
  holder.className = 'hidden-character';
  holder.dataset.code = code(character);
  holder.title = NAMES[character] ?? 'an invisible character';
  holder.append(original);
  return holder;
}

const code = (character) =>
  `U+${character.codePointAt(0).toString(16).toUpperCase().padStart(4, '0')}`;

/** Whether a character has its intended use here, such as a joiner inside an emoji. */
function isLegitimate(text, character, at) {
  const before = [...text.slice(Math.max(0, at - 2), at)].at(-1) ?? '';
  if (VARIANTS.test(character)) return VARIED.test(before);
  if (!JOINERS.test(character)) return false;
  const after = String.fromCodePoint(text.codePointAt(at + 1) ?? 0);
  return JOINED.test(before) || (PICTURE_END.test(before) && PICTURE.test(after));
}
