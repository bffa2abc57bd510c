"""Each promise of SECURITY.md names a test or a command, and that is there."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from profharness.cli import COMMANDS

ROOT = Path(__file__).resolve().parent.parent.parent
TEXT = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
PROMISED = TEXT.partition("\n## What is promised\n")[2].partition("\n## What is not promised\n")[0]
PROMISES = [
    " ".join(f"- {one}".split()) for one in re.split(r"^- ", PROMISED, flags=re.MULTILINE)[1:]
]
SHOWN_BY = re.compile(r"`(tests/[\w/]+\.py)::(test_\w+)`")
TARGET = re.compile(r"`make (\w[\w-]*)`")


@cache
def names_in(file: Path) -> frozenset[str]:
    return frozenset(
        node.name
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef)
    )


def test_there_are_promises_and_what_is_not_promised() -> None:
    assert len(PROMISES) >= 12
    assert "\n## What is not promised\n" in TEXT
    assert "\n## Reporting\n" in TEXT


@pytest.mark.parametrize("promise", PROMISES, ids=lambda text: text[2:50])
def test_each_promise_is_shown_by_something_that_exists(promise: str) -> None:
    shown, targets = SHOWN_BY.findall(promise), TARGET.findall(promise)
    assert shown or targets, promise
    for file, test in shown:
        assert (ROOT / file).is_file(), file
        assert test in names_in(ROOT / file), f"{file} has no {test}"
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in targets:
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target


def test_the_commands_that_it_speaks_of_are_there() -> None:
    known = dict(COMMANDS)
    for name in re.findall(r"`profharness (\w+)", TEXT):
        assert name in known, name


def test_links_into_it_lead_somewhere() -> None:
    anchors = set(re.findall(r'<a id="([\w-]+)"></a>', TEXT))
    for path in [*(ROOT / "docs").rglob("*.md"), ROOT / "README.md", ROOT / "CONTRIBUTING.md"]:
        text = path.read_text(encoding="utf-8")
        for anchor in re.findall(r"SECURITY\.md#([\w-]+)", text):
            assert anchor in anchors, f"{path.name}: SECURITY.md#{anchor}"
