// Builds elements. Nothing here parses HTML, so text from a model never becomes markup. All text is
// shown through `text.js`, which makes hidden characters visible.

import { plain, shown } from './text.js';

/** An element with attributes, listeners (`onclick`) and children: nodes, text, or empty values. */
export function h(tag, properties, ...children) {
  return filled(document.createElement(tag), properties, children);
}

/** The same for SVG. */
export function svg(tag, properties, ...children) {
  return filled(document.createElementNS('http://www.w3.org/2000/svg', tag), properties, children);
}

function filled(element, properties, children) {
  for (const [name, value] of Object.entries(properties ?? {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith('on')) element.addEventListener(name.slice(2), value);
    else if (name === 'style') {
      // The content security policy forbids the `style` attribute.
      for (const [property, setting] of Object.entries(value))
        element.style.setProperty(property, setting);
    } else if (name === 'value' || name === 'checked' || name === 'open') element[name] = value;
    else if (TEXT_ATTRIBUTES.has(name)) element.setAttribute(name, plain(`${value}`));
    else element.setAttribute(name, value === true ? '' : value);
  }
  // SVG text cannot hold HTML elements.
  const isDrawing = !(element instanceof HTMLElement);
  element.append(...nodes(children, isDrawing ? (text) => [plain(text)] : shown));
  return element;
}

/** Attributes whose value is text. */
const TEXT_ATTRIBUTES = new Set(['title', 'aria-label', 'aria-valuetext', 'placeholder']);

/** Children as nodes, without the empty ones; `textNodes` turns text into nodes. */
const nodes = (children, textNodes) =>
  children
    .flat(Infinity)
    .filter((child) => child !== undefined && child !== null && child !== false && child !== '')
    .flatMap((child) => (child instanceof Node ? child : textNodes(`${child}`)));

/** Replaces the children of an element. */
export function fill(element, ...children) {
  element.replaceChildren(...nodes(children, shown));
  return element;
}

/** A name that wraps only between its words. */
export const name = (text) =>
  text.split(/(?<=[-_/.:·@])/).flatMap((word, at) => (at > 0 ? [h('wbr'), word] : [word]));

/** A message with its values, which are in backticks, as code. */
export const message = (text) =>
  text.split('`').map((part, at) => (at % 2 === 1 ? h('code', {}, part) : part));

/**
 * Replaces the children whose text has changed. Unchanged children stay, and so do their focus and
 * what is opened in them.
 */
export function renew(before, next) {
  // A `details` element is compared by its summary, since its content may not be loaded.
  const textOf = (child) => (child.querySelector(':scope > summary') ?? child).textContent;
  let at = before.firstElementChild;
  const removeUntil = (until) => {
    while (at !== until) {
      const gone = at;
      at = at.nextElementSibling;
      gone.remove();
    }
  };
  for (const child of [...next.children]) {
    let same = at;
    while (same && textOf(same) !== textOf(child)) same = same.nextElementSibling;
    if (same) {
      removeUntil(same);
      at = same.nextElementSibling;
    } else before.insertBefore(child, at);
  }
  removeUntil(null);
}

/** Announces a change to screen readers. */
export function say(text) {
  fill(document.getElementById('announcement'), text);
}

/**
 * A button that copies the text that `text` returns. `what` names the text for screen readers.
 */
export function copyButton(label, text, what = '') {
  const named = (word) => [word, what && h('span', { class: 'unseen' }, ` ${what}`)];
  const button = h(
    'button',
    {
      type: 'button',
      class: 'quiet',
      onclick: async () => {
        const copied = await copy(text());
        fill(button, named(copied ? 'Copied' : 'Not copied'));
        say(copied ? `${label} ${what}: done` : 'The browser blocked copying');
        setTimeout(() => fill(button, named(label)), 1500);
      },
    },
    named(label),
  );
  return button;
}

async function copy(text) {
  try {
    // Some browsers block copying once the click is over, so they get the promise of the text.
    const type = 'text/plain';
    const waiting = text.then((text) => new Blob([text], { type }));
    await navigator.clipboard.write([new ClipboardItem({ [type]: waiting })]);
    return true;
  } catch {
    const loaded = await text.catch(() => null);
    return loaded !== null && copySelected(loaded);
  }
}

/** Copies without the clipboard API, which browsers block on plain HTTP. */
function copySelected(text) {
  const area = h('textarea', { class: 'unseen', 'aria-hidden': 'true', value: text });
  document.body.append(area);
  area.select();
  const copied = document.execCommand('copy');
  area.remove();
  return copied;
}

/** A button that saves a text as a file. */
export function saveButton(label, file, text, kind = 'application/json') {
  return h(
    'button',
    {
      type: 'button',
      class: 'quiet',
      onclick: async () => {
        const address = URL.createObjectURL(new Blob([await text()], { type: kind }));
        h('a', { href: address, download: file }).click();
        setTimeout(() => URL.revokeObjectURL(address), 10_000);
      },
    },
    label,
  );
}

/** Debounces a function: calls it once there were no further calls for `wait` milliseconds. */
export function settled(wait, work) {
  let timer;
  return (...given) => {
    clearTimeout(timer);
    timer = setTimeout(() => work(...given), wait);
  };
}
