"""Callables for :func:`overlock.complete` and similar functions from the clients of providers.

None of these packages is required: an adapter takes the client as an argument.

>>> import overlock
>>> from overlock.adapters import openai_chat
>>> # client = openai.OpenAI()
>>> # overlock.complete(openai_chat(client), "A long list, as JSON.", model="gpt-4o-mini")
"""

from __future__ import annotations

from typing import Any

from overlock._results import ServerInfo


class openai_chat:
    """Calls the ``openai`` package, or a client with the same interface.

    The client may be an ``AsyncOpenAI``, for :func:`overlock.acomplete`. With ``stream=True`` it
    is for :func:`overlock.stream_complete` or :func:`overlock.astream_complete`. Other options are
    passed with every call.

    With ``server``, the result of :func:`overlock.discover`, requests are planned into the context
    size of the running model, and a cut answer is continued by prefill where the server can.
    """

    def __init__(self, client: Any, *, server: ServerInfo | None = None, **options: Any) -> None:
        self._create = client.chat.completions.create
        self._server = server if server is not None and server.prefill != "none" else None
        self._options = options
        #: The strategies for continuing an answer, best first.
        self.strategies = ("prefill", "overlap", "remainder") if self._server else ("overlap", "remainder")
        #: The context size of the model, if known.
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
    """Marks the last message as a prefill, in the way this server expects."""
    if not server.keeps_format:
        # The grammar would make the model start a new document.
        request.pop("response_format", None)
    if server.prefill == "continue":
        flags = {"continue_final_message": True, "add_generation_prompt": False}
        request["extra_body"] = {**request.get("extra_body", {}), **flags}
    elif server.prefill == "prefix":
        *before, last = request["messages"]
        request["messages"] = [*before, {**last, "prefix": True}]
    return request


class anthropic_messages:
    """Calls the ``anthropic`` package.

    The client may be an ``AsyncAnthropic``, for :func:`overlock.acomplete`. With ``stream=True``
    it is for :func:`overlock.stream_complete` or :func:`overlock.astream_complete`. Other options
    are passed with every call. ``prefill=True`` continues answers by prefill, which only older
    models support.
    """

    def __init__(self, client: Any, *, prefill: bool = False, **options: Any) -> None:
        self._create = client.messages.create
        self._options = options
        #: The strategies for continuing an answer, best first.
        self.strategies = ("prefill", "overlap") if prefill else ("overlap",)

    def __call__(self, request: dict[str, Any]) -> Any:
        request = dict(request)
        messages = request.pop("messages")
        system = [m["content"] for m in messages if m["role"] in ("system", "developer")]
        request["messages"] = [m for m in messages if m["role"] not in ("system", "developer")]
        if system:
            request["system"] = "\n\n".join(system)
        if "max_completion_tokens" in request:
            request["max_tokens"] = request.pop("max_completion_tokens")
        # Anthropic has no such parameter; the prompt describes the format.
        request.pop("response_format", None)
        return self._create(**{**request, **self._options})


class openai_embeddings:
    """Computes vectors with the ``openai`` package, or a client with the same interface.

    Pass it as ``embed`` to :func:`overlock.index` and :class:`overlock.Pipeline`, which read the
    model from it. Other options are passed with every call.
    """

    def __init__(self, client: Any, model: str, **options: Any) -> None:
        self._create = client.embeddings.create
        self._options = options
        #: The model that computes the vectors.
        self.model = model

    def __call__(self, texts: list[str]) -> list[list[float]]:
        made = self._create(model=self.model, input=texts, **self._options).data
        return [one.embedding for one in sorted(made, key=lambda one: one.index)]
