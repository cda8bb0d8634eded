// Tests the page in a real browser. Reads the addresses of the gateways from standard input, checks
// every view with mouse, keyboard and accessibility tree, and prints the checked views in its last
// line. Every complaint of the browser is a failure.

import { existsSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';

import axe from 'axe-core';
import { chromium } from 'playwright-core';

const told = JSON.parse(await text(process.stdin));
const { gateways, documents, pipelines, screenshots } = told;

/** The configured browser, or the packaged one. */
async function executable() {
  if (told.chromium) return told.chromium;
  // With this variable the package also unpacks the libraries that Chromium needs.
  process.env.AWS_LAMBDA_JS_RUNTIME = 'nodejs22.x';
  const { default: packaged } = await import('@sparticuz/chromium');
  const path = await packaged.executablePath();
  if (existsSync('/etc/fonts/fonts.conf')) process.env.FONTCONFIG_PATH = '/etc/fonts';
  return path;
}

const browser = await chromium.launch({ executablePath: await executable() });
const looked = [];
const NARROW = { width: 320, height: 640 };
const PHONE = { width: 390, height: 844 };
const TABLET = { width: 820, height: 1180 };
const WIDE = { width: 1200, height: 800 };
const VAST = { width: 2560, height: 1440 };

/** Opens a page and records everything that goes wrong. */
async function open(
  address,
  hash,
  { viewport = WIDE, scheme = 'light', colours = 'none', prepare = async () => {} } = {},
) {
  const context = await browser.newContext({
    viewport,
    colorScheme: scheme,
    forcedColors: colours,
    reducedMotion: 'reduce',
    acceptDownloads: true,
  });
  await context.grantPermissions(['clipboard-read', 'clipboard-write']);
  const page = await context.newPage();
  const wrong = [];
  page.on('console', (message) => {
    if (['error', 'warning'].includes(message.type())) wrong.push(`console: ${message.text()}`);
  });
  page.on('pageerror', (error) => wrong.push(`error: ${error.message}`));
  page.on('dialog', (dialog) => {
    wrong.push(`dialog: ${dialog.message()}`);
    dialog.dismiss();
  });
  page.on('request', (request) => {
    const { origin, protocol } = new URL(request.url());
    if (origin !== new URL(address).origin && protocol !== 'blob:')
      wrong.push(`request to elsewhere: ${request.url()}`);
  });
  await page.addInitScript(() => {
    window.violations = [];
    document.addEventListener('securitypolicyviolation', (event) =>
      window.violations.push(`${event.violatedDirective}: ${event.blockedURI}`),
    );
  });
  await prepare(page);
  await page.goto(`${address}/${hash}`);
  return { page, context, wrong, address };
}

/** Checks that nothing went wrong, nothing overflows, and axe finds no violation. */
async function clean(name, { page, wrong }) {
  await page.evaluate(axe.source);
  const { violations } = await page.evaluate(() =>
    // All rules that are not experimental, and the target size of WCAG 2.2.
    window.axe.run(document, {
      resultTypes: ['violations'],
      rules: { 'target-size': { enabled: true } },
    }),
  );
  for (const { id, nodes } of violations)
    wrong.push(
      `axe ${id}: ${nodes
        .slice(0, 3)
        .map((node) => `${node.html} (${node.failureSummary})`)
        .join(' | ')}`,
    );
  wrong.push(
    ...(await page.evaluate(() => window.violations)).map((violation) => `policy: ${violation}`),
  );
  const over = await page.evaluate(
    () => document.documentElement.scrollWidth - document.documentElement.clientWidth,
  );
  if (over > 0) wrong.push(`the page is ${over} pixels wider than the screen`);
  wrong.push(...(await page.evaluate(atLarge)), ...(await page.evaluate(clipped)));
  if (wrong.length > 0) throw new Error(`${name}: ${wrong.join('\n')}`);
  looked.push(name);
}

/** Text with unmarked hidden characters, or right-to-left text that is not isolated. */
function atLarge() {
  const control =
    /[\0-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff]/;
  const leftward = /[\u0590-\u05ff\u0600-\u061b\u061d-\u06ff]/;
  const wrong = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const around = node.parentElement;
    if (around.closest('textarea')) continue;
    if (control.test(node.data) && !around.closest('.hidden-character'))
      wrong.push(`unmarked control character: ${JSON.stringify(node.data)}`);
    if (leftward.test(node.data) && !around.closest('bdi, svg'))
      wrong.push(`not isolated: ${JSON.stringify(node.data)}`);
  }
  for (const element of document.querySelectorAll('[title], [aria-label]')) {
    for (const name of ['title', 'aria-label']) {
      const text = (element.getAttribute(name) ?? '').replaceAll(/[\u2068\u2069]/g, '');
      if (control.test(text)) wrong.push(`control character in an attribute: ${JSON.stringify(text)}`);
    }
  }
  return wrong;
}

/** Text of which a part is cut off and cannot be scrolled to. */
function clipped() {
  const boxes = '.excerpt > code, .list td, .list th, .key-figures > div, .segmented, .badge';
  return [...document.querySelectorAll(boxes)]
    .filter(
      (box) => box.offsetWidth > 1 && box.scrollWidth > box.clientWidth + 1 && box.clientWidth > 0,
    )
    .map((box) => `clipped: ${box.outerHTML.slice(0, 200)}`);
}

/** The screens of every test. A long test, and one with screenshots, adds MORE_SCREENS. */
const SCREENS = [
  ['wide, light', { viewport: WIDE }],
  ['phone, dark', { viewport: PHONE, scheme: 'dark' }],
  ['enlarged to 400 %', { viewport: NARROW }],
];

const MORE_SCREENS = [
  ['wide, dark', { viewport: WIDE, scheme: 'dark' }],
  ['phone, light', { viewport: PHONE }],
  ['tablet, light', { viewport: TABLET }],
  ['tablet, dark', { viewport: TABLET, scheme: 'dark' }],
  ['vast', { viewport: VAST, scheme: 'dark' }],
  ['in forced colours', { colours: 'active' }],
];

/** Checks a view on all screens. */
async function everywhere(name, address, hash, ready, { prepare, height } = {}) {
  for (const [screen, choice] of told.long || screenshots ? [...SCREENS, ...MORE_SCREENS] : SCREENS) {
    const view = await open(address, hash, { ...choice, prepare });
    await ready(view.page);
    await clean(`${name}, ${screen}`, view);
    if (screenshots && screen.includes(', ')) {
      await mkdir(screenshots, { recursive: true });
      // A screenshot may be higher than the screen.
      if (height) await view.page.setViewportSize({ width: choice.viewport.width, height });
      const file = `${name}-${screen.replace(', ', '-')}.png`;
      await view.page.screenshot({ path: join(screenshots, file) });
    }
    await view.context.close();
  }
}

function expect(condition, message) {
  if (!condition) throw new Error(message);
}

const equal = (got, wanted, what) =>
  expect(
    JSON.stringify(got) === JSON.stringify(wanted),
    `${what}: ${JSON.stringify(got)} and not ${JSON.stringify(wanted)}`,
  );

/** Waits for a number of elements: figures and rows arrive by different requests. */
async function counted(elements, wanted, what) {
  const until = Date.now() + 30_000;
  let count = await elements.count();
  while (count !== wanted && Date.now() < until) {
    await new Promise((resolve) => setTimeout(resolve, 20));
    count = await elements.count();
  }
  equal(count, wanted, what);
}

const sees = (page, text) => page.getByText(text).first().waitFor();

/** The answer of each run. */
const contents = new Map();

/** Requests a document and returns the run. */
async function ask(
  gateway,
  { signal, model = 'gpt-4', key, retry, question, messages = [] } = {},
) {
  const rows = Array.from(
    { length: 150 },
    (_, row) => `${row}:00 ${400 + ((row * 37) % 90)} cm`,
  ).join('; ');
  const answer = await fetch(`${gateway}/v1/chat/completions`, {
    method: 'POST',
    signal,
    headers: {
      'content-type': 'application/json',
      ...(key && { authorization: `Bearer ${key}` }),
      ...(retry && { 'idempotency-key': retry }),
    },
    body: JSON.stringify({
      model,
      max_tokens: 6000,
      response_format: { type: 'json_object' },
      messages: [
        {
          role: 'system',
          content:
            'You write reports as JSON. Every section has an id, rows and a note, and nothing is left out.',
        },
        ...messages,
        { role: 'user', content: 'What were the levels?' },
        { role: 'assistant', content: rows },
        { role: 'user', content: question ?? 'Write the report as JSON.' },
      ],
    }),
  });
  const run = answer.headers.get('x-overlock-run');
  contents.set(run, (await answer.json()).choices?.[0].message.content);
  return run;
}

/** Clicks a copy button and returns the copied text. */
async function copied(page, name) {
  const button = await page.getByRole('button', { name, exact: true }).elementHandle();
  await button.click();
  await page.waitForFunction((button) => button.textContent.startsWith('Copied'), button);
  return page.evaluate(() => navigator.clipboard.readText());
}

/** Sends a short request and returns the run. With `until` the client disconnects after that text. */
async function askBriefly(gateway, { json, text, until, n, tools } = {}) {
  const leaving = new AbortController();
  const answer = await fetch(`${gateway}/v1/chat/completions`, {
    method: 'POST',
    signal: leaving.signal,
    headers: { 'content-type': 'application/json', ...(text && { 'x-overlock-continue': 'text' }) },
    body: JSON.stringify({
      model: 'gpt-4o',
      stream: Boolean(until),
      ...(json && { response_format: { type: 'json_object' } }),
      ...(n && { n }),
      ...(tools && { tools: [{ type: 'function', function: { name: 'note' } }] }),
      messages: [{ role: 'user', content: 'Tell me of the tides.' }],
    }),
  });
  if (until) {
    let heard = '';
    for await (const piece of answer.body.pipeThrough(new TextDecoderStream())) {
      heard += piece;
      if (heard.includes(until)) break;
    }
    leaving.abort();
  } else await answer.text();
  return answer.headers.get('x-overlock-run');
}

/** Requests a document as a stream, until its end or an abort. */
async function stream(gateway, signal, model) {
  const message = { role: 'user', content: 'Write the report as JSON.' };
  const body = {
    model,
    stream: true,
    response_format: { type: 'json_object' },
    messages: [message],
  };
  try {
    const headers = { 'content-type': 'application/json' };
    const request = { method: 'POST', signal, headers, body: JSON.stringify(body) };
    await (await fetch(`${gateway}/v1/chat/completions`, request)).text();
  } catch {
    // The request was aborted.
  }
}

/** Checks the label and the position of the limit in a bar that is too long. */
async function endsAt(axis, words) {
  await axis.getByText(words).waitFor();
  const [line, bar] = [await axis.locator('.limit').boundingBox(), await axis.locator('.bar').boundingBox()];
  const limit = Number((await axis.locator('.limit-words').textContent()).replaceAll(/\D/g, ''));
  const widths = await axis
    .locator('.segment')
    .evaluateAll((parts) => parts.map((part) => Number(part.style.flexGrow)));
  const total = widths.reduce((sum, width) => sum + width, 0);
  expect(total > limit, `a bar of ${total} is longer than ${limit}`);
  const place = (line.x + line.width / 2 - bar.x) / bar.width;
  expect(Math.abs(place - limit / total) < 0.02, `the line is at ${place} of ${limit} of ${total}`);
}

/** Takes a screenshot, if screenshots are wanted. */
async function picture(name, page) {
  if (!screenshots) return;
  await mkdir(screenshots, { recursive: true });
  await page.screenshot({ path: join(screenshots, `${name}.png`), fullPage: true });
}

/** Checks that a search for the remark on a run finds the run. */
async function foundByItsWords(gateway) {
  const view = await open(gateway, '#/runs');
  const rows = view.page.locator('.list tbody tr:has(.why)');
  await rows.first().waitFor();
  const told = await rows.evaluateAll((all) =>
    all.map((row) => [row.querySelector('a').textContent, row.querySelector('.why').textContent]),
  );
  await view.context.close();
  for (const [run, words] of told) {
    const { page, context } = await open(gateway, `#/runs?q=${encodeURIComponent(words)}`);
    await page.getByRole('link', { name: run }).waitFor();
    await page.locator('.list-head .summary').getByText(/^[1-9]\d* of \d+ recorded runs?: /).waitFor();
    await context.close();
  }
  expect(told.length > 0, 'some runs have remarks');
}

// --- The runs ---

const runs = {};
const models = {
  partial: 'gpt-4o',
  failed: 'gpt-4o',
  hostile: 'gpt-4.1',
  many: 'gpt-4o-mini',
  long: 'gpt-4.1',
  restarts: 'gpt-4o',
  whole: 'gpt-4',
};
for (const [name, model] of Object.entries(models))
  runs[name] = await ask(gateways[name], { model });
runs.metadata = await ask(gateways.metadata);
runs.unfit = await ask(gateways.metadata, { question: 'Write a word or two. '.repeat(3000) });
runs.demo = await ask(gateways.whole, { model: 'overlock-demo' });
const { whole } = gateways;

// --- The list ---

await everywhere('runs', whole, '#/runs', async (page) => {
  await page.getByRole('link', { name: runs.whole }).waitFor();
  await sees(page, 'live');
});

{
  const view = await open(whole, '#/runs');
  const { page } = view;
  const rows = () => page.locator('.list tbody tr').count();
  await page.getByRole('link', { name: runs.whole }).waitFor();
  equal(await rows(), 8, 'all runs');
  const summary = page.locator('.list-head .summary');
  await summary.getByText(/^8 runs: .*; [\d,]+ tokens in, [\d,]+ out; /).waitFor();
  await page.getByRole('button', { name: 'Partial', exact: true }).click();
  equal(await rows(), 1, 'partial runs');
  await summary.getByText(/^1 of 8 recorded runs: 1 partial; /).waitFor();
  await page.getByRole('button', { name: 'All', exact: true }).click();
  await page.getByRole('searchbox').fill('overlock-demo');
  await page.waitForFunction(() => document.querySelectorAll('.list tbody tr').length === 1);
  expect(page.url().endsWith('#/runs?q=overlock-demo'), 'the search is in the address');
  await page.getByRole('searchbox').fill('quota');
  await page.waitForFunction(() => document.querySelectorAll('.list tbody tr').length === 1);
  await sees(page, '429 You exceeded your current quota.');
  await page.getByRole('searchbox').fill('no such run');
  await sees(page, 'No matching runs');
  const row = await page.evaluate(
    async (id) =>
      (await fetch(`/api/runs?limit=20`)).json().then((list) => list.find((run) => run.id === id)),
    runs.whole,
  );
  // The total cost is the exact sum of the costs in the list.
  const listed = await page.evaluate(async () => (await fetch('/api/runs?limit=100')).json());
  const priced = listed.filter((run) => run.cost);
  expect(priced.length > 0 && priced.length < listed.length, 'some models have prices');
  const parts = priced.map(({ cost }) => {
    const [whole, part = ''] = cost.amount.split('.');
    return BigInt(whole + part.padEnd(15, '0'));
  });
  const sum = String(parts.reduce((one, other) => one + other)).padStart(16, '0');
  const exact = `${sum.slice(0, -15)}.${sum.slice(-15)}`.replace(/\.?0+$/, '');
  await page.getByRole('searchbox').fill('');
  await sees(page, `${exact} USD for the ${priced.length} with prices`);
  await page.getByRole('searchbox').fill('gpt-4.1');
  await page.waitForFunction(() => document.querySelectorAll('.list tbody tr').length === 2);
  expect(
    !(await page.getByRole('columnheader', { name: 'Cost' }).isVisible()),
    'nothing is told of what has no price',
  );
  await page.getByRole('searchbox').fill(runs.whole);
  const cells = page.locator('.list tbody tr').filter({ hasText: runs.whole }).locator('td');
  await cells.first().waitFor();
  const figures = await cells.allTextContents();
  expect(
    figures.some((cell) => cell === row.input_tokens.toLocaleString('en-US')) &&
      row.input_tokens > 0,
    `tokens in are told: ${figures}`,
  );
  await clean('the list, filtered', view);
  // Costs are aligned, and every figure is visible on every screen.
  await page.getByRole('searchbox').fill('');
  await page.waitForFunction(() => document.querySelectorAll('.list tbody tr').length > 2);
  const costs = await page
    .locator('.list tbody .cost')
    .evaluateAll((cells) =>
      cells.map((cell) => [
        cell.textContent,
        Math.round(cell.firstChild.getBoundingClientRect().right),
      ]),
    );
  const told = costs.filter(([text]) => text !== '–');
  expect(
    told.length > 1 &&
      told.every(([text, right]) => /\.\d{6} USD$/.test(text) && right === told[0][1]),
    `costs are aligned: ${JSON.stringify(costs)}`,
  );
  const columns = await page.locator('.list thead th').count();
  for (const viewport of [WIDE, TABLET, PHONE, NARROW]) {
    await page.setViewportSize(viewport);
    const cells = page.locator('.list tbody tr').first().locator('td:visible, th:visible');
    await counted(cells, columns, `what is told of a run at ${viewport.width}`);
  }
  await view.context.close();
}

// --- A run in progress ---

{
  const view = await open(gateways.held, '#/runs');
  const { page } = view;
  await sees(page, 'live');
  const leaving = new AbortController();
  const held = ask(gateways.held, { signal: leaving.signal }).catch(() => {});
  const row = page.locator('.list tbody tr').filter({ hasText: 'running' });
  await row.getByText('attempt 2: no text yet').waitFor();
  await clean('a live run in the list', view);
  await row.getByRole('link').click();
  await sees(page, 'Waiting for the answer to attempt 2');
  await page.getByRole('heading', { name: /^First: / }).waitFor();
  await clean('a live run', view);
  leaving.abort();
  await held;
  await sees(page, 'Cancelled: the client closed the connection.');
  await page.getByRole('heading', { name: 'Why it is incomplete' }).waitFor();
  await clean('a live run that is called off', view);
  await view.context.close();
}

// --- Retries ---

{
  const view = await open(gateways.unsteady, '#/runs');
  const { page } = view;
  await sees(page, 'live');
  const asked = ask(gateways.unsteady);
  const again = /Attempt 2 failed, retrying in .+: .+ answered 503/;
  const row = page.locator('.list tbody tr').filter({ hasText: again });
  await row.getByRole('link').click();
  await page.locator('.waiting').filter({ hasText: again }).waitFor();
  await clean('a call that is to be made again', view);
  await asked;
  const second = page.locator('#attempt-2');
  await second.getByText(/^2 failed calls were retried after .+ 503/).waitFor();
  const fault = page.locator('.fault');
  await fault.getByText(/^The upstream.* answered 503:$/).waitFor();
  await fault.getByText(/^2 failed calls were retried/).waitFor();
  await clean('a run whose upstream was asked again in vain', view);
  await view.context.close();
}

// --- The progress of an answer ---

for (const name of ['slow', 'unknown']) {
  // With metadata only, a run is not in the store before its end.
  const view = await open(gateways[name], '#/runs', { allowed: ['status of 404'] });
  const { page } = view;
  await sees(page, 'live');
  const leaving = new AbortController();
  const grown = stream(gateways[name], leaving.signal, name === 'slow' ? 'gpt-4' : 'unknown-model');
  const row = page.locator('.list tbody tr').filter({ hasText: 'running' });
  const link = row.getByRole('link');
  await link.focus();
  await row.getByText(/attempt 1: [\d,]+ bytes, about [\d,]+ tokens so far/).waitFor();
  const told = async (place) =>
    Number((await place.textContent()).match(/([\d,]+) bytes/)[1].replaceAll(',', ''));
  const before = await told(row.locator('.why'));
  const cells = await row.locator('td').allTextContents();
  expect(
    cells.some((cell) => cell.startsWith('≈ ')),
    `an estimate is called one: ${cells}`,
  );
  await page.waitForFunction(
    (before) =>
      Number(
        document
          .querySelector('.list .why')
          .textContent.match(/([\d,]+) bytes/)[1]
          .replaceAll(',', ''),
      ) > before,
    before,
  );
  expect(
    await link.evaluate((link) => link === document.activeElement),
    'a row keeps the focus',
  );
  await clean(`an answer that grows in the list, ${name}`, view);
  await link.click();
  const line = page.locator('.waiting');
  await line.getByText(/Attempt 1: [\d,]+ bytes, about/).waitFor();
  const took = page.locator('.key-figures > div').filter({ hasText: 'Took' }).locator('dd');
  const first = await took.textContent();
  // The page updates without a reload and keeps the focus.
  const button = page.getByRole('button', { name: 'Copy link' });
  await button.focus();
  await page.waitForFunction(
    (first) =>
      [...document.querySelectorAll('.key-figures > div')].find((one) =>
        one.textContent.startsWith('Took'),
      ).lastChild.textContent !== first,
    first,
  );
  expect(
    await button.evaluate((button) => button === document.activeElement),
    'a button keeps its focus',
  );
  expect((await told(line)) > before, 'the answer has grown');
  await page
    .locator('.key-figures')
    .getByText(/^≈ [\d,]+ bytes$/)
    .waitFor();
  // The text is shown if it is recorded.
  const end = page.getByRole('group', { name: 'The end of the answer, as it arrives' });
  equal(await end.isVisible(), name === 'slow', 'the end of the text is there');
  if (name === 'slow') expect((await end.textContent()).includes('<b>'), 'as it was written');
  await picture(`growing-${name}`, page);
  await clean(`an answer that grows, ${name}`, view);
  leaving.abort();
  await grown;
  await view.context.close();
}

// --- An unknown window, and a conversation that is too long for it ---

{
  const messages = Array.from({ length: 30 }, (_, at) => ({
    role: at % 2 ? 'assistant' : 'user',
    content: 'water '.repeat(700),
  }));
  const run = await ask(gateways.trimming, { model: 'unknown-model', messages });
  const view = await open(gateways.trimming, '#/runs');
  const { page } = view;
  await page
    .locator('.list tbody tr')
    .getByText(/^[\d,]+ of \?$/)
    .waitFor();
  await page
    .locator('.list .why')
    .getByText(/^\d+ older messages left out$/)
    .waitFor();
  await page.getByRole('link', { name: run }).click();
  await page.getByRole('row', { name: /History ≥ [\d,]+ .* messages left out/ }).waitFor();
  await sees(page, /Left out: \d+ of 32 messages\. Their size is a minimum\./);
  await page
    .locator('.verdict')
    .getByText(/ \d+ of 32 older messages were left out to fit the window\.$/)
    .waitFor();
  await sees(
    page,
    /The counts are estimates, made with o200k_base in place of an unknown tokenizer/,
  );
  await sees(page, 'models."unknown-model".window');
  await counted(page.locator('.gauge'), 0, 'shares of a window that was assumed');
  await sees(page, /10 tokens in · 5 out · counted by the provider \(Overlock counted [\d,]+ in/);
  await sees(page, 'counted by the provider');
  await picture('window-assumed', page);
  await clean('an unknown window', view);
  await view.context.close();
}

// --- Many runs ---

{
  const view = await open(gateways.crowd, '#/runs');
  const { page } = view;
  const rows = page.locator('.list tbody tr');
  const summary = page.locator('.list-head .summary');
  await summary
    .getByText(/^1,204 runs: 1,200 complete, 4 failed; 12,400 tokens in, 6,100 out$/)
    .waitFor();
  await counted(rows, 100, 'runs that are drawn at first');
  await page.getByRole('button', { name: 'Show 100 more' }).click();
  await page.waitForFunction(() => document.querySelectorAll('.list tbody tr').length === 200);
  // The oldest run is found without scrolling.
  await page.getByRole('searchbox').fill('the-very-first');
  await summary.getByText(/^1 of 1,204 recorded runs: 1 complete; /).waitFor();
  await counted(rows, 1, 'runs that are found');
  await picture('runs-found', page);
  await page.getByRole('searchbox').fill('');
  await page.getByRole('button', { name: 'Failed', exact: true }).click();
  await summary.getByText(/^4 of 1,204 recorded runs: 4 failed/).waitFor();
  await page.waitForFunction(() => document.querySelectorAll('.list tbody tr').length === 4);
  // Exactly a hundred results need no further page.
  await page.getByRole('button', { name: 'All', exact: true }).click();
  await page.getByRole('searchbox').fill('one-of-a-hundred');
  await summary.getByText(/^100 of 1,204 recorded runs: 100 complete; /).waitFor();
  await page.waitForFunction(() => document.querySelectorAll('.list tbody tr').length === 100);
  await counted(page.getByRole('button', { name: 'Show 100 more' }), 0, 'more of a hundred');
  await page.getByRole('searchbox').fill('model error');
  await page.waitForFunction(() => document.querySelectorAll('.list tbody tr').length === 4);
  await page.getByRole('searchbox').fill('');
  // Old results leave no gap among the latest runs.
  await page.getByRole('button', { name: 'All', exact: true }).click();
  await page.waitForFunction(() => document.querySelectorAll('.list tbody tr').length === 100);
  await picture('runs-many', page);
  await clean('many runs', view);
  await view.context.close();
}

// --- A run watched to its end ---

{
  const list = await open(gateways.watched, '#/runs');
  await sees(list.page, 'live');
  const asked = ask(gateways.watched);
  const link = list.page.locator('.list tbody tr').filter({ hasText: 'running' }).getByRole('link');
  const hash = await link.getAttribute('href');
  await list.context.close();
  const [reading, choosing] = await Promise.all([
    open(gateways.watched, hash),
    open(gateways.watched, hash),
  ]);
  const isAt = (page, selector) =>
    page.evaluate((selector) => document.activeElement.matches(selector), selector);
  const pieces = (page) => page.locator('.growth button').count();
  // One page shows the text of the first attempt and the window of the second.
  {
    const { page } = reading;
    await page.locator('#attempt-2').waitFor();
    await page.getByRole('slider').fill('1');
    await page.locator('.tree summary').nth(1).click();
    await page.locator('#attempt-1 .full summary').focus();
    await page.keyboard.press('Enter');
    await page.getByRole('group', { name: /^All [\d,]+ bytes/ }).waitFor();
  }
  // The other page has the focus in the text of the document.
  {
    const { page } = choosing;
    await page.getByRole('button', { name: 'Text', exact: true }).click();
    await page.getByRole('group', { name: /^Document, / }).focus();
    await page.locator('.pages').evaluate((box) => (box.scrollTop = 60));
    const before = await pieces(page);
    await page.waitForFunction(
      (before) => document.querySelectorAll('.growth button').length > before,
      before,
    );
    equal(await pieces(page), await page.locator('.attempt').count(), 'pieces while it grows');
    expect(await isAt(page, '.document .pages'), 'the text of a document keeps the focus');
  }
  for (const { page } of [reading, choosing]) await page.locator('.badge.complete').waitFor();
  {
    const { page } = reading;
    expect(await isAt(page, '#attempt-1 .full summary'), 'an attempt keeps the focus');
    await counted(page.locator('#attempt-1 .full[open] .pages'), 1, 'what was opened');
    await sees(page, 'attempt 2 of');
    expect(
      !(await page.locator('.tree details').nth(1).evaluate((branch) => branch.open)),
      'a branch that was closed stays closed',
    );
    await clean('a run that was watched', reading);
  }
  {
    const { page } = choosing;
    expect(await isAt(page, '.document .pages'), 'the text of a document keeps the focus');
    equal(await page.locator('.document .pages').evaluate((box) => box.scrollTop), 60, 'the place');
    equal(
      await page.getByRole('button', { name: 'Text', exact: true }).getAttribute('aria-pressed'),
      'true',
      'the view that was chosen',
    );
    const watched = await copied(page, 'Copy document');
    expect(watched === documents.whole, 'the document that was watched');
    await clean('a document that was watched', choosing);
  }
  await asked;
  for (const { context } of [reading, choosing]) await context.close();
}

// --- An interrupted and resumed run ---

{
  const leaving = new AbortController();
  const view = await open(gateways.left, '#/runs');
  const { page } = view;
  await sees(page, 'live');
  const left = ask(gateways.left, { signal: leaving.signal, retry: 'the same' }).catch(() => {});
  const row = page.locator('.list tbody tr');
  await row.getByText('attempt 2: no text yet').waitFor();
  await row.getByRole('link').click();
  await sees(page, 'Waiting for the answer to attempt 2');
  leaving.abort();
  await left;
  await page.locator('.badge.interrupted').waitFor();
  await sees(page, 'A request with the same idempotency key resumes the run');
  await clean('an interrupted run', view);
  const again = await ask(gateways.left, { retry: 'the same' });
  // The page updates without a reload.
  await page.locator('.badge.complete').waitFor();
  const document = await copied(page, 'Copy document');
  equal(document, contents.get(again), 'the document of a resumed run');
  await clean('a resumed run', view);
  await view.context.close();
}

// --- One run ---

await everywhere(
  'run',
  whole,
  `#/runs/${runs.whole}`,
  async (page) => {
    await page.getByRole('heading', { name: 'The document' }).waitFor();
    await page.locator('.key-figures').getByText(' USD').waitFor();
  },
  { height: 1360 },
);
await everywhere(
  'partial',
  whole,
  `#/runs/${runs.partial}`,
  async (page) => {
    await page.getByRole('heading', { name: 'Why it is incomplete' }).waitFor();
    await sees(page, 'Received so far');
  },
  { height: 1360 },
);
await everywhere('failed', whole, `#/runs/${runs.failed}`, async (page) => {
  await page.getByRole('heading', { name: 'Why it failed' }).waitFor();
  await sees(page, /The upstream at http:.* answered 429:/);
  await sees(page, 'You exceeded your current quota.');
});

{
  const view = await open(whole, `#/runs/${runs.whole}`);
  const { page } = view;
  await page.getByRole('heading', { name: 'The document' }).waitFor();
  expect((await page.locator('mark.repeated').count()) > 0, 'repeated text is shaded');
  equal(await copied(page, 'Copy document'), documents.whole, 'the document that is copied');
  const trace = JSON.parse(await copied(page, 'Copy trace'));
  equal(trace.id, runs.whole, 'the trace');
  expect(JSON.parse(await copied(page, 'Copy request')).messages.length === 4, 'the request');
  const [saved] = await Promise.all([
    page.waitForEvent('download'),
    page.getByRole('button', { name: 'Save', exact: true }).click(),
  ]);
  equal(await text(await saved.createReadStream()), documents.whole, 'the document that is saved');
  const slider = page.getByRole('slider');
  await slider.focus();
  await page.keyboard.press('ArrowRight');
  await sees(page, 'attempt 2 of');
  await page.getByRole('button', { name: /^Attempt 3: / }).click();
  expect(page.url().endsWith(`#/runs/${runs.whole}/attempts/3`), 'an attempt has an address');
  await page.getByRole('button', { name: 'Text', exact: true }).click();
  await page.getByRole('group', { name: /^Document, / }).waitFor();
  await page.locator('#attempt-2 summary').click();
  await clean('a run, used', view);
  // A shared link leads to the attempt too.
  await page.reload();
  await page.locator('#attempt-3.chosen').waitFor();
  await page.getByRole('link', { name: 'Attempt 2', exact: true }).focus();
  await page.keyboard.press('Enter');
  await page.locator('#attempt-2.chosen').waitFor();
  equal(await copied(page, 'Copy link'), `${whole}/#/runs/${runs.whole}/attempts/2`, 'the link');
  await page.goto(`${whole}/#/runs/${runs.whole}/attempts/999`);
  await sees(page, 'There is no attempt 999.');
  await sees(page, /This run has \d attempts\./);
  await clean('an attempt that is not there', view);
  await page.goto(`${whole}/#/runs/${runs.whole}/attempts/1`);
  await page.locator('#attempt-1.chosen').waitFor();
  await counted(page.locator('.notice'), 0, 'what is told of what was not there');
  await view.context.close();
}

{
  const view = await open(whole, `#/runs/${runs.partial}`);
  const { page } = view;
  JSON.parse(await copied(page, /^Copy closed JSON/));
  expect(
    (await page.locator('.attempt.refused').count()) > 0,
    'attempts that were not joined are listed',
  );
  await page.locator('.attempt.refused .excerpt').first().getByText('Shall I go on?').waitFor();
  await page.getByText('Full answer of the model').first().click();
  await page.getByRole('group', { name: /^Full answer of the model/ }).waitFor();
  await page.locator('.tree .scissors').first().waitFor();
  await view.context.close();
}

{
  const view = await open(gateways.metadata, `#/runs/${runs.metadata}`);
  await sees(view.page, 'The text of this run was not recorded.');
  expect(
    (await view.page.getByRole('heading', { name: 'The document' }).count()) === 0,
    'there is no document to show',
  );
  await view.page.getByRole('heading', { name: 'Token budget' }).waitFor();
  await clean('a run without text', view);
  await view.context.close();
}

{
  const view = await open(gateways.metadata, `#/runs/${runs.unfit}`);
  await sees(view.page, /The request was not sent: it is .* tokens over the window of/);
  await sees(view.page, 'Error sent to the client:');
  await endsAt(view.page.locator('.axis'), 'the window ends at 8,192');
  await view.page.getByRole('columnheader', { name: 'Required' }).waitFor();
  await clean('a request that does not fit', view);
  await view.context.close();
}

{
  const view = await open(whole, '#/runs/00000000-0000-7000-8000-000000000000');
  await sees(view.page, 'Run not found');
  await clean('no run', view);
  await view.context.close();
}

// --- An answer of several parts, one of which is cut ---

{
  const run = await askBriefly(gateways.choices, { json: true, n: 2 });
  const view = await open(gateways.choices, `#/runs/${run}`);
  const { page } = view;
  await sees(page, /One part is incomplete: choice 2\. Several answers in a row could not be/);
  const missing = page.locator('.missing');
  await missing.getByRole('heading', { name: 'Choice 2', exact: true }).waitFor();
  await missing.getByText(/^The document stops inside a string at/).waitFor();
  await missing.getByText('Received so far').waitFor();
  await counted(missing.getByRole('button'), 2, 'what is offered of the part that is cut');
  const closed = JSON.parse(await copied(page, /^Copy closed JSON/));
  equal(Object.keys(closed), ['second'], 'the part that is closed');
  const names = [];
  for (const button of await page.getByRole('button', { name: 'Save', exact: true }).all()) {
    const [saved] = await Promise.all([page.waitForEvent('download'), button.click()]);
    names.push(saved.suggestedFilename());
  }
  equal(names, [`${run}.choice-1.json`, `${run}.choice-2.json`], 'the files');
  // Two choices of the first call, and three answers that could not be joined.
  const figures = page.locator('.key-figures > div');
  equal(await figures.first().allInnerTexts(), ['Calls\n4'], 'the calls');
  await page.locator('#attempt-2').getByText('choice 2 · part of the answer of attempt 1 ·').waitFor();
  await picture('parts', page);
  await clean('a choice that is cut', view);
  await view.context.close();
}

{
  const run = await askBriefly(gateways.calls, { tools: true });
  const view = await open(gateways.calls, `#/runs/${run}`);
  const { page } = view;
  await sees(page, /One part is incomplete: tool call 2 of choice 1\./);
  const missing = page.locator('.missing');
  await missing.getByRole('heading', { name: 'Tool call 2 of choice 1', exact: true }).waitFor();
  await missing.getByText(/^The arguments stop inside a string at/).waitFor();
  await missing.getByText('a cut tool call must not look complete').waitFor();
  await counted(missing.getByRole('button'), 0, 'calls that are offered as if whole');
  await picture('parts-calls', page);
  await clean('a tool call that is cut', view);
  await view.context.close();
}

// --- Rejected answers and failed calls ---

{
  const run = await ask(gateways.between);
  const view = await open(gateways.between, `#/runs/${run}`);
  const { page } = view;
  const root = page.locator('.tree .writer').first();
  equal(await root.textContent(), 'attempt 1, 4', 'who wrote the document');
  equal(await root.getAttribute('title'), 'written by attempts 1 and 4', 'the same in words');
  await sees(page, /; 2 answers were not joined and changed nothing\.$/);
  await clean('a document with refused attempts between', view);
  await view.context.close();
}

{
  const run = await ask(gateways.rejecting);
  const view = await open(gateways.rejecting, `#/runs/${run}`);
  const { page } = view;
  await page.locator('.verdict').getByText(/; \d calls? w\w+ rejected by the upstream\.$/).waitFor();
  await counted(page.getByText('not joined and changed nothing'), 0, 'answers that came');
  await page.getByRole('heading', { name: /^Rejected: / }).first().waitFor();
  await picture('rejected', page);
  await clean('calls that were rejected', view);
  await view.context.close();
}

for (const [name, why, done, help] of [
  [
    'breaking',
    'The upstream stopped in the middle of its answer.',
    /^The upstream at .* stopped in the middle of its answer:$/,
    'look at its log',
  ],
  [
    'late',
    'The upstream timed out.',
    /^The upstream at .* timed out:$/,
    'upstream.response_timeout',
  ],
]) {
  const run = await ask(gateways[name]);
  const view = await open(gateways[name], `#/runs/${run}`);
  const { page } = view;
  await page.locator('.verdict').getByText(`${why} There is no document.`).waitFor();
  await page.locator('.fault').getByText(done).waitFor();
  await sees(page, help);
  await counted(page.getByText('a server is listening there'), 0, 'help with an address');
  await picture(`fault-${name}`, page);
  await clean(`an upstream that is ${name}`, view);
  await view.context.close();
}

for (const gateway of [whole, gateways.metadata, gateways.choices, gateways.late])
  await foundByItsWords(gateway);

// The document on the page is the one that the client got.
for (const name of ['restarts', 'many', 'hostile']) {
  const view = await open(whole, `#/runs/${runs[name]}`);
  const document = await copied(view.page, 'Copy document');
  expect(document === contents.get(runs[name]), `the document of ${name}`);
  await clean(`the document of ${name}`, view);
  await view.context.close();
}

// --- Every end of an answer ---

for (const name of ['ends', 'brief']) {
  const gateway = gateways[name];
  const isFull = name === 'ends';
  const runs = {
    filter: await askBriefly(gateway, { json: true }),
    joined: await askBriefly(gateway, { text: true }),
    limit: await askBriefly(gateway),
    refusal: await askBriefly(gateway),
    words: await askBriefly(gateway, { json: true }),
    mended: await askBriefly(gateway, { json: true }),
    plain: await askBriefly(gateway),
    abort: await askBriefly(gateway),
    left: await askBriefly(gateway, { until: 'there was' }),
  };
  const list = await open(gateway, '#/runs?outcome=cancelled');
  await list.page.getByRole('link', { name: runs.left }).waitFor();
  await counted(list.page.locator('.list tbody tr'), 1, 'cancelled runs');
  await clean(`cancelled runs, ${name}`, list);
  await list.page.getByRole('button', { name: 'All', exact: true }).click();
  for (const reason of ['content filter', 'cut off, not continued', 'declined', 'no JSON'])
    await sees(list.page, reason);
  await clean(`every end in the list, ${name}`, list);
  await list.context.close();
  await foundByItsWords(gateway);

  const look = async (end, outcome, check) => {
    const view = await open(gateway, `#/runs/${runs[end]}`);
    const { page } = view;
    await page.locator(`.badge.${outcome}`).waitFor();
    await check(page);
    const said = await page.locator('#main').textContent();
    expect(!/(^|[^\d,.])0 bytes/.test(said), `no figure of 0 bytes: ${end}, ${said}`);
    await clean(`${end}, ${name}`, view);
    await page.setViewportSize(PHONE);
    await clean(`${end}, ${name}, on a phone`, view);
    if (screenshots) {
      await page.setViewportSize({ width: WIDE.width, height: 1000 });
      await page.screenshot({ path: join(screenshots, `end-${end}-${name}.png`) });
    }
    await view.context.close();
  };
  const none = async (page, text) =>
    await counted(page.getByText(text), 0, `what is told of ${text}`);

  await look('filter', 'partial', async (page) => {
    await sees(page, "The provider's content filter ended the answer.");
    await sees(page, 'another model, or other filter settings of the provider may help');
    await none(page, 'max_total_tokens');
    await sees(page, 'The provider ended the answer: content_filter');
    await page.getByRole('heading', { name: 'Token budget' }).waitFor();
    if (isFull) await page.getByRole('heading', { name: 'The document' }).waitFor();
  });
  await look('joined', 'complete', async (page) => {
    await sees(page, 'Cut 2 times and joined at 2 seams: one complete text of');
    await counted(page.locator('.attempt'), 3, 'attempts for a text');
    await sees(page, 'repeats nothing, appended at the end');
    await sees(page, 'complete, finish reason “stop”');
    await page.getByRole('heading', { name: 'Token budget' }).waitFor();
    if (!isFull) return sees(page, 'The text of this run was not recorded.');
    await page.getByRole('heading', { name: 'The text' }).waitFor();
    await counted(page.locator('.tree'), 0, 'trees of a text');
    await counted(page.locator('.document .by.begins'), 3, 'stretches of a text');
    equal(await page.locator('mark.repeated').textContent(), 'in torrents, except at occasional');
    const text = await copied(page, 'Copy text');
    expect(
      text.includes('at occasional intervals, when') && text.endsWith('up the streets.'),
      `the text that is copied: ${text}`,
    );
  });
  await look('limit', 'partial', async (page) => {
    await sees(page, 'and was not continued');
    await sees(page, 'x-overlock-continue: text');
    await none(page, 'closed JSON');
  });
  await look('refusal', 'failed', async (page) => {
    await sees(page, 'The model declined to answer.');
    await page.getByRole('heading', { name: /^Declined: / }).waitFor();
    if (!isFull) return;
    await sees(page, '<b>I cannot</b> help with that.');
    await none(page, 'The text of this run');
  });
  await look('words', 'failed', async (page) => {
    await page.getByRole('heading', { name: 'Why there is no document' }).waitFor();
    await page.getByRole('heading', { name: /^No document: / }).waitFor();
    if (isFull) await sees(page, '<i>that</i> is no document.');
  });
  await look('mended', 'complete', async (page) => {
    await sees(page, /, repaired with \d+ fixes/);
    const fixes = await page.locator('.fixes li').allTextContents();
    for (const kind of ['fence', 'quotes', 'literal', 'comment', 'trailing-comma'])
      expect(
        fixes.some((fix) => fix.startsWith(`${kind} at byte`)),
        `${kind} is told: ${fixes}`,
      );
    if (!isFull) return;
    const came = page.getByRole('group', { name: 'Received' });
    expect((await came.textContent()).includes("{'a': 1, 'b': None"), 'the answer as it came');
    const joined = await page.getByRole('group', { name: 'Repaired' }).textContent();
    equal(JSON.parse(joined), { a: 1, b: null, c: [1, 2] }, 'the answer as it was joined');
  });
  await look('plain', 'complete', async (page) => {
    if (!isFull) {
      await sees(page, 'One complete answer of 5 tokens');
      return sees(page, 'Its text was not recorded.');
    }
    await sees(page, 'One complete answer of 22 bytes');
    await sees(page, 'Hello! Ports are nice.');
    await page.getByRole('heading', { name: 'Token budget' }).waitFor();
  });
  await look('abort', 'partial', async (page) => {
    await sees(page, 'The provider ended the answer with “abort”, after 16 bytes');
  });
  await look('left', 'cancelled', async (page) => {
    await sees(page, 'Cancelled: the client closed the connection. 26 bytes of the text were received.');
    await sees(page, 'when the client closed the connection');
    if (isFull) await sees(page, 'Once upon a time there was');
  });
}

// --- Hostile documents ---

{
  const view = await open(whole, `#/runs/${runs.hostile}`);
  const { page } = view;
  await page.getByRole('heading', { name: 'The document' }).waitFor();
  await sees(page, '<script>');
  equal(
    await page.evaluate(
      () =>
        document.querySelectorAll("main script, main img, main iframe, main a[href^='javascript']")
          .length,
    ),
    0,
    'elements that a model wrote',
  );
  await page.locator('.tree summary').filter({ hasText: '10,000 items' }).click();
  await page.getByRole('button', { name: /more: show 100$/ }).click();
  expect((await page.locator('.tree li').count()) < 500, 'a long list is not drawn as a whole');
  await page.getByRole('button', { name: 'Text', exact: true }).click();
  const box = page.getByRole('group', { name: /^Document, / });
  await box.evaluate((element) => {
    element.scrollTop = element.scrollHeight;
  });
  await sees(page, documents.hostile_end);
  expect((await page.locator('.row').count()) < 200, 'a long text is not drawn as a whole');
  expect((await page.title()).startsWith(runs.hostile), 'nothing that a model wrote was run');
  await clean('a hostile document', view);
  await view.context.close();
}

{
  const view = await open(whole, `#/runs/${runs.many}`);
  const { page } = view;
  await page.getByRole('heading', { name: 'Attempts' }).waitFor();
  expect((await page.locator('.attempt').count()) < 40, 'many attempts are folded');
  await page.goto(`${whole}/#/runs/${runs.many}/attempts/100`);
  await page.locator('#attempt-100.chosen').waitFor();
  await clean('200 attempts', view);
  await view.context.close();
}

{
  const view = await open(whole, `#/runs/${runs.long}`);
  const { page } = view;
  await page.getByRole('heading', { name: 'The document' }).waitFor({ timeout: 60_000 });
  const nodes = await page.evaluate(() => document.querySelectorAll('*').length);
  expect(nodes < 5000, `five megabytes are not drawn as a whole: ${nodes} elements`);
  await page.getByRole('button', { name: 'Text', exact: true }).click();
  await page.getByRole('group', { name: /^Document, / }).evaluate((element) => {
    element.scrollTop = element.scrollHeight / 2;
  });
  await clean('five megabytes', view);
  await view.context.close();
}

// --- The playground ---

await everywhere('playground', whole, '#/playground', async (page) => {
  await page.getByRole('group', { name: 'Rendered context' }).waitFor();
  await page.getByRole('heading', { name: 'Cut element' }).waitFor();
  await sees(page, 'The document is complete.');
});
await everywhere('fit', whole, '#/playground/fit', (page) => page.locator('.bar').waitFor());

{
  // Errors of the API are shown on the page and not logged by the browser.
  const view = await open(whole, '#/playground');
  const { page } = view;
  const rendered = page.getByRole('group', { name: 'Rendered context' });
  await rendered.waitFor();
  const before = await rendered.textContent();
  const slider = page.getByRole('slider');
  await slider.focus();
  await page.keyboard.press('Home');
  await page.waitForFunction(
    (before) => document.querySelector("[aria-label='Rendered context']").textContent !== before,
    before,
  );
  expect((await rendered.textContent()).length < before.length, 'a smaller budget shows less');
  await page
    .getByLabel('Truncated text')
    .fill('{"rows": [1, 2, {"name": "<b>bold</b>');
  await page
    .locator('.card')
    .filter({ hasText: 'Where and how' })
    .getByText('/rows/2/name')
    .waitFor();
  await page
    .locator('.card')
    .filter({ hasText: 'nothing invented' })
    .getByText('<b>bold</b>')
    .waitFor();
  await page.getByLabel('What the model sends next').fill('<b>bold</b>"}]}');
  await page
    .locator('.card')
    .filter({ hasText: 'How the next piece' })
    .getByText('overlap')
    .first()
    .waitFor();
  await page.getByLabel('What the model sends next').fill('{"other": true}');
  await sees(page, 'The document is unchanged.');
  const text = page.getByLabel('Truncated text');
  await text.fill('{"open": tr');
  await sees(page, 'Completed: the literal at /open');
  await text.fill('[1, 2]');
  await sees(page, 'Nothing to continue.');
  await text.fill('{"a":'.repeat(2000));
  await sees(page, /^(\/a){6}\/… many levels …(\/a){6}$/);
  let sent = 0;
  page.on('request', () => (sent += 1));
  await text.evaluate((field) => {
    field.value = '["half \ud83d';
    field.dispatchEvent(new Event('input'));
  });
  await sees(page, 'The text has a lone surrogate, U+D83D, after 7 characters');
  equal(sent, 0, 'requests with half of a character');
  await text.evaluate((field) => {
    field.value = `["${'€'.repeat(12 << 20)}`;
    field.dispatchEvent(new Event('input'));
  });
  await sees(page, 'The text is too long');
  equal(sent, 0, 'requests that are too long');
  await page.getByLabel('Truncated text').fill('no JSON at all');
  await sees(page, 'there is no object');
  let asked = 0;
  page.on('request', () => (asked += 1));
  await page.getByLabel('Truncated text').fill('');
  await sees(page, 'Enter a text.');
  equal(asked, 0, 'requests about nothing');
  await page.getByLabel('Truncated text').fill('hello');
  await sees(page, 'there is no object');
  equal(asked, 1, 'requests about one text');
  await page.getByLabel('Sample').selectOption('Invalid JSON in a fence');
  await sees(page, 'Repaired:');
  await clean('the playground, used', view);
  await page.getByRole('link', { name: 'Chat request' }).click();
  await page.locator('.bar').waitFor();
  await page.getByLabel('Chat request').fill(
    JSON.stringify({
      model: 'gpt-4',
      messages: [{ role: 'user', content: 'word '.repeat(9000) }],
    }),
  );
  await sees(page, 'Over the limit');
  await endsAt(page.locator('.axis'), 'the window ends at 8,192');
  await page.getByLabel('Chat request').fill('{"model": ');
  await page.locator('.card .wrong').first().waitFor();
  await clean('a request that does not fit', view);
  await view.context.close();
}

{
  const view = await open(whole, '#/playground/fit');
  await sees(view.page, 'what takes the most room is');
  const blocker = view.page.getByText('What takes the most room is');
  equal(await blocker.locator('code').textContent(), 'History', 'what takes the most room');
  await sees(view.page, 'Tokens are counted by a formula calibrated for this model');
  await view.context.close();
}

{
  // The page describes what closing and repairing changed.
  const view = await open(whole, '#/playground');
  const { page } = view;
  const [text, next] = [
    page.getByLabel('Truncated text'),
    page.getByLabel('What the model sends next'),
  ];
  const closed = page.locator('.card').filter({ hasText: 'nothing invented' });
  await text.fill("{'a': True, b: [1,2,,3], // c\n 'd': None,}");
  await closed.getByText('Repaired first: 8 fixes').waitFor();
  await text.fill('{"a":1}{"b":2}');
  await closed.getByText('Removed: everything after the first document.').waitFor();
  await sees(page, 'The first document is complete, and another follows.');
  const repaired = closed.getByRole('group', { name: 'Repaired form' });
  equal(await repaired.textContent(), '[{"a":1},\n{"b":2}]', 'what repairing makes of it');
  await text.fill('{"a":1,"b');
  await closed.getByText('Removed: the incomplete key').waitFor();
  await counted(closed.getByText('No changes needed.'), 0, 'said of what was not done');
  await text.fill('{"a":1}');
  await closed.getByText('No changes needed.').waitFor();

  // A seam is shown for every form of the next piece.
  const seam = page.locator('.card').filter({ hasText: 'How the next piece' });
  await text.fill('{"rows":[{"port":"Brest"},{"port":"Wilhelmsh');
  await next.fill('```json\n{"port":"Wilhelmshaven"}]}\n```');
  await seam.getByRole('img', { name: 'seam' }).waitFor();
  equal(await seam.locator('mark').textContent(), '{"port":"Wilhelmsh', 'what is repeated in a fence');
  equal(await seam.locator('.new').textContent(), 'aven"}]}', 'what is new in a fence');
  await next.fill('{ "port": "Brest" },\n{ "port": "Wilhelmshaven" } ] }');
  await seam.getByText('The next piece repeats this in another form').waitFor();
  equal(
    await seam.locator('mark').textContent(),
    '{ "port": "Brest" },\n{ "port": "Wilhelmsh',
    'what is repeated with other white space',
  );
  equal(await seam.locator('.old').textContent(), '{"rows":[{"port":"Brest"},{"port":"Wilhelmsh', 'old');

  await text.fill('["😀😀😀');
  await page
    .locator('.card')
    .filter({ hasText: 'The path to the cut' })
    .getByText('5 characters', { exact: true })
    .waitFor();

  // A long text is sent once, and only its ends come back.
  const [long, copies] = [`[${'"ab",'.repeat(1_000_000)}`, []];
  page.on('response', async (answer) => copies.push((await answer.body()).length));
  const asked = page.waitForRequest(/several/);
  await text.evaluate((field, long) => {
    field.value = long;
    field.dispatchEvent(new Event('input'));
  }, long);
  const sent = (await asked).postData().length;
  expect(sent < 1.5 * long.length, `${sent} characters are sent about ${long.length}`);
  await sees(page, 'after 5,000,001 bytes');
  await page.locator('.card[aria-busy]').first().waitFor({ state: 'detached' });
  expect(copies[0] < 500_000, `${copies} bytes come back`);
  await closed.getByText('4,980,001 characters more').waitFor();
  const { length } = await copied(page, /^Copy closed form/);
  equal(length, long.length, 'a long closed form that is copied');
  await clean('the playground, with a long text', view);
  await view.context.close();
}

{
  // Planned tokens are not shown as a limit, and numbers in a request do not change.
  const request =
    '{"model":"gpt-4","seed":12345678901234567890,"temperature":1.0,"response_format":{"type":"json_object"},"messages":[{"role":"user","content":"Write a report."}]}';
  const view = await open(whole, '#/playground/fit');
  const { page } = view;
  await page.getByLabel('Chat request').fill(request);
  await sees(page, 'tokens in, no limit out');
  await sees(page, '3,000 tokens are reserved for the answer');
  const answer = page.getByRole('row', { name: 'Answer' });
  equal(
    await answer.getByRole('cell').allTextContents(),
    ['no limit', 'no limit', '37 %', '3,000 planned'],
    'the answer of a request without a limit',
  );
  const shown = await page.getByRole('group', { name: 'Request', exact: true }).textContent();
  equal(shown.replaceAll(/\s/g, ''), request.replaceAll(/\s/g, ''), 'the request as it is sent');
  equal(await copied(page, /^Copy request/), request, 'and as it is copied');
  await clean('a request without a limit', view);

  const got = await fetch(`${whole}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: request,
  });
  await got.text();
  await page.goto(`${whole}/#/runs/${got.headers.get('x-overlock-run')}`);
  await page.getByRole('heading', { name: 'Token budget' }).waitFor();
  const told = await answer.getByRole('cell').allTextContents();
  equal(told.slice(0, 2), ['no limit', 'no limit'], 'the first call of a run without a limit');
  expect(/^3,000 planned, used \d+$/.test(told[3]), `what was planned, and what it took: ${told}`);
  await page.getByRole('slider').focus();
  await page.keyboard.press('ArrowRight');
  await sees(page, 'attempt 2 of');
  const [asked, given] = await answer.getByRole('cell').allTextContents();
  expect(asked === 'no limit' && /^[\d,]+$/.test(given), `the second call: ${asked}, ${given}`);
  for (const [name, part] of [
    ['Copy request', request.slice(1, -1)],
    ['Copy trace', '"seed":12345678901234567890,"temperature":1.0,'],
  ]) {
    const json = await copied(page, name);
    JSON.parse(json);
    expect(json.replaceAll(/\n *| (?=[{["\d])/g, '').includes(part), `${name}: ${json}`);
    await page.getByRole('button', { name: 'Copied' }).waitFor({ state: 'detached' });
  }
  await page.getByText('Request', { exact: true }).click();
  await page.getByRole('group', { name: /^Request, / }).getByText('12345678901234567890').waitFor();
  await clean('a run without a limit', view);
  await view.context.close();
}

// --- Hidden characters and right-to-left text ---

{
  const view = await open(whole, '#/playground');
  const { page } = view;
  const evil =
    '{"rule": "user\u202e \u2066// for all\u2069 \u2066", "tag": "\u200bx\u{e0041}\ufeff", "emoji": "👩‍👩‍👧 ❤️", "one": "שלום עולם", "two": "مرحبا 12", "cut": "נמל';
  await page.getByLabel('What the model sends next').fill('"two": "مرحبا 12", "cut": "נמל צפון"}');
  await page.getByLabel('Truncated text').fill(evil);
  const tail = page.locator('.card').filter({ hasText: 'Where and how' }).locator('pre');
  await tail.getByText('נמל').waitFor();
  const codes = await tail
    .locator('.hidden-character')
    .evaluateAll((marks) => marks.map((mark) => mark.dataset.code));
  equal(
    codes,
    ['U+202E', 'U+2066', 'U+2069', 'U+2066', 'U+200B', 'U+E0041', 'U+FEFF'],
    'what is marked',
  );
  // All parts are drawn in their order, with the cut last.
  const places = await tail.evaluate((pre) => {
    const range = document.createRange();
    return [...pre.childNodes].map((node) => {
      range.selectNode(node);
      const rects = [...range.getClientRects()];
      return [rects[0].top, rects[0].left, rects.at(-1).top, rects.at(-1).right];
    });
  });
  for (const [at, [top, left]] of places.entries()) {
    if (at === 0) continue;
    const [, , before, right] = places[at - 1];
    expect(
      top > before + 8 || left >= right - 1,
      `part ${at} stands where it was written: ${JSON.stringify(places)}`,
    );
  }
  equal(await tail.locator('bdi').allTextContents(), ['שלום עולם', 'مرحبا 12', 'נמל'], 'isolated');
  const read = await tail
    .locator('bdi')
    .first()
    .evaluate((text) => getComputedStyle(text).direction);
  equal(read, 'rtl', 'how it is read');
  const told = await tail.locator('..').ariaSnapshot();
  expect(told.includes('⟨U+202E⟩'), `what is marked is read out: ${told}`);
  const closed = page.getByRole('group', { name: 'Closed form' });
  await closed.evaluate((element) => getSelection().selectAllChildren(element));
  await page.keyboard.press('ControlOrMeta+C');
  const marked = await page.evaluate(() => navigator.clipboard.readText());
  equal(marked, `${evil}"}`, 'what is marked and copied');
  await sees(page, 'Invisible characters in the fields');
  await page.getByRole('img', { name: 'seam' }).waitFor();
  await clean('the playground, with what hides', view);
  // For any text, all of it is shown and every hidden character is marked.
  const lost = await page.evaluate(async () => {
    const { beginning, ending, plain, shown } = await import('/page/text.js');
    const alphabet = [...'a" \\\n\r\t1,{אבשلا👩🏽🏳❤ی日'];
    alphabet.push('\u200d', '\u200c', '\ufe0f', '\u202e', '\u2066', '\u2069', '\u200f', '\0');
    alphabet.push('\u{e0041}', '\ud83d', '\ude00', '\u2028', '\ufeff', '\x85');
    const paper = document.body.appendChild(document.createElement('pre'));
    const wrong = [];
    let seed = 7;
    for (let time = 0; time < 4000; time += 1) {
      let text = '';
      for (let length = time % 40; length >= 0; length -= 1) {
        seed = (seed * 48271) % 2147483647;
        text += alphabet[seed % alphabet.length];
      }
      paper.replaceChildren(...shown(text));
      const [first, last] = [beginning(text, 9), ending(text, 9)];
      const isWhole =
        paper.textContent === text &&
        text.startsWith(first) &&
        text.endsWith(last) &&
        Math.min(first.length, last.length) >= Math.min(8, text.length);
      if (!isWhole || /[\0\x85\u200f\u2028\u202e]/.test(plain(text)))
        wrong.push(JSON.stringify(text));
    }
    paper.remove();
    return wrong.slice(0, 3);
  });
  equal(lost, [], 'texts of which something is lost');
  await view.context.close();
}

{
  const { turned } = gateways;
  const run = await ask(turned, { model: 'gpt-4\u202egnp' });
  const view = await open(turned, '#/runs');
  const { page } = view;
  await page.locator('.list .model .hidden-character').waitFor();
  await clean('a list with a name that turns', view);
  for (const viewport of [WIDE, PHONE]) {
    await page.setViewportSize(viewport);
    await page.goto(`${turned}/#/runs/${run}`);
    await page.getByRole('heading', { name: 'The document' }).waitFor();
    expect((await page.locator('.attempts .hidden-character').count()) > 0, 'marked in attempts');
    expect((await page.locator('.tree .hidden-character').count()) > 0, 'marked in the tree');
    await clean('a run that turns', view);
    await page.getByRole('button', { name: 'Text', exact: true }).click();
    await page.locator('.row .hidden-character').first().waitFor();
    await clean('a run that turns, as text', view);
    await page.goto(`${turned}/#/runs`);
    await page.locator('.list').waitFor();
  }
  await page.goto(`${turned}/#/runs/${run}`);
  const document = await copied(page, 'Copy document');
  equal(document, contents.get(run), 'the document that is copied is as it was written');
  await view.context.close();
}

// --- Pipelines of another process ---

{
  const { pipelines: gateway, prompter } = gateways;
  const box = (page, state) => page.locator(`.graph .box.${state} .box-id`);
  const prompt = async (path) => (await fetch(`${prompter}/${path}`)).text();

  await everywhere(
    'pipeline',
    gateway,
    `#/runs/${pipelines.over}`,
    async (page) => {
      await page.getByRole('heading', { name: 'Path taken' }).waitFor();
      await sees(page, '280 over the budget, none added; on_over led to budget_loop_guard');
      await sees(page, 'CloseOrder sets Closed.');
      await endsAt(page.locator('.axis').first(), /^▲? ?the budget ends at [\d,]+ ?▲?$/);
    },
    { height: 1100 },
  );
  await everywhere('pipeline-failed', gateway, `#/runs/${pipelines.failed}`, async (page) => {
    await sees(page, 'Step 5, answer, failed');
    await sees(page, 'was revoked');
    equal(await box(page, 'failed').textContent(), 'answer', 'the step that failed');
    equal(await page.locator('.box.failed .box-mark').textContent(), '✕ failed', 'its mark');
    await page.getByRole('link', { name: 'answer, call_model, failed: to its step' }).waitFor();
    await page.getByRole('group', { name: /It failed in answer\.$/ }).waitFor();
    await sees(page, '--store sqlite:///var/lib/shop/runs.db');
    await sees(page, 'to change settings, add --set KEY=VALUE');
  });

  // With forced colours, a box has a sign and a word.
  {
    const view = await open(gateway, `#/runs/${pipelines.failed}`, { colours: 'active' });
    const { page } = view;
    const mark = page.locator('.box.failed .box-mark');
    await mark.waitFor();
    const [text, canvas] = await mark.evaluate((mark) => {
      const probe = document.createElement('span');
      probe.style.setProperty('color', 'CanvasText');
      document.body.append(probe);
      return [getComputedStyle(mark).fill, getComputedStyle(probe).color];
    });
    equal(text, canvas, 'the colour of a mark where colours are forced');
    await picture('pipeline-failed-forced', page);
    await view.context.close();
  }

  // Long texts are shortened, so that the graph stays in place.
  {
    const view = await open(gateway, `#/runs/${pipelines.long}`);
    const { page } = view;
    await page.getByRole('heading', { name: 'Path taken' }).waitFor();
    const top = await page.locator('.graph').evaluate((it) => it.getBoundingClientRect().top);
    expect(top < 1600, `the graph is ${top} pixels down`);
    const shown = await page.evaluate(
      async (id) => (await fetch(`/api/runs/${id}?text=true`)).json(),
      pipelines.long,
    );
    await page.getByText(/^All 41,000 characters$/).click();
    await page.getByRole('group', { name: /^Question, 41,000 characters/ }).waitFor();
    await page.getByText(/^All 3\d\d,\d{3} characters$/).click();
    await page.getByRole('group', { name: /^Answer, 3\d\d,\d{3} characters/ }).waitFor();
    for (const [name, text] of [['question', shown.question], ['answer', shown.state.answer]]) {
      expect((await copied(page, `Copy ${name}`)) === text, `the ${name} that is copied`);
    }
    await picture('pipeline-long', page);
    await clean('a long question and a long answer', view);
    await view.context.close();
  }

  // Several models, one of them without a price.
  {
    const view = await open(gateway, `#/runs/${pipelines.models}`);
    const { page } = view;
    const figures = page.locator('.key-figures');
    await figures.getByText('gpt-4o-mini, unpriced-model').waitFor();
    await figures.getByText(/^0\.\d+ USDwithout unpriced-model, which has no price$/).waitFor();
    await picture('pipeline-models', page);
    await clean('a pipeline with several models', view);
    await page.getByRole('link', { name: 'Runs', exact: true }).first().click();
    const row = page.locator('.list tbody tr').filter({ hasText: pipelines.models });
    await row.getByText('gpt-4o-mini and 1 other').waitFor();
    await row.getByText(/^at least 0\.\d{6} USD$/).waitFor();
    // Only one run has a call without a price.
    const totals = await page.evaluate(async () => (await fetch('/api/runs/totals')).json());
    expect(totals.priced + totals.unpriced < totals.runs, 'some runs have no calls');
    await sees(page, `for the ${totals.priced} with prices`);
    await page.getByRole('searchbox').fill('answer_from_code');
    await page.locator('.summary').getByText(/ USD in total$/).waitFor();
    // The search also finds error codes, which the list does not show.
    await page.getByRole('searchbox').fill('PIPELINE_BUDGET');
    await page.locator('.summary').getByText(/^1 of \d+ recorded runs: 1 failed/).waitFor();
    await page.locator('.list tbody').getByRole('link', { name: pipelines.misfit }).waitFor();
    await clean('a run that was found by its code', view);
    await view.context.close();
  }
  await everywhere('pipeline-rounds', gateway, `#/runs/${pipelines.rounds}`, async (page) => {
    await sees(
      page,
      'Finished: 52 steps, 11 model calls, 2 joined answers',
    );
    const over = await page.evaluate(() => {
      const names = [...document.querySelectorAll('.graph .edge-name')];
      const rects = names.map((name) => name.getBoundingClientRect());
      const meet = (one, other) =>
        Math.min(one.right, other.right) - Math.max(one.left, other.left) > 1 &&
        Math.min(one.bottom, other.bottom) - Math.max(one.top, other.top) > 3;
      return names.filter((_, at) => rects.some((other, to) => to < at && meet(rects[at], other)))
        .length;
    });
    equal(over, 0, 'names in the graph that lie over others');
    const counts = await page.evaluate(() =>
      [...document.querySelectorAll('.graph .box:has(.box-times)')].filter(
        (box) =>
          box.querySelector('.box-id').getBoundingClientRect().right >
          box.querySelector('.box-times').getBoundingClientRect().left,
      ).length,
    );
    equal(counts, 0, 'names in the graph that lie under a count');
  });

  {
    const view = await open(gateway, `#/runs/${pipelines.rounds}`);
    const { page } = view;
    const again = page.locator('.graph a:has(.box-times)').first();
    const id = await again.getAttribute('data-step');
    const chosen = page.locator('.attempts > .chosen');
    await again.focus();
    await page.keyboard.press('Enter');
    const first = Number(await chosen.getAttribute('data-step'));
    await again.click();
    expect(Number(await chosen.getAttribute('data-step')) > first, 'a box leads on to the next');
    expect((await chosen.locator('h3').textContent()).startsWith(id), 'a box leads to its step');
    expect(/\/steps\/\d+$/.test(page.url()), 'a step has an address');
    await clean('a step that the graph led to', view);
    await page.emulateMedia({ media: 'print' });
    const hidden = await page
      .locator('.graph-frame')
      .evaluate((frame) => frame.scrollHeight - frame.clientHeight);
    equal(hidden, 0, 'what print cuts off of the graph');
    await view.context.close();
  }

  {
    const view = await open(gateway, `#/runs/${pipelines.rounds}`);
    const { page } = view;
    const joined = page.locator('#step-39');
    await joined.getByText('joined from 2 answers').waitFor();
    await joined.getByText(/800 tokens in, \d+ out, counted by the provider/).waitFor();
    await joined.getByText(/USD/).waitFor();
    await joined.getByText(/^Window of 128,000 tokens: System \d+/).waitFor();
    await counted(joined.locator('.pages'), 0, 'texts that are drawn before they are wanted');
    await joined.getByText('Prompt and answer').click();
    await joined.getByRole('group', { name: /^Prompt as user in step 39/ }).waitFor();
    await joined.getByRole('group', { name: /^Answer in step 39/ }).waitFor();
    await counted(joined.locator('.attempts > li'), 2, 'attempts within a step');
    await joined.locator('mark.repeated').getByText('"query": "log not').waitFor();
    const uncounted = page.locator('#step-49');
    await uncounted.getByText(/ out, counted by Overlock/).waitFor();
    await uncounted.getByText('Prompt and answer').click();
    await uncounted.getByText('onerror=alert(1)').waitFor();
    const pieces = page.locator('#step-51');
    await pieces.getByText('Prompt and answer').click();
    await pieces.getByText('The answer came in 2 pieces').waitFor();
    equal(
      await page.evaluate(() => document.querySelectorAll('main img, main b').length),
      0,
      'elements that a model wrote into a pipeline',
    );
    const shown = await page.evaluate(
      async (id) => (await fetch(`/api/runs/${id}?text=true`)).json(),
      pipelines.rounds,
    );
    equal(await copied(page, 'Copy pipeline'), shown.definition.text, 'the pipeline that is copied');
    equal(JSON.parse(await copied(page, 'Copy request')), shown.request, 'the request that is copied');
    const saved = page.waitForEvent('download');
    await page.getByRole('button', { name: 'Save', exact: true }).click();
    equal((await saved).suggestedFilename(), `${pipelines.rounds}.answer.txt`, 'the answer');
    await clean('many steps, used', view);
    await view.context.close();
  }

  // The summary, the list and the bar agree about context blocks.
  {
    const view = await open(gateway, `#/runs/${pipelines.twice}`);
    const { page } = view;
    const step = page.locator('#step-10');
    await step
      .getByText(
        'Context blocks: 4 before, 10 after (4 kept, 2 new, 4 repeated), and 1 divider',
      )
      .click();
    const headings = step.locator('.entry h4');
    await headings.last().waitFor();
    await counted(headings.filter({ hasText: /: new$/ }), 2, 'blocks that are new');
    await counted(headings.filter({ hasText: 'repeats block' }), 4, 'blocks that repeat');
    await counted(headings.filter({ hasText: /: kept$/ }), 4, 'kept blocks');
    await step.getByText('6 texts with 425 tokens').waitFor();
    await step
      .getByText('305 before · 125 of 2 new texts · 300 of 4 repeated texts')
      .waitFor();
    const bar = step.locator('.bar .segment');
    equal(
      await bar.evaluateAll((all) => all.map((one) => one.title)),
      ['before: 305 tokens', 'new: 125 tokens', 'repeated: 300 tokens', 'free: 1,270 tokens'],
      'the bar',
    );
    await step.getByText('List of 6 texts').click();
    await step.locator('table').waitFor();
    await counted(step.locator('td').filter({ hasText: 'repeats block' }), 4, 'the table');
    await clean('blocks that repeat', view);
    // For any blocks, each block is listed once.
    const wrong = await page.evaluate(async () => {
      const { compared } = await import('/page/blocks.js');
      const node = (id, text) => `--- NODE ---\nid: ${id}\npath: a\ntext:\n${text}`;
      let seed = 7;
      const below = (most) => {
        seed = (seed * 1103515245 + 12345) % 2147483648;
        return Math.floor((seed / 2147483648) * most);
      };
      const any = () => [`text ${below(3)}`, '<<<', node(below(4), below(2))][below(3)];
      for (let round = 0; round < 3000; round += 1) {
        const [before, after] = [0, 0].map(() => Array.from({ length: below(8) }, any));
        const changes = compared(before, after, '<<<');
        const from = changes.after
          .filter(({ kind }) => ['kept', 'moved', 'changed'].includes(kind))
          .map(({ block }) => block);
        const count = before.filter((block) => block !== '<<<').length;
        const isRight = changes.after.every(({ kind, block }, at) => {
          const earlier = after.slice(0, at);
          if (kind === 'new') return !before.includes(after[at]) && !earlier.includes(after[at]);
          if (kind === 'kept' || kind === 'moved') return before[block - 1] === after[at];
          if (kind === 'repeated') return earlier[block - 1] === after[at];
          return true;
        });
        const isOnce = new Set(from).size === from.length;
        if (!isRight || !isOnce || from.length + changes.removed.length !== count)
          return JSON.stringify({ before, after, changes });
      }
      return '';
    });
    equal(wrong, '', 'wrong changes of blocks');
    const line = await page.evaluate(async () => {
      const { changeText, compared, comparison } = await import('/page/blocks.js');
      const node = (text) => `--- NODE ---\nid: n\ntext:\n${text}`;
      const changes = compared(
        ['a', node('long'), 'b', 'c'],
        ['c', 'a', node('short'), node('shorter'), 'c', 'd'],
      );
      return [comparison(changes), ...changes.after.map(changeText)];
    });
    equal(
      line,
      [
        'Context blocks: 4 before, 6 after (1 kept, 1 moved, 1 changed, 1 new, 1 repeated, 1 repeated in another form, 1 removed)',
        'kept',
        'moved, was block 1',
        'another form of the former block 2',
        'repeats block 3 in another form',
        'repeats block 1',
        'new',
      ],
      'changes of blocks',
    );
    await view.context.close();
  }

  {
    const view = await open(gateway, `#/runs/${pipelines.demand}`);
    const { page } = view;
    const step = page.locator('#step-5');
    await step.getByText(/compacted \(.*requested by a message.*, −\d+ tokens?\)/).waitFor();
    await step.getByText('took “compact_sql”').waitFor();
    await clean('a pipeline that made texts smaller on demand', view);
    await view.context.close();
  }

  {
    const view = await open(gateway, `#/runs/${pipelines.unreachable}`);
    const { page } = view;
    await sees(page, /no answer \([\d,]+ tokens prepared\)/);
    const figure = page.locator('.key-figures > div').filter({ hasText: 'Tokens in' });
    equal(await figure.locator('dd').textContent(), '0', 'tokens without an answer');
    await page.locator('#step-5').getByText('Prompt and answer').click();
    await page.getByRole('group', { name: /^Prompt as user in step 5/ }).waitFor();
    await clean('a pipeline whose model is not there', view);
    await page.goto(`${gateway}/#/runs/${pipelines.misfit}`);
    await sees(page, 'Hint: give fetch_node_texts a smaller budget');
    await sees(page, 'none added.');
    await clean('a pipeline whose texts do not fit', view);
    await view.context.close();
  }

  {
    const view = await open(gateways.pipelines_untold, `#/runs/${pipelines.rounds}`);
    const { page } = view;
    await sees(page, 'Prompts and answers are not shown');
    const step = page.locator('#step-39');
    await step.getByText('Prompt and answer', { exact: true }).click();
    await step.locator('.attempts > li').last().waitFor();
    await counted(step.locator('.attempts > li'), 2, 'attempts without their text');
    expect(!(await page.content()).includes('Who closes'), 'no text is sent');
    await clean('a pipeline without text', view);
    await view.context.close();
  }

  {
    const view = await open(gateway, `#/runs/${pipelines.finished}`);
    const { page } = view;
    await sees(page, 'Finished: 6 steps, 1 model call.');
    await counted(page.locator('.graph .box.taken'), 6, 'steps that were taken');
    await sees(page, '`Orders.Close` does (Orders.cs).');
    await page.getByRole('link', { name: 'Step 2', exact: true }).click();
    await page.locator('#step-2.chosen').waitFor();
    expect(page.url().endsWith(`#/runs/${pipelines.finished}/steps/2`), 'a step has an address');
    await page.goto(`${gateway}/#/runs/${pipelines.finished}/steps/77`);
    await sees(page, 'There is no step 77.');
    const blocks = page.getByText(/^Context blocks: 0 before/);
    await blocks.click();
    await page.getByRole('group', { name: /^Context block 1/ }).waitFor();
    await clean('a pipeline that finished', view);
    await page.getByRole('link', { name: 'Runs', exact: true }).first().click();
    await page.getByRole('button', { name: 'Failed', exact: true }).click();
    const row = page.locator('.list tbody tr');
    await counted(row, 3, 'pipelines that failed');
    await page.getByRole('columnheader', { name: 'Attempts, steps' }).waitFor();
    await row.getByText('4 steps').waitFor();
    await row.getByText('in manage_budget: the new texts alone take').waitFor();
    await row.getByText('in answer: could not reach 127.0.0.1: Connection refused').waitFor();
    await foundByItsWords(gateway);
    await page.getByRole('searchbox').fill('revoked');
    await page.waitForFunction(() => document.querySelectorAll('.list tbody tr').length === 1);
    await row.getByText('in answer: the upstream answered 401').waitFor();
    await row.getByText('answer_from_code').waitFor();
    await clean('pipelines in the list', view);
    await view.context.close();
  }

  const view = await open(gateway, '#/runs');
  const { page } = view;
  await sees(page, 'live');
  const run = await prompt('play');
  const row = page.locator('.list tbody tr').filter({ hasText: run });
  await row.getByText('compaction_loop').waitFor();
  await row.getByText('running').waitFor();
  await clean('a pipeline that runs, in the list', view);
  await row.getByRole('link').click();
  await sees(page, 'call_model_answer is running');
  equal(await box(page, 'now').textContent(), 'call_model_answer', 'where it is');
  await clean('a pipeline that runs', view);
  const steps = page.locator('.attempts > li');
  await counted(steps, 3, 'steps that were done');
  await prompt('release');
  await sees(page, 'call_summarize_context is running');
  expect((await steps.count()) > 9, 'new steps appear');
  const figure = (name) =>
    page.locator('.key-figures > div').filter({ hasText: name }).locator('dd').textContent();
  equal(await figure('Tokens in'), '400', 'what the first answer took');

  // The process is killed and the run resumed; the page updates without a reload.
  await prompt('kill');
  await sees(page, `overlock run --resume ${run}`);
  await page.locator('.badge.interrupted').waitFor();
  equal(await page.locator('.box.interrupted .box-mark').textContent(), '◌ interrupted', 'where it was interrupted');
  equal(await box(page, 'interrupted').textContent(), 'call_summarize_context', 'the interrupted step');
  expect((await figure('Took')).startsWith('at least '), 'the time of the end is unknown');
  await picture('pipeline-left', page);
  await clean('an interrupted pipeline', view);
  // An open list counts every run exactly once.
  const watched = await open(gateway, '#/runs');
  const counts = watched.page.locator('.summary');
  await counts.getByText('1 interrupted').waitFor();
  const [, all] = /^(\d+) runs: /.exec(await counts.textContent());
  await watched.page.evaluate(() => {
    const summary = document.querySelector('.summary');
    window.told = [summary.textContent];
    const note = () => window.told.push(summary.textContent);
    new MutationObserver(note).observe(summary, { childList: true });
  });
  {
    const list = await open(gateway, '#/runs?outcome=interrupted');
    const row = list.page.locator('.list tbody tr');
    await row.getByText('interrupted').waitFor();
    await list.page.getByRole('searchbox').fill('interrupted');
    await list.page.locator('.summary').getByText('1 interrupted').waitFor();
    await counted(row, 1, 'interrupted runs');
    await clean('an interrupted pipeline, in the list', list);
    await list.context.close();
  }
  // A shorter gap is not a pause.
  await page.waitForTimeout(1200);
  await prompt(`resume/${run}-1`);
  await page.locator('.badge.running').waitFor();
  await page.locator('.key-figures').getByText(/ and a pause of at most /).waitFor();
  const { paused_ms: paused } = await page.evaluate(
    async (id) => (await fetch(`/api/runs/${id}`)).json(),
    run,
  );
  expect(paused >= 1200, 'resuming is recorded immediately');
  expect((await figure('Took')).endsWith(` ${(paused / 1000).toFixed(1)} s`), 'a pause is no work');
  await counts.getByText('1 running').waitFor();
  await prompt('release');
  await sees(page, 'call_model_answer is running');
  equal(await figure('Tokens in'), '800', 'what the second answer took');
  await prompt('release');
  await sees(page, '1 answer so far');
  // The usage of an answer appears with the answer, not with its step.
  equal(await figure('Tokens in'), '1,200', 'what the third answer took');
  const read = await page.evaluate(async (id) => (await fetch(`/api/runs/${id}`)).json(), run);
  equal(await figure('Tokens out'), String(read.output_tokens), 'the tokens of all answers');
  equal(await figure('Cost'), `${read.cost.amount} USD`, 'the cost of all answers');
  {
    // A page opened later shows the same.
    const other = await open(gateway, `#/runs/${run}`);
    await sees(other.page, '1 answer so far');
    const late = other.page.locator('.key-figures > div').filter({ hasText: 'Tokens in' });
    equal(await late.locator('dd').textContent(), '1,200', 'what was there already');
    await other.context.close();
  }
  await prompt('cancel');
  await sees(page, 'Cancelled in step call_model_answer');
  await page.locator('.badge.cancelled').waitFor();
  equal(await page.locator('.box.cancelled .box-mark').textContent(), '■ cancelled', 'where it was cancelled');
  await sees(page, '1 answer in call_model_answer is recorded.');
  await page.getByText('Answers so far').click();
  await page.locator('.notice .attempts > li').first().waitFor();
  await counted(page.locator('.notice .attempts > li'), 1, 'attempts that are kept');
  await picture('pipeline-kept', page);
  await clean('a cancelled pipeline', view);
  await prompt(`resume/${run}-3`);
  await page.locator('.badge.running').waitFor();
  await prompt('end');
  await sees(page, 'Finished: ');
  await sees(page, 'CloseOrder sets Closed.');
  const ended = await page.evaluate(
    async (id) => (await fetch(`/api/runs/${id}?text=true`)).json(),
    run,
  );
  const listed = page.locator('section[aria-labelledby="trace-title"] > .attempts > li');
  await counted(listed, ended.trace.length, 'steps of a run that was followed');
  equal(await figure('Tokens in'), '1,600', 'every answer once');
  await clean('a pipeline that was resumed', view);
  await counts.getByText(/^\d+ runs: (?!.*(running|interrupted|cancelled))/).waitFor();
  const wrong = (await watched.page.evaluate(() => window.told)).filter(
    (text) => !text.startsWith(`${all} runs: `),
  );
  equal(wrong, [], 'sums that count a run twice or not at all');
  await watched.context.close();
  await view.context.close();
}

// --- The keyboard alone ---

{
  const view = await open(whole, '#/runs');
  const { page } = view;
  await page.getByRole('link', { name: runs.whole }).waitFor();
  const focused = () =>
    page.evaluate(() => (document.activeElement.textContent || document.activeElement.id).trim());
  const until = async (wanted) => {
    for (let presses = 0; presses < 60; presses += 1) {
      await page.keyboard.press('Tab');
      if ((await focused()) === wanted) return;
    }
    throw new Error(`the keyboard does not reach ${wanted}`);
  };
  await page.keyboard.press('Tab');
  equal(await focused(), 'Skip to content', 'what is reached first');
  await page.keyboard.press('Enter');
  await until('Failed');
  await page.keyboard.press('Space');
  await until(runs.failed);
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { name: 'Why it failed' }).waitFor();
  await until('Runs');
  await page.keyboard.press('Enter');
  await until(runs.whole);
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { name: 'The document' }).waitFor();
  await until('Text');
  await page.keyboard.press('Enter');
  await page.getByRole('group', { name: /^Document, / }).waitFor();
  await clean('the keyboard alone', view);
  await view.context.close();
}

// --- The theme ---

{
  const view = await open(whole, '#/runs');
  const { page } = view;
  await page.getByRole('link', { name: runs.whole }).waitFor();
  const paper = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  const light = await paper();
  const button = page.getByRole('button', { name: /Theme/ });
  await button.click();
  await button.click();
  expect((await paper()) !== light, 'dark is chosen');
  await page.reload();
  await page.getByRole('link', { name: runs.whole }).waitFor();
  expect((await paper()) !== light, 'and stays chosen');
  await clean('dark by choice', view);
  await view.context.close();
}

// --- Keys ---

{
  const run = await ask(gateways.keyed, { key: told.key });
  const view = await open(gateways.keyed, `#/runs/${run}`);
  const { page } = view;
  const field = page.getByLabel('Key', { exact: true });
  await field.fill('a wrong key');
  await page.keyboard.press('Enter');
  await sees(page, 'Invalid API key.');
  equal(await page.locator('#forget').isVisible(), false, 'a wrong key that could be forgotten');
  await clean('asked for a key', view);
  await field.fill(told.key);
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { name: 'The document' }).waitFor();
  await page.locator('#forget').waitFor();
  await page.goto(`${gateways.keyed}/#/runs`);
  await sees(page, 'live');
  const kept = await page.evaluate(() =>
    JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie]),
  );
  expect(!kept.includes(told.key), 'the key is kept nowhere');
  await clean('with a key', view);
  await page.reload();
  await field.waitFor();
  await view.context.close();
}

{
  // If several requests fail because the keys have changed, the user is asked once.
  const view = await open(whole, '#/runs');
  const { page } = view;
  await sees(page, /^8 runs: |runs: /);
  let greetings = 0;
  let refuse;
  const second = new Promise((resolve) => (refuse = resolve));
  const has = (route) => route.request().headers().authorization === 'Bearer new';
  const unauthorised = { status: 401, json: { error: { code: '', message: 'no such key' } } };
  await page.route('**/health', async (route) => {
    greetings += 1;
    const answer = await route.fetch();
    const json = { ...(await answer.json()), key: has(route) ? 'right' : 'missing' };
    await route.fulfill({ json });
  });
  await page.route('**/api/runs?*', (route) =>
    has(route) ? route.continue() : route.fulfill(unauthorised),
  );
  await page.route('**/api/runs/totals*', async (route) => {
    if (has(route)) return route.continue();
    await second;
    return route.fulfill(unauthorised).catch(() => {});
  });
  await page.getByRole('searchbox').fill('overlock-demo');
  const field = page.getByLabel('Key', { exact: true });
  await field.fill('new');
  const before = greetings;
  const answered = page.waitForResponse((answer) => answer.url().includes('/totals'));
  refuse();
  await answered;
  await page.waitForTimeout(300);
  equal(greetings, before, 'greetings while the reader types');
  equal(await field.inputValue(), 'new', 'what the reader has typed');
  await page.keyboard.press('Enter');
  await page.waitForFunction(() => document.querySelectorAll('.list tbody tr').length === 1);
  equal(greetings, before + 1, 'greetings with the key');
  // A 401 with a valid key is shown, and not retried.
  let refusals = 0;
  await page.route('**/api/several', (route) => {
    refusals += 1;
    return route.fulfill(unauthorised);
  });
  await page.goto(`${whole}/#/playground`);
  await sees(page, 'No such key.');
  equal(refusals, 2, 'requests that were refused');
  looked.push('keys that change');
  await view.context.close();
}

// --- The first visit ---

{
  const view = await open(gateways.empty, '');
  const { page } = view;
  await sees(page, 'No runs recorded yet.');
  await clean('nothing recorded', view);
  await page.getByRole('button', { name: 'Run the demo' }).click();
  await page.locator('.run-head .badge.complete').waitFor();
  await page.getByRole('link', { name: 'Runs', exact: true }).first().click();
  await page
    .locator('.list tbody tr')
    .filter({ hasText: 'overlock-demo' })
    .getByText('complete')
    .waitFor();
  await clean('the first run', view);
  await view.context.close();
}

for (const name of ['unrecorded', 'storeless']) {
  const view = await open(gateways[name], '');
  await sees(view.page, 'This gateway does not record runs');
  await clean(`a gateway that is ${name}`, view);
  await view.context.close();
}

await browser.close();
console.log(JSON.stringify({ looked }));
