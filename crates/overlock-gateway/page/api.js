// Asks the gateway. The key, if one is needed, is in this module's memory and nowhere else.

let key = '';
let asking = null;

export class ApiError extends Error {
  constructor(status, code, message) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

/** JSON from the gateway, or an `ApiError`. `accepts` are answers besides success that are told too. */
export async function ask(path, { body, signal, accepts = [] } = {}) {
  const answer = await send(
    path,
    body === undefined
      ? { signal }
      : { method: 'POST', body: typeof body === 'string' ? body : JSON.stringify(body), signal },
  );
  const text = await answer.text();
  const value = text ? parsed(text) : null;
  if (answer.ok || accepts.includes(answer.status)) return value;
  throw refusal(answer, value);
}

/** A request with the key; asks the reader for one, and again, until it is right. */
async function send(path, options) {
  for (;;) {
    const headers = { ...options.headers };
    if (options.body !== undefined) headers['content-type'] = 'application/json';
    const shown = key;
    if (shown) headers.authorization = `Bearer ${shown}`;
    const answer = await fetch(path, {
      ...options,
      headers,
      cache: 'no-store',
      credentials: 'omit',
    });
    if (answer.status !== 401) return answer;
    await answer.body?.cancel();
    if (shown === key) await askForKey(Boolean(shown));
  }
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
  asking ??= new Promise((resolve) => {
    const dialog = document.getElementById('ask-key');
    const field = document.getElementById('key');
    document.getElementById('key-wrong').textContent = wasWrong
      ? "That key is none of the gateway's."
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
        document.getElementById('forget').hidden = false;
        asking = null;
        resolve();
      },
      { once: true },
    );
    dialog.showModal();
    field.focus();
  });
  return asking;
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
      if (answer.status === 204) return;
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
