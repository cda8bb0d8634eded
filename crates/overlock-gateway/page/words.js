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

/** How long a run was worked on, until now if it is, and how long it was not in between. */
export function lasted(run) {
  // When somebody left it is known of a pipeline only.
  const until = run.ended_at ?? (run.left ? run.last_at : Date.now());
  if (!until || !run.began_at) return ['–'];
  const paused = run.paused_ms ?? 0;
  // Who was killed may have worked after the last that is recorded.
  const isLeast = run.paused_at_most || (run.left && !run.ended_at);
  const text = `${isLeast ? 'at least ' : ''}${duration(until - run.began_at - paused)}`;
  const most = run.paused_at_most ? 'at most ' : '';
  return paused > 0 ? [text, ` and a pause of ${most}${duration(paused)}`] : [text];
}

/** The models that were asked, that of the whole run first; before any was, that of the run. */
export function modelsOf(run) {
  const asked = Object.keys(run.models ?? {});
  if (asked.length === 0) return [run.model].filter(Boolean);
  return asked.sort((one, other) => (other === run.model) - (one === run.model));
}

/** Why a cost is not that of all calls. */
export const unpriced = ({ without }) =>
  `without ${without.join(', ')}, ${without.length === 1 ? 'which has no price' : 'which have no prices'}`;

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

/** What was counted here, where the provider, whose count is told, says something else. */
export function twoCounts(step) {
  if (!step.told) return '';
  const own = step.budget?.input_token_count;
  const isSame = (theirs, ours) => ours === undefined || ours === null || theirs === ours;
  const parts = [
    !isSame(step.told.input, own) && `${number(own)} in`,
    !isSame(step.told.output, step.counted) && `${number(step.counted)} out`,
  ].filter(Boolean);
  return parts.length > 0 ? `as the provider counts (we counted ${parts.join(' and ')})` : '';
}

/** What something cost, as it is told: an exact amount and its currency. */
export function money(cost) {
  if (!cost) return '–';
  const [whole, part] = cost.amount.split('.');
  const amount = [grouped.format(BigInt(whole)), part].filter(Boolean).join('.');
  return `${amount} ${cost.currency}`;
}

/** So many places after the point has an amount in a list, where it stands below others. */
const COST_PLACES = 6;

/** An amount to be compared with others at a glance; `money` tells it exactly. */
export function roundedMoney(cost) {
  if (!cost) return '–';
  const [whole, part = ''] = cost.amount.split('.');
  const kept = part.slice(0, COST_PLACES).padEnd(COST_PLACES, '0');
  const digits = BigInt(whole + kept) + (part[COST_PLACES] >= '5' ? 1n : 0n);
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

const BROKEN_OFF = 'it has not come to an end, and nobody works on it any more';

/** What became of a run: a word, a sign that needs no colour, a class, and what a word leaves out. */
export function outcome(run) {
  // Whatever had come by then: nobody wanted more.
  if (run.reason === 'cancelled') return { word: 'stopped', sign: '■', name: 'stopped' };
  if (run.outcome === 'complete') return { word: 'whole', sign: '●', name: 'whole' };
  if (run.outcome === 'partial') return { word: 'partial', sign: '◐', name: 'partial' };
  if (run.outcome === 'failed') return { word: 'failed', sign: '✕', name: 'failed' };
  if (run.outcome === 'cancelled') return { word: 'stopped', sign: '■', name: 'stopped' };
  if (run.left) return { word: 'broken off', sign: '◌', name: 'left', help: BROKEN_OFF };
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

/** What an engine says in lower case and without an end. */
export const sentence = (text) => `${text.slice(0, 1).toUpperCase()}${text.slice(1)}.`;

export const place = (name) => PLACES[name] ?? name;

/** So many names at the beginning and at the end of a path are told, if it is much longer. */
const PATH_ENDS = 6;

/** Where something is. Of a path that nobody would read, its ends: what is between may be left out already. */
export function path(pointer) {
  if (pointer === '') return 'the root';
  const names = pointer.split('/');
  if (names.length <= 3 * PATH_ENDS) return pointer;
  const [first, last] = [names.slice(0, PATH_ENDS + 1), names.slice(-PATH_ENDS)];
  return [...first, '… many levels …', ...last].join('/');
}

/** Why a run ended before its document was whole, what would help, and the same in a few words. */
export const REASONS = {
  'merge-failures': [
    'Several answers in a row could not be joined.',
    'See the refused attempts below. Allow more of them with complete.max_failures, or have the rest asked for in another way with complete.strategy.',
    'answers could not be joined',
  ],
  'no-progress': [
    'Several answers in a row added nothing new.',
    'The model is repeating itself. A smaller document or another model helps more than further attempts.',
    'answers added nothing new',
  ],
  repeating: [
    'The model only repeated items that were already there.',
    'Ask for fewer items, say in the prompt how many there are, or use another model.',
    'model repeats itself',
  ],
  'kpi-stalled': [
    'The model’s own count of what it has delivered stopped rising.',
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
    'It was cancelled: the client closed the connection.',
    'Check the time limits of the client, and of any proxy between it and the gateway.',
    'client disconnected',
  ],
  'model-error': [
    'The model could not be reached, or answered with an error.',
    'The client was told the same error. Nothing that had arrived was lost.',
    'model error',
  ],
  'content-filter': [
    "The provider's content filter ended the answer.",
    'What a filter holds back is not asked for again. Other words in the prompt, another model, or the filter settings of the provider help; limits of Overlock do not.',
    'content filter',
  ],
  refusal: [
    'The model declined to answer.',
    'What it said instead went to the client. Another prompt or another model may help.',
    'declined',
  ],
  'no-json': [
    'A JSON document was asked for, and the answer is none.',
    'The client got what the model wrote. Say in the prompt that only JSON is wanted, ask with a schema, or take a model that keeps to one.',
    'no JSON in the answer',
  ],
  'not-continued': [
    'The answer was cut off at the limit of its call, and was not to be continued.',
    'Raise the max_tokens of the request. Plain text is continued with x-overlock-continue: text; JSON is, unless that header says off.',
    'cut off, not continued',
  ],
  'no-finish': [
    'The provider did not say that the answer had ended, or in no word that is known.',
    'Nobody can tell whether it is whole. Look at what the upstream says of that word, or ask again.',
    'no end was told',
  ],
  'schema-violation': [
    'The answer violates the schema of the request.',
    'Say in the prompt what the schema requires, or use a server that enforces it, or a larger model.',
    'schema violated',
  ],
};

/** The names of states that the page calls otherwise. */
const STATES = { complete: 'whole', cancelled: 'stopped', left: 'broken off' };

/** What is looked for in the names that the gateway knows: `time limit; …` becomes `deadline`. */
export function searchTerms(text) {
  const parts = text.trim().split('; ');
  const isOwn = (part) => /^stops .* at \S+$|^[\d,]+ older messages? left out$/.test(part);
  const terms = parts.filter((part) => !isOwn(part)).join(' ');
  const reasons = Object.entries(REASONS).map(([name, told]) => [name, told[2]]);
  for (const [name, words] of [...Object.entries(STATES), ...reasons]) {
    const rest = terms.slice(words.length);
    if (terms.toLowerCase().startsWith(words.toLowerCase()) && /^(:|$)/.test(rest))
      return name + rest.slice(1);
  }
  return terms
    .replace(/^in (\S+): /, '$1 ')
    .replace(/^in (\S+)$/, '$1')
    .replace(/^([\d,]+) tokens? too many for the window$/, (_, count) => count.replaceAll(',', ''));
}

/** The calls that were not answered before the one that is told of. */
export const unanswered = ({ times, waited_ms: waited, error }) =>
  `${times === 1 ? 'One call was' : `${number(times)} calls were`} not answered, and the model was asked again after ${duration(waited)} of waiting: ${error}`;

/** A call that was not answered and is to be made again. */
export const notAnswered = ({ number: attempt, wait_ms: wait, error }) =>
  `Attempt ${attempt} was not answered, and is made again in ${duration(wait)}: ${error}`;

/** What providers say of an answer of which no more was to come. */
const ENDS =
  'stop length tool_calls function_call content_filter eos eos_token end_turn stop_sequence'.split(
    ' ',
  );

/** Whether a provider's word tells nothing about whether an answer is whole. */
export const isUnknownEnd = (finish) => Boolean(finish) && !ENDS.includes(finish);

/** Why a request was never sent. */
export const unfitWhy = ({ overflow, budget }) =>
  `The request was not sent: what must stay needs ${counted(overflow, 'token')} more than the window of ${number(budget.window)} has.`;

/** What became of an answer that nobody got: in a sentence, in a line, and what helps. */
const FAULTS = {
  unanswered: [
    'The model could not be reached.',
    'gave no answer',
    'Check that upstream.url is right and that a server is listening there.',
  ],
  broken: [
    'The upstream broke off in the middle of its answer.',
    'broke off in the middle of its answer',
    'It may have been stopped, or run out of memory: look at its log, and at any proxy between it and the gateway. The same request may work again.',
  ],
  late: [
    'The upstream was not done in time.',
    'was not done in time',
    'It may be loading the model, or have too much to do. Raise upstream.response_timeout or upstream.idle_timeout if it needs longer, and serve.run_timeout for the whole of an answer.',
  ],
  unusable: [
    'The upstream’s answer cannot be used.',
    'answered with what cannot be used',
    'Check that upstream.url leads to a server that speaks this protocol, and see what it says below.',
  ],
};

/** Why an upstream's answer is not there, where that is known. */
export const faultWhy = (fault) =>
  fault?.status ? `The upstream answered ${fault.status}.` : FAULTS[fault?.kind]?.[0];

/** What an upstream did, to go after its name. */
export const faultDone = ({ status, kind }) =>
  status ? `answered ${status}` : (FAULTS[kind] ?? FAULTS.unanswered)[1];

/** What helps against what an upstream said. */
export function faultHelp({ status, kind }) {
  if (status === 401 || status === 403)
    return 'The key is wrong or lacks permission. Check upstream.key_variable, or the key that the client sends.';
  if (status === 404) return 'Check the name of the model, and upstream.url.';
  if (status === 429)
    return 'The upstream accepts no more for now: a rate limit, or the quota is used up.';
  if (status >= 500)
    return 'The upstream has a problem of its own. The same request may work later.';
  if (status >= 400) return 'The upstream rejects the request as it stands.';
  return (FAULTS[kind] ?? FAULTS.unanswered)[2];
}

/** How many older messages were left out of a call, if any were. */
export function leftOut(budget) {
  const history = budget?.parts?.find(({ name }) => name === 'history');
  if (!history?.dropped) return '';
  // Earlier records do not say how many stayed.
  const all = history.kept === undefined ? undefined : history.kept + history.dropped;
  const what = counted(all ?? history.dropped, 'older message');
  const were = history.dropped === 1 ? 'was' : 'were';
  return `${all === undefined ? what : `${number(history.dropped)} of ${what}`} ${were} left out to fit the window`;
}

const SEAMS = {
  first: 'begins the document',
  overlap: 'joined where it repeats the end',
  exact: 'continues exactly where the text stopped',
  reformatted: 'joined where it repeats the end, spaced differently',
  resumed: 'started over, joined where it goes on',
  remainder: 'joined as a document of its own that holds the rest',
  kpis: 'says what can be counted',
  corrected: 'replaces the document, which violated its schema',
  'end-to-end': 'repeats nothing, put after the end',
};

export const seam = (name) => SEAMS[name] ?? name;

const WAYS = {
  overlap: 'asked to repeat the end and go on',
  prefill: 'asked to go on from its own words',
  remainder: 'asked for the rest as a document of its own',
};

/** How a model was asked for the rest. */
export const way = (name) => WAYS[name] ?? `asked for the rest by ${name}`;

const FAILURES = {
  empty: 'the answer was empty',
  'no-json': 'the answer contains no JSON',
  unclear: 'the answer contains JSON, but not clearly the rest of the document',
  repeat: 'the answer only repeats what was already there',
  ambiguous: 'the answer could be joined in two ways',
  'marker-in-answer': 'the answer contains a marker of the prompt',
  declined: 'the model would not answer',
  cancelled: 'the client closed the connection while it came',
  refused: 'the upstream does not accept this way of asking',
  uncorrected: 'the document still violates its schema',
  'no-kpis': 'the model named nothing that can be counted',
  'no-match': 'the answer does not continue the document',
};

export const failure = (why) =>
  why.message
    ? `${FAILURES[why.failure] ?? why.failure}: ${why.message}`
    : (FAILURES[why.failure] ?? why.failure);

/** What a part of a window is called here. */
const PARTS = {
  'system prompt': 'System',
  'last user message': 'Question',
  'open turn': 'Open turn',
  frame: 'Format',
  tools: 'Tools',
  history: 'History',
  'retrieved context': 'Context',
  memories: 'Memories',
  completion: 'Answer',
};

/** How sure a count is. */
export const PROVENANCE = {
  exact: 'counted exactly, with the model’s own tokenizer',
  calibrated: 'counted by a formula made for this model',
  estimate: 'estimated: not all of this can be counted with the model’s own tokenizer',
};

/** Whence the window of a model is known: from the settings, or from what is built in. */
export const FOUND = {
  exact: 'known by its name',
  alias: 'known by another form of its name',
  prefix: 'taken from a model whose name begins alike',
  default: 'a guess, because the model is not known',
};

export const part = (name) => PARTS[name] ?? name;

/** What the budget says in a sentence, with the names and the figures as they are told here. */
export const budgetSentence = (text) =>
  sentence(text)
    .split('`')
    .map((piece, at) =>
      at % 2 === 1 ? part(piece) : piece.replaceAll(/\b\d{4,}\b/g, (digits) => number(BigInt(digits))),
    )
    .join('`');
