// Builds elements. Text is only ever text: nothing here reads HTML, so that nothing a model wrote
// can become any, and what it wrote is shown so that it hides nothing (`text.js`).

import { plain, shown } from './text.js';

/** An element with properties, listeners (`onclick`) and children: nodes, texts, or nothing. */
export function h(tag, properties, ...children) {
  return filled(document.createElement(tag), properties, children);
}

/** The same for a drawing. */
export function svg(tag, properties, ...children) {
  return filled(document.createElementNS('http://www.w3.org/2000/svg', tag), properties, children);
}

function filled(element, properties, children) {
  for (const [name, value] of Object.entries(properties ?? {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith('on')) element.addEventListener(name.slice(2), value);
    else if (name === 'style') {
      // One by one: the policy of the page forbids the attribute.
      for (const [property, setting] of Object.entries(value))
        element.style.setProperty(property, setting);
    } else if (name === 'value' || name === 'checked' || name === 'open') element[name] = value;
    else if (TOLD.has(name)) element.setAttribute(name, plain(`${value}`));
    else element.setAttribute(name, value === true ? '' : value);
  }
  // In a drawing there is no place for elements among the letters.
  const isDrawing = !(element instanceof HTMLElement);
  element.append(...nodes(children, isDrawing ? (text) => [plain(text)] : shown));
  return element;
}

/** Attributes that are text. */
const TOLD = new Set(['title', 'aria-label', 'aria-valuetext', 'placeholder']);

/** What children become nodes: all that is there, and text as it may be shown. */
const nodes = (children, told) =>
  children
    .flat(Infinity)
    .filter((child) => child !== undefined && child !== null && child !== false && child !== '')
    .flatMap((child) => (child instanceof Node ? child : told(`${child}`)));

/** Puts these in the place of all that an element holds. */
export function fill(element, ...children) {
  element.replaceChildren(...nodes(children, shown));
  return element;
}

/** A name that is broken, where it must be, at the end of one of its words. */
export const name = (text) =>
  text.split(/(?<=[-_/.:·@])/).flatMap((word, at) => (at > 0 ? [h('wbr'), word] : [word]));

/** A message in which values stand in backticks. */
export const message = (text) =>
  text.split('`').map((part, at) => (at % 2 === 1 ? h('code', {}, part) : part));

/**
 * Puts what is new in the place of what was there, child by child: what has not changed stays, with
 * whatever somebody is doing there and has opened there.
 */
export function renew(before, next) {
  // What is folded is known by its summary, open or not.
  const told = (child) => (child.querySelector(':scope > summary') ?? child).textContent;
  let at = before.firstElementChild;
  const leave = (until) => {
    while (at !== until) {
      const gone = at;
      at = at.nextElementSibling;
      gone.remove();
    }
  };
  for (const child of [...next.children]) {
    let same = at;
    while (same && told(same) !== told(child)) same = same.nextElementSibling;
    if (same) {
      leave(same);
      at = same.nextElementSibling;
    } else before.insertBefore(child, at);
  }
  leave(null);
}

/** Says something to those who cannot see that it changed. */
export function say(text) {
  fill(document.getElementById('said'), text);
}

/**
 * A button that copies a text, which is only made when it is wanted. `what` is for those who do not
 * see where the button stands.
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
        say(copied ? `${label} ${what}: done` : 'The browser did not allow copying');
        setTimeout(() => fill(button, named(label)), 1500);
      },
    },
    named(label),
  );
  return button;
}

async function copy(text) {
  try {
    // While a text is fetched some browsers forget that somebody asked, unless they wait themselves.
    const type = 'text/plain';
    const waiting = text.then((text) => new Blob([text], { type }));
    await navigator.clipboard.write([new ClipboardItem({ [type]: waiting })]);
    return true;
  } catch {
    const found = await text.catch(() => null);
    return found !== null && copySelected(found);
  }
}

/** Browsers keep the clipboard from pages that came over plain HTTP. */
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

/** Calls once there was silence for a while. */
export function settled(wait, work) {
  let timer;
  return (...given) => {
    clearTimeout(timer);
    timer = setTimeout(() => work(...given), wait);
  };
}
