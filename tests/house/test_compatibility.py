"""Which libraries `make compatibility` asks for."""

from __future__ import annotations

import tomllib

import pytest

from tests.tools import compatibility
from tests.tools.compatibility import COMBINATIONS, ROOT, Combination, tried


def test_the_lowest_versions_are_those_of_the_project() -> None:
    lowest = next(one for one in COMBINATIONS if one.lowest).requirements()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    for one in project["dependencies"]:
        name, version = one.split(",")[0].split(">=")
        assert f"{name}=={version}" in lowest


def test_every_python_that_is_named_is_tried() -> None:
    classifiers = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["classifiers"]
    named = {one.rsplit(" ", 1)[1] for one in classifiers if "Python :: 3." in one}
    assert named <= {one.python for one in COMBINATIONS}


def test_what_cannot_be_had_is_told_and_fails_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compatibility.old_pythons, "found", lambda version: "")
    assert tried(Combination("any", "3.11")) == ("not tried: no Python 3.11 here", False)
