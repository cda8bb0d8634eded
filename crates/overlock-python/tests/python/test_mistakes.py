"""Wrong use of the package raises errors with a hint and loses nothing."""

import ast
import copy
import pickle
import re
from collections.abc import Callable, Iterator
from functools import partial
from importlib.metadata import distribution, version
from pathlib import Path
from typing import Any

import pytest

import overlock

PIPELINE = """
pipeline:
  name: ask
  settings: { entry_step_id: ask, max_context_tokens: 1000 }
  steps:
    - id: ask
      action: call_model
      prompt_key: answer
      user_parts: { question: { source: user_question, template: "{}" } }
      max_output_tokens: 100
      next: end
    - id: end
      action: finalize
      end: true
"""


async def waiting(request: dict[str, Any]) -> str:
    return "[1]"


def streaming(request: dict[str, Any]) -> Iterator[str]:
    yield "[1]"


wrong: Any = 5

MISTAKES: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (lambda: overlock.loads(wrong), TypeError, "must be `str`, `bytes`, `bytearray` or `memoryview`, not `int`"),
    (lambda: overlock.complete(waiting, "Bees."), TypeError, "`acomplete` and `astream_complete` are for"),
    (lambda: overlock.complete(streaming, "Bees."), TypeError, "`stream_complete` is for callables that stream"),
    (lambda: overlock.complete(lambda request: "[1]", wrong), TypeError, "a text, a list of messages or a request"),
    (lambda: overlock.complete(lambda request: "[1]", {}), overlock.BadRequest, "`messages` is missing"),
    (lambda: overlock.count_tokens("a", encoding="nope"), overlock.BadRequest, "expected one of o200k_base"),
    (lambda: overlock.count_tokens("a", tokenizer="no/such.json"), FileNotFoundError, "no/such.json"),
    (lambda: overlock.Continuation().answered(wrong, "[1]"), TypeError, "the result of `next`"),
    (lambda: overlock.Continuation(strategies=["nope"]), ValueError, "must be `prefill` or `overlap`"),
    (lambda: overlock.Pipeline("pipeline: ["), overlock.BadPipeline, "pipeline.yaml:1"),
    (lambda: pipeline().run(wrong), TypeError, "`call` must be callable, and `int` is not"),
    (lambda: pipeline().run(str, embed=wrong), TypeError, "`embed` must be callable"),
    (lambda: pipeline().run(str, state={"nope": 1}), overlock.BadRequest, "unknown field `nope`"),
    (lambda: pipeline().run(str, store="mysql://x"), overlock.BadRequest, "sqlite://runs.db"),
]


REQUEST = {"messages": [{"role": "user", "content": "Hi"}]}

#: All functions with counts, and the names of these arguments.
COUNTED: list[tuple[Callable[..., Any], list[str]]] = [
    (partial(overlock.truncate_to_tokens, "a"), ["tokens"]),
    (partial(overlock.contexts, "[1"), ["budget", "limit", "answer_chars"]),
    (partial(overlock.render, "[1"), ["budget", "limit"]),
    (overlock.safe_message_count, ["window", "max_messages", "requested", "system"]),
    (
        overlock.adjusted_max_tokens,
        ["window", "messages", "tokens", "requested", "system", "margin", "answer_cap"],
    ),
    (
        partial(overlock.plan, REQUEST),
        ["window", "max_tokens", "margin", "answer_floor", "drop_step"],
    ),
    (partial(overlock.fit_messages, REQUEST["messages"]), ["window", "max_tokens"]),
    (
        overlock.Continuation,
        ["max_failures", "max_iterations", "max_output_tokens", "answer_chars", "kpi_patience"],
    ),
    (
        lambda **count: overlock.Continuation().next_call(first_ask(), REQUEST, **count),
        ["window", "max_tokens", "margin"],
    ),
    (lambda **count: overlock.Continuation().answered(first_ask(), "[1]", **count), ["tokens"]),
    (
        partial(overlock.complete, lambda request: "[1]", "Bees."),
        ["window", "max_failures", "max_iterations", "max_output_tokens"],
    ),
    (
        lambda tokens: overlock.complete(lambda request: overlock.Reply("[1]", tokens), "Bees."),
        ["tokens"],
    ),
]


def first_ask() -> overlock.NextCall:
    ask = overlock.Continuation().next()
    assert ask is not None
    return ask


def pipeline() -> overlock.Pipeline:
    settings = {"model": "gpt-4o-mini"}
    return overlock.Pipeline(PIPELINE, settings=settings, prompts={"answer": "Answer."})


@pytest.mark.parametrize("mistake, kind, message", MISTAKES)
def test_mistakes_raise_errors_with_a_hint(
    mistake: Callable[[], Any], kind: type[Exception], message: str
) -> None:
    with pytest.raises(kind, match=re.escape(message)):
        mistake()


@pytest.mark.parametrize(
    "call, name", [(call, name) for call, names in COUNTED for name in names]
)
def test_counts_are_not_negative(call: Callable[..., Any], name: str) -> None:
    for count, message in (
        (-1, "must be 0 or more, not `-1`"),
        (2**64, "`18446744073709551616` is too large"),
        (-(10**5000), "must be 0 or more, not this number"),
    ):
        with pytest.raises(overlock.BadRequest, match=message) as raised:
            call(**{name: count})
        assert raised.value.code == "bad-count"
    for wrong_kind in (1.5, "1"):
        with pytest.raises(TypeError):
            call(**{name: wrong_kind})


def test_rejects_negative_max_tokens() -> None:
    with pytest.raises(overlock.BadRequest, match="max_tokens"):
        overlock.complete(lambda request: "[1]", "Bees.", max_tokens=-1)


@pytest.mark.filterwarnings("error")
def test_a_coroutine_that_is_not_awaited_causes_no_warning() -> None:
    with pytest.raises(TypeError):
        overlock.complete(waiting, "Bees.")


def test_results_can_be_copied_and_pickled() -> None:
    results: list[Any] = [
        overlock.loads('{"a": "x', report=True),
        overlock.close("[1"),
        overlock.repair("{'a': 1}"),
        overlock.contexts('[{"a": 1'),
        overlock.stitch("[1, 2", "2, 3]"),
        overlock.plan({"messages": [{"role": "user", "content": "Hi"}]}),
        overlock.complete(lambda request: "[1]", "Bees."),
        pipeline().run(lambda request: "Bees.", "Who?"),
    ]
    for result in results:
        assert pickle.loads(pickle.dumps(result)) == result
        assert copy.deepcopy(result) == result


def test_a_pipeline_can_be_pickled() -> None:
    again = pickle.loads(pickle.dumps(pipeline()))
    assert again.run(lambda request: "Bees.", "Who?").answer == "Bees."
    assert copy.copy(again).name == "ask"


def test_reprs_show_the_progress(tmp_path: Path) -> None:
    scanner = overlock.Scanner()
    assert repr(scanner) == '<overlock.Scanner, 0 read, in root at "">'
    scanner.feed('{"é": [1, "x')
    assert repr(scanner) == '<overlock.Scanner, 12 read, in string at "/é/1">'
    scanner.feed('"]}')
    assert repr(scanner) == "<overlock.Scanner, 15 read, complete>"
    scanner.feed("!")
    assert repr(scanner).startswith("<overlock.Scanner, 15 read, stopped: ")
    assert repr(overlock.Continuation()) == "<overlock.Continuation, under way, 0 answers, 0 bytes>"
    assert repr(pipeline()) == '<overlock.Pipeline "ask", 2 steps>'


def test_the_package_knows_its_version() -> None:
    assert overlock.__version__ == version("overlock")


def test_one_wheel_supports_all_versions_of_python() -> None:
    wheel = distribution("overlock")
    assert wheel.metadata["Requires-Python"] == ">=3.9"
    assert "Tag: cp39-abi3-" in (wheel.read_text("WHEEL") or "")
    for module in Path(overlock.__file__).parent.glob("*.py"):
        ast.parse(module.read_text(encoding="utf-8"), feature_version=(3, 9))


@pytest.mark.parametrize("raised", [KeyboardInterrupt, SystemExit])
def test_exceptions_that_stop_the_program_pass_through(raised: type[BaseException]) -> None:
    def call(request: dict[str, Any]) -> str:
        raise raised

    def pieces(request: dict[str, Any]) -> Iterator[str]:
        yield "[1, 2"
        raise raised

    for stopped in (
        lambda: overlock.complete(call, "Bees."),
        lambda: list(overlock.stream_complete(pieces, "Bees.")),
        lambda: pipeline().run(call, "Who?"),
        lambda: overlock.loads("[1]", parse_int=call),  # type: ignore[arg-type]
        lambda: overlock.loads("[{}]", object_hook=call),
    ):
        with pytest.raises(raised):
            stopped()


def test_exceptions_of_hooks_pass_through() -> None:
    def hook(given: Any) -> Any:
        raise LookupError("no")

    for options in ({"parse_int": hook}, {"parse_float": hook}, {"object_hook": hook}, {"object_pairs_hook": hook}):
        with pytest.raises(LookupError):
            overlock.loads('[{"a": 1, "b": 1.5}]', **options)  # type: ignore[call-overload]
