"""What comes back: named tuples, which print, compare, unpack and pickle like any tuple."""

from __future__ import annotations

from typing import Any, NamedTuple


class Cut(NamedTuple):
    """Where a document stops although it is still open."""

    #: Where the text stops, in characters of a ``str`` or bytes of ``bytes``.
    offset: int
    #: What the cut is inside of or next to, as a JSON Pointer.
    path: str
    #: What the text was in the middle of: ``string``, ``number``, ``after-comma`` …
    place: str


class Fix(NamedTuple):
    """One change that repair made."""

    #: What was wrong: ``trailing-comma``, ``quotes``, ``fence`` …
    kind: str
    #: Where it was.
    offset: int


class Closed(NamedTuple):
    """A text made whole."""

    #: Valid JSON.
    json: str
    #: Whether the text was whole already.
    complete: bool
    #: The pointer of a string that was cut and is kept as far as it came.
    truncated: str | None
    #: The pointer of a value, or of a key without one, that had to be left out.
    dropped: str | None
    #: What had to be mended first.
    fixes: list[Fix]


class Loaded(NamedTuple):
    """A value, and what it lacks."""

    #: What ``loads`` returns without ``report``.
    value: Any
    #: Whether nothing is missing.
    complete: bool
    #: Where the document stops, if it does.
    cut: Cut | None
    #: The pointer of a string that was cut and is kept as far as it came.
    truncated: str | None
    #: The pointer of a value, or of a key without one, that had to be left out.
    dropped: str | None
    #: What had to be mended first.
    fixes: list[Fix]


class Repaired(NamedTuple):
    """A text that has become valid JSON."""

    #: Valid JSON.
    json: str
    #: What was changed, in the order of the text; nothing if the text was valid.
    fixes: list[Fix]


class Extracted(NamedTuple):
    """Where in a text its JSON is: ``text[start:end]``."""

    start: int
    end: int


class Contexts(NamedTuple):
    """A cut document in the forms that asking for its rest needs."""

    #: The end of the document, verbatim, for the model to repeat; empty if it is complete.
    overlap_context: str
    #: The document from its root to the cut, verbatim.
    hierarchy_context: str
    #: The same under a budget, for a prompt.
    hierarchy_context_for_prompt: str
    #: The closed form.
    complete_part: str
    #: Whether the closed form is valid JSON.
    parsing_success: bool
    #: Where the document stops, if it does.
    cut: Cut | None
    #: The element in which the cut is, as far as it came.
    cut_off_element: str
    #: The last whole element before it in the same container.
    element_before_cutoff: str


class Seam(NamedTuple):
    """What became of one fragment."""

    #: ``overlap``, ``exact``, ``reformatted``, ``resumed``, ``remainder``, ``repeat``,
    #: ``ambiguous`` or ``no-match``.
    outcome: str
    #: Whether the document grew.
    accepted: bool
    #: How many characters of the fragment repeat the document.
    overlap: int
    #: How many bytes were added.
    added: int
    #: Why it was refused.
    reason: str | None


class Stitched(NamedTuple):
    """A document that was joined from parts."""

    #: The document so far; it may still be cut.
    json: str
    #: Whether it is whole.
    complete: bool
    #: What became of each part but the first.
    seams: list[Seam]


class Delivered(NamedTuple):
    """What a document holds so far."""

    #: One line for each section, or for each array of records.
    lines: list[str]
    #: How many sections there are.
    section_count: int

    def __str__(self) -> str:
        return "\n".join(self.lines)


class Losses(NamedTuple):
    """What closing a document costs it."""

    #: The pointer of a string that was cut and is kept as far as it came.
    truncated: str | None
    #: The pointer of a value, or of a key without one, that has to be left out.
    dropped: str | None


class SyntaxErrorAt(NamedTuple):
    """The first thing in a text that the grammar of JSON forbids."""

    kind: str
    offset: int
    message: str


class TokenCount(NamedTuple):
    """A count, and what it is worth."""

    tokens: int
    #: Who counted: an encoding, the name of a file, or a rule of thumb.
    counter: str
    #: ``exact``, ``calibrated`` or ``estimate``.
    provenance: str


class ModelInfo(NamedTuple):
    """What is known about a model."""

    #: The name of the entry; ``None`` if nothing is known and the rest is a careful guess.
    entry: str | None
    #: How it was found: ``exact``, ``alias``, ``prefix`` or ``default``.
    how: str
    #: The tokens of the context window.
    window: int
    #: How many tokens an answer may have at most.
    answer_cap: int | None
    #: Whether the answer takes its room from the window.
    shared: bool
    #: The encoding, or the family whose tokenizer file is needed.
    tokenizer: str | None
    #: Whether the caller may begin the answer.
    prefill: bool
    #: Whether the answer can be held to JSON.
    json: bool
    #: Whether it can call tools.
    tools: bool
    #: A larger window that another source states.
    disputed: int | None


class Negotiation(NamedTuple):
    """How long an answer may be, with every figure that led to it."""

    #: The tokens of the conversation and the system prompt.
    input: int
    #: What the window leaves for the answer; negative if the input alone is too large.
    available: int
    #: The tokens the answer may have.
    adjusted: int
    #: ``granted``, ``grown``, ``capped``, ``reduced`` or ``floor``.
    adjustment: str
    #: By how many tokens input, answer and margin exceed the window.
    overflow: int
    #: Whether they do not.
    fits: bool


class PlannedPart(NamedTuple):
    """What became of one part of a request."""

    name: str
    #: The tokens that all of it would take.
    asked: int
    #: The tokens it takes.
    given: int
    #: How many pieces stay: messages, tools, memories or blocks.
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
    #: Who counted.
    counter: str
    #: ``exact``, ``calibrated`` or ``estimate``.
    provenance: str
    #: What stands in the way of more, in a sentence.
    blocker: str | None


class Plan(NamedTuple):
    """A request that fits, and how it came to."""

    #: The request as it is to be sent: ``client.chat.completions.create(**plan.request)``.
    request: dict[str, Any]
    adjusted_max_tokens: int
    input_token_count: int
    #: How many messages stay that are no system prompts.
    message_count: int
    memory_count: int
    #: The places of the messages that stay, and of those that go.
    kept_messages: list[int]
    dropped_messages: list[int]
    figures: Figures
    parts: list[PlannedPart]
    #: How every figure came about, a line each.
    explanation: list[str]


class Classification(NamedTuple):
    """What a text is, and how sure that is."""

    #: ``sql``, ``dotnet``, ``dotnet_with_sql`` or ``unknown``.
    language: str
    #: ``csharp``, ``visual_basic``, ``razor`` or ``project``, if it is .NET.
    syntax: str | None
    #: From 0 to 1.
    confidence: float
    #: What spoke for it, the most telling first.
    reasons: list[str]


class Compacted(NamedTuple):
    """A text that was compacted, or was not."""

    text: str
    language: str
    compacted: bool
    #: What was done, or why nothing was.
    reason: str


class ServerInfo(NamedTuple):
    """What was found out about a server of models."""

    #: ``llama.cpp``, ``vLLM``, ``Ollama`` …; ``unknown`` if it does not say.
    product: str
    version: str | None
    #: The context size of the running model, in tokens.
    window: int | None
    #: How an answer is begun for the model: ``last-message``, ``continue``, ``prefix`` or ``none``.
    prefill: str
    #: Whether the grammar of ``response_format`` goes on from there, so that it stays in the call.
    keeps_format: bool
    #: All of it in words, with where it comes from.
    findings: list[str]


class NextCall(NamedTuple):
    """What to ask a model next."""

    #: Which call this is, counted from 1.
    iteration: int
    #: ``prefill``, ``overlap`` or ``remainder``; ``None`` for the caller's own prompt.
    way: str | None
    #: The end of the document, which the answer is to repeat.
    overlap: str
    #: ``document``, ``progress-and-document`` or ``kpis``.
    wants: str


class Call(NamedTuple):
    """A call that fits its window."""

    #: The request, in the form of OpenAI's chat completions.
    request: dict[str, Any]
    #: What the model has said already, where the caller may begin its answer.
    prefill: str | None
    plan: Plan


class Outcome(NamedTuple):
    """How a run ended."""

    #: ``complete``, ``partial`` or ``failed``.
    name: str
    #: Why it is not whole: ``merge-failures``, ``token-limit`` …
    reason: str | None
    #: Where the document stops, if it does.
    cut: Cut | None


class Problem(NamedTuple):
    """Something that is wrong with a pipeline, or doubtful."""

    #: ``error`` or ``warning``.
    severity: str
    #: The line, counted from 1; 0 if it is about a setting from outside.
    line: int
    column: int
    message: str
    #: What would be right.
    help: str | None
    #: All of it as a person reads it, with the line itself.
    rendered: str

    def __str__(self) -> str:
        return self.rendered


class PipelineRun(NamedTuple):
    """A run of a pipeline that is over."""

    #: The id under which it is recorded.
    run: str
    #: ``complete``, ``failed`` or ``cancelled``.
    outcome: str
    answer: str | None
    #: The step that failed, why, and what would help.
    step_id: str | None
    error: str | None
    hint: str | None
    #: What the run knew at its end.
    state: dict[str, Any]
    #: What its steps told.
    trace: list[dict[str, Any]]
    #: What the callable raised last.
    exception: BaseException | None


class SkippedFile(NamedTuple):
    """A file that was not indexed as it is."""

    path: str
    reason: str
    #: Whether it was indexed all the same.
    indexed: bool


class Indexed(NamedTuple):
    """What came of indexing a folder."""

    #: What the folder is called in the store.
    repository: str
    #: How many files were looked at: those that had changed, those that had not, and those that
    #: were left out.
    files: int
    changed: int
    unchanged: int
    #: How many files that were kept are gone.
    removed: int
    #: How many nodes were written.
    nodes: int
    #: How many edges came of names.
    edges: int
    #: How many vectors were made.
    vectors: int
    #: What was not indexed as it is.
    skipped: list[SkippedFile]
