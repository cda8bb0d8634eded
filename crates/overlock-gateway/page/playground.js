// The playground: try Overlock on a text or a request of your own.

import { ApiError, ask, askEach } from './api.js';
import { copyButton, fill, h, message, settled } from './dom.js';
import { formatted } from './json.js';
import { beginning, characters, ending, halfCharacter, hidden, isHalved } from './text.js';
import { windowView } from './window.js';
import {
  budgetSentence,
  counted,
  FOUND,
  number,
  path,
  place,
  PROVENANCE,
  seam,
  sentence,
} from './words.js';

const SAMPLES = {
  'Cut inside a number': {
    text: '{\n  "report": {\n    "title": "Harbour levels",\n    "sections": [\n      { "name": "North", "rows": [["08:00", 412], ["09:00", 398]] },\n      { "name": "South", "rows": [["08:00", 377], ["09:00", 36',
    fragment:
      '["08:00", 377], ["09:00", 361]] },\n      { "name": "Quay", "rows": [] }\n    ]\n  }\n}',
  },
  'Cut inside a string': {
    text: '{"title": "Tides", "chapters": [{"heading": "Spring", "text": "The water stood high for three days"}, {"heading": "Neap", "text": "Little mov',
    fragment: 'Neap", "text": "Little moved in the second week."}]}',
  },
  'Invalid JSON in a fence': {
    text: 'Here is the report:\n```json\n{\n  // three stations\n  stations: [\'North\', \'South\',],\n  "open": True,\n  "levels": [412, 398, 377\n```',
    fragment: '',
  },
  Complete: { text: '{"title": "Tides", "rows": [1, 2, 3]}', fragment: '' },
};

const REQUEST = JSON.stringify(
  {
    model: 'gpt-4',
    max_tokens: 9000,
    messages: [
      {
        role: 'system',
        content:
          'You write harbour reports as JSON. Every section has a name and rows of time and level.',
      },
      { role: 'user', content: 'What did we report last week?' },
      {
        role: 'assistant',
        content: `Three stations, in centimetres.\n${Array.from({ length: 60 }, (_, hour) => `${['North', 'South', 'Quay'][hour % 3]}, hour ${Math.floor(hour / 3)}: ${400 - ((hour * 37) % 90)}`).join('\n')}`,
      },
      { role: 'user', content: "Write this week's report, with all stations and all hours." },
    ],
    tools: [
      {
        type: 'function',
        function: {
          name: 'level',
          description: 'The water level of a station at a time',
          parameters: {
            type: 'object',
            properties: { station: { type: 'string' }, time: { type: 'string' } },
            required: ['station'],
          },
        },
      },
    ],
  },
  null,
  2,
);

/** The contents of the fields, which last as long as the tab. */
const typed = { text: null, fragment: null, request: REQUEST, budget: 60, cutValue: 'hint' };

export async function showPlayground(frame, { rest, signal }) {
  document.title = 'Playground – Overlock';
  document.getElementById('live').hidden = true;
  signal.addEventListener('abort', () => {
    document.getElementById('live').hidden = false;
  });
  const pages = [
    ['cut', 'Cut JSON', cutJsonView],
    ['fit', 'Chat request', chatRequestView],
  ];
  const chosen = pages.find(([name]) => name === rest[0]) ?? pages[0];
  const holder = h('div');
  fill(
    frame,
    h(
      'header',
      { class: 'playground-head' },
      h('h1', {}, 'Playground'),
      h(
        'p',
        { class: 'muted' },
        'Try on your own text what the gateway does in every run. Nothing is sent to a model, and nothing is recorded.',
      ),
      h(
        'nav',
        { class: 'segmented', 'aria-label': 'Playground pages' },
        pages.map(([name, label]) =>
          h(
            'a',
            { href: `#/playground/${name}`, 'aria-current': name === chosen[0] ? 'page' : null },
            label,
          ),
        ),
      ),
    ),
    holder,
  );
  chosen[2](holder, signal);
}

function cutJsonView(holder, signal) {
  const [first] = Object.values(SAMPLES);
  typed.text ??= first.text;
  typed.fragment ??= first.fragment;
  const text = h('textarea', {
    id: 'playground-text',
    rows: 9,
    spellcheck: 'false',
    dir: 'ltr',
    value: typed.text,
    oninput: () => {
      typed.text = text.value;
      look();
    },
  });
  const fragment = h('textarea', {
    id: 'playground-fragment',
    rows: 5,
    spellcheck: 'false',
    dir: 'ltr',
    value: typed.fragment,
    oninput: () => {
      typed.fragment = fragment.value;
      stitched();
    },
  });
  const sample = h(
    'select',
    {
      id: 'playground-sample',
      onchange: () => {
        const chosen = SAMPLES[sample.value];
        if (!chosen) return;
        [typed.text, typed.fragment] = [text.value, fragment.value] = [
          chosen.text,
          chosen.fragment,
        ];
        look();
      },
    },
    h('option', { value: '' }, 'choose…'),
    Object.keys(SAMPLES).map((name) => h('option', {}, name)),
  );
  const hiddenNote = h('p', { class: 'muted', hidden: true });
  const cut = card('Cut', 'Where and how the text stops.');
  const closed = card('Closed form', 'The same text as valid JSON, with nothing invented.');
  const rendered = card(
    'Context for the model',
    'The path to the cut, within a budget. Values that do not fit become hints such as <str>.',
  );
  const contexts = card('Contexts', 'The parts of the prompt that asks the model to continue.');
  const joint = card('Seam', 'How the next piece is joined, or why it is not.');
  const budget = h('input', {
    id: 'playground-budget',
    type: 'range',
    min: 0,
    max: 500,
    step: 5,
    value: String(typed.budget),
    oninput: () => {
      typed.budget = Number(budget.value);
      budgetOutput.textContent = number(typed.budget);
      render();
    },
  });
  const budgetOutput = h('output', { for: 'playground-budget' }, number(typed.budget));
  const cutValue = h(
    'select',
    {
      id: 'playground-cut-value',
      onchange: () => {
        typed.cutValue = cutValue.value;
        render();
      },
    },
    ['hint', 'keep', 'tail'].map((name) => h('option', { value: name }, name)),
  );
  cutValue.value = typed.cutValue;
  rendered.tools.append(
    h(
      'label',
      { class: 'slider', for: 'playground-budget' },
      h('span', {}, 'Budget ', budgetOutput, ' characters of values'),
      budget,
    ),
    h('label', { for: 'playground-cut-value' }, 'Cut value ', cutValue),
  );
  fill(
    holder,
    h(
      'div',
      { class: 'playground-grid' },
      h(
        'div',
        { class: 'playground-in' },
        h(
          'div',
          { class: 'field-head' },
          h('label', { for: 'playground-text' }, 'Truncated text'),
          h('label', { for: 'playground-sample' }, 'Sample ', sample),
        ),
        text,
        h('label', { for: 'playground-fragment' }, 'What the model sends next'),
        fragment,
        hiddenNote,
        joint.element,
      ),
      h(
        'div',
        { class: 'playground-out' },
        cut.element,
        closed.element,
        rendered.element,
        contexts.element,
      ),
    ),
  );

  const cards = {
    cut: [cut, contexts],
    close: [closed],
    repair: [],
    render: [rendered],
    stitch: [joint],
  };
  const draws = {
    cut: ({ cut: result, repair }) => {
      documentText = result.value?.hierarchy_context;
      show(cut, result, (value) => stops(value, repair));
      show(contexts, result, (value) =>
        value.cut
          ? [
              entry('Cut element', value.cut_off_element),
              entry('Element before it', value.element_before_cutoff),
              entry('Overlap to repeat', value.overlap_context),
              entry('Received so far', value.delivered),
            ]
          : h('p', { class: 'muted' }, 'Nothing to continue.'),
      );
    },
    close: ({ close, repair, cut }) =>
      show(closed, close, (value) => closedForm(value, repair, cut, typed.text)),
    render: ({ render }) =>
      show(rendered, render, ({ rendered: text }) => [
        code(text, 'Rendered context'),
        h('p', { class: 'muted' }, counted(ends(text).length, 'character')),
      ]),
    stitch: ({ stitch }) =>
      show(joint, stitch, (value) => joined(value, documentText, typed.fragment)),
  };
  // The document in the text, without the text around it.
  let documentText;
  const latest = newestOnly(signal);
  const update = async (names) => {
    const isNew = names.map((name) => latest(name));
    showHidden(hiddenNote, [typed.text, typed.fragment]);
    if (typed.text === '') {
      for (const card of [cut, closed, rendered, contexts, joint])
        fill(card.body, h('p', { class: 'muted' }, 'Enter a text.'));
      for (const name of names) busy(cards[name], false);
      return;
    }
    const questions = {
      cut: {},
      close: {},
      repair: {},
      render: { budget: typed.budget, cut_value: typed.cutValue },
      stitch: { parts: [typed.fragment] },
    };
    const answerable = names.filter((name) => name !== 'stitch' || typed.fragment !== '');
    const results = await answers(questions, answerable, [typed.text, typed.fragment], signal);
    names.forEach((name, at) => {
      if (!isNew[at]()) return;
      busy(cards[name], false);
      if (results[name]) draws[name]?.(results);
      else fill(joint.body, h('p', { class: 'muted' }, 'Enter the next piece.'));
    });
  };
  const debounced = (wait, names) => {
    const work = settled(wait, () => update(names));
    return () => {
      for (const name of names) busy(cards[name], true);
      work();
    };
  };
  const look = debounced(200, ['cut', 'close', 'repair', 'render', 'stitch']);
  const render = debounced(60, ['render']);
  // The seam is drawn on the document that the same request reads.
  const stitched = debounced(200, ['cut', 'repair', 'stitch']);
  look();
}

/** The answers to named questions about a text and its next piece. A lone surrogate cannot be sent. */
async function answers(questions, names, [text, fragment], signal) {
  const problem = (name) =>
    surrogateError(text, 'text') ?? (name === 'stitch' ? surrogateError(fragment, 'next piece') : null);
  const sent = names.filter((name) => !problem(name));
  const results =
    sent.length > 0
      ? await askEach(Object.fromEntries(sent.map((name) => [name, questions[name]])), signal, {
          text,
          most: MOST_SHOWN,
        })
      : {};
  for (const name of names)
    results[name] ??= { status: 'rejected', reason: problem(name) };
  return results;
}

/** The error for a text with a lone surrogate. */
function surrogateError(text, what) {
  const half = halfCharacter(text);
  return half
    ? new Error(
        `the ${what} has a lone surrogate, ${half.code}, after ${counted(characters(text.slice(0, half.at)), 'character')}, so it cannot be sent`,
      )
    : null;
}

/** Marks results as outdated while new ones are computed. */
function busy(cards, isBusy) {
  for (const { element } of cards) {
    if (isBusy) element.setAttribute('aria-busy', 'true');
    else element.removeAttribute('aria-busy');
  }
}

/** Where a text stops. */
const stops = ({ cut, hierarchy_context: text }, repaired) =>
  cut
    ? [
        h(
          'p',
          { class: 'big' },
          `Stops ${place(cut.place)} at `,
          h('code', { class: 'path' }, path(cut.path)),
          `, after ${counted(cut.offset, 'byte')}.`,
        ),
        cutTail(ends(text)),
      ]
    : h(
        'p',
        { class: 'big' },
        kinds(repaired).has('several')
          ? 'The first document is complete, and another follows.'
          : 'The document is complete.',
      );

/** The closed form of a text, what closing changed, and the repaired form if it differs. */
const closedForm = (closed, repaired, { value: analysis }, text) => [
  h('p', {}, closingText(closed, repaired, analysis)),
  code(closed.json, 'Closed form'),
  copyResult(closed.json, 'closed form', '/api/close', text),
  repairedForm(repaired, closed, text),
];

/** What closing changed, in sentences. */
function closingText(closed, repaired, analysis) {
  const at = (pointer) => h('code', { class: 'path' }, path(pointer));
  const fixes = closed.fixes ? ends(closed.fixes).length : 0;
  const around = kinds(repaired);
  const cut = closed.complete ? undefined : analysis?.cut;
  const changes = [
    fixes > 0 && [`Repaired first: ${counted(fixes, 'fix', 'fixes')}, listed below. `],
    around.has('prose') && ['Removed: the text around the document. '],
    around.has('fence') && ['Removed: the fence around the document. '],
    around.has('several') && ['Removed: everything after the first document. '],
    closed.truncated !== null && ['Truncated: ', at(closed.truncated), '. '],
    closed.dropped !== null && ['Removed: ', at(closed.dropped), '. '],
    cut?.place === 'key' && ['Removed: the incomplete key in ', at(cut.path), '. '],
    cut?.place === 'after-comma' && ['Removed: the trailing comma. '],
    cut?.place === 'literal' && [
      'Completed: the literal at ',
      at(cut.path),
      ', because only one word begins like that. ',
    ],
  ].filter(Boolean);
  if (changes.length > 0) return changes;
  return closed.complete ? 'No changes needed.' : 'Only closed.';
}

/** A copy button for a result of which only the ends may be loaded. */
const copyResult = (json, what, address, text) =>
  h(
    'p',
    { class: 'actions' },
    copyButton(
      'Copy',
      async () => (typeof json === 'string' ? json : (await ask(address, { body: { text } })).json),
      what,
    ),
  );

/** Lists the invisible characters in the fields, which show texts unchanged. */
function showHidden(element, texts) {
  const counts = hidden(texts.join('\n'));
  element.hidden = counts.size === 0;
  const list = [...counts].map(([character, times]) => [
    ' ',
    character,
    times > 1 && ` × ${number(times)}`,
  ]);
  fill(element, counts.size > 0 && ['Invisible characters in the fields:', list]);
}

/** The result of a fragment, with the repeated text shaded. */
function joined({ json, complete, seams }, base, fragment) {
  const [it] = seams;
  const accepted = !['repeat', 'ambiguous', 'no-match'].includes(it.outcome);
  const summary = h(
    'p',
    { class: 'big' },
    h('strong', {}, it.outcome),
    accepted ? `: ${seam(it.outcome)}` : '',
    it.overlap > 0 && `, ${counted(it.overlap, 'character')} repeated`,
  );
  if (!accepted)
    return [
      summary,
      h(
        'p',
        {},
        it.reason
          ? message(sentence(it.reason))
          : it.lengths
            ? `An overlap of ${it.lengths[0]} and one of ${it.lengths[1]} characters are equally likely.`
            : 'The piece adds nothing.',
      ),
      h('p', { class: 'muted' }, 'The document is unchanged.'),
    ];
  return [
    summary,
    seamView(jointOf(base, json, it.overlap, fragment), it.overlap, fragment),
    h('p', {}, complete ? 'The document is complete.' : 'The document is still cut.'),
    h('details', { class: 'full' }, h('summary', {}, 'The joined text'), code(json, 'Joined text')),
  ];
}

/** The longest end of a repeated text that is searched for. */
const LONGEST_REPEATED = 200;

/** The text on both sides of a seam, as far as it is loaded. */
function jointOf(base, json, overlap, fragment) {
  if (typeof base === 'string' && typeof json === 'string') {
    let at = 0;
    while (at < base.length && base[at] === json[at]) at += 1;
    if (isHalved(json, at)) at -= 1;
    return { before: json.slice(0, at), after: json.slice(at) };
  }
  if (base === undefined) return null;
  const { ending: before, length } = ends(base);
  const { ending: last, length: all } = ends(json);
  const behind = [...last];
  if (all - length <= behind.length)
    return { before, after: behind.slice(behind.length - (all - length)).join('') };
  // The beginning of a long addition is only in the fragment.
  const repeated = lastOf(before, Math.min(overlap, LONGEST_REPEATED));
  const at = fragment.indexOf(repeated);
  return at < 0 ? null : { before, after: fragment.slice(at + repeated.length) };
}

/**
 * A seam with the repeated text shaded. If the fragment has the repeated text in another form, such
 * as with other white space, that form is shown too.
 */
function seamView(joint, overlap, fragment) {
  if (!joint) return null;
  const { before, after } = joint;
  const repeated = lastOf(before, overlap);
  const isSame = overlap > 0 && fragment.includes(repeated + beginning(after, 40));
  const at = fragment.indexOf(beginning(after, 40));
  const other = !isSame && overlap > 0 && at > 0 ? lastOf(fragment.slice(0, at), overlap) : '';
  const old = isSame ? before.slice(0, before.length - repeated.length) : before;
  return [
    h(
      'pre',
      { class: 'code', tabindex: 0, role: 'group', 'aria-label': 'Seam' },
      h('span', { class: 'old' }, old.length > 120 && '…', ending(old, 120)),
      isSame && h('mark', { class: 'repeated' }, repeated),
      h('span', { class: 'joint', role: 'img', 'aria-label': 'seam' }, '┃'),
      h('span', { class: 'new' }, beginning(after, 200)),
    ),
    other !== '' && [
      h('p', { class: 'muted' }, 'The next piece repeats this in another form:'),
      h(
        'pre',
        { class: 'code', tabindex: 0, role: 'group', 'aria-label': 'Repeated text' },
        h('mark', { class: 'repeated' }, ending(other, 200)),
      ),
    ],
  ];
}

/** The last characters of a text. */
function lastOf(text, count) {
  // A character has at most two UTF-16 units.
  const end = [...ending(text, 2 * count + 1)];
  return end.slice(Math.max(0, end.length - count)).join('');
}

function chatRequestView(holder, signal) {
  const request = h('textarea', {
    id: 'playground-request',
    rows: 26,
    spellcheck: 'false',
    dir: 'ltr',
    value: typed.request,
    oninput: () => {
      typed.request = request.value;
      busy([window_, sent], true);
      look();
    },
  });
  const window_ = card(
    'Token budget',
    'How the window is divided among the parts of the request. The answer is reduced first.',
  );
  const sent = card(
    'Request to the upstream',
    'The text that goes to the upstream, formatted. It differs from yours only by trimmed messages and a lowered limit; a streamed request also asks for usage.',
  );
  fill(
    holder,
    h(
      'div',
      { class: 'playground-grid' },
      h(
        'div',
        { class: 'playground-in' },
        h('label', { for: 'playground-request' }, 'Chat request'),
        request,
        h(
          'p',
          { class: 'muted' },
          'Try another ',
          h('code', {}, 'model'),
          ', or a larger ',
          h('code', {}, 'max_tokens'),
          '.',
        ),
      ),
      h('div', { class: 'playground-out' }, window_.element, sent.element),
    ),
  );
  const latest = newestOnly(signal);
  const look = settled(250, async () => {
    const isNew = latest('fit');
    const problem = surrogateError(request.value, 'request') ?? jsonError(request.value);
    const { fit: result } = problem
      ? { fit: { status: 'rejected', reason: problem } }
      : await askEach({ fit: request.value }, signal);
    if (!isNew()) return;
    busy([window_, sent], false);
    show(window_, result, (fit) => [
      h(
        'p',
        { class: 'big' },
        !fit.fits
          ? 'Over the limit'
          : fit.limit.sent === null
            ? `${number(fit.input_token_count)} tokens in, no limit out`
            : `${number(fit.input_token_count)} tokens in, at most ${number(fit.limit.sent)} out`,
      ),
      fit.fits &&
        fit.limit.sent === null &&
        h(
          'p',
          {},
          `The request sets no limit, and none is sent. ${counted(fit.adjusted_max_tokens, 'token')} are reserved for the answer.`,
        ),
      h(
        'p',
        { class: 'muted' },
        `${fit.model} has a window of ${number(fit.window)} tokens (${FOUND[fit.found] ?? fit.found}). Tokens are ${PROVENANCE[fit.provenance] ?? fit.provenance} (${fit.counter}).`,
      ),
      !fit.fits && [
        h('p', { class: 'wrong' }, message(budgetSentence(fit.error.message))),
        fit.error.help.length > 0 &&
          h(
            'ul',
            {},
            fit.error.help.map((help) => h('li', {}, message(budgetSentence(help)))),
          ),
      ],
      windowView({
        window: fit.window,
        margin: fit.margin,
        parts: fit.parts.filter((part) => part.asked > 0),
        over: fit.overflow,
        messages: fit.dropped_messages,
        limit: fit.limit,
      }),
      fit.blocker && h('p', { class: 'muted' }, message(budgetSentence(fit.blocker))),
    ]);
    show(sent, result, (fit) =>
      fit.sent
        ? [
            // Formatting makes it longer still.
            code(formatted(beginning(fit.sent, MOST_SHOWN)), 'Request'),
            fit.sent.length > MOST_SHOWN &&
              h('p', { class: 'muted' }, `The beginning of ${counted(fit.sent.length, 'character')}.`),
            h(
              'p',
              { class: 'actions' },
              copyButton('Copy', async () => fit.sent, 'request'),
            ),
          ]
        : h(
            'p',
            { class: 'muted' },
            'Nothing would be sent. The client gets the same error 400 as from OpenAI, at no cost.',
          ),
    );
  });
  look();
}

/** The error of a text that is not JSON. */
function jsonError(text) {
  try {
    JSON.parse(text);
    return null;
  } catch (error) {
    return new Error(`invalid JSON: ${error.message}`);
  }
}

/** A titled box for a result. */
function card(title, about) {
  const id = `card-${title.toLowerCase().replaceAll(/[^a-z]+/g, '-')}`;
  const [body, tools] = [h('div', { class: 'card-body' }), h('div', { class: 'card-tools' })];
  return {
    body,
    tools,
    element: h(
      'section',
      { class: 'card', 'aria-labelledby': id },
      h('h2', { id }, title),
      h('p', { class: 'muted' }, about),
      tools,
      body,
    ),
  };
}

function show(card, { status, value, reason }, draw) {
  if (status === 'fulfilled') fill(card.body, draw(value));
  else if (reason.name !== 'AbortError')
    fill(
      card.body,
      h(
        'p',
        { class: reason instanceof ApiError && reason.code === 'no-json' ? 'muted' : 'wrong' },
        message(sentence(reason.message)),
      ),
    );
}

/** Says for each kind of request whether it is still the newest one. */
function newestOnly(signal) {
  const last = {};
  return (kind) => {
    const own = (last[kind] = (last[kind] ?? 0) + 1);
    return () => last[kind] === own && !signal.aborted;
  };
}

const MOST_SHOWN = 20_000;

/** The beginning, end and length of a value. The gateway sends a long one in this form already. */
const ends = (value) =>
  typeof value === 'string'
    ? { beginning: value, ending: value, length: characters(value) }
    : Array.isArray(value)
      ? { beginning: value, ending: value, length: value.length }
      : value;

const code = (text, label) =>
  h(
    'pre',
    { class: 'code', tabindex: 0, role: 'group', 'aria-label': label },
    typeof text === 'string'
      ? text
      : `${text.beginning}\n… ${number(text.length - MOST_SHOWN)} characters more`,
  );

const cutTail = ({ ending: end, length }) =>
  h(
    'pre',
    { class: 'code' },
    length > 160 && '…',
    ending(end, 160),
    h('span', { class: 'scissors', role: 'img', 'aria-label': 'cut here' }, '✂'),
  );

const entry = (label, text) =>
  text !== '' && h('div', { class: 'entry' }, h('h3', {}, label), code(text, label));

/** The kinds of fixes that a text needs, as far as they are loaded. */
function kinds({ value }) {
  const { beginning: first, ending: last } = ends(value?.fixes ?? []);
  return new Set([...first, ...last].map((fix) => fix.kind));
}

/** The fixes, and the repaired form if it differs from the closed form. */
function repairedForm({ status, value }, closed, text) {
  if (status !== 'fulfilled') return null;
  const { beginning: listed, length } = ends(value.fixes);
  if (length === 0) return null;
  const isSame = JSON.stringify(value.json) === JSON.stringify(closed.json);
  return h(
    'div',
    { class: 'entry' },
    h('h3', {}, `Repaired: ${counted(length, 'fix', 'fixes')}`),
    h(
      'ul',
      { class: 'fixes' },
      listed
        .slice(0, 50)
        .map((fix) => h('li', {}, h('code', {}, fix.kind), ` at byte ${number(fix.offset)}`)),
      length > 50 && h('li', {}, `and ${number(length - 50)} more`),
    ),
    !isSame && [
      h('p', {}, 'The text with all repairs:'),
      code(value.json, 'Repaired form'),
      copyResult(value.json, 'repaired form', '/api/repair', text),
    ],
  );
}
