"""Documents are complete, whatever the limit of the answers."""

import asyncio
import json
import pickle
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

import overlock

DOCUMENT = json.dumps(
    {
        "title": "Bees and “other” insects 🐝",
        "rows": [{"id": n, "name": f"species number {n}", "legs": 6} for n in range(40)],
        "done": True,
    },
    ensure_ascii=False,
)


class Model:
    """Writes a document, some characters per call, and continues where asked."""

    def __init__(self, document: str, size: int) -> None:
        self.document = document
        self.size = size
        self.requests: list[dict[str, Any]] = []

    def __call__(self, request: dict[str, Any]) -> str:
        self.requests.append(request)
        last = request["messages"][-1]
        if last["role"] == "assistant":
            start = self.document.index(last["content"]) + len(last["content"])
        elif "[[overlap-" in last["content"]:
            asked = last["content"].split("[[overlap-")[-1].split("]]\n", 1)[1].split("\n[[/overlap-")[0]
            start = self.document.index(asked)
            return self.document[start : start + len(asked) + self.size]
        else:
            start = 0
        return self.document[start : start + self.size]


@pytest.mark.parametrize("size", [60, 97, 500, 5000])
def test_a_document_in_pieces_of_any_size_comes_out_whole(size: int) -> None:
    completion = overlock.complete(Model(DOCUMENT, size), "Bees, as JSON.", model="gpt-4o")
    assert completion.json == DOCUMENT
    assert completion.whole() == json.loads(DOCUMENT)
    assert completion.iterations == len(completion.steps)


def test_a_prefilled_answer_goes_on_at_the_cut() -> None:
    model = Model(DOCUMENT, 300)
    completion = overlock.complete(model, "Bees.", strategies=["prefill"])
    assert completion.json == DOCUMENT
    assert model.requests[1]["messages"][-1]["role"] == "assistant"


@pytest.mark.parametrize("at_cut", [False, True])
def test_a_prefill_keeps_its_white_space_only_where_the_answer_starts_after_it(at_cut: bool) -> None:
    document = "[\n" + ",\n".join(f"                    {number}" for number in range(60)) + "\n]"

    class Adapter(Model):
        def starts_at_cut(self, request: dict[str, Any]) -> bool:
            return at_cut

    model = Adapter(document, 100)
    completion = overlock.complete(model, "Numbers.", strategies=["prefill"])
    assert completion.json == document
    prefills = [request["messages"][-1]["content"] for request in model.requests[1:]]
    assert any(prefill != prefill.rstrip() for prefill in prefills) == at_cut


def test_async_callables_are_awaited() -> None:
    model = Model(DOCUMENT, 200)

    async def call(request: dict[str, Any]) -> str:
        await asyncio.sleep(0)
        return model(request)

    async def several() -> list[overlock.Completion]:
        return await asyncio.gather(*(overlock.acomplete(call, "Bees.") for _ in range(5)))

    assert all(completion.json == DOCUMENT for completion in asyncio.run(several()))


@pytest.mark.parametrize("size", [60, 333, 5000])
@pytest.mark.parametrize("piece", [1, 7, 100])
def test_a_stream_grows_and_ends_as_the_document(size: int, piece: int) -> None:
    model = Model(DOCUMENT, size)

    def call(request: dict[str, Any]) -> Iterator[str]:
        text = model(request)
        for at in range(0, len(text), piece):
            yield text[at : at + piece]

    stream = overlock.stream_complete(call, "Bees.")
    lengths = []
    value = None
    for value in stream:
        lengths.append(len(json.dumps(value)))
    assert lengths == sorted(lengths), "nothing that was shown is taken back"
    assert stream.completion is not None and stream.completion.json == DOCUMENT
    assert value == json.loads(DOCUMENT)


def shown(stream: overlock.AsyncCompletionStream) -> list[str]:
    """The document after each change."""

    async def collect() -> list[str]:
        return [json.dumps(value) async for value in stream]

    return asyncio.run(collect())


@pytest.mark.parametrize("size", [60, 333, 5000])
@pytest.mark.parametrize("piece", [1, 7, 100])
def test_an_async_stream_shows_what_an_ordinary_one_shows(size: int, piece: int) -> None:
    def pieces(text: str) -> list[str]:
        return [text[at : at + piece] for at in range(0, len(text), piece)]

    ordinary, waiting = Model(DOCUMENT, size), Model(DOCUMENT, size)

    async def call(request: dict[str, Any]) -> AsyncIterator[str]:
        for text in pieces(waiting(request)):
            await asyncio.sleep(0)
            yield text

    wanted = overlock.stream_complete(lambda request: pieces(ordinary(request)), "Bees.")
    stream = overlock.astream_complete(call, "Bees.")
    assert shown(stream) == [json.dumps(value) for value in wanted]
    assert stream.completion is not None and stream.completion == wanted.completion
    assert waiting.requests == ordinary.requests


def test_an_async_callable_may_answer_in_any_way() -> None:
    async def iterator(request: dict[str, Any]) -> AsyncIterator[str]:
        yield DOCUMENT

    async def awaited(request: dict[str, Any]) -> AsyncIterator[str]:
        return iterator(request)

    async def whole(request: dict[str, Any]) -> str:
        return DOCUMENT

    async def listed(request: dict[str, Any]) -> list[str]:
        return [DOCUMENT[:50], DOCUMENT[50:]]

    for call in (iterator, awaited, whole, listed, lambda request: DOCUMENT):
        stream = overlock.astream_complete(call, "Bees.")
        assert json.loads(shown(stream)[-1]) == json.loads(DOCUMENT)


def test_whoever_has_seen_enough_lets_the_model_go() -> None:
    closed: list[str] = []

    def call(request: dict[str, Any]) -> Iterator[str]:
        try:
            yield from DOCUMENT
        finally:
            closed.append("ordinary")

    async def acall(request: dict[str, Any]) -> AsyncIterator[str]:
        try:
            for character in DOCUMENT:
                yield character
        finally:
            closed.append("async")

    stream = overlock.stream_complete(call, "Bees.")
    next(stream)
    stream.close()
    assert closed == ["ordinary"] and stream.completion is None

    async def look() -> None:
        stream = overlock.astream_complete(acall, "Bees.")
        await stream.__anext__()
        await stream.aclose()

    asyncio.run(look())
    assert closed == ["ordinary", "async"]


def test_a_stream_that_is_spoilt_is_let_go_before_the_model_is_asked_again() -> None:
    events: list[str] = []
    model = Model(DOCUMENT, 400)

    def call(request: dict[str, Any]) -> Iterator[str]:
        events.append("asked")
        try:
            yield model(request)
            if len(model.requests) == 1:
                yield "\x00"
                yield "more"
        finally:
            events.append("closed")

    stream = overlock.stream_complete(call, "Bees.")
    assert list(stream)[-1] == json.loads(DOCUMENT)
    assert events[:3] == ["asked", "closed", "asked"]


def test_a_cancelled_task_is_cancelled_and_nothing_is_swallowed() -> None:
    async def call(request: dict[str, Any]) -> AsyncIterator[str]:
        yield '{"a": 1'
        await asyncio.sleep(60)

    async def cancelled() -> None:
        stream = overlock.astream_complete(call, "Bees.")
        await asyncio.wait_for(_drained(stream), 0.05)

    with pytest.raises(asyncio.TimeoutError):
        asyncio.run(cancelled())


async def _drained(stream: overlock.AsyncCompletionStream) -> None:
    async for _ in stream:
        pass


def test_what_was_delivered_is_not_lost_when_the_callable_raises() -> None:
    calls = []

    def call(request: dict[str, Any]) -> str:
        calls.append(request)
        if len(calls) == 2:
            raise ConnectionError("gone")
        return DOCUMENT[:200]

    completion = overlock.complete(call, "Bees.")
    assert (completion.outcome, completion.reason) == ("partial", "model-error")
    assert isinstance(completion.error, ConnectionError)
    assert completion.value["title"] == "Bees and “other” insects 🐝"
    with pytest.raises(overlock.Incomplete) as caught:
        completion.whole()
    assert caught.value.code == "model-error" and caught.value.path is not None
    assert caught.value.__cause__ is completion.error


def test_a_stream_that_breaks_off_is_an_answer_that_was_cut() -> None:
    model = Model(DOCUMENT, 400)

    def call(request: dict[str, Any]) -> Iterator[str]:
        yield model(request)
        if len(model.requests) == 1:
            raise ConnectionError("gone")

    stream = overlock.stream_complete(call, "Bees.")
    assert list(stream)[-1] == json.loads(DOCUMENT)
    assert stream.completion is not None and stream.completion.is_complete


def test_the_first_exception_of_a_callable_is_the_callers() -> None:
    def call(request: dict[str, Any]) -> str:
        raise ConnectionError("gone")

    with pytest.raises(ConnectionError):
        overlock.complete(call, "Bees.")
    with pytest.raises(ConnectionError):
        list(overlock.stream_complete(call, "Bees."))
    with pytest.raises(ConnectionError):
        shown(overlock.astream_complete(call, "Bees."))
    with pytest.raises(ConnectionError):
        asyncio.run(overlock.acomplete(call, "Bees."))


def test_an_answer_that_is_no_json_is_told() -> None:
    completion = overlock.complete(lambda request: "I would rather not.", "Bees.")
    assert (completion.outcome, completion.value) == ("failed", None)
    assert completion.raw == "I would rather not."


def test_a_request_that_cannot_fit_is_refused_before_anything_is_paid_for() -> None:
    calls: list[Any] = []
    with pytest.raises(overlock.PlanError) as caught:
        overlock.complete(calls.append, "word " * 9000, model="gpt-4")
    assert caught.value.code == "context-length-exceeded" and caught.value.help
    assert calls == []


def test_a_run_goes_on_in_another_process() -> None:
    model = Model(DOCUMENT, 300)
    run = overlock.Continuation()
    ask = run.next()
    assert ask is not None
    run.answered(ask, model({"messages": [{"role": "user", "content": ""}]}), tokens=100)
    run = pickle.loads(pickle.dumps(run))
    completion = overlock.complete(model, "Bees.", run=run)
    assert completion.json == DOCUMENT


def test_an_answer_to_another_call_changes_nothing() -> None:
    run = overlock.Continuation()
    ask = run.next()
    assert ask is not None
    run.answered(ask, "[1, 2")
    with pytest.raises(overlock.BadRequest) as caught:
        run.answered(ask, "[1, 2")
    assert caught.value.code == "not-awaited" and run.text == "[1, 2"


def test_exceptions_travel_between_processes() -> None:
    error = overlock.NoJson("nothing", code="no-json", path="/a", offset=3, help=("this",))
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is overlock.NoJson and isinstance(again, ValueError)
    assert (str(again), again.code, again.path, again.offset) == ("nothing", "no-json", "/a", 3)


ROW = '{"name": "Nile", "about": "It is the longest of them all."}'


def in_pieces(document: str) -> Any:
    """A model that streams 200 new characters in each answer."""
    model = Model(document, 200)

    def call(request: dict[str, Any]) -> Iterator[str]:
        yield from model(request)

    return call


def test_a_loop_that_was_streamed_stays_in_the_document() -> None:
    document = "[" + ", ".join([ROW] * 100) + "]"
    run = overlock.Continuation(strategies=["overlap"])
    stream = overlock.stream_complete(in_pieces(document), "Rivers.", run=run)
    longest = 0
    for value in stream:
        assert len(value) >= longest
        longest = len(value)
    assert stream.completion is not None
    assert stream.completion.reason == "repeating"
    assert longest > 20
    assert len(stream.completion.value) >= longest
    assert document.startswith(run.text)


def test_equal_rows_that_a_schema_requires_are_no_loop() -> None:
    document = "[" + ", ".join([ROW] * 60) + "]"
    schema = {"type": "array", "minItems": 60}
    request = {
        "messages": [{"role": "user", "content": "Rivers."}],
        "response_format": {"type": "json_schema", "json_schema": {"name": "rivers", "schema": schema}},
    }
    model = Model(document, 200)
    completion = overlock.complete(model, request, strategies=["prefill"])
    assert completion.json == document
