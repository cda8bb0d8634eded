"""What is raised: exceptions with a code, a message and, where it applies, a path and an offset."""

from __future__ import annotations

from typing import Any


class OverlockError(ValueError):
    """Something that cannot be done, and why.

    ``code`` is for programs and never changes, the message is for people. ``path`` is a JSON
    Pointer and ``offset`` a place in the text, in characters of a ``str`` or bytes of ``bytes``.
    ``help`` says what would help, each on its own.
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
    """There is no JSON in a text."""


class StillCut(OverlockError):
    """A text stops before its JSON is whole, and only whole JSON was wanted."""


class JsonSyntaxError(OverlockError):
    """A text breaks the grammar of JSON, where it is not repaired."""


class BadRequest(OverlockError):
    """Something was asked for that there is not, or that cannot be used."""


class PlanError(OverlockError):
    """What must stay does not fit the window of the model."""


class BadPipeline(OverlockError):
    """A pipeline cannot be run; the message tells everything that is wrong with it."""


class Incomplete(OverlockError):
    """A model's answer could not be made whole; ``code`` is the reason."""


def _again(
    kind: type[OverlockError],
    message: str,
    code: str,
    path: str | None,
    offset: int | None,
    help: tuple[str, ...],
) -> OverlockError:
    return kind(message, code=code, path=path, offset=offset, help=help)
