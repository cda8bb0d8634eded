// Asks the gateway. The key, if one is needed, is in this module's memory and nowhere else.

import { counted, number } from './words.js';

let key = '';
let welcome = null;

export class ApiError extends Error {
  constructor(status, code, message) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

/**
 * What the gateway says of itself. It is asked once, before anything else: whether it wants a key,
 * and what there is to be read, is not found out by being refused.
 */
export function gateway() {
  welcome ??= greeted().catch((error) => {
    welcome = null;
    throw error;
  });
  return welcome;
}

/** Asks the reader for a key, and again, until it is right. */
async function greeted() {
  for (;;) {
    const answer = await withKey('/health', {});
    const value = parsed(await answer.text());
    if (!answer.ok || !value) throw refusal(answer, value);
    document.getElementById('forget').hidden = value.key !== 'right';
    if (value.key !== 'missing' && value.key !== 'wrong') return value;
    await askForKey(value.key === 'wrong');
  }
}

/** JSON from the gateway, or an `ApiError`. */
export async function ask(path, options) {
  const text = await askText(path, options);
  return text ? parsed(text) : null;
}

/** The same as it came. */
export async function askText(path, { body, signal } = {}) {
  const answer = await send(
    path,
    body === undefined
      ? { signal }
      : { method: 'POST', body: typeof body === 'string' ? body : JSON.stringify(body), signal },
  );
  const text = await answer.text();
  if (answer.ok) return text;
  throw refusal(answer, parsed(text));
}

/**
 * What is answered to several questions at once, each by its name, as `Promise.allSettled` tells
 * it. A question is a value, or the text of one; what is the same for all of them is `shared`.
 */
export async function askEach(questions, signal, shared = {}) {
  const written = (member) => JSON.stringify(member).slice(1, -1);
  const asked = Object.entries(questions).map(([name, question]) =>
    typeof question === 'string'
      ? `${JSON.stringify(name)}:${question}`
      : written({ [name]: question }),
  );
  const body = `{${[written(shared), ...asked].filter(Boolean).join(',')}}`;
  let answers = {};
  let failed = null;
  try {
    await checkLength(body);
    answers = await ask('/api/several', { body, signal });
  } catch (error) {
    failed = error;
  }
  const settled = Object.keys(questions).map((name) => {
    const value = answers[name];
    // What does not fit is an answer too: with figures, and with what would help.
    const isRefused = value?.error && !value.parts;
    const reason =
      failed ?? (isRefused ? new ApiError(422, value.error.code, value.error.message) : null);
    return [name, reason ? { status: 'rejected', reason } : { status: 'fulfilled', value }];
  });
  return Object.fromEntries(settled);
}

/** What would be read to its limit and refused there is not sent. */
async function checkLength(body) {
  const { body_bytes: most } = await gateway();
  const bytes = new Blob([body]).size;
  if (bytes > most)
    throw new ApiError(
      413,
      'request_too_large',
      `this is too long to be looked at here: all that is asked about it takes ${counted(bytes, 'byte')}, and this gateway reads ${number(most)} of a request (\`serve.max_body_bytes\`)`,
    );
}

/** Asks a model as a client does. The name of the run that came of it, if it is told. */
export async function askModel(request) {
  const body = JSON.stringify(request);
  const answer = await send('/v1/chat/completions', { method: 'POST', body });
  const text = await answer.text();
  if (!answer.ok) throw refusal(answer, parsed(text));
  return answer.headers.get('x-overlock-run');
}

/** A request from somebody who has been let in. */
async function send(path, options) {
  for (let isAgain = false; ; isAgain = true) {
    const greeting = gateway();
    await greeting;
    const answer = await withKey(path, options);
    // Somebody who has just been let in is refused for another reason than the key.
    if (answer.status !== 401 || isAgain) return answer;
    // Its keys are others than they were. Of several who find out, one greets it again.
    await answer.body?.cancel();
    if (welcome === greeting) welcome = null;
  }
}

function withKey(path, options) {
  const headers = { ...options.headers };
  if (options.body !== undefined) headers['content-type'] = 'application/json';
  if (key) headers.authorization = `Bearer ${key}`;
  return fetch(path, { ...options, headers, cache: 'no-store', credentials: 'omit' });
}

function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

function refusal(answer, value) {
  const error = value?.error ?? {};
  return new ApiError(
    answer.status,
    error.code ?? '',
    error.message ?? `the gateway answered with ${answer.status}`,
  );
}

function askForKey(wasWrong) {
  return new Promise((resolve) => {
    const dialog = document.getElementById('ask-key');
    const field = document.getElementById('key');
    document.getElementById('key-wrong').textContent = wasWrong
      ? 'This gateway does not accept that key.'
      : '';
    field.value = '';
    // There is nothing behind it to go back to.
    const stay = (event) => event.preventDefault();
    dialog.addEventListener('cancel', stay);
    dialog.addEventListener(
      'close',
      () => {
        dialog.removeEventListener('cancel', stay);
        key = field.value.trim();
        field.value = '';
        resolve();
      },
      { once: true },
    );
    dialog.showModal();
    field.focus();
  });
}

/**
 * Server-sent events, again and again until the signal is aborted: `EventSource` could not show a
 * key. `heard(name, data)` gets every event, `changed(state)` whether anybody is listening. Ends by
 * itself after an event for which `heard` returns true.
 */
export async function listen(path, heard, signal, changed = () => {}) {
  let last = '';
  let wait = 3000;
  while (!signal.aborted) {
    try {
      changed('connecting');
      const headers = last ? { 'last-event-id': last } : {};
      const answer = await send(path, { headers, signal });
      if (answer.status === 204) {
        changed('off');
        return;
      }
      if (!answer.ok) throw refusal(answer, parsed(await answer.text()));
      changed('live');
      for await (const event of events(answer.body)) {
        if (event.retry) wait = event.retry;
        // The end is no place to go on from: somebody may take the run up again.
        if (event.id && event.id !== 'ended') last = event.id;
        if (event.name && heard(event.name, parsed(event.data))) return;
      }
    } catch (error) {
      if (signal.aborted) return;
      if (error instanceof ApiError && error.status === 404) {
        changed('off');
        throw error;
      }
    }
    changed('waiting');
    await pause(wait, signal);
  }
}

const pause = (milliseconds, signal) =>
  new Promise((resolve) => {
    const timer = setTimeout(resolve, milliseconds);
    signal.addEventListener(
      'abort',
      () => {
        clearTimeout(timer);
        resolve();
      },
      { once: true },
    );
  });

async function* events(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = '';
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    rest += value;
    for (let end = rest.indexOf('\n\n'); end >= 0; end = rest.indexOf('\n\n')) {
      const event = { name: '', data: '' };
      for (const line of rest.slice(0, end).split('\n')) {
        const colon = line.indexOf(':');
        const [field, text] = [line.slice(0, colon), line.slice(colon + 1).replace(/^ /, '')];
        if (field === 'event') event.name = text;
        else if (field === 'data') event.data += text;
        else if (field === 'id') event.id = text;
        else if (field === 'retry') event.retry = Number(text);
      }
      rest = rest.slice(end + 2);
      yield event;
    }
  }
}

/** Forgets the key. */
export function forget() {
  key = '';
}
