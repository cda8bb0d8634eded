"""Reads what callables return: text, or the results of providers' clients."""

from __future__ import annotations

import inspect
from collections.abc import AsyncGenerator, AsyncIterable, Generator, Iterable
from typing import Any, NamedTuple


class Reply(NamedTuple):
    """A model's answer, for callables that know its token count."""

    text: str
    #: The tokens of the answer, if the provider reports them.
    tokens: int | None = None


#: Complete answers, although some of these types are iterable.
_WHOLE = (str, bytes, Reply)


def reply_of(answer: Any) -> Reply:
    """Reads the result of a callable."""
    if isinstance(answer, Reply):
        return answer
    if answer is None or isinstance(answer, (str, bytes)):
        return Reply(_text(answer))
    choices = getattr(answer, "choices", None)
    if choices:
        usage = getattr(answer, "usage", None)
        tokens = getattr(usage, "completion_tokens", None)
        return Reply(_text(choices[0].message.content), tokens)
    if hasattr(answer, "content"):
        usage = getattr(answer, "usage", None)
        return Reply(_text(answer.content), getattr(usage, "output_tokens", None))
    raise TypeError(
        "the callable must return the text of the answer, a `Reply`, or a result of the clients of "
        f"OpenAI, Anthropic or LangChain, not `{type(answer).__name__}`{_hint(answer)}"
    )


def _hint(answer: Any) -> str:
    if inspect.iscoroutine(answer):
        answer.close()  # prevents the warning that it was never awaited
        return "; `acomplete` and `astream_complete` are for `async` callables"
    if isinstance(answer, AsyncIterable):
        return "; `astream_complete` is for callables that stream"
    if isinstance(answer, Iterable):
        return "; `stream_complete` is for callables that stream"
    return ""


def pieces_of(answer: Any) -> Generator[str, None, None]:
    """The pieces of an answer, streamed or not. A caller that stops early closes it."""
    if isinstance(answer, _WHOLE) or not isinstance(answer, Iterable):
        yield reply_of(answer).text
        return
    try:
        for piece in answer:
            if text := _piece(piece):
                yield text
    finally:
        close = getattr(answer, "close", None)
        if callable(close):
            close()


async def apieces_of(answer: Any) -> AsyncGenerator[str, None]:
    """The same for an asynchronous or ordinary answer."""
    if not isinstance(answer, AsyncIterable):
        for piece in pieces_of(answer):
            yield piece
        return
    try:
        async for piece in answer:
            if text := _piece(piece):
                yield text
    finally:
        close = getattr(answer, "aclose", None) or getattr(answer, "close", None)
        closing = close() if callable(close) else None
        if inspect.isawaitable(closing):
            await closing


def _piece(piece: Any) -> str:
    if isinstance(piece, (str, bytes)):
        return _text(piece)
    # The last piece of OpenAI's streams has the usage and no choices.
    choices = getattr(piece, "choices", None)
    if choices is not None:
        return _text(choices[0].delta.content) if choices else ""
    delta = getattr(piece, "delta", None)
    if delta is not None:
        return _text(getattr(delta, "text", None))
    if hasattr(piece, "content"):
        return _text(piece.content)
    # Anthropic's streams have events without text.
    if isinstance(getattr(piece, "type", None), str):
        return ""
    raise TypeError(
        "a stream must yield text, or pieces of the streams of OpenAI, Anthropic or LangChain, "
        f"not `{type(piece).__name__}`"
    )


def _text(content: Any) -> str:
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if isinstance(content, bytes):
        return content.decode("utf-8", "ignore")
    if isinstance(content, Iterable):
        return "".join(_block(block) for block in content)
    raise TypeError(f"`{type(content).__name__}` is not text")


def _block(block: Any) -> str:
    text = block.get("text") if isinstance(block, dict) else getattr(block, "text", None)
    return block if isinstance(block, str) else _text(text)
