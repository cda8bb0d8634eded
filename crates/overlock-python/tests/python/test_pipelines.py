"""Pipelines are checked before they run, and run with any callable."""

from pathlib import Path
from typing import Any

import pytest

import overlock

PIPELINE = """
pipeline:
  name: ask
  settings: { entry_step_id: ask, max_context_tokens: 1000, model: gpt-4o-mini }
  steps:
    - id: ask
      action: call_model
      prompt: Answer with JSON.
      user_parts: { question: { source: user_question, template: "{}" } }
      max_output_tokens: 100
      response: json
      next: end
    - id: end
      action: finalize
      end: true
"""


def test_everything_that_is_wrong_is_told_at_once() -> None:
    wrong = PIPELINE.replace("call_model", "cal_model").replace("next: end", "next: ende")
    problems = overlock.Pipeline.check(wrong, file="ask.yaml")
    errors = [problem for problem in problems if problem.severity == "error"]
    assert {problem.line for problem in errors} == {7, 12}
    assert "call_model" in str(errors[0]) and "ask.yaml:7" in str(errors[0])
    with pytest.raises(overlock.BadPipeline, match="ask.yaml:7") as caught:
        overlock.Pipeline(wrong, file="ask.yaml")
    assert caught.value.code == "bad-pipeline"
    assert overlock.Pipeline.check(PIPELINE) == []


def test_a_pipeline_runs_and_joins_what_was_cut(tmp_path: Path) -> None:
    requests: list[dict[str, Any]] = []

    def model(request: dict[str, Any]) -> str:
        requests.append(request)
        asked = request["messages"][-1]["content"]
        if "[[overlap]]" not in asked:
            return '{"primes": [2, 3, 5, 7, 1'
        return str(asked.split("[[overlap]]\n")[-1].split("\n[[/overlap]]")[0]) + "1, 13]}"

    pipeline = overlock.Pipeline(PIPELINE)
    assert (pipeline.name, pipeline.steps) == ("ask", ["ask", "end"])
    assert "ask" in pipeline.graph()
    run = pipeline.run(model, "The primes?", store=str(tmp_path / "runs.db"))
    assert (run.outcome, run.answer) == ("complete", '{"primes": [2, 3, 5, 7, 11, 13]}')
    assert len(requests) == 2 and len(run.trace) == 2
    assert run.state["user_question"] == "The primes?"
    assert (tmp_path / "runs.db").exists()


def test_what_the_callable_raises_ends_the_run_and_is_told() -> None:
    def model(request: dict[str, Any]) -> str:
        raise ConnectionError("gone")

    run = overlock.Pipeline(PIPELINE).run(model, "The primes?")
    assert (run.outcome, run.step_id) == ("failed", "ask")
    assert isinstance(run.exception, ConnectionError) and "gone" in (run.error or "")


def test_whoever_interrupts_means_the_program() -> None:
    def model(request: dict[str, Any]) -> str:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        overlock.Pipeline(PIPELINE).run(model, "The primes?")
