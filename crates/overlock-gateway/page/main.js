// Routes hash addresses to views, and switches the theme.
//
// A view is a function that gets an element to fill, the rest of its address, and a signal that is
// aborted when the user leaves the view.

import { forget } from './api.js';
import { fill, h } from './dom.js';
import { showPlayground } from './playground.js';
import { showRun } from './run.js';
import { showRuns } from './runs.js';

const main = document.getElementById('main');
let leaving = new AbortController();

function route() {
  const [path, query = ''] = location.hash.replace(/^#\/?/, '').split('?');
  const [view, ...rest] = path.split('/').map(decoded);
  const parameters = new URLSearchParams(query);
  if (view === 'runs' && rest[0])
    return { view: 'runs', show: showRun, key: `run ${rest[0]}`, rest, parameters };
  if (view === 'playground') return { view, show: showPlayground, key: view, rest, parameters };
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
  // The skip link is not a view.
  if (location.hash === '#main') return;
  const { view, show, key, rest, parameters } = route();
  for (const link of document.querySelectorAll('nav a[data-view]')) {
    if (link.dataset.view === view) link.setAttribute('aria-current', 'page');
    else link.removeAttribute('aria-current');
  }
  const isFirst = shown === '';
  // The open view handles a move within itself.
  if (
    key === shown &&
    main.dispatchEvent(
      new CustomEvent('moved', { detail: { rest, parameters }, cancelable: true }),
    ) === false
  )
    return;
  shown = key;
  leaving.abort();
  leaving = new AbortController();
  const frame = h('div', { class: `view ${key.split(' ')[0]}` });
  fill(main, frame);
  window.scrollTo(0, 0);
  if (!isFirst) main.focus({ preventScroll: true });
  showIn(frame, show, rest, parameters, leaving.signal);
}

async function showIn(frame, show, rest, parameters, signal) {
  try {
    await show(frame, { rest, parameters, signal });
  } catch (error) {
    if (signal.aborted) return;
    fill(
      frame,
      h('h1', {}, error.status === 404 ? 'Run not found' : 'Something went wrong'),
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

function storedTheme() {
  try {
    const name = localStorage.getItem('theme');
    return name in THEMES ? name : 'auto';
  } catch {
    return 'auto';
  }
}

let chosen = storedTheme();
theme(chosen);
document.getElementById('theme').addEventListener('click', () => {
  const names = Object.keys(THEMES);
  chosen = names[(names.indexOf(chosen) + 1) % names.length];
  theme(chosen);
  try {
    localStorage.setItem('theme', chosen);
  } catch {
    // Without storage the choice lasts as long as the tab.
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
