"""The clients of providers and the messages of LangChain are supported."""

import asyncio
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import anthropic
import openai
import pytest
from langchain_core.messages import (
    AIMessage,
    AnyMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
)

import overlock
from overlock.adapters import anthropic_messages, openai_chat, openai_embeddings
from test_completion import DOCUMENT, Model


class Provider(BaseHTTPRequestHandler):
    """Answers as OpenAI and Anthropic do, 300 characters at a time."""

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if "embeddings" in self.path:
            vectors = [{"index": at, "embedding": [float(len(text)), 1.0]} for at, text in enumerate(request["input"])]
            # In reverse order, so that callers must use the index.
            self.answer("application/json", json.dumps({"object": "list", "data": vectors[::-1]}))
            return
        text = Model(DOCUMENT, 300)(request)
        is_openai = "completions" in self.path
        if request.get("stream"):
            halves = [text[: len(text) // 2], text[len(text) // 2 :]]
            events = openai_events(halves) if is_openai else anthropic_events(halves)
            self.answer("text/event-stream", "".join(events))
        else:
            body = openai_answer(text) if is_openai else anthropic_answer(text)
            self.answer("application/json", json.dumps(body))

    def answer(self, kind: str, body: str) -> None:
        data = body.encode()
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *arguments: Any) -> None:
        pass


def openai_answer(text: str) -> Any:
    message = {"role": "assistant", "content": text}
    return {
        "id": "1",
        "object": "chat.completion",
        "created": 1,
        "model": "gpt-4o",
        "choices": [{"index": 0, "finish_reason": "length", "message": message}],
        "usage": {"prompt_tokens": 5, "completion_tokens": 7, "total_tokens": 12},
    }


def openai_events(pieces: list[str]) -> Iterator[str]:
    for piece in pieces:
        choice = {"index": 0, "delta": {"content": piece}}
        chunk = {"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
        yield f"data: {json.dumps({**chunk, 'choices': [choice]})}\n\n"
    yield "data: [DONE]\n\n"


def anthropic_answer(text: str) -> Any:
    return {
        "id": "1",
        "type": "message",
        "role": "assistant",
        "model": "claude",
        "content": [{"type": "text", "text": text}],
        "stop_reason": "max_tokens",
        "usage": {"input_tokens": 5, "output_tokens": 7},
    }


def anthropic_events(pieces: list[str]) -> Iterator[str]:
    def event(kind: str, **fields: Any) -> str:
        return f"event: {kind}\ndata: {json.dumps({'type': kind, **fields})}\n\n"

    yield event("message_start", message={**anthropic_answer(""), "content": []})
    yield event("content_block_start", index=0, content_block={"type": "text", "text": ""})
    for piece in pieces:
        yield event("content_block_delta", index=0, delta={"type": "text_delta", "text": piece})
    yield event("content_block_stop", index=0)
    yield event("message_stop")


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Provider)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def test_the_openai_client_gives_whole_documents(address: str) -> None:
    client = openai.OpenAI(base_url=f"{address}/v1", api_key="none")
    completion = overlock.complete(openai_chat(client), "Bees.", model="gpt-4o", max_tokens=100)
    assert completion.json == DOCUMENT
    assert completion.output_tokens == 7 * completion.iterations, "the provider counts"


def test_the_openai_client_streams_whole_documents(address: str) -> None:
    client = openai.OpenAI(base_url=f"{address}/v1", api_key="none")
    stream = overlock.stream_complete(openai_chat(client, stream=True), "Bees.", model="gpt-4o")
    assert list(stream)[-1] == json.loads(DOCUMENT)


def test_the_async_openai_client_gives_whole_documents(address: str) -> None:
    async def ask() -> overlock.Completion:
        async with openai.AsyncOpenAI(base_url=f"{address}/v1", api_key="none") as client:
            return await overlock.acomplete(openai_chat(client), "Bees.", model="gpt-4o")

    assert asyncio.run(ask()).json == DOCUMENT


def test_the_async_openai_client_streams_whole_documents(address: str) -> None:
    async def ask() -> Any:
        async with openai.AsyncOpenAI(base_url=f"{address}/v1", api_key="none") as client:
            call = openai_chat(client, stream=True)
            return [value async for value in overlock.astream_complete(call, "Bees.", model="gpt-4o")]

    assert asyncio.run(ask())[-1] == json.loads(DOCUMENT)


def test_the_async_anthropic_client_streams_whole_documents(address: str) -> None:
    async def ask() -> Any:
        async with anthropic.AsyncAnthropic(base_url=address, api_key="none") as client:
            call = anthropic_messages(client, stream=True)
            stream = overlock.astream_complete(call, "Bees.", model="claude-3-haiku-20240307")
            return [value async for value in stream]

    assert asyncio.run(ask())[-1] == json.loads(DOCUMENT)


@pytest.mark.parametrize("prefill", [False, True])
def test_the_anthropic_client_gives_whole_documents(address: str, prefill: bool) -> None:
    client = anthropic.Anthropic(base_url=address, api_key="none")
    call = anthropic_messages(client, prefill=prefill)
    completion = overlock.complete(
        call, "Bees.", model="claude-3-haiku-20240307", system="JSON only."
    )
    assert completion.json == DOCUMENT


def test_the_anthropic_client_streams_whole_documents(address: str) -> None:
    client = anthropic.Anthropic(base_url=address, api_key="none")
    call = anthropic_messages(client, stream=True)
    stream = overlock.stream_complete(call, "Bees.", model="claude-3-haiku-20240307")
    assert list(stream)[-1] == json.loads(DOCUMENT)


def test_the_openai_client_makes_vectors(address: str) -> None:
    client = openai.OpenAI(base_url=f"{address}/v1", api_key="none")
    embed = openai_embeddings(client, "small", encoding_format="float")
    assert embed(["a", "four"]) == [[1.0, 1.0], [4.0, 1.0]]


def test_messages_of_langchain_are_trimmed_and_come_back_as_they_are() -> None:
    call = {"name": "weather", "args": {"city": "Bern"}, "id": "call_1"}
    chat: list[AnyMessage] = [SystemMessage("Be brief.")]
    chat += [HumanMessage("word " * 400), AIMessage("word " * 400)] * 6
    chat += [HumanMessage("Weather?"), AIMessage("", tool_calls=[call])]
    chat += [ToolMessage("Rain.", tool_call_id="call_1"), HumanMessage("And now?")]
    kept = overlock.fit_messages(chat, model="gpt-4", window=3000, max_tokens=500)
    assert kept[0] is chat[0] and kept[-1] is chat[-1] and len(kept) < len(chat)
    kinds = [message.type for message in kept]
    assert kinds[-4:] == ["human", "ai", "tool", "human"], "a call stays with its result"


def test_messages_of_openai_are_trimmed_as_dicts_and_as_tuples() -> None:
    for chat in (
        [{"role": "user", "content": "word " * 900}] * 5 + [{"role": "user", "content": "Now?"}],
        [("human", "word " * 900)] * 5 + [("human", "Now?")],
    ):
        kept = overlock.fit_messages(chat, model="gpt-4", window=3000, max_tokens=500)
        assert kept == chat[-len(kept) :] and 1 <= len(kept) < 6
    with pytest.raises(TypeError, match="is not a message"):
        overlock.fit_messages([object()])
    with pytest.raises(overlock.BadRequest, match="messages"):
        overlock.fit_messages([{"role": "robot", "content": ""}])
