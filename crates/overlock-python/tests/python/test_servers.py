"""Servers are detected as in the gateway, and their answers continued accordingly."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import openai
import pytest

import overlock
from overlock.adapters import openai_chat
from test_clients import openai_answer, openai_events
from test_completion import DOCUMENT

FORMAT = {
    "type": "json_schema",
    "json_schema": {"name": "bees", "strict": True, "schema": {"type": "object"}},
}

#: How each product identifies itself.
PAGES: dict[str, dict[str, Any]] = {
    "llama.cpp": {
        "/v1/models": {"data": [{"id": "bees", "owned_by": "llamacpp"}]},
        "/props": {"default_generation_settings": {"n_ctx": 4096}, "build_info": "b6101"},
    },
    "vLLM": {
        "/v1/models": {"data": [{"id": "bees", "owned_by": "vllm", "max_model_len": 8192}]},
        "/version": {"version": "0.11.0"},
    },
    "unknown": {},
}


class Asked(ThreadingHTTPServer):
    """A server that answers some characters per call and records the requests."""

    product: str
    echoes: bool
    requests: list[dict[str, Any]]


class Provider(BaseHTTPRequestHandler):
    """Continues a prefill; other requests start again."""

    server: Asked

    def do_GET(self) -> None:
        page = PAGES[self.server.product].get(self.path)
        self.answer(404 if page is None else 200, "application/json", json.dumps(page))

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["content-length"])))
        last = request["messages"][-1]
        begun = last["content"] if last["role"] == "assistant" else ""
        if begun and self.server.product == "unknown":
            error = {"error": {"message": "no prefill"}}
            self.answer(400, "application/json", json.dumps(error))
            return
        self.server.requests.append(request)
        assert DOCUMENT.startswith(begun)
        text = DOCUMENT[len(begun) :][:300]
        if self.server.echoes:
            text = begun + text
        if request.get("stream"):
            self.answer(200, "text/event-stream", "".join(openai_events([text[:40], text[40:]])))
        else:
            self.answer(200, "application/json", json.dumps(openai_answer(text)))

    def answer(self, status: int, kind: str, body: str) -> None:
        data = body.encode()
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *arguments: Any) -> None:
        pass


@contextmanager
def serving(product: str, echoes: bool = False) -> Iterator[tuple[Asked, str]]:
    server = Asked(("127.0.0.1", 0), Provider)
    server.product, server.echoes, server.requests = product, echoes, []
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server, f"http://127.0.0.1:{server.server_port}/v1"
    finally:
        server.shutdown()
        server.server_close()


def test_a_server_is_asked_what_it_is() -> None:
    with serving("llama.cpp") as (_, base):
        info = overlock.discover(base)
        assert info[:5] == ("llama.cpp", "b6101", 4096, "last-message", True)
        assert any("GET /props" in finding for finding in info.findings)
    with serving("vLLM") as (_, base):
        info = overlock.discover(base, model="bees", api_key="secret")
        assert info[:5] == ("vLLM", "0.11.0", 8192, "continue", False)
    with serving("unknown") as (_, base):
        assert overlock.discover(base)[:5] == ("unknown", None, None, "none", False)


def test_a_server_that_is_not_there_is_an_error_with_a_code() -> None:
    with serving("unknown") as (_, base):
        pass
    for nowhere in (base, "no address"):
        with pytest.raises(overlock.BadRequest) as raised:
            overlock.discover(nowhere)
        assert raised.value.code == "no-server"


@pytest.mark.parametrize("echoes", [False, True])
@pytest.mark.parametrize("product", ["llama.cpp", "vLLM"])
@pytest.mark.parametrize("stream", [False, True])
def test_a_document_is_continued_from_itself(product: str, stream: bool, echoes: bool) -> None:
    with serving(product, echoes) as (server, base):
        client = openai.OpenAI(base_url=base, api_key="none")
        call = openai_chat(client, server=overlock.discover(base), stream=stream)
        request: dict[str, Any] = {
            "model": "bees",
            "messages": [{"role": "user", "content": "Bees."}],
            "response_format": FORMAT,
        }
        if stream:
            assert list(overlock.stream_complete(call, request))[-1] == json.loads(DOCUMENT)
        else:
            assert overlock.complete(call, request).json == DOCUMENT
        first, *others = server.requests
        assert first["response_format"] == FORMAT
        assert others
        for sent in others:
            *before, last = sent["messages"]
            assert before == first["messages"], "no words are added"
            assert last["role"] == "assistant"
            assert ("response_format" in sent) == (product == "llama.cpp")
            assert sent.get("continue_final_message", False) == (product == "vLLM")


def test_the_window_of_the_running_model_counts() -> None:
    with serving("llama.cpp") as (_, base):
        client = openai.OpenAI(base_url=base, api_key="none")
        call = openai_chat(client, server=overlock.discover(base))
        with pytest.raises(overlock.PlanError):
            overlock.complete(call, "word " * 5000, model="gpt-4o")
