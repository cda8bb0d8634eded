"""Complete documents from models that stop early: calls, joins the answers, and asks for the rest.

:class:`overlock.Continuation` makes all decisions. The course of a run is written once, in
``_exchange``, a generator without I/O that yields requests and receives the results. The four
public functions drive it with ordinary or ``async`` callables, streamed or not.
"""

from __future__ import annotations

import inspect
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Callable,
    Generator,
    Iterator,
    Mapping,
    Sequence,
)
from typing import Any, NamedTuple, Union

from overlock._errors import Incomplete, OverlockError, PlanError
from overlock._messages import as_openai
from overlock._overlock import Continuation, Scanner, count_tokens
from overlock._replies import Reply, apieces_of, pieces_of, reply_of
from overlock._results import NextCall, Cut

Request = dict[str, Any]
Prompt = Union[str, Sequence[Any], Mapping[str, Any]]


class Completion(NamedTuple):
    """The result of a request for a document."""

    #: The document, or its valid part; ``None`` if no answer was JSON.
    value: Any
    #: The same as text: valid JSON, byte for byte as the model wrote it if complete.
    json: str | None
    #: ``complete``, ``partial`` or ``failed``.
    outcome: str
    #: Why it is incomplete: ``token-limit``, ``merge-failures``, ``model-error`` …
    reason: str | None
    #: Where the document is cut off, if it is.
    cut: Cut | None
    #: The number of model calls.
    iterations: int
    #: The tokens of all answers.
    output_tokens: int
    #: The result of each answer.
    steps: list[dict[str, Any]]
    #: The last answer, if none was JSON.
    raw: str
    #: The exception of the callable that ended it, if one did.
    error: Exception | None

    @property
    def is_complete(self) -> bool:
        """Whether the document is complete."""
        return self.outcome == "complete"

    def whole(self) -> Any:
        """The document if it is complete; else raises :class:`overlock.Incomplete`."""
        if self.is_complete:
            return self.value
        where = f" at `{self.cut.path}`" if self.cut else ""
        raise Incomplete(
            f"the document is incomplete{where}: {self.reason}",
            code=self.reason or self.outcome,
            path=self.cut.path if self.cut else None,
            offset=self.cut.offset if self.cut else None,
        ) from self.error


def complete(
    call: Callable[[Request], Any],
    prompt: Prompt,
    *,
    model: str | None = None,
    max_tokens: int | None = None,
    system: str | None = None,
    window: int | None = None,
    trim: str = "oldest",
    strategies: Sequence[str] | None = None,
    max_failures: int = 3,
    max_iterations: int = 50,
    max_output_tokens: int | None = None,
    kpi: str | Sequence[Mapping[str, Any]] = "ask",
    run: Continuation | None = None,
) -> Completion:
    """Calls a model until its JSON document is complete, whatever the limit of its answers.

    ``call`` is a callable that takes a request, a ``dict`` in the form of OpenAI's chat
    completions, and returns the text of the answer, a :class:`overlock.Reply`, or a result of the
    clients of OpenAI, Anthropic and LangChain. ``prompt`` is a text, a list of messages, also of
    LangChain's, or a request.

    >>> def model(request):
    ...     asked = request["messages"][-1]["content"]
    ...     if "[[overlap-" not in asked:
    ...         return '{"primes": [2, 3, 5, 7, 1'  # here the tokens ran out
    ...     repeated = asked.split("[[overlap-")[-1].split("]]\\n", 1)[1].split("\\n[[/overlap-")[0]
    ...     return repeated + "1, 13]}"
    >>> completion = complete(model, "The primes up to 13, as JSON.")
    >>> completion.whole()
    {'primes': [2, 3, 5, 7, 11, 13]}
    >>> completion.iterations
    2

    To resume a run that was stored with ``run.to_json()``, pass it as ``run``.
    """
    exchange = _Exchange(_Drive(call, prompt, **_options(locals())))
    wanted = exchange.begin()
    while isinstance(wanted, _Call):
        try:
            answer = call(wanted.request)
        except Exception as error:
            wanted = exchange.send(error)
        else:
            wanted = exchange.send(reply_of(answer))
    return exchange.completion()


async def acomplete(
    call: Callable[[Request], Any],
    prompt: Prompt,
    *,
    model: str | None = None,
    max_tokens: int | None = None,
    system: str | None = None,
    window: int | None = None,
    trim: str = "oldest",
    strategies: Sequence[str] | None = None,
    max_failures: int = 3,
    max_iterations: int = 50,
    max_output_tokens: int | None = None,
    kpi: str | Sequence[Mapping[str, Any]] = "ask",
    run: Continuation | None = None,
) -> Completion:
    """The same as :func:`overlock.complete` with an ``async`` callable.

    >>> import asyncio
    >>> async def model(request):
    ...     return '{"answer": 42}'
    >>> asyncio.run(acomplete(model, "What is it?")).value
    {'answer': 42}
    """
    exchange = _Exchange(_Drive(call, prompt, **_options(locals())))
    wanted = exchange.begin()
    while isinstance(wanted, _Call):
        try:
            answer = await _awaited(call(wanted.request))
        except Exception as error:
            wanted = exchange.send(error)
        else:
            wanted = exchange.send(reply_of(answer))
    return exchange.completion()


def stream_complete(
    call: Callable[[Request], Any],
    prompt: Prompt,
    *,
    model: str | None = None,
    max_tokens: int | None = None,
    system: str | None = None,
    window: int | None = None,
    trim: str = "oldest",
    strategies: Sequence[str] | None = None,
    max_failures: int = 3,
    max_iterations: int = 50,
    max_output_tokens: int | None = None,
    kpi: str | Sequence[Mapping[str, Any]] = "ask",
    run: Continuation | None = None,
) -> CompletionStream:
    """The same as :func:`overlock.complete`, with the growing document.

    ``call`` returns an iterable of pieces: text, or the streams of OpenAI, Anthropic and LangChain.
    The result is one document across any number of calls, and shown values are never revised. It is
    the same growing object every time: copy it to keep a snapshot.

    >>> def model(request):
    ...     yield '{"title": "Be'
    ...     yield 'es", "legs": 6'
    ...     yield '}'
    >>> stream = stream_complete(model, "Bees, as JSON.")
    >>> for value in stream:
    ...     print(value)
    {'title': 'Be'}
    {'title': 'Bees'}
    {'title': 'Bees', 'legs': 6}
    >>> stream.completion.outcome
    'complete'
    """
    return CompletionStream(call, _Exchange(_Drive(call, prompt, **_options(locals()))))


def astream_complete(
    call: Callable[[Request], Any],
    prompt: Prompt,
    *,
    model: str | None = None,
    max_tokens: int | None = None,
    system: str | None = None,
    window: int | None = None,
    trim: str = "oldest",
    strategies: Sequence[str] | None = None,
    max_failures: int = 3,
    max_iterations: int = 50,
    max_output_tokens: int | None = None,
    kpi: str | Sequence[Mapping[str, Any]] = "ask",
    run: Continuation | None = None,
) -> AsyncCompletionStream:
    """The same as :func:`overlock.stream_complete` with an ``async`` callable.

    ``call`` returns an ``async`` iterator of pieces, or an awaitable of one.

    >>> import asyncio
    >>> async def model(request):
    ...     yield '{"title": "Be'
    ...     yield 'es"}'
    >>> async def show():
    ...     stream = astream_complete(model, "Bees, as JSON.")
    ...     async for value in stream:
    ...         print(value)
    ...     return stream.completion.outcome
    >>> asyncio.run(show())
    {'title': 'Be'}
    {'title': 'Bees'}
    'complete'
    """
    return AsyncCompletionStream(call, _Exchange(_Drive(call, prompt, **_options(locals()))))


class CompletionStream(Iterator[Any]):
    """A growing document; :attr:`completion` is the final result."""

    #: The result, once the stream has ended.
    completion: Completion | None

    def __init__(self, call: Callable[[Request], Any], exchange: _Exchange) -> None:
        self.completion = None
        self._values = self._grow(call, exchange)

    def __next__(self) -> Any:
        return next(self._values)

    def close(self) -> None:
        """Stops the stream early."""
        self._values.close()

    def _grow(self, call: Callable[[Request], Any], exchange: _Exchange) -> Generator[Any, None, None]:
        pieces = pieces_of("")
        try:
            wanted = exchange.begin()
            while wanted is not None:
                result: Any = None
                if isinstance(wanted, _Show):
                    yield wanted.value
                else:
                    try:
                        if isinstance(wanted, _Call):
                            pieces.close()
                            pieces = pieces_of(call(wanted.request))
                        else:
                            result = next(pieces, None)
                    except Exception as error:
                        result = error
                wanted = exchange.send(result)
        finally:
            pieces.close()
        self.completion = exchange.completion()


class AsyncCompletionStream(AsyncIterator[Any]):
    """A growing document; :attr:`completion` is the final result."""

    #: The result, once the stream has ended.
    completion: Completion | None

    def __init__(self, call: Callable[[Request], Any], exchange: _Exchange) -> None:
        self.completion = None
        self._values = self._grow(call, exchange)

    async def __anext__(self) -> Any:
        return await self._values.__anext__()

    async def aclose(self) -> None:
        """Stops the stream early."""
        await self._values.aclose()

    async def _grow(
        self, call: Callable[[Request], Any], exchange: _Exchange
    ) -> AsyncGenerator[Any, None]:
        pieces = apieces_of("")
        try:
            wanted = exchange.begin()
            while wanted is not None:
                result: Any = None
                if isinstance(wanted, _Show):
                    yield wanted.value
                else:
                    try:
                        if isinstance(wanted, _Call):
                            await pieces.aclose()
                            pieces = apieces_of(await _awaited(call(wanted.request)))
                        else:
                            result = await _next(pieces)
                    except Exception as error:
                        result = error
                wanted = exchange.send(result)
        finally:
            await pieces.aclose()
        self.completion = exchange.completion()


async def _awaited(answer: Any) -> Any:
    return await answer if inspect.isawaitable(answer) else answer


async def _next(pieces: AsyncIterator[str]) -> str | None:
    async for piece in pieces:
        return piece
    return None


class _Call(NamedTuple):
    """Call the model. Send back the reply, the exception, or ``None`` if the answer is streamed."""

    request: Request


class _Listen(NamedTuple):
    """Get the next piece. Send back the piece, the exception, or ``None`` at the end."""


class _Show(NamedTuple):
    """Show the document, which has grown."""

    value: Any


_Wanted = Union[_Call, _Listen, _Show]


def _exchange(drive: _Drive) -> Generator[_Wanted, Any, None]:
    """The course of a run, without I/O."""
    while (request := drive.next()) is not None:
        reply = yield _Call(request)
        if reply is None:
            reply = yield from _heard(drive)
        if isinstance(reply, Exception):
            drive.fail(reply)
            continue
        drive.take(reply)
        if drive.show_settled():
            yield _Show(drive.shown.value())


def _heard(drive: _Drive) -> Generator[_Wanted, Any, Reply | Exception]:
    """Reads a streamed answer."""
    drive.listen()
    pieces: list[str] = []
    while (piece := (yield _Listen())) is not None:
        if isinstance(piece, Exception):
            if not pieces:
                return piece
            # The part before a broken stream counts as a cut answer.
            drive.error = piece
            break
        pieces.append(piece)
        if drive.hear(piece):
            yield _Show(drive.shown.value())
        if drive.run.is_spoilt:
            break
    return Reply("".join(pieces))


class _Exchange:
    """An exchange in progress."""

    def __init__(self, drive: _Drive) -> None:
        self._drive = drive
        self._steps = _exchange(drive)

    def begin(self) -> _Wanted | None:
        return next(self._steps, None)

    def send(self, result: Any) -> _Wanted | None:
        """The next request; ``None`` once the run has ended."""
        try:
            return self._steps.send(result)
        except StopIteration:
            return None

    def completion(self) -> Completion:
        return self._drive.completion()


class _Drive:
    """One run: its next call, and the result of the last one."""

    def __init__(
        self,
        call: Any,
        prompt: Prompt,
        *,
        model: str | None,
        max_tokens: int | None,
        system: str | None,
        window: int | None,
        trim: str,
        run: Continuation | None,
        **options: Any,
    ) -> None:
        # An adapter knows the strategies that its provider supports.
        if options["strategies"] is None:
            options["strategies"] = getattr(call, "strategies", None)
        if window is None:
            window = getattr(call, "window", None)
        self.request = _request(prompt, model, max_tokens, system)
        starts_at_cut = getattr(call, "starts_at_cut", None)
        self.at_cut: bool = starts_at_cut is not None and starts_at_cut(self.request)
        self.model: str | None = self.request.get("model")
        self.fitting: dict[str, Any] = {"window": window, "trim": trim}
        self.run = run if run is not None else Continuation(**options)
        self.ask: NextCall | None = None
        self.steps: list[dict[str, Any]] = []
        self.error: Exception | None = None
        #: The document shown so far, while streaming.
        self.shown = Scanner()
        self.shown_len = 0
        self.is_heard = False

    def next(self) -> Request | None:
        self.ask = self.run.next(at_cut=self.at_cut)
        if self.ask is None:
            return None
        try:
            call = self.run.next_call(self.ask, self.request, **self.fitting)
        except PlanError as error:
            if not self.run.text:
                raise
            self.run.stop("window")
            self.error = error
            return None
        self.error = None
        if call.prefill is None:
            return call.request
        begun = {"role": "assistant", "content": call.prefill}
        return {**call.request, "messages": [*call.request["messages"], begun]}

    def listen(self) -> None:
        assert self.ask is not None
        self.run.listen(self.ask)
        if not self.is_heard:
            self.is_heard = True
            self.show(self.run.settled_text)

    def hear(self, piece: str) -> bool:
        """Takes a piece of an answer; true if the shown document has grown."""
        return self.show(self.run.hear(piece))

    def show_settled(self) -> bool:
        """Shows the part that became stable only at the end of an answer."""
        return self.is_heard and self.show(self.run.settled_text[self.shown_len :])

    def show(self, stable: str) -> bool:
        if not stable:
            return False
        self.shown_len += len(stable)
        self.shown.feed(stable)
        return self.shown.has_value

    def take(self, reply: Reply) -> None:
        assert self.ask is not None
        tokens = reply.tokens
        if tokens is None:
            tokens = count_tokens(reply.text.encode("utf-8", "ignore"), model=self.model)
        step = self.run.answered(self.ask, reply.text, tokens=tokens)
        self.steps.append(step)

    def fail(self, error: Exception) -> None:
        """Continues with another strategy if the request was rejected; else ends the run."""
        assert self.ask is not None
        self.error = error
        if not self.run.text:
            raise error
        if getattr(error, "status_code", None) in (400, 422):
            step = self.run.refused(self.ask, str(error))
            if step is not None:
                self.steps.append(step)
                return
        self.run.stop("model-error")

    def completion(self) -> Completion:
        outcome = self.run.outcome
        if outcome is None:
            raise OverlockError("the run has not ended", code="not-ended")
        return Completion(
            value=self.run.value(),
            json=self.run.last_valid_complete_part,
            outcome=outcome.name,
            reason=outcome.reason,
            cut=outcome.cut,
            iterations=self.run.iterations,
            output_tokens=self.run.output_tokens,
            steps=self.steps,
            raw=self.run.raw,
            error=None if outcome.name == "complete" else self.error,
        )


def _options(given: dict[str, Any]) -> dict[str, Any]:
    """The keyword arguments of a function, from its local variables."""
    return {name: given[name] for name in given if name not in ("call", "prompt")}


def _request(
    prompt: Prompt, model: str | None, max_tokens: int | None, system: str | None
) -> Request:
    if isinstance(prompt, str):
        request: Request = {"messages": [{"role": "user", "content": prompt}]}
    elif isinstance(prompt, Mapping):
        request = dict(prompt)
    elif isinstance(prompt, Sequence):
        request = {"messages": [as_openai(message) for message in prompt]}
    else:
        raise TypeError(
            "the prompt must be a text, a list of messages or a request, "
            f"not `{type(prompt).__name__}`"
        )
    if system is not None:
        messages = request.get("messages", [])
        request["messages"] = [{"role": "system", "content": system}, *messages]
    if model is not None:
        request["model"] = model
    if max_tokens is not None:
        request["max_tokens"] = max_tokens
    return request
