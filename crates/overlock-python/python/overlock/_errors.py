"""Exceptions with a code, a message and, where it applies, a path and an offset."""

from __future__ import annotations

from typing import Any


class OverlockError(ValueError):
    """An error, and its reason.

    ``code`` is for programs and never changes, the message is for people. ``path`` is a JSON
    Pointer and ``offset`` a position in the text, in characters of a ``str`` or bytes of ``bytes``.
    ``help`` has suggestions, one per item.
    """

    code: str
    path: str | None
    offset: int | None
    help: tuple[str, ...]

    def __init__(
        self,
        message: str,
        *,
        code: str = "error",
        path: str | None = None,
        offset: int | None = None,
        help: tuple[str, ...] = (),
    ) -> None:
        super().__init__(message)
        self.code = code
        self.path = path
        self.offset = offset
        self.help = help

    def __reduce__(self) -> tuple[Any, ...]:
        return _again, (type(self), str(self), self.code, self.path, self.offset, self.help)


class NoJson(OverlockError):
    """A text contains no JSON."""


class StillCut(OverlockError):
    """JSON is cut, and only complete JSON was accepted."""


class JsonSyntaxError(OverlockError):
    """A text is not valid JSON, where it is not repaired."""


class BadRequest(OverlockError):
    """An invalid argument, or something that does not exist."""


class PlanError(OverlockError):
    """The required parts of a request do not fit the window of the model."""


class BadPipeline(OverlockError):
    """A pipeline cannot be run; the message has all its errors."""


class Incomplete(OverlockError):
    """A model's answer is incomplete; ``code`` is the reason."""


def _again(
    kind: type[OverlockError],
    message: str,
    code: str,
    path: str | None,
    offset: int | None,
    help: tuple[str, ...],
) -> OverlockError:
    return kind(message, code=code, path=path, offset=offset, help=help)
