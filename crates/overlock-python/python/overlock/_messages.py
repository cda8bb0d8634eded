"""Trims a chat to the window of its model, for messages of any provider."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from overlock._overlock import plan

M = TypeVar("M")

_ROLES = {"human": "user", "ai": "assistant", "AIMessageChunk": "assistant"}


def fit_messages(
    messages: Sequence[M],
    *,
    model: str | None = None,
    window: int | None = None,
    max_tokens: int | None = None,
    tools: Sequence[Mapping[str, Any]] | None = None,
    margin: int | None = None,
    drop_step: int = 1,
    encoding: str | None = None,
    tokenizer: str | None = None,
) -> list[M]:
    """The messages that fit with an answer of ``max_tokens``; the oldest are dropped first.

    The system prompt, the last user message, and the tool calls and results after it always stay.
    A tool call is never separated from its result. Messages may be those of OpenAI (``dict`` or
    objects) or of LangChain, and are returned unchanged. Messages that cannot fit raise
    :class:`overlock.PlanError`, whose ``help`` says what to change.

    >>> chat = [{"role": "system", "content": "Be brief."}]
    >>> chat += [{"role": "user", "content": "word " * 900} for _ in range(20)]
    >>> chat += [{"role": "user", "content": "And now?"}]
    >>> kept = fit_messages(chat, model="gpt-4", max_tokens=1000)
    >>> len(chat), len(kept)
    (22, 9)
    >>> kept[0] is chat[0] and kept[-1] is chat[-1]
    True
    """
    request: dict[str, Any] = {"messages": [as_openai(message) for message in messages]}
    if tools is not None:
        request["tools"] = list(tools)
    planned = plan(
        request,
        model=model,
        window=window,
        max_tokens=max_tokens,
        answer_floor=max_tokens,
        margin=margin,
        drop_step=drop_step,
        encoding=encoding,
        tokenizer=tokenizer,
    )
    return [messages[index] for index in planned.kept_messages]


def as_openai(message: Any) -> dict[str, Any]:
    """A message in the format of OpenAI's chat completions."""
    if isinstance(message, Mapping):
        return dict(message)
    if isinstance(message, tuple) and len(message) == 2:
        role, content = message
        return {"role": _ROLES.get(role, role), "content": content}
    kind = getattr(message, "type", None)
    if isinstance(kind, str) and hasattr(message, "content"):
        return _from_langchain(message, kind)
    if hasattr(message, "model_dump"):
        dumped: dict[str, Any] = message.model_dump(exclude_none=True)
        return dumped
    raise TypeError(f"`{type(message).__name__}` is not a message")


def _from_langchain(message: Any, kind: str) -> dict[str, Any]:
    converted: dict[str, Any] = {"role": _ROLES.get(kind, kind), "content": message.content}
    if kind == "tool":
        converted["tool_call_id"] = message.tool_call_id
    calls = getattr(message, "tool_calls", None)
    if calls:
        converted["tool_calls"] = [
            {
                "id": call["id"],
                "type": "function",
                "function": {"name": call["name"], "arguments": json.dumps(call["args"])},
            }
            for call in calls
        ]
    return converted
