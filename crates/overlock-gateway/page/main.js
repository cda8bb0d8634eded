// Which view is shown, and how light it is.
//
// A view is a function that gets an element to fill, the rest of its address, and a signal that
// says when it is left. Addresses are hashes, so that each of them can be shared.

import { forget } from './api.js';
import { fill, h } from './dom.js';
import { showBench } from './bench.js';
import { showRun } from './run.js';
import { showRuns } from './runs.js';

const main = document.getElementById('main');
let left = new AbortController();

function route() {
  const [place, query = ''] = location.hash.replace(/^#\/?/, '').split('?');
  const [view, ...rest] = place.split('/').map(decoded);
  const parameters = new URLSearchParams(query);
  if (view === 'runs' && rest[0])
    return { view: 'runs', show: showRun, key: `run ${rest[0]}`, rest, parameters };
  if (view === 'bench') return { view, show: showBench, key: view, rest, parameters };
  return { view: 'runs', show: showRuns, key: 'runs', rest, parameters };
}

function decoded(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

let shown = '';

function show() {
  // The link to the content is no place of its own.
  if (location.hash === '#main') return;
  const { view, show, key, rest, parameters } = route();
  for (const link of document.querySelectorAll('nav a[data-view]')) {
    if (link.dataset.view === view) link.setAttribute('aria-current', 'page');
    else link.removeAttribute('aria-current');
  }
  const isFirst = shown === '';
  // A place within a view is for the view to find.
  if (
    key === shown &&
    main.dispatchEvent(
      new CustomEvent('moved', { detail: { rest, parameters }, cancelable: true }),
    ) === false
  )
    return;
  shown = key;
  left.abort();
  left = new AbortController();
  const frame = h('div', { class: `view ${key.split(' ')[0]}` });
  fill(main, frame);
  window.scrollTo(0, 0);
  if (!isFirst) main.focus({ preventScroll: true });
  show_in(frame, show, rest, parameters, left.signal);
}

async function show_in(frame, show, rest, parameters, signal) {
  try {
    await show(frame, { rest, parameters, signal });
  } catch (error) {
    if (signal.aborted) return;
    fill(
      frame,
      h('h1', {}, 'That did not work'),
      h('p', { class: 'notice wrong', role: 'alert' }, error.message),
      h('p', {}, h('a', { href: '#/runs' }, 'All runs')),
    );
  }
}

const THEMES = { auto: 'system', light: 'light', dark: 'dark' };

function theme(name) {
  const root = document.documentElement;
  if (name === 'auto') delete root.dataset.theme;
  else root.dataset.theme = name;
  fill(document.getElementById('theme'), h('span', { class: 'word' }, 'Theme: '), THEMES[name]);
}

function kept() {
  try {
    const name = localStorage.getItem('theme');
    return name in THEMES ? name : 'auto';
  } catch {
    return 'auto';
  }
}

let chosen = kept();
theme(chosen);
document.getElementById('theme').addEventListener('click', () => {
  const names = Object.keys(THEMES);
  chosen = names[(names.indexOf(chosen) + 1) % names.length];
  theme(chosen);
  try {
    localStorage.setItem('theme', chosen);
  } catch {
    // It lasts as long as the tab then.
  }
});
document.getElementById('forget').addEventListener('click', () => {
  forget();
  location.reload();
});
document.getElementById('skip').addEventListener('click', (event) => {
  event.preventDefault();
  main.focus();
});
window.addEventListener('hashchange', show);
show();
