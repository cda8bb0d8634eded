// The bench: paste a text and see what the parts of Overlock make of it.

import { ApiError, ask, askEach } from './api.js';
import { copyButton, fill, h, message, settled } from './dom.js';
import { laidOut } from './json.js';
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
  'Written badly, in a fence': {
    text: 'Here is the report:\n```json\n{\n  // three stations\n  stations: [\'North\', \'South\',],\n  "open": True,\n  "levels": [412, 398, 377\n```',
    fragment: '',
  },
  Whole: { text: '{"title": "Tides", "rows": [1, 2, 3]}', fragment: '' },
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

/** What was typed stays until the tab is closed. */
const typed = { text: null, fragment: null, request: REQUEST, budget: 60, cutValue: 'hint' };

export async function showBench(frame, { rest, signal }) {
  document.title = 'Bench – Overlock';
  document.getElementById('live').hidden = true;
  signal.addEventListener('abort', () => {
    document.getElementById('live').hidden = false;
  });
  const pages = [
    ['cut', 'Cut JSON', cutBench],
    ['fit', 'Chat request', fitBench],
  ];
  const chosen = pages.find(([name]) => name === rest[0]) ?? pages[0];
  const holder = h('div');
  fill(
    frame,
    h(
      'header',
      { class: 'bench-head' },
      h('h1', {}, 'Bench'),
      h(
        'p',
        { class: 'muted' },
        'Try on a text of your own what the gateway does in every run. Nothing is sent to a model, and nothing is recorded.',
      ),
      h(
        'nav',
        { class: 'segmented', 'aria-label': 'Benches' },
        pages.map(([name, label]) =>
          h(
            'a',
            { href: `#/bench/${name}`, 'aria-current': name === chosen[0] ? 'page' : null },
            label,
          ),
        ),
      ),
    ),
    holder,
  );
  chosen[2](holder, signal);
}

function cutBench(holder, signal) {
  const [first] = Object.values(SAMPLES);
  typed.text ??= first.text;
  typed.fragment ??= first.fragment;
  const text = h('textarea', {
    id: 'bench-text',
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
    id: 'bench-fragment',
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
      id: 'bench-sample',
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
  const hiddenTold = h('p', { class: 'muted', hidden: true });
  const cut = card('Cut', 'Where and how the text stops.');
  const closed = card('Closed form', 'The same text as valid JSON, with nothing invented.');
  const rendered = card(
    'What a model is shown',
    'The path to the cut, within a budget. Values that do not fit become hints such as <str>.',
  );
  const contexts = card('Contexts', 'The pieces of the prompt that asks for the rest.');
  const joint = card('Seam', 'How the next piece is joined, or why it is not.');
  const budget = h('input', {
    id: 'bench-budget',
    type: 'range',
    min: 0,
    max: 500,
    step: 5,
    value: String(typed.budget),
    oninput: () => {
      typed.budget = Number(budget.value);
      budgetTold.textContent = number(typed.budget);
      render();
    },
  });
  const budgetTold = h('output', { for: 'bench-budget' }, number(typed.budget));
  const cutValue = h(
    'select',
    {
      id: 'bench-cut-value',
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
      { class: 'slider', for: 'bench-budget' },
      h('span', {}, 'Budget ', budgetTold, ' characters of values'),
      budget,
    ),
    h('label', { for: 'bench-cut-value' }, 'Cut value ', cutValue),
  );
  fill(
    holder,
    h(
      'div',
      { class: 'bench-grid' },
      h(
        'div',
        { class: 'bench-in' },
        h(
          'div',
          { class: 'field-head' },
          h('label', { for: 'bench-text' }, 'A text that stopped too early'),
          h('label', { for: 'bench-sample' }, 'Sample ', sample),
        ),
        text,
        h('label', { for: 'bench-fragment' }, 'What the model sends next'),
        fragment,
        hiddenTold,
        joint.element,
      ),
      h(
        'div',
        { class: 'bench-out' },
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
    cut: ({ cut: told, repair }) => {
      read = told.value?.hierarchy_context;
      show(cut, told, (told) => stops(told, repair));
      show(contexts, told, (told) =>
        told.cut
          ? [
              entry('Element that is cut off', told.cut_off_element),
              entry('Element before it', told.element_before_cutoff),
              entry('Overlap to be repeated', told.overlap_context),
              entry('Delivered so far', told.delivered),
            ]
          : h('p', { class: 'muted' }, 'There is no rest to ask for.'),
      );
    },
    close: ({ close, repair, cut }) =>
      show(closed, close, (told) => closedForm(told, repair, cut, typed.text)),
    render: ({ render: told }) =>
      show(rendered, told, ({ rendered: shown }) => [
        code(shown, 'Rendered context'),
        h('p', { class: 'muted' }, counted(ends(shown).length, 'character')),
      ]),
    stitch: ({ stitch: told }) =>
      show(joint, told, (stitch) => joined(stitch, read, typed.fragment)),
  };
  // The text as it was read, without what stands around the document.
  let read;
  const latest = only(signal);
  const update = async (names) => {
    const isNew = names.map((name) => latest(name));
    tellHidden(hiddenTold, [typed.text, typed.fragment]);
    if (typed.text === '') {
      for (const card of [cut, closed, rendered, contexts, joint])
        fill(card.body, h('p', { class: 'muted' }, 'Write or paste a text.'));
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
    const asked = names.filter((name) => name !== 'stitch' || typed.fragment !== '');
    const told = await answers(questions, asked, [typed.text, typed.fragment], signal);
    names.forEach((name, at) => {
      if (!isNew[at]()) return;
      busy(cards[name], false);
      if (told[name]) draws[name]?.(told);
      else fill(joint.body, h('p', { class: 'muted' }, 'Write or paste what comes next.'));
    });
  };
  const asking = (wait, names) => {
    const work = settled(wait, () => update(names));
    return () => {
      for (const name of names) busy(cards[name], true);
      work();
    };
  };
  const look = asking(200, ['cut', 'close', 'repair', 'render', 'stitch']);
  const render = asking(60, ['render']);
  const stitched = asking(200, ['stitch']);
  look();
}

/** What is answered to questions about a text and what comes next, if that can be sent. */
async function answers(questions, asked, [text, fragment], signal) {
  const refused = (name) =>
    halfOf(text, 'text') ?? (name === 'stitch' ? halfOf(fragment, 'next piece') : null);
  const sent = asked.filter((name) => !refused(name));
  const told =
    sent.length > 0
      ? await askEach(Object.fromEntries(sent.map((name) => [name, questions[name]])), signal, {
          text,
          most: MOST_SHOWN,
        })
      : {};
  for (const name of asked)
    told[name] ??= { status: 'rejected', reason: refused(name) };
  return told;
}

/** Why a text cannot be sent, if it cannot. */
function halfOf(text, what) {
  const half = halfCharacter(text);
  return half
    ? new Error(
        `the ${what} holds half of a character, ${half.code}, after ${counted(characters(text.slice(0, half.at)), 'character')}: without its other half it is no text and cannot be sent`,
      )
    : null;
}

/** Says of results that they are old, and that others are being worked out. */
function busy(cards, isBusy) {
  for (const { element } of cards) {
    if (isBusy) element.setAttribute('aria-busy', 'true');
    else element.removeAttribute('aria-busy');
  }
}

/** Where a text stops. */
const stops = (told, repaired) =>
  told.cut
    ? [
        h(
          'p',
          { class: 'big' },
          `Stops ${place(told.cut.place)} at `,
          h('code', { class: 'path' }, path(told.cut.path)),
          `, after ${counted(told.cut.offset, 'byte')}.`,
        ),
        cutTail(ends(told.hierarchy_context)),
      ]
    : h(
        'p',
        { class: 'big' },
        kinds(repaired).has('several')
          ? 'The first document is whole, and another follows.'
          : 'The document is whole.',
      );

/** What a text becomes when it is closed, what that cost it, and what repairing it makes of it. */
const closedForm = (told, repaired, { value: stopped }, text) => [
  h('p', {}, closing(told, repaired, stopped)),
  code(told.json, 'Closed form'),
  copying(told.json, 'closed form', '/api/close', text),
  fixes(repaired, told, text),
];

/** What closing did, in sentences. */
function closing(told, repaired, stopped) {
  const at = (pointer) => h('code', { class: 'path' }, path(pointer));
  const mended = told.fixes ? ends(told.fixes).length : 0;
  const around = kinds(repaired);
  const cut = told.complete ? undefined : stopped?.cut;
  const did = [
    mended > 0 && [`Repaired first: ${counted(mended, 'fix', 'fixes')}, named below. `],
    around.has('prose') && ['Left out: the text around the document. '],
    around.has('fence') && ['Left out: the fence around the document. '],
    around.has('several') && ['Left out: all that follows the first document. '],
    told.truncated !== null && ['Cut short: ', at(told.truncated), '. '],
    told.dropped !== null && ['Left out: ', at(told.dropped), '. '],
    cut?.place === 'key' && ['Left out: the key that stops halfway, in ', at(cut.path), '. '],
    cut?.place === 'after-comma' && ['Left out: the comma at the end. '],
    cut?.place === 'literal' && [
      'Completed: the literal at ',
      at(cut.path),
      ', because only one word begins like that. ',
    ],
  ].filter(Boolean);
  if (did.length > 0) return did;
  return told.complete ? 'Nothing had to be done.' : 'Only closed.';
}

/** A button for a result of which perhaps only the ends are there. */
const copying = (json, what, address, text) =>
  h(
    'p',
    { class: 'actions' },
    copyButton(
      'Copy',
      async () => (typeof json === 'string' ? json : (await ask(address, { body: { text } })).json),
      what,
    ),
  );

/** Names what cannot be seen in the fields, where texts are as they are. */
function tellHidden(element, texts) {
  const found = hidden(texts.join('\n'));
  element.hidden = found.size === 0;
  const told = [...found].map(([character, times]) => [
    ' ',
    character,
    times > 1 && ` × ${number(times)}`,
  ]);
  fill(element, found.size > 0 && ['In the fields, but not to be seen there:', told]);
}

/** What came of a fragment, with the repeated text shaded. */
function joined({ json, complete, seams }, base, fragment) {
  const [it] = seams;
  const accepted = !['repeat', 'ambiguous', 'no-match'].includes(it.outcome);
  const said = h(
    'p',
    { class: 'big' },
    h('strong', {}, it.outcome),
    accepted ? `: ${seam(it.outcome)}` : '',
    it.overlap > 0 && `, ${counted(it.overlap, 'character')} repeated`,
  );
  if (!accepted)
    return [
      said,
      h(
        'p',
        {},
        it.reason
          ? message(sentence(it.reason))
          : it.lengths
            ? `An overlap of ${it.lengths[0]} and one of ${it.lengths[1]} characters are equally likely.`
            : 'Nothing changes.',
      ),
      h('p', { class: 'muted' }, 'The document stays as it was.'),
    ];
  return [
    said,
    picture(jointOf(base, json, it.overlap, fragment), it.overlap, fragment),
    h('p', {}, complete ? 'The document is whole.' : 'The document is still cut.'),
    h('details', { class: 'full' }, h('summary', {}, 'The joined text'), code(json, 'Joined text')),
  ];
}

/** So much of a repeated text is looked for. */
const LONGEST_REPEATED = 200;

/** What stands on both sides of a seam, as far as it is there. */
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
  // So much came that its beginning is only in what was sent.
  const repeated = lastOf(before, Math.min(overlap, LONGEST_REPEATED));
  const at = fragment.indexOf(repeated);
  return at < 0 ? null : { before, after: fragment.slice(at + repeated.length) };
}

/**
 * A seam with the repeated text shaded. A fragment may have it in a fence, or with other white
 * space; then it is told how the fragment has it.
 */
function picture(joint, overlap, fragment) {
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
      h('p', { class: 'muted' }, 'What is repeated is written otherwise in the next piece:'),
      h(
        'pre',
        { class: 'code', tabindex: 0, role: 'group', 'aria-label': 'Repeated text' },
        h('mark', { class: 'repeated' }, ending(other, 200)),
      ),
    ],
  ];
}

/** So many characters from the end of a text. */
function lastOf(text, count) {
  // None of them takes more than two places.
  const end = [...ending(text, 2 * count + 1)];
  return end.slice(Math.max(0, end.length - count)).join('');
}

function fitBench(holder, signal) {
  const request = h('textarea', {
    id: 'bench-request',
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
    'The window, negotiated',
    'How the window is divided among the parts of the request. The answer gives way first.',
  );
  const sent = card(
    'The request as it would be sent',
    'The very text that goes to the upstream, on many lines. Only what was trimmed and a limit that you set differ from what you wrote; of a stream the usage is asked for.',
  );
  fill(
    holder,
    h(
      'div',
      { class: 'bench-grid' },
      h(
        'div',
        { class: 'bench-in' },
        h('label', { for: 'bench-request' }, 'A chat request'),
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
      h('div', { class: 'bench-out' }, window_.element, sent.element),
    ),
  );
  const latest = only(signal);
  const look = settled(250, async () => {
    const isNew = latest('fit');
    const problem = halfOf(request.value, 'request') ?? notJson(request.value);
    const { fit: told } = problem
      ? { fit: { status: 'rejected', reason: problem } }
      : await askEach({ fit: request.value }, signal);
    if (!isNew()) return;
    busy([window_, sent], false);
    show(window_, told, (fit) => [
      h(
        'p',
        { class: 'big' },
        !fit.fits
          ? 'It does not fit'
          : fit.limit.sent === null
            ? `${number(fit.input_token_count)} tokens in, no limit out`
            : `${number(fit.input_token_count)} tokens in, at most ${number(fit.limit.sent)} out`,
      ),
      fit.fits &&
        fit.limit.sent === null &&
        h(
          'p',
          {},
          `The request sets no limit, and none is sent. Room for ${counted(fit.adjusted_max_tokens, 'token')} is planned, so that the answer has some.`,
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
    show(sent, told, (fit) =>
      fit.sent
        ? [
            // Laid out it is longer still.
            code(laidOut(beginning(fit.sent, MOST_SHOWN)), 'Request'),
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
            'Nothing would be sent. The client gets the same error 400 as from OpenAI, before a token is paid for.',
          ),
    );
  });
  look();
}

/** Why a text is no JSON. */
function notJson(text) {
  try {
    JSON.parse(text);
    return null;
  } catch (error) {
    return new Error(`This is not JSON yet: ${error.message}`);
  }
}

/** A result that is replaced as a whole. */
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

/** Says of each kind of question whether it is still the last one. */
function only(signal) {
  const last = {};
  return (kind) => {
    const own = (last[kind] = (last[kind] ?? 0) + 1);
    return () => last[kind] === own && !signal.aborted;
  };
}

const MOST_SHOWN = 20_000;

/** The ends of what is too long to be shown, and of what is not. */
const ends = (told) =>
  typeof told === 'string'
    ? { beginning: told, ending: told, length: characters(told) }
    : Array.isArray(told)
      ? { beginning: told, ending: told, length: told.length }
      : told;

const code = (told, label) =>
  h(
    'pre',
    { class: 'code', tabindex: 0, role: 'group', 'aria-label': label },
    typeof told === 'string'
      ? told
      : `${told.beginning}\n… ${number(told.length - MOST_SHOWN)} characters more`,
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

/** What kinds of fixes a text needs, as far as they are told. */
function kinds({ value }) {
  const { beginning: first, ending: last } = ends(value?.fixes ?? []);
  return new Set([...first, ...last].map((fix) => fix.kind));
}

/** What was repaired, and what came of it where that is not what closing made of it. */
function fixes({ status, value }, closed, text) {
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
      h('p', {}, 'Repaired, and not only closed, the text becomes:'),
      code(value.json, 'Repaired form'),
      copying(value.json, 'repaired form', '/api/repair', text),
    ],
  );
}
