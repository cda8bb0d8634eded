// How the page writes figures and names: with the words of the command line.

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

/** How long a run took, until now while it runs, and how long it was paused. */
export function timeTaken(run) {
  // When a run was interrupted is only known for pipelines.
  const until = run.ended_at ?? (run.interrupted ? run.last_at : Date.now());
  if (!until || !run.began_at) return ['–'];
  const paused = run.paused_ms ?? 0;
  // A killed process may have worked on after its last record.
  const isLeast = run.paused_at_most || (run.interrupted && !run.ended_at);
  const text = `${isLeast ? 'at least ' : ''}${duration(until - run.began_at - paused)}`;
  const most = run.paused_at_most ? 'at most ' : '';
  return paused > 0 ? [text, ` and a pause of ${most}${duration(paused)}`] : [text];
}

/** The models that were called, that of the run first; before any call, that of the run. */
export function modelsOf(run) {
  const called = Object.keys(run.models ?? {});
  if (called.length === 0) return [run.model].filter(Boolean);
  return called.sort((one, other) => (other === run.model) - (one === run.model));
}

/** Which models have no price, for a cost that does not cover all calls. */
export const unpriced = ({ without }) =>
  `without ${without.join(', ')}, ${without.length === 1 ? 'which has no price' : 'which have no prices'}`;

export function share(part, whole) {
  if (!whole) return '–';
  const percent = (100 * part) / whole;
  return percent > 0 && percent < 1 ? '< 1 %' : `${Math.round(percent)} %`;
}

/** Marks a figure of an answer that is still being written as an estimate. */
export const approximate = (text) => `≈ ${text}`;

/** How much of an answer has arrived. */
export const progressText = (growing) =>
  growing?.bytes > 0
    ? `${counted(growing.bytes, 'byte')}, about ${counted(growing.tokens, 'token')} so far`
    : 'no text yet';

/** Who counted the tokens of a run. */
export const countedBy = (run) =>
  ({
    provider: 'counted by the provider',
    us: 'counted by Overlock',
    both: 'partly counted by the provider',
  })[run.counted_by] ?? '';

/** Overlock's own count, where it differs from the provider's count, which is shown. */
export function countNote(step) {
  if (!step.reported) return '';
  const own = step.budget?.input_token_count;
  const isSame = (theirs, ours) => ours === undefined || ours === null || theirs === ours;
  const parts = [
    !isSame(step.reported.input, own) && `${number(own)} in`,
    !isSame(step.reported.output, step.counted) && `${number(step.counted)} out`,
  ].filter(Boolean);
  return parts.length > 0 ? `counted by the provider (Overlock counted ${parts.join(' and ')})` : '';
}

/** A cost: the exact amount and its currency. */
export function money(cost) {
  if (!cost) return '–';
  const [whole, part] = cost.amount.split('.');
  const amount = [grouped.format(BigInt(whole)), part].filter(Boolean).join('.');
  return `${amount} ${cost.currency}`;
}

/** The decimal places of an amount in a list, where amounts are aligned. */
const COST_PLACES = 6;

/** A cost, rounded for lists; `money` gives the exact amount. */
export function roundedMoney(cost) {
  if (!cost) return '–';
  const [whole, part = ''] = cost.amount.split('.');
  const decimals = part.slice(0, COST_PLACES).padEnd(COST_PLACES, '0');
  const digits = BigInt(whole + decimals) + (part[COST_PLACES] >= '5' ? 1n : 0n);
  const isTiny = digits === 0n && /[1-9]/.test(part);
  const text = String(isTiny ? 1n : digits).padStart(COST_PLACES + 1, '0');
  const amount = `${grouped.format(BigInt(text.slice(0, -COST_PLACES)))}.${text.slice(-COST_PLACES)}`;
  return `${isTiny ? '< ' : ''}${amount} ${cost.currency}`;
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

const SIGNS = { complete: '●', partial: '◐', failed: '✕', cancelled: '■', interrupted: '◌', running: '▷' };

/** The outcome of a run: a word, which is its class too, a sign that needs no colour, and a tooltip. */
export function outcome(run) {
  // A cancelled run is shown as such even if it has a part of the answer.
  const word =
    (run.reason === 'cancelled' ? 'cancelled' : run.outcome) ||
    (run.interrupted ? 'interrupted' : 'running');
  const help = word === 'interrupted' ? 'the run has not ended, and no process works on it' : undefined;
  return { word, sign: SIGNS[word], help };
}

const PLACES = {
  root: 'at the start',
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

/** A message of the engine, which is in lower case and without a full stop, as a sentence. */
export const sentence = (text) => `${text.slice(0, 1).toUpperCase()}${text.slice(1)}.`;

export const place = (name) => PLACES[name] ?? name;

/** The names that are shown of the beginning and of the end of a long path. */
const PATH_ENDS = 6;

/** A JSON pointer, shortened if it is very long. */
export function path(pointer) {
  if (pointer === '') return 'the root';
  const names = pointer.split('/');
  if (names.length <= 3 * PATH_ENDS) return pointer;
  const [first, last] = [names.slice(0, PATH_ENDS + 1), names.slice(-PATH_ENDS)];
  return [...first, '… many levels …', ...last].join('/');
}

/** Why a run is not complete: a sentence, what helps, and a short form. */
export const REASONS = {
  'merge-failures': [
    'Several answers in a row could not be joined.',
    'See the attempts below that were not joined. Raise complete.max_failures, or set another complete.strategy.',
    'answers could not be joined',
  ],
  'no-progress': [
    'Several answers in a row added nothing new.',
    'The model is repeating itself. A smaller document or another model helps more than further attempts.',
    'answers added nothing new',
  ],
  repeating: [
    'The model only repeated earlier items.',
    'Ask for fewer items, state their number in the prompt, or use another model.',
    'model repeats itself',
  ],
  'kpi-stalled': [
    'The model’s own progress count stopped rising.',
    'For very long documents set complete.progress to "measured" or "off", or raise complete.kpi_patience.',
    'no progress by the model’s own count',
  ],
  'iteration-limit': [
    'The limit on attempts was reached.',
    'Raise complete.max_iterations.',
    'limit on attempts',
  ],
  'token-limit': [
    'The limit on tokens for one answer was reached.',
    'Raise serve.max_total_tokens, or x-overlock-max-total-tokens in the request.',
    'limit on tokens',
  ],
  deadline: ['The time limit was reached.', 'Raise serve.run_timeout.', 'time limit'],
  window: [
    'The next call would not fit the model’s window.',
    'Shorten the prompt, or use a model with a larger window.',
    'window full',
  ],
  cancelled: [
    'Cancelled: the client closed the connection.',
    'Check the timeouts of the client and of any proxy between it and the gateway.',
    'client disconnected',
  ],
  'model-error': [
    'The model could not be reached, or answered with an error.',
    'The client got the same error. Nothing that had arrived was lost.',
    'model error',
  ],
  'content-filter': [
    "The provider's content filter ended the answer.",
    'Filtered text is not requested again. Another prompt, another model, or other filter settings of the provider may help; the limits of Overlock do not matter here.',
    'content filter',
  ],
  refusal: [
    'The model declined to answer.',
    'The client got its message. Another prompt or another model may help.',
    'declined',
  ],
  'no-json': [
    'The answer is not JSON.',
    'The client got what the model wrote. Ask for JSON only in the prompt, send a schema, or use a model that follows one.',
    'no JSON in the answer',
  ],
  'not-continued': [
    'The answer was cut off at the limit of its call and was not continued.',
    'Raise max_tokens in the request. To have plain text continued, send x-overlock-continue: text. JSON is continued unless that header is off.',
    'cut off, not continued',
  ],
  'no-finish': [
    'The provider sent no finish reason, or an unknown one.',
    'The answer may be incomplete. Look up the finish reason in the documentation of the upstream, or send the request again.',
    'no known finish reason',
  ],
  'schema-violation': [
    'The answer violates the schema of the request.',
    'State the requirements of the schema in the prompt, use a server that enforces it, or use a larger model.',
    'schema violated',
  ],
};

/** Search terms with the names that the gateway knows: `time limit; …` becomes `deadline`. */
export function searchTerms(text) {
  const parts = text.trim().split('; ');
  const isUnsearchable = (part) => /^stops .* at \S+$|^[\d,]+ older messages? left out$/.test(part);
  const terms = parts.filter((part) => !isUnsearchable(part)).join(' ');
  const reasons = Object.entries(REASONS).map(([name, texts]) => [name, texts[2]]);
  for (const [name, words] of [['interrupted', 'interrupted'], ...reasons]) {
    const rest = terms.slice(words.length);
    if (terms.toLowerCase().startsWith(words.toLowerCase()) && /^(:|$)/.test(rest))
      return name + rest.slice(1);
  }
  return terms
    .replace(/^in (\S+): /, '$1 ')
    .replace(/^in (\S+)$/, '$1')
    .replace(/^([\d,]+) tokens? too many for the window$/, (_, count) => count.replaceAll(',', ''));
}

/** The failed calls of an attempt that were retried. */
export const retriedText = ({ times, waited_ms: waited, error }) =>
  `${counted(times, 'failed call was', 'failed calls were')} retried after ${duration(waited)} of waiting: ${error}`;

/** A failed call that will be retried. */
export const retryingText = ({ number: attempt, wait_ms: wait, error }) =>
  `Attempt ${attempt} failed, retrying in ${duration(wait)}: ${error}`;

/** The known finish reasons of providers. */
const ENDS =
  'stop length tool_calls function_call content_filter eos eos_token end_turn stop_sequence'.split(
    ' ',
  );

/** Whether a finish reason does not say whether the answer is complete. */
export const isUnknownEnd = (finish) => Boolean(finish) && !ENDS.includes(finish);

/** Why a request was not sent. */
export const unfitWhy = ({ overflow, budget }) =>
  `The request was not sent: it is ${counted(overflow, 'token')} over the window of ${number(budget.window)}.`;

/** Faults of an upstream: a sentence, a phrase after its name, and what helps. */
const FAULTS = {
  unanswered: [
    'The model could not be reached.',
    'did not answer',
    'Check that upstream.url is right and that a server is listening there.',
  ],
  broken: [
    'The upstream stopped in the middle of its answer.',
    'stopped in the middle of its answer',
    'It may have been shut down or run out of memory: look at its log, and at any proxy between it and the gateway. A retry may work.',
  ],
  late: [
    'The upstream timed out.',
    'timed out',
    'It may be loading the model or be overloaded. Raise upstream.response_timeout or upstream.idle_timeout if it needs longer, and serve.run_timeout for the whole answer.',
  ],
  unusable: [
    'The upstream’s answer cannot be used.',
    'sent an answer that cannot be used',
    'Check that upstream.url leads to a server with this API, and see its message below.',
  ],
};

/** Why an upstream gave no answer, if that is known. */
export const faultWhy = (fault) =>
  fault?.status ? `The upstream answered ${fault.status}.` : FAULTS[fault?.kind]?.[0];

/** What an upstream did, as a phrase after its name. */
export const faultDone = ({ status, kind }) =>
  status ? `answered ${status}` : (FAULTS[kind] ?? FAULTS.unanswered)[1];

/** What helps against a fault of the upstream. */
export function faultHelp({ status, kind }) {
  if (status === 401 || status === 403)
    return 'The key is wrong or lacks permission. Check upstream.key_variable, or the key that the client sends.';
  if (status === 404) return 'Check the model name and upstream.url.';
  if (status === 429)
    return 'The rate limit or the quota of the upstream is used up.';
  if (status >= 500)
    return 'The upstream has an internal error. The same request may work later.';
  if (status >= 400) return 'The upstream rejects this request.';
  return (FAULTS[kind] ?? FAULTS.unanswered)[2];
}

/** How many older messages were left out of a call, if any were. */
export function leftOut(budget) {
  const history = budget?.parts?.find(({ name }) => name === 'history');
  if (!history?.dropped) return '';
  // Earlier records lack the number of messages that stayed.
  const all = history.kept === undefined ? undefined : history.kept + history.dropped;
  const what = counted(all ?? history.dropped, 'older message');
  const were = history.dropped === 1 ? 'was' : 'were';
  return `${all === undefined ? what : `${number(history.dropped)} of ${what}`} ${were} left out to fit the window`;
}

const SEAMS = {
  first: 'begins the document',
  overlap: 'joined where it repeats the end',
  exact: 'continues exactly where the text stopped',
  reformatted: 'joined where it repeats the end with other white space',
  resumed: 'started over, joined where new text begins',
  remainder: 'joined as a separate document with the remainder',
  kpis: 'names what can be counted',
  corrected: 'replaces the document, which violated its schema',
  'end-to-end': 'repeats nothing, appended at the end',
};

export const seam = (name) => SEAMS[name] ?? name;

const STRATEGIES = {
  overlap: 'asked to repeat the end and continue',
  prefill: 'asked to continue its own text',
  remainder: 'asked for the remainder only',
};

/** How a model was asked to continue. */
export const strategyText = (name) => STRATEGIES[name] ?? `asked to continue with strategy ${name}`;

const FAILURES = {
  empty: 'the answer was empty',
  'no-json': 'the answer contains no JSON',
  unclear: 'the answer contains JSON, but it is unclear whether it continues the document',
  repeat: 'the answer only repeats earlier text',
  ambiguous: 'the answer could be joined in two ways',
  'marker-in-answer': 'the answer contains a marker of the prompt',
  declined: 'the model declined to answer',
  cancelled: 'the client closed the connection during the answer',
  refused: 'the upstream does not accept this strategy',
  uncorrected: 'the document still violates its schema',
  'no-kpis': 'the model named nothing that can be counted',
  'no-match': 'the answer does not continue the document',
};

export const failure = (why) =>
  why.message
    ? `${FAILURES[why.failure] ?? why.failure}: ${why.message}`
    : (FAILURES[why.failure] ?? why.failure);

/** The labels of the parts of a window. */
const PARTS = {
  'system prompt': 'System',
  'last user message': 'Last user message',
  'open turn': 'Open turn',
  frame: 'Chat format overhead',
  tools: 'Tools',
  history: 'History',
  'retrieved context': 'Context',
  memories: 'Memories',
  completion: 'Answer',
};

/** How sure a count is. */
export const PROVENANCE = {
  exact: 'counted exactly, with the model’s own tokenizer',
  calibrated: 'counted by a formula calibrated for this model',
  estimate: 'estimated: parts of this cannot be counted with the model’s own tokenizer',
};

/** How the window of a model was found. */
export const FOUND = {
  exact: 'known by its name',
  alias: 'known by an alias',
  prefix: 'taken from a model with a similar name',
  default: 'assumed, because the model is unknown',
};

export const part = (name) => PARTS[name] ?? name;

/** A message of the budget as a sentence, with the labels and the number format of the page. */
export const budgetSentence = (text) =>
  sentence(text)
    .split('`')
    .map((piece, at) =>
      at % 2 === 1 ? part(piece) : piece.replaceAll(/\b\d{4,}\b/g, (digits) => number(BigInt(digits))),
    )
    .join('`');
