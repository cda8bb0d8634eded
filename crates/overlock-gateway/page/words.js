// How figures and names are told: the same words as on the command line.

const grouped = new Intl.NumberFormat('en-US');

export const number = (value) =>
  value === undefined || value === null ? '–' : grouped.format(value);

export const counted = (value, one, many = `${one}s`) =>
  `${number(value)} ${value === 1 ? one : many}`;

export function duration(milliseconds) {
  if (milliseconds === undefined || milliseconds === null) return '–';
  if (milliseconds < 1000) return `${Math.max(0, Math.round(milliseconds))} ms`;
  const seconds = milliseconds / 1000;
  if (seconds < 60) return `${seconds.toFixed(1)} s`;
  const whole = Math.round(seconds);
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${String(whole % 60).padStart(2, '0')} s`;
  return `${Math.floor(whole / 3600)} h ${String(Math.floor((whole % 3600) / 60)).padStart(2, '0')} min`;
}

export function share(part, whole) {
  if (!whole) return '–';
  const percent = (100 * part) / whole;
  return percent > 0 && percent < 1 ? '< 1 %' : `${Math.round(percent)} %`;
}

/** What a figure of an answer that is still being written is told with. */
export const about = (text) => `≈ ${text}`;

/** How much has come of an answer. */
export const soFar = (growing) =>
  growing?.bytes > 0
    ? `${counted(growing.bytes, 'byte')}, about ${counted(growing.tokens, 'token')} so far`
    : 'nothing has come yet';

/** Whose count the tokens of a run are. */
export const whose = (run) =>
  ({
    provider: 'as the provider counts',
    us: 'as counted here',
    both: 'in part as the provider counts',
  })[run.counted_by] ?? '';

/** What the provider and the gateway counted, where that is not the same. */
export function twoCounts(step) {
  if (!step.told) return '';
  const own = step.budget?.input_token_count;
  const isSame = (theirs, ours) => ours === undefined || ours === null || theirs === ours;
  const parts = [
    !isSame(step.told.input, own) && [step.told.input, own, 'in'],
    !isSame(step.told.output, step.counted) && [step.told.output, step.counted, 'out'],
  ].filter(Boolean);
  if (parts.length === 0) return '';
  const told = (at) => parts.map((part) => `${number(part[at])} ${part[2]}`).join(' and ');
  return `the provider counted ${told(0)}, we counted ${told(1)}`;
}

/** What something cost, as it is told: an exact amount and its currency. */
export const money = (cost) => (cost ? `${cost.amount} ${cost.currency}` : '–');

export function clock(milliseconds) {
  const at = new Date(milliseconds);
  const time = at.toLocaleTimeString([], {
    hour: '2-digit',
    minute: '2-digit',
    second: '2-digit',
    hour12: false,
  });
  return at.toDateString() === new Date().toDateString() ? time : `${day(at)} ${time}`;
}

const day = (at) =>
  `${at.getFullYear()}-${String(at.getMonth() + 1).padStart(2, '0')}-${String(at.getDate()).padStart(2, '0')}`;

/** What became of a run: a word, a sign that needs no colour, and a class. */
export function outcome(run) {
  if (run.outcome === 'complete') return { word: 'whole', sign: '●', name: 'whole' };
  if (run.outcome === 'partial') return { word: 'partial', sign: '◐', name: 'partial' };
  if (run.outcome === 'failed') return { word: 'failed', sign: '✕', name: 'failed' };
  if (run.outcome === 'cancelled') return { word: 'stopped', sign: '■', name: 'stopped' };
  if (run.left) return { word: 'left', sign: '◌', name: 'left' };
  return { word: 'running', sign: '▷', name: 'running' };
}

const PLACES = {
  root: 'before anything began',
  'container-start': 'right after an opening bracket',
  key: 'inside a key',
  'after-key': 'after a key',
  'after-colon': 'after a colon',
  string: 'inside a string',
  escape: 'inside an escape',
  number: 'inside a number',
  literal: 'inside a literal',
  'after-value': 'after a value',
  'after-comma': 'after a comma',
};

export const place = (name) => PLACES[name] ?? name;

export const path = (pointer) => (pointer === '' ? 'the root' : pointer);

/** Why a run ended before its document was whole, and what would help. */
export const REASONS = {
  'merge-failures': [
    'Too many answers in a row could not be joined.',
    'Look at the refused attempts below. More of them are allowed with complete.max_failures; another way of asking with complete.asking.',
  ],
  'no-progress': [
    'Too many answers in a row brought nothing new.',
    'The model repeats itself. A smaller document, or another model, is more likely to help than more attempts.',
  ],
  'kpi-stalled': [
    'The share that was delivered did not rise any more.',
    'For very long documents set complete.progress to "measured" or "off", or raise complete.patience.',
  ],
  'iteration-limit': [
    'The model was asked as often as was allowed.',
    'Raise complete.max_iterations.',
  ],
  'token-limit': [
    'The answers have as many tokens as were allowed.',
    'Raise serve.max_total_tokens, or the x-overlock-max-total-tokens of the request.',
  ],
  deadline: ['The time was up.', 'Raise serve.run_seconds.'],
  window: [
    "The next call would not fit the model's window.",
    'Shorten the prompt, or take a model with a larger window.',
  ],
  cancelled: [
    'It was cancelled: whoever asked went away.',
    'Look at the time limits of the client and of what stands between it and the gateway.',
  ],
  'model-error': [
    'The model could not be reached or gave an error.',
    "The client's error says which. Nothing that had come was lost.",
  ],
};

/** What helps against what an upstream said. */
export function faultHelp({ status }) {
  if (status === 401 || status === 403)
    return 'The key is wrong or may not do this: look at upstream.key_variable, or at the key of the client.';
  if (status === 404) return 'Look at the name of the model and at upstream.url.';
  if (status === 429) return 'The upstream takes no more for now: its limits, or what was paid for.';
  if (status >= 500) return 'The upstream is in trouble. The same request may work later.';
  if (status >= 400) return 'The upstream does not take the request as it is.';
  return 'Look whether upstream.url is right, and whether anybody listens there.';
}

const SEAMS = {
  first: 'begins the document',
  overlap: 'joined where it repeats the end',
  exact: 'joined byte to byte',
  reformatted: 'joined where it repeats the end in other layout',
  resumed: 'begun again, joined where it goes on',
  remainder: 'the rest as a document of its own, joined',
  kpis: 'says what can be counted',
};

export const seam = (name) => SEAMS[name] ?? name;

const FAILURES = {
  empty: 'the answer was empty',
  'no-json': 'the answer holds no JSON',
  unclear: 'the answer holds JSON that is not clearly the document',
  repeat: 'the answer repeats what was there already',
  ambiguous: 'the answer could be joined in two ways',
  refused: 'the server does not take this way of asking',
  'no-kpis': 'nothing will be counted',
  'no-match': 'the answer could not be joined',
};

export const failure = (why) =>
  why.message
    ? `${FAILURES[why.failure] ?? why.failure}: ${why.message}`
    : (FAILURES[why.failure] ?? why.failure);

/** What a part of a window is called here. */
const PARTS = {
  'system prompt': 'System',
  'last user message': 'Question',
  frame: 'Frame',
  tools: 'Tools',
  history: 'History',
  'retrieved context': 'Context',
  memories: 'Memories',
  completion: 'Answer',
};

export const part = (name) => PARTS[name] ?? name;
