// How text is shown that others wrote, so that it can neither hide anything nor move what stands
// around it. Every element is filled through here (`dom.js`); what is copied is the text itself.
//
// A character that does not show, or that turns the direction of others, is marked by its number.
// Writing from right to left stays as it is, each stretch by itself: where all such stretches are
// isolated and no control is at work, a mark between two texts stands where it was put.

/** Characters that do not show, and halves of characters. */
const HIDDEN =
  /[\0-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufdd0-\ufdef\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb\ufffe\uffff\u{1bca0}-\u{1bca3}\u{1d173}-\u{1d17a}\u{e0000}-\u{e0fff}\p{Cs}]|\r(?!\n)/u;

const EACH_HIDDEN = new RegExp(HIDDEN, 'gu');

/** Letters that are written from right to left, with their marks and digits. */
const LEFTWARD =
  '\\u0590-\\u061b\\u061d-\\u08ff\\ufb1d-\\ufdcf\\ufdf0-\\ufdff\\ufe70-\\ufefc\\u{10800}-\\u{10fff}\\u{1e800}-\\u{1efff}';

/** Stretches of them: within one line, and within one string where the text is JSON. */
const STRETCH = new RegExp(
  `[${LEFTWARD}](?:(?:\\\\.|[^"\\\\\\n])*[${LEFTWARD}])?(?: ?\\d[\\d.,:/%]*)?`,
  'gu',
);

const IS_LEFTWARD = new RegExp(`[${LEFTWARD}]`, 'u');

/** The first letter of a text that has a direction. */
const FIRST_LETTER = /\p{L}/u;

/** What belongs to the character before it, and is no secret there. */
const JOINERS = /[\u200c\u200d]/;
const PICTURE = /\p{Extended_Pictographic}/u;
const PICTURE_END = /[\p{Extended_Pictographic}\p{Emoji_Modifier}\ufe0f]/u;
const JOINED =
  /[\p{Script=Arabic}\p{Script=Syriac}\p{Script=Devanagari}\p{Script=Bengali}\p{Script=Gurmukhi}\p{Script=Gujarati}\p{Script=Oriya}\p{Script=Tamil}\p{Script=Telugu}\p{Script=Kannada}\p{Script=Malayalam}\p{Script=Sinhala}\p{Script=Khmer}\p{Script=Mongolian}]/u;
const VARIANTS = /[\ufe00-\ufe0f\u{e0100}-\u{e01ef}\u180b-\u180d\u180f]/u;
const VARIED = /[\p{Emoji}\p{S}\p{Script=Han}\p{Script=Mongolian}]/u;

/** Those that are met most, or do most harm. */
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

/** A text as nodes. Most have nothing to them, and are one. */
export function shown(text) {
  if (!IS_LEFTWARD.test(text)) return marked(text);
  const nodes = [];
  let at = 0;
  for (const { 0: stretch, index } of text.matchAll(STRETCH)) {
    const alone = document.createElement('bdi');
    alone.append(...marked(stretch));
    nodes.push(...marked(text.slice(at, index)), alone);
    at = index + stretch.length;
  }
  return [...nodes, ...marked(text.slice(at))];
}

/** The same where there can be no elements: in the names of things. */
export function plain(text) {
  const seen = text.replaceAll(EACH_HIDDEN, (character, at) =>
    isAtHome(text, character, at) ? character : `⟨${code(character)}⟩`,
  );
  return IS_LEFTWARD.test(seen) ? seen.replaceAll(STRETCH, '\u2068$&\u2069') : seen;
}

/** On which side a text begins that is read as such, and is no JSON. */
export function direction(text) {
  const [letter] = text.match(FIRST_LETTER) ?? [''];
  return IS_LEFTWARD.test(letter) ? 'rtl' : 'ltr';
}

/** Whether a text holds a character that may have to be marked. */
export const isHidden = (text) => HIDDEN.test(text);

/** The characters of a text that do not show, and how often each is there. */
export function hidden(text) {
  const found = new Map();
  for (const { 0: character, index } of text.matchAll(EACH_HIDDEN)) {
    if (!isAtHome(text, character, index)) found.set(character, (found.get(character) ?? 0) + 1);
  }
  return found;
}

/** How many characters a text has: many a one takes two places in a string. */
export function characters(text) {
  let count = 0;
  for (const _ of text) count += 1;
  return count;
}

/** So many characters from the beginning of a text, and no half of one. */
export function beginning(text, most) {
  if (text.length <= most) return text;
  return text.slice(0, isHalved(text, most) ? most - 1 : most);
}

/** So many characters from its end. */
export function ending(text, most) {
  const from = text.length - most;
  if (from <= 0) return text;
  return text.slice(isHalved(text, from) ? from + 1 : from);
}

/** The first half of a character that stands without the other: its number, and its place. */
export function halfCharacter(text) {
  const at = text.search(/\p{Cs}/u);
  return at < 0 ? null : { at, code: code(text[at]) };
}

/** Whether a place is between the two halves of a character. */
export const isHalved = (text, at) =>
  (text.charCodeAt(at) & 0xfc00) === 0xdc00 && (text.charCodeAt(at - 1) & 0xfc00) === 0xd800;

function marked(text) {
  if (text === '') return [];
  if (!HIDDEN.test(text)) return [text];
  const nodes = [];
  let at = 0;
  for (const { 0: character, index } of text.matchAll(EACH_HIDDEN)) {
    if (isAtHome(text, character, index)) continue;
    if (index > at) nodes.push(text.slice(at, index));
    nodes.push(mark(character));
    at = index + character.length;
  }
  if (at < text.length) nodes.push(text.slice(at));
  return nodes;
}

/** Stands for a character, and holds it: its number is seen and read out, itself is copied. */
function mark(character) {
  const holder = document.createElement('span');
  const itself = document.createElement('span');
  itself.append(character);
  holder.className = 'hidden-character';
  holder.dataset.code = code(character);
  holder.title = NAMES[character] ?? 'a character that does not show';
  holder.append(itself);
  return holder;
}

const code = (character) =>
  `U+${character.codePointAt(0).toString(16).toUpperCase().padStart(4, '0')}`;

/** Whether a character does here what it is for. */
function isAtHome(text, character, at) {
  const before = [...text.slice(Math.max(0, at - 2), at)].at(-1) ?? '';
  if (VARIANTS.test(character)) return VARIED.test(before);
  if (!JOINERS.test(character)) return false;
  const after = String.fromCodePoint(text.codePointAt(at + 1) ?? 0);
  return JOINED.test(before) || (PICTURE_END.test(before) && PICTURE.test(after));
}
