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

/** What something cost, as it is told: an exact amount and its currency. */
export const money = (cost) => (cost ? `${cost.amount} ${cost.currency}` : '–');

/** What several cost together, exactly; nothing if none of them is known to cost anything. */
export function total(costs) {
  const known = costs.filter(Boolean);
  if (known.length === 0) return null;
  const parts = known.map(({ amount }) => {
    const [whole, part = ''] = amount.split('.');
    return { digits: whole + part, places: part.length };
  });
  const places = Math.max(...parts.map((one) => one.places));
  const sum = parts.reduce(
    (sum, one) => sum + BigInt(one.digits) * 10n ** BigInt(places - one.places),
    0n,
  );
  const digits = String(sum).padStart(places + 1, '0');
  const part = digits.slice(digits.length - places).replace(/0+$/, '');
  const whole = digits.slice(0, digits.length - places);
  return {
    amount: places > 0 && part ? `${whole}.${part}` : whole,
    currency: known[0].currency,
  };
}

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
  // Whatever had come by then: nobody wanted more.
  if (run.reason === 'cancelled') return { word: 'stopped', sign: '■', name: 'stopped' };
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
  'content-filter': [
    "The provider's content filter ended the answer.",
    'What a filter holds back is not asked for again. Other words in the prompt, another model, or the filter settings of the provider help; limits of Overlock do not.',
  ],
  refusal: [
    'The model declined to answer.',
    'What it said instead went to the client. Another prompt or another model may help.',
  ],
  'no-json': [
    'A JSON document was asked for, and the answer is none.',
    'The client got what the model wrote. Say in the prompt that only JSON is wanted, ask with a schema, or take a model that keeps to one.',
  ],
  'not-continued': [
    'The answer was cut off at the limit of its call, and was not to be continued.',
    'Raise the max_tokens of the request. Plain text is continued with x-overlock-continue: text; JSON is, unless that header says off.',
  ],
  'no-finish': [
    'The provider did not say that the answer had ended, or in no word that is known.',
    'Nobody can tell whether it is whole. Look at what the upstream says of that word, or ask again.',
  ],
};

/** What providers say of an answer of which no more was to come. */
const ENDS =
  'stop length tool_calls function_call content_filter eos eos_token end_turn stop_sequence'.split(
    ' ',
  );

/** Whether a provider's word tells nothing about whether an answer is whole. */
export const isUnknownEnd = (finish) => Boolean(finish) && !ENDS.includes(finish);

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
  'end-to-end': 'repeats nothing, put after the end',
};

export const seam = (name) => SEAMS[name] ?? name;

const FAILURES = {
  empty: 'the answer was empty',
  'no-json': 'the answer holds no JSON',
  unclear: 'the answer holds JSON that is not clearly the document',
  repeat: 'the answer repeats what was there already',
  ambiguous: 'the answer could be joined in two ways',
  declined: 'the model would not answer',
  cancelled: 'whoever asked went away while it came',
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
