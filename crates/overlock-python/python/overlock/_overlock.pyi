"""The native part of `overlock`. Its docstrings have the documentation."""

from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from typing import Any, Literal, Union, final, overload

from overlock._results import (
    NextCall,
    Call,
    Classification,
    Closed,
    Compacted,
    Contexts,
    Cut,
    Delivered,
    Extracted,
    Indexed,
    Loaded,
    Losses,
    ModelInfo,
    Negotiation,
    SyntaxErrorAt,
    Outcome,
    PipelineRun,
    Plan,
    Problem,
    Repaired,
    ServerInfo,
    Stitched,
    TokenCount,
)

__all__ = [
    "Continuation",
    "Pipeline",
    "Scanner",
    "__version__",
    "adjusted_max_tokens",
    "classify",
    "close",
    "compact",
    "contexts",
    "count_tokens",
    "cut",
    "delivered",
    "discover",
    "extract",
    "index",
    "loads",
    "model_info",
    "plan",
    "render",
    "repair",
    "safe_message_count",
    "stitch",
    "truncate_to_tokens",
]

__version__: str

_Text = Union[str, bytes, bytearray, memoryview]
_Path = Union[str, PathLike[str]]
_Embed = Callable[[list[str]], Sequence[Sequence[float]]]

@overload
def loads(
    text: _Text,
    *,
    partial: bool = True,
    strict: bool = False,
    report: Literal[False] = False,
    parse_float: Callable[[str], Any] | None = None,
    parse_int: Callable[[str], Any] | None = None,
    object_hook: Callable[[dict[str, Any]], Any] | None = None,
    object_pairs_hook: Callable[[list[tuple[str, Any]]], Any] | None = None,
) -> Any: ...
@overload
def loads(
    text: _Text,
    *,
    partial: bool = True,
    strict: bool = False,
    report: Literal[True],
    parse_float: Callable[[str], Any] | None = None,
    parse_int: Callable[[str], Any] | None = None,
    object_hook: Callable[[dict[str, Any]], Any] | None = None,
    object_pairs_hook: Callable[[list[tuple[str, Any]]], Any] | None = None,
) -> Loaded: ...
def close(text: _Text, *, strict: bool = False) -> Closed: ...
def repair(text: _Text, *, several: Literal["array", "first"] = "array") -> Repaired: ...
def extract(text: _Text) -> Extracted | None: ...
def cut(text: _Text) -> Cut | None: ...
def contexts(
    text: _Text,
    *,
    budget: int = 500,
    cut_value: Literal["hint", "keep", "tail"] = "hint",
    limit: int | None = None,
    answer_chars: int | None = None,
) -> Contexts: ...
def render(
    text: _Text,
    *,
    budget: int = 500,
    cut_value: Literal["hint", "keep", "tail"] = "hint",
    limit: int | None = None,
) -> str: ...
def stitch(
    *parts: _Text,
    expected_overlap: str | Sequence[str | None] | None = None,
    protocol: Literal["auto", "overlap", "prefill"] = "auto",
) -> Stitched: ...
def delivered(text: _Text) -> Delivered: ...
@overload
def count_tokens(
    text: _Text,
    *,
    model: str | None = None,
    encoding: str | None = None,
    tokenizer: _Path | None = None,
    report: Literal[False] = False,
) -> int: ...
@overload
def count_tokens(
    text: _Text,
    *,
    model: str | None = None,
    encoding: str | None = None,
    tokenizer: _Path | None = None,
    report: Literal[True],
) -> TokenCount: ...
def truncate_to_tokens(
    text: _Text,
    tokens: int,
    *,
    keep: Literal["start", "end"] = "start",
    model: str | None = None,
    encoding: str | None = None,
    tokenizer: _Path | None = None,
) -> str: ...
def model_info(name: str) -> ModelInfo: ...
def discover(
    base_url: str,
    *,
    model: str | None = None,
    api_key: str | None = None,
    probe: bool = True,
) -> ServerInfo: ...
def adjusted_max_tokens(
    *,
    model: str | None = None,
    window: int | None = None,
    messages: int | None = None,
    tokens: int | None = None,
    requested: int = 3000,
    system: int = 500,
    margin: int = 100,
    answer_cap: int | None = None,
    grow: bool = False,
) -> Negotiation: ...
def safe_message_count(
    *,
    model: str | None = None,
    window: int | None = None,
    max_messages: int | None = None,
    requested: int = 3000,
    system: int = 500,
) -> int: ...
def plan(
    request: Mapping[str, Any],
    *,
    model: str | None = None,
    window: int | None = None,
    max_tokens: int | None = None,
    trim: Literal["off", "oldest", "summary"] = "oldest",
    margin: int | None = None,
    grow: bool = False,
    answer_floor: int | None = None,
    drop_step: int = 1,
    memories: Sequence[tuple[str, float, float]] = ...,
    context: Sequence[tuple[str, str]] = ...,
    tool_importance: Sequence[float] = ...,
    encoding: str | None = None,
    tokenizer: _Path | None = None,
) -> Plan: ...
def classify(text: _Text) -> Classification: ...
def compact(
    text: _Text,
    *,
    language: Literal["sql", "dotnet", "dotnet_with_sql", "unknown"] | None = None,
    level: Literal["lossless", "outline"] = "lossless",
    docs: Literal["keep", "drop"] = "drop",
) -> Compacted: ...
def index(
    folder: _Path,
    *,
    store: _Path,
    repository: str | None = None,
    replace: bool = False,
    embed: _Embed | None = None,
    embed_model: str | None = None,
) -> Indexed: ...
@final
class Scanner:
    def __new__(cls, *, extract: bool = False) -> Scanner: ...
    def feed(self, piece: _Text) -> None: ...
    def value(self) -> Any: ...
    def cut(self) -> Cut | None: ...
    def losses(self, *, strict: bool = False) -> Losses: ...
    @property
    def place(self) -> str | None: ...
    @property
    def path(self) -> str: ...
    @property
    def depth(self) -> int: ...
    @property
    def offset(self) -> int: ...
    @property
    def start(self) -> int | None: ...
    @property
    def has_value(self) -> bool: ...
    @property
    def is_complete(self) -> bool: ...
    @property
    def syntax_error(self) -> SyntaxErrorAt | None: ...

@final
class Continuation:
    def __new__(
        cls,
        *,
        strategies: Sequence[str] | None = None,
        max_failures: int = 3,
        max_iterations: int = 50,
        max_output_tokens: int | None = None,
        answer_chars: int | None = None,
        kpi: str | Sequence[Mapping[str, Any]] | None = None,
        kpi_patience: int = 3,
    ) -> Continuation: ...
    def next(self, *, at_cut: bool = False) -> NextCall | None: ...
    def next_call(
        self,
        ask: NextCall,
        request: Mapping[str, Any],
        *,
        model: str | None = None,
        window: int | None = None,
        max_tokens: int | None = None,
        trim: str = "oldest",
        margin: int | None = None,
    ) -> Call: ...
    def listen(self, ask: NextCall) -> None: ...
    def hear(self, piece: str) -> str: ...
    @property
    def is_spoilt(self) -> bool: ...
    def answered(self, ask: NextCall, text: _Text, *, tokens: int = 0) -> dict[str, Any]: ...
    def refused(self, ask: NextCall, message: str) -> dict[str, Any] | None: ...
    def stop(self, reason: str) -> None: ...
    @property
    def outcome(self) -> Outcome | None: ...
    @property
    def text(self) -> str: ...
    @property
    def settled_text(self) -> str: ...
    @property
    def raw(self) -> str: ...
    @property
    def last_valid_complete_part(self) -> str | None: ...
    def value(self) -> Any: ...
    @property
    def is_accumulation_mode(self) -> bool: ...
    @property
    def iterations(self) -> int: ...
    @property
    def merge_fail_count(self) -> int: ...
    @property
    def output_tokens(self) -> int: ...
    @property
    def last_kpi(self) -> int | None: ...
    @property
    def delivered(self) -> Delivered | None: ...
    def to_json(self) -> str: ...
    @staticmethod
    def from_json(text: str) -> Continuation: ...

@final
class Pipeline:
    def __new__(
        cls,
        text: str,
        *,
        file: str = "pipeline.yaml",
        settings: Mapping[str, Any] | None = None,
        prompts: Mapping[str, str] | None = None,
        folder: _Path | None = None,
    ) -> Pipeline: ...
    @staticmethod
    def check(
        text: str,
        *,
        file: str = "pipeline.yaml",
        settings: Mapping[str, Any] | None = None,
        prompts: Mapping[str, str] | None = None,
        folder: _Path | None = None,
    ) -> list[Problem]: ...
    @property
    def name(self) -> str: ...
    @property
    def steps(self) -> list[str]: ...
    def graph(self) -> str: ...
    def run(
        self,
        call: Callable[[dict[str, Any]], Any],
        question: str = "",
        *,
        store: _Path | None = None,
        state: Mapping[str, Any] | None = None,
        session_id: str | None = None,
        repository: str | None = None,
        embed: _Embed | None = None,
        embed_model: str | None = None,
    ) -> PipelineRun: ...
    def __getnewargs_ex__(self) -> tuple[tuple[str], dict[str, Any]]: ...
    @staticmethod
    def resume(
        call: Callable[[dict[str, Any]], Any],
        run: str,
        *,
        store: _Path,
        pipeline: Pipeline | None = None,
        embed: _Embed | None = None,
        embed_model: str | None = None,
    ) -> PipelineRun: ...
