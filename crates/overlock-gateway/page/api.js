// Requests to the gateway. The API key, if one is needed, is kept only in this module's memory.

import { counted, number } from './words.js';

let key = '';
let health = null;

export class ApiError extends Error {
  constructor(status, code, message) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

/** The gateway's health and settings: whether it requires a key, and what it records. Read once. */
export function gateway() {
  health ??= readHealth().catch((error) => {
    health = null;
    throw error;
  });
  return health;
}

/** Asks the user for a key until the gateway accepts it. */
async function readHealth() {
  for (;;) {
    const response = await withKey('/health', {});
    const value = parsed(await response.text());
    if (!response.ok || !value) throw errorOf(response, value);
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

/** The text of the response, or an `ApiError`. */
export async function askText(path, { body, signal } = {}) {
  const response = await send(
    path,
    body === undefined
      ? { signal }
      : { method: 'POST', body: typeof body === 'string' ? body : JSON.stringify(body), signal },
  );
  const text = await response.text();
  if (response.ok) return text;
  throw errorOf(response, parsed(text));
}

/**
 * Sends several named questions in one request. The results, by name, are those of
 * `Promise.allSettled`. A question is a value or JSON text; `shared` holds the members that all
 * questions have in common.
 */
export async function askEach(questions, signal, shared = {}) {
  const membersOf = (value) => JSON.stringify(value).slice(1, -1);
  const members = Object.entries(questions).map(([name, question]) =>
    typeof question === 'string'
      ? `${JSON.stringify(name)}:${question}`
      : membersOf({ [name]: question }),
  );
  const body = `{${[membersOf(shared), ...members].filter(Boolean).join(',')}}`;
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
    // A request that does not fit has an error as well as figures, which are shown.
    const isRefused = value?.error && !value.parts;
    const reason =
      failed ?? (isRefused ? new ApiError(422, value.error.code, value.error.message) : null);
    return [name, reason ? { status: 'rejected', reason } : { status: 'fulfilled', value }];
  });
  return Object.fromEntries(settled);
}

/** Fails before sending if the gateway would reject the body as too large. */
async function checkLength(body) {
  const { body_bytes: limit } = await gateway();
  const bytes = new Blob([body]).size;
  if (bytes > limit)
    throw new ApiError(
      413,
      'request_too_large',
      `the text is too long: the request would have ${counted(bytes, 'byte')}, and this gateway accepts ${number(limit)} (\`serve.max_body_bytes\`)`,
    );
}

/** Sends a chat request as a client does. Returns the id of its run, if the gateway sends one. */
export async function askModel(request) {
  const body = JSON.stringify(request);
  const response = await send('/v1/chat/completions', { method: 'POST', body });
  const text = await response.text();
  if (!response.ok) throw errorOf(response, parsed(text));
  return response.headers.get('x-overlock-run');
}

/** Sends a request once the key, if one is needed, is accepted. */
async function send(path, options) {
  for (let isRetry = false; ; isRetry = true) {
    const checked = gateway();
    await checked;
    const response = await withKey(path, options);
    // A 401 right after the key was accepted has another reason than the key.
    if (response.status !== 401 || isRetry) return response;
    // The gateway's keys have changed. Of several requests that fail, only one checks the key again.
    await response.body?.cancel();
    if (health === checked) health = null;
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

function errorOf(response, value) {
  const error = value?.error ?? {};
  return new ApiError(
    response.status,
    error.code ?? '',
    error.message ?? `the gateway answered with status ${response.status}`,
  );
}

function askForKey(wasWrong) {
  return new Promise((resolve) => {
    const dialog = document.getElementById('ask-key');
    const field = document.getElementById('key');
    document.getElementById('key-wrong').textContent = wasWrong
      ? 'Invalid API key.'
      : '';
    field.value = '';
    // Without a key there is nothing to return to.
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
 * Reads server-sent events and reconnects until the signal is aborted. `EventSource` cannot send a
 * key. `onEvent(name, data)` gets every event, `onState(state)` the state of the connection. Ends
 * after an event for which `onEvent` returns true.
 */
export async function listen(path, onEvent, signal, onState = () => {}) {
  let last = '';
  let wait = 3000;
  while (!signal.aborted) {
    try {
      onState('connecting');
      const headers = last ? { 'last-event-id': last } : {};
      const response = await send(path, { headers, signal });
      if (response.status === 204) {
        onState('off');
        return;
      }
      if (!response.ok) throw errorOf(response, parsed(await response.text()));
      onState('live');
      for await (const event of events(response.body)) {
        if (event.retry) wait = event.retry;
        // Never continue after the end event: the run may be resumed.
        if (event.id && event.id !== 'ended') last = event.id;
        if (event.name && onEvent(event.name, parsed(event.data))) return;
      }
    } catch (error) {
      if (signal.aborted) return;
      if (error instanceof ApiError && error.status === 404) {
        onState('off');
        throw error;
      }
    }
    onState('waiting');
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
