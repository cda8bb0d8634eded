"""Callables for :func:`overlock.complete` and its kin from the clients of providers.

None of these packages is required: an adapter takes the client that there is.

>>> import overlock
>>> from overlock.adapters import openai_chat
>>> # client = openai.OpenAI()
>>> # overlock.complete(openai_chat(client), "A long list, as JSON.", model="gpt-4o-mini")
"""

from __future__ import annotations

from typing import Any

from overlock._results import ServerInfo


class openai_chat:
    """Asks through the ``openai`` package, or whatever speaks like it.

    The client may be an ``AsyncOpenAI``, for :func:`overlock.acomplete`. With ``stream=True`` it
    is for :func:`overlock.stream_complete`, or :func:`overlock.astream_complete`. Other options go with every call.

    With ``server``, which :func:`overlock.discover` gives back, the context size of the running
    model counts, and an answer that was cut is continued from the document itself where the
    server can do that.
    """

    def __init__(self, client: Any, *, server: ServerInfo | None = None, **options: Any) -> None:
        self._create = client.chat.completions.create
        self._server = server if server is not None and server.prefill != "none" else None
        self._options = options
        #: How it can be asked to go on, the best way first.
        self.ways = ("prefill", "overlap", "remainder") if self._server else ("overlap", "remainder")
        #: The context size of the model, if that is known.
        self.window = server.window if server is not None else None

    def __call__(self, request: dict[str, Any]) -> Any:
        request = {**request, **self._options}
        if self._server is not None and request["messages"][-1]["role"] == "assistant":
            request = _begun(request, self._server)
        return self._create(**request)

    def starts_at_cut(self, request: dict[str, Any]) -> bool:
        """Whether the server's grammar makes the answer start at the end of the prefill."""
        form = request.get("response_format") or {}
        keeps_format = self._server is not None and self._server.keeps_format
        return keeps_format and form.get("type") == "json_schema"


def _begun(request: dict[str, Any], server: ServerInfo) -> dict[str, Any]:
    """A request that ends with the beginning of its answer, as this server takes it."""
    if not server.keeps_format:
        # The grammar would make the model begin its document again.
        request.pop("response_format", None)
    if server.prefill == "continue":
        told = {"continue_final_message": True, "add_generation_prompt": False}
        request["extra_body"] = {**request.get("extra_body", {}), **told}
    elif server.prefill == "prefix":
        *before, last = request["messages"]
        request["messages"] = [*before, {**last, "prefix": True}]
    return request


class anthropic_messages:
    """Asks through the ``anthropic`` package.

    The client may be an ``AsyncAnthropic``, for :func:`overlock.acomplete`. With ``stream=True``
    it is for :func:`overlock.stream_complete`, or :func:`overlock.astream_complete`. Other options go with every call. With
    ``prefill=True`` the model goes on right where it was cut, which older models can.
    """

    def __init__(self, client: Any, *, prefill: bool = False, **options: Any) -> None:
        self._create = client.messages.create
        self._options = options
        #: How it can be asked to go on, the best way first.
        self.ways = ("prefill", "overlap") if prefill else ("overlap",)

    def __call__(self, request: dict[str, Any]) -> Any:
        request = dict(request)
        messages = request.pop("messages")
        system = [m["content"] for m in messages if m["role"] in ("system", "developer")]
        request["messages"] = [m for m in messages if m["role"] not in ("system", "developer")]
        if system:
            request["system"] = "\n\n".join(system)
        if "max_completion_tokens" in request:
            request["max_tokens"] = request.pop("max_completion_tokens")
        # Anthropic has no such parameter; the prompt says what is wanted.
        request.pop("response_format", None)
        return self._create(**{**request, **self._options})


class openai_embeddings:
    """Makes vectors through the ``openai`` package, or whatever speaks like it.

    It is the ``embed`` of :func:`overlock.index` and of :class:`overlock.Pipeline`, which know the
    model by it. Other options go with every call.
    """

    def __init__(self, client: Any, model: str, **options: Any) -> None:
        self._create = client.embeddings.create
        self._options = options
        #: The model whose vectors they are.
        self.model = model

    def __call__(self, texts: list[str]) -> list[list[float]]:
        made = self._create(model=self.model, input=texts, **self._options).data
        return [one.embedding for one in sorted(made, key=lambda one: one.index)]
