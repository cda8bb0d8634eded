"""The examples in the documentation are correct."""

import doctest
import importlib
import pkgutil
from pathlib import Path
from types import ModuleType

import pytest

import overlock
from overlock import _overlock

MODULES = [overlock] + [
    importlib.import_module(f"overlock.{module.name}")
    for module in pkgutil.iter_modules(overlock.__path__)
]


@pytest.mark.parametrize("module", MODULES, ids=lambda module: str(module.__name__))
def test_the_examples_of_a_module_run(module: ModuleType) -> None:
    assert doctest.testmod(module).failed == 0


def natives() -> list[str]:
    return [name for name in dir(_overlock) if not name.startswith("_")]


@pytest.mark.parametrize("name", natives())
def test_every_native_part_has_an_example_that_runs(name: str) -> None:
    documentation = getattr(_overlock, name).__doc__ or ""
    parsed = doctest.DocTestParser().get_doctest(documentation, {}, name, None, 0)
    assert parsed.examples, f"{name} has no example"
    runner = doctest.DocTestRunner()
    runner.run(parsed)
    assert runner.failures == 0


def test_the_examples_of_the_readme_run() -> None:
    readme = Path(__file__).parents[2] / "README.md"
    failed, tried = doctest.testfile(str(readme), module_relative=False)
    assert (failed, tried > 0) == (0, True)


def test_everything_that_is_exported_is_documented() -> None:
    for name in overlock.__all__:
        assert getattr(overlock, name).__doc__, f"{name} has no documentation"
