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
        if "[[overlap-" not in asked:
            return '{"primes": [2, 3, 5, 7, 1'
        return str(asked.split("[[overlap-")[-1].split("]]\n", 1)[1].split("\n[[/overlap-")[0]) + "1, 13]}"

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


SEARCH = """
pipeline:
  name: find
  settings: { entry_step_id: find, max_context_tokens: 1000, model: gpt-4o-mini }
  steps:
    - id: find
      action: search_nodes
      search_type: semantic
      top_k: 1
      next: ask
    - id: ask
      action: call_model
      prompt: Say what it is.
      user_parts: { question: { source: user_question, template: "{}" } }
      max_output_tokens: 100
      next: end
    - id: end
      action: finalize
      end: true
"""


def test_a_run_that_failed_goes_on_where_it_was(tmp_path: Path) -> None:
    requests: list[dict[str, Any]] = []
    is_there = False

    def model(request: dict[str, Any]) -> str:
        requests.append(request)
        asked = str(request["messages"][-1]["content"])
        if "[[overlap-" not in asked:
            return '{"primes": [2, 3, 5, 7, 1'
        if not is_there:
            raise ConnectionError("gone")
        return asked.split("[[overlap-")[-1].split("]]\n", 1)[1].split("\n[[/overlap-")[0] + "1, 13]}"

    store = tmp_path / "runs.db"
    failed = overlock.Pipeline(PIPELINE).run(model, "The primes?", store=store)
    assert (failed.outcome, failed.step_id) == ("failed", "ask")
    is_there = True
    first = len(requests)
    run = overlock.Pipeline.resume(model, failed.run, store=store)
    assert (run.run, run.outcome) == (failed.run, "complete")
    assert run.answer == '{"primes": [2, 3, 5, 7, 11, 13]}'
    assert len(requests) == first + 1, "the answer that was recorded is not asked for again"
    assert run.state["user_question"] == "The primes?"
    over = overlock.Pipeline.resume(model, failed.run, store=store)
    assert (over.outcome, over.answer, len(requests)) == ("complete", run.answer, first + 1)


def test_a_run_goes_on_with_a_pipeline_that_was_mended(tmp_path: Path) -> None:
    def model(request: dict[str, Any]) -> str:
        if "mended" not in request["messages"][0]["content"]:
            raise ConnectionError("gone")
        return "[1]"

    store = tmp_path / "runs.db"
    failed = overlock.Pipeline(PIPELINE).run(model, "?", store=store)
    mended = overlock.Pipeline(PIPELINE.replace("Answer with JSON.", "Answer with mended JSON."))
    run = overlock.Pipeline.resume(model, failed.run, store=store, pipeline=mended)
    assert (run.outcome, run.answer) == ("complete", "[1]")


def test_a_run_that_is_not_there_is_told(tmp_path: Path) -> None:
    def model(request: dict[str, Any]) -> str:
        return "[1]"

    pipeline = overlock.Pipeline(PIPELINE)
    pipeline.run(model, "?", store=tmp_path / "runs.db")
    elsewhere = pipeline.run(model, "?").run
    for run, store, code in [
        ("nonsense", "runs.db", "no-run"),
        (elsewhere, "runs.db", "no-run"),
        (elsewhere, "none.db", "store"),
    ]:
        with pytest.raises(overlock.BadRequest) as caught:
            overlock.Pipeline.resume(model, run, store=tmp_path / store)
        assert caught.value.code == code


def embed(texts: list[str]) -> list[list[float]]:
    """Embeds a text by whether it is about a cart or a bird."""
    return [[1.0, 0.1] if "Cart" in text or "buy" in text else [0.1, 1.0] for text in texts]


def test_what_a_folder_defines_is_found_by_meaning(tmp_path: Path) -> None:
    sources = tmp_path / "shop"
    sources.mkdir()
    (sources / "Cart.cs").write_text("class Cart { int CartTotal() { return 1; } }")
    (sources / "Bird.cs").write_text("class Bird { void Sing() { } }")
    store = tmp_path / "code.db"
    indexed = overlock.index(sources, store=store, embed=embed, embed_model="meanings")
    assert (indexed.repository, indexed.files, indexed.changed) == ("shop", 2, 2)
    assert indexed.vectors == indexed.nodes > 0
    again = overlock.index(sources, store=store, embed=embed, embed_model="meanings")
    assert (again.changed, again.unchanged, again.vectors) == (0, 2, 0)

    pipeline = overlock.Pipeline(SEARCH)
    for question, path in [("Who can buy?", "Cart.cs"), ("Who sings?", "Bird.cs")]:
        run = pipeline.run(
            lambda request: "Found.", question, store=store, embed=embed, embed_model="meanings"
        )
        assert run.outcome == "complete"
        assert run.state["search_hits"][0]["path"] == path
    without = pipeline.run(lambda request: "Found.", "Who?", store=store)
    assert (without.outcome, without.step_id) == ("failed", "find")
    run = overlock.Pipeline.resume(lambda request: "Found.", without.run, store=store, embed=embed, embed_model="meanings")
    assert run.outcome == "complete"


def test_a_search_in_an_unknown_repository_is_refused_before_the_run(tmp_path: Path) -> None:
    sources = tmp_path / "shop"
    sources.mkdir()
    (sources / "Cart.cs").write_text("class Cart { }")
    store = tmp_path / "code.db"
    overlock.index(sources, store=store, embed=embed, embed_model="meanings")
    pipeline = overlock.Pipeline(SEARCH)

    def model(request: dict[str, Any]) -> str:
        raise AssertionError("the model is not asked")

    for place, repository, code in [
        (store, "shpo", "no-repository"),
        (tmp_path / "typo.db", None, "store"),
        (None, None, "no-repository"),
    ]:
        with pytest.raises(overlock.BadRequest) as caught:
            pipeline.run(model, "Who?", store=place, repository=repository)
        assert caught.value.code == code
    assert not (tmp_path / "typo.db").exists()


def test_what_an_embedder_does_wrong_is_told(tmp_path: Path) -> None:
    sources = tmp_path / "shop"
    sources.mkdir()
    (sources / "Cart.cs").write_text("class Cart { }")
    store = tmp_path / "code.db"

    def unreachable(texts: list[str]) -> list[list[float]]:
        raise ConnectionError("gone")

    with pytest.raises(ConnectionError):
        overlock.index(sources, store=store, embed=unreachable, embed_model="meanings")
    with pytest.raises(ValueError, match="0 vectors for"):
        overlock.index(sources, store=store, embed=lambda texts: [], embed_model="meanings")
    with pytest.raises(ValueError, match="`embed_model`"):
        overlock.index(sources, store=store, embed=embed)
    with pytest.raises(ValueError, match="`embed_model` needs `embed`"):
        overlock.index(sources, store=store, embed_model="meanings")
    with pytest.raises(overlock.BadRequest, match="no such folder"):
        overlock.index(tmp_path / "none", store=store)
    overlock.index(sources, store=store, embed=embed, embed_model="meanings")
    run = overlock.Pipeline(SEARCH).run(
        lambda request: "Found.", "Who?", store=store, embed=unreachable, embed_model="meanings"
    )
    assert (run.outcome, run.step_id) == ("failed", "find")
    assert isinstance(run.exception, ConnectionError)


def test_whoever_interrupts_means_the_program_and_can_go_on(tmp_path: Path) -> None:
    def model(request: dict[str, Any]) -> str:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as caught:
        overlock.Pipeline(PIPELINE).run(model, "The primes?", store=tmp_path / "runs.db")
    notes = getattr(caught.value, "__notes__", None)
    if notes is None:
        return  # Python before 3.11 has no notes
    run = notes[0].split("`")[1]
    resumed = overlock.Pipeline.resume(lambda request: "[1]", run, store=tmp_path / "runs.db")
    assert resumed.outcome == "complete"
