"""Results: named tuples, which print, compare, unpack and pickle like any tuple."""

from __future__ import annotations

from typing import Any, NamedTuple


class Cut(NamedTuple):
    """Where a document is cut off."""

    #: The position in the text, in characters of a ``str`` or bytes of ``bytes``.
    offset: int
    #: The JSON Pointer of the value at the cut.
    path: str
    #: The kind of place: ``string``, ``number``, ``after-comma`` …
    place: str


class Fix(NamedTuple):
    """One repair."""

    #: What was wrong: ``trailing-comma``, ``quotes``, ``fence`` …
    kind: str
    #: The position in the text.
    offset: int


class Closed(NamedTuple):
    """A closed document."""

    #: Valid JSON.
    json: str
    #: Whether the text was complete.
    complete: bool
    #: The pointer of a cut string, of which the beginning is kept.
    truncated: str | None
    #: The pointer of a value, or of a key without one, that was left out.
    dropped: str | None
    #: The repairs before closing.
    fixes: list[Fix]


class Loaded(NamedTuple):
    """A value, and what is missing from it."""

    #: What ``loads`` returns without ``report``.
    value: Any
    #: Whether the document was complete.
    complete: bool
    #: Where the document is cut off, if it is.
    cut: Cut | None
    #: The pointer of a cut string, of which the beginning is kept.
    truncated: str | None
    #: The pointer of a value, or of a key without one, that was left out.
    dropped: str | None
    #: The repairs before reading.
    fixes: list[Fix]


class Repaired(NamedTuple):
    """A repaired text."""

    #: Valid JSON.
    json: str
    #: The repairs, in the order of the text; empty if the text was valid.
    fixes: list[Fix]


class Extracted(NamedTuple):
    """The position of JSON in a text: ``text[start:end]``."""

    start: int
    end: int


class Contexts(NamedTuple):
    """The parts of a cut document that a prompt for the rest needs."""

    #: The end of the document, verbatim, for the model to repeat; empty if it is complete.
    overlap_context: str
    #: The document from its root to the cut, verbatim.
    hierarchy_context: str
    #: The same within a budget, for a prompt.
    hierarchy_context_for_prompt: str
    #: The closed form.
    complete_part: str
    #: Whether the closed form is valid JSON.
    parsing_success: bool
    #: Where the document is cut off, if it is.
    cut: Cut | None
    #: The element at the cut, up to the cut.
    cut_off_element: str
    #: The last complete element before it in the same container.
    element_before_cutoff: str


class Seam(NamedTuple):
    """The result of joining one part."""

    #: ``overlap``, ``exact``, ``reformatted``, ``resumed``, ``remainder``, ``repeat``,
    #: ``ambiguous`` or ``no-match``.
    outcome: str
    #: Whether the document grew.
    accepted: bool
    #: The number of characters that repeat the document.
    overlap: int
    #: The number of bytes added.
    added: int
    #: Why it was rejected.
    reason: str | None


class Stitched(NamedTuple):
    """A document joined from parts."""

    #: The document so far; it may still be cut.
    json: str
    #: Whether it is complete.
    complete: bool
    #: The result of each part but the first.
    seams: list[Seam]
    #: What a complete document says of itself that is not so, such as a count of its items: a part
    #: may have left something out.
    suspicious: str | None = None


class Delivered(NamedTuple):
    """The contents of a document so far."""

    #: One line for each section, or for each array of records.
    lines: list[str]
    #: The number of sections.
    section_count: int

    def __str__(self) -> str:
        return "\n".join(self.lines)


class Losses(NamedTuple):
    """What closing a document would lose."""

    #: The pointer of a cut string, of which the beginning is kept.
    truncated: str | None
    #: The pointer of a value, or of a key without one, that is left out.
    dropped: str | None


class SyntaxErrorAt(NamedTuple):
    """The first syntax error of a text."""

    kind: str
    offset: int
    message: str


class TokenCount(NamedTuple):
    """A token count and its accuracy."""

    tokens: int
    #: The counter: an encoding, the name of a file, or a rule of thumb.
    counter: str
    #: ``exact``, ``calibrated`` or ``estimate``.
    provenance: str


class ModelInfo(NamedTuple):
    """The limits and abilities of a model."""

    #: The name of the entry; ``None`` for an unknown model, with cautious defaults.
    entry: str | None
    #: How it was found: ``exact``, ``alias``, ``prefix`` or ``default``.
    how: str
    #: The tokens of the context window.
    window: int
    #: The maximum tokens of an answer.
    answer_cap: int | None
    #: Whether the answer counts towards the window.
    shared: bool
    #: The encoding, or the family whose tokenizer file is needed.
    tokenizer: str | None
    #: Whether the answer can be prefilled.
    prefill: bool
    #: Whether it supports a JSON mode.
    json: bool
    #: Whether it supports tools.
    tools: bool
    #: A larger window according to another source.
    disputed: int | None


class Negotiation(NamedTuple):
    """The available length of an answer, with the calculation."""

    #: The tokens of the conversation and the system prompt.
    input: int
    #: The tokens left for the answer; negative if the input alone is too large.
    available: int
    #: The tokens granted for the answer.
    adjusted: int
    #: ``granted``, ``grown``, ``capped``, ``reduced`` or ``floor``.
    adjustment: str
    #: By how many tokens input, answer and margin exceed the window.
    overflow: int
    #: Whether everything fits.
    fits: bool


class PlannedPart(NamedTuple):
    """The result of planning one part of a request."""

    name: str
    #: The tokens that the whole part needs.
    asked: int
    #: The tokens it got.
    given: int
    #: The number of pieces kept: messages, tools, memories or blocks.
    kept: int
    dropped: int
    dropped_names: list[str]
    explanation: str


class Figures(NamedTuple):
    """The calculation behind a plan."""

    window: int
    margin: int
    input_token_count: int
    available: int
    requested: int
    adjusted_max_tokens: int
    #: ``granted``, ``grown``, ``capped``, ``reduced`` or ``floor``.
    adjustment: str
    #: The token counter.
    counter: str
    #: ``exact``, ``calibrated`` or ``estimate``.
    provenance: str
    #: Why there is not more room, in a sentence.
    blocker: str | None


class Plan(NamedTuple):
    """A request that fits, with the calculation."""

    #: The request to send: ``client.chat.completions.create(**plan.request)``.
    request: dict[str, Any]
    adjusted_max_tokens: int
    input_token_count: int
    #: The number of messages kept, without system prompts.
    message_count: int
    memory_count: int
    #: The indices of the messages kept and dropped.
    kept_messages: list[int]
    dropped_messages: list[int]
    figures: Figures
    parts: list[PlannedPart]
    #: The calculation, one line per figure.
    explanation: list[str]


class Classification(NamedTuple):
    """The language of a text."""

    #: ``sql``, ``dotnet``, ``dotnet_with_sql`` or ``unknown``.
    language: str
    #: ``csharp``, ``visual_basic``, ``razor`` or ``project``, if it is .NET.
    syntax: str | None
    #: From 0 to 1.
    confidence: float
    #: The evidence, strongest first.
    reasons: list[str]


class Compacted(NamedTuple):
    """A compacted text, or the original."""

    text: str
    language: str
    compacted: bool
    #: What was done, or why nothing was.
    reason: str


class ServerInfo(NamedTuple):
    """The abilities of a model server."""

    #: ``llama.cpp``, ``vLLM``, ``Ollama`` …; ``unknown`` if it does not say.
    product: str
    version: str | None
    #: The context size of the running model, in tokens.
    window: int | None
    #: How an answer is prefilled: ``last-message``, ``continue``, ``prefix`` or ``none``.
    prefill: str
    #: Whether the grammar of ``response_format`` applies to the continued document.
    keeps_format: bool
    #: The findings with their sources, as text.
    findings: list[str]


class NextCall(NamedTuple):
    """The next call of a continuation."""

    #: The number of the call, counted from 1.
    iteration: int
    #: ``prefill``, ``overlap`` or ``remainder``; ``None`` for the caller's own prompt.
    strategy: str | None
    #: The end of the document, which the answer should repeat.
    overlap: str
    #: ``document``, ``progress-and-document`` or ``kpis``.
    wants: str


class Call(NamedTuple):
    """A call planned into its window."""

    #: The request, in the form of OpenAI's chat completions.
    request: dict[str, Any]
    #: The prefill of the answer, if there is one.
    prefill: str | None
    plan: Plan


class Outcome(NamedTuple):
    """How a run ended."""

    #: ``complete``, ``partial`` or ``failed``.
    name: str
    #: Why it is incomplete: ``merge-failures``, ``token-limit`` …
    reason: str | None
    #: Where the document is cut off, if it is.
    cut: Cut | None


class Problem(NamedTuple):
    """An error or a warning about a pipeline."""

    #: ``error`` or ``warning``.
    severity: str
    #: The line, counted from 1; 0 for a setting passed to the call.
    line: int
    column: int
    message: str
    #: How to fix it.
    help: str | None
    #: The problem as text, with its source line.
    rendered: str

    def __str__(self) -> str:
        return self.rendered


class PipelineRun(NamedTuple):
    """A finished run of a pipeline."""

    #: The id of the run in the store.
    run: str
    #: ``complete``, ``failed`` or ``cancelled``.
    outcome: str
    answer: str | None
    #: The step that failed, why, and what would help.
    step_id: str | None
    error: str | None
    hint: str | None
    #: The final state.
    state: dict[str, Any]
    #: The events of its steps.
    trace: list[dict[str, Any]]
    #: The last exception of the callable.
    exception: BaseException | None


class SkippedFile(NamedTuple):
    """A file that was skipped or indexed with a problem."""

    path: str
    reason: str
    #: Whether it was indexed anyway.
    indexed: bool


class Indexed(NamedTuple):
    """The result of indexing a folder."""

    #: The name of the folder in the store.
    repository: str
    #: The number of files examined: changed, unchanged and skipped.
    files: int
    changed: int
    unchanged: int
    #: The number of deleted files that were removed from the store.
    removed: int
    #: The number of nodes written.
    nodes: int
    #: The number of edges resolved.
    edges: int
    #: The number of vectors computed.
    vectors: int
    #: The files that were skipped or indexed with a problem.
    skipped: list[SkippedFile]
