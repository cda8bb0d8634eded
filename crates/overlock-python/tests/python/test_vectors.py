"""The shared test cases."""

import json
from pathlib import Path
from typing import Any

import pytest

import overlock

CASES = json.loads((Path(__file__).parents[1] / "vectors.json").read_text(encoding="utf-8"))


def as_json(result: Any) -> Any:
    """A result in the format of the cases."""
    if hasattr(result, "_asdict"):
        return {name: as_json(value) for name, value in result._asdict().items()}
    if isinstance(result, list):
        return [as_json(item) for item in result]
    return result


def answer(function: str, arguments: dict[str, Any]) -> Any:
    if function == "continuation":
        return continuation(**arguments)
    try:
        if function == "stitch":
            return stitch(**arguments)
        result = getattr(overlock, function)(**arguments)
    except overlock.OverlockError as error:
        if function == "plan":
            return {"code": error.code, "message": str(error), "help": list(error.help)}
        return {"code": error.code}
    if function == "plan":
        return plan(result)
    answered = as_json(result)
    if function == "classify":
        assert 0 <= answered.pop("confidence") <= 1
    return answered


def stitch(parts: list[str], **options: Any) -> Any:
    stitched = as_json(overlock.stitch(*parts, **options))
    for seam in stitched["seams"]:
        seam["has_reason"] = seam.pop("reason") is not None
    return stitched


def plan(result: overlock.Plan) -> Any:
    return {
        "adjusted_max_tokens": result.adjusted_max_tokens,
        "input_token_count": result.input_token_count,
        "message_count": result.message_count,
        "kept_messages": result.kept_messages,
        "dropped_messages": result.dropped_messages,
        "counter": result.figures.counter,
        "provenance": result.figures.provenance,
        "explanation": result.explanation,
        "request": result.request,
    }


def continuation(answers: list[str]) -> Any:
    run = overlock.Continuation()
    asked, steps = [], []
    for text in answers:
        # A run can be stored between two answers.
        run = overlock.Continuation.from_json(run.to_json())
        ask = run.next()
        assert ask is not None
        steps.append(run.answered(ask, text, tokens=10))
        asked.append([ask.iteration, ask.strategy, ask.overlap])
    outcome = run.outcome
    return {
        "asked": asked,
        "steps": steps,
        "outcome": outcome and outcome.name,
        "reason": outcome and outcome.reason,
        "text": run.text,
        "closed": run.last_valid_complete_part,
        "output_tokens": run.output_tokens,
    }


@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case["function"]))
def test_a_shared_case_is_answered_alike(case: dict[str, Any]) -> None:
    answered = answer(case["function"], case["arguments"])
    assert json.loads(json.dumps(answered)) == case["result"]


def test_every_function_has_a_shared_case() -> None:
    asked = {case["function"] for case in CASES}
    # Functions in Python, and those that call servers, have other tests.
    own = {"complete", "acomplete", "stream_complete", "astream_complete", "fit_messages", "index"}
    own |= {"discover"}
    functions = {name for name in overlock.__all__ if name.islower() and name[0] != "_"} - own
    assert functions <= asked
