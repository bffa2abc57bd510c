"""The catalogue of findings: each is raised somewhere, built by a test, absent in another, and
looked for in recorded files.
"""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from profharness.findings import CATALOGUE, finding
from tests.conftest import shared_path
from tests.finding_cases import CASES, STUDY
from tests.recorded import TOGETHER, summary_of

pytestmark = TOGETHER

ROOT = Path(__file__).resolve().parent.parent
CODE = ROOT.parent / "profharness"
_NONE = re.compile(
    r"== (\(\)|\[\]|\{\}|set\(\))|not in |assert not |<= 1\b|, "
    r"\[\]\)|\[\] if |is None|bool\(|\.severity == \"info\"|else \[\]"
)


def test_unknown_findings_are_refused():
    with pytest.raises(KeyError):
        finding("no-such-thing", "x")


@pytest.mark.parametrize("name", sorted(CATALOGUE))
def test_each_says_what_to_do(name):
    assert CATALOGUE[name].advice
    assert finding(name, "x").severity == CATALOGUE[name].severity


@cache
def made() -> frozenset[str]:
    """Texts of all code but the catalogue: an id stands there as the first argument of `finding(`,
    or in a table of ids that is handed to it.
    """
    return frozenset(
        node.value
        for path in CODE.rglob("*.py")
        if path.parent != CODE / "findings"
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    )


@cache
def functions(path: Path) -> dict[str, tuple[ast.FunctionDef, str]]:
    """The functions of a file, `Class::function` for methods, with their text and that of their
    decorators.
    """
    text = path.read_text(encoding="utf-8")
    lines = text.splitlines()
    found = {}
    for node in ast.parse(text).body:
        inside = node.body if isinstance(node, ast.ClassDef) else [node]
        for one in inside:
            if isinstance(one, ast.FunctionDef):
                first = min([one.lineno, *(mark.lineno for mark in one.decorator_list)])
                label = f"{node.name}::{one.name}" if isinstance(node, ast.ClassDef) else one.name
                found[label] = one, "\n".join(lines[first - 1 : one.end_lineno])
    return found


def text_of(test: str) -> str:
    """The text of a test with that of the functions of its file that it uses, by call or as a
    fixture.
    """
    file, _, name = test.partition("::")
    known = functions(ROOT / file)
    node, text = known[name]
    used = {one.id for one in ast.walk(node) if isinstance(one, ast.Name)} | {
        one.arg for one in node.args.args
    }
    return "\n".join([text, *(known[one][1] for one in sorted(used & set(known) - {name}))])


def test_the_table_is_of_the_catalogue():
    assert set(CASES) == set(CATALOGUE)


@pytest.mark.parametrize("name", sorted(CATALOGUE))
def test_each_is_raised_and_has_its_situation(name):
    assert name in made()
    case = CASES[name]
    assert re.search(rf"[\"']{re.escape(name)}[\"']", text_of(case.builds)), (
        f"{case.builds} does not ask for {name}"
    )
    assert "assert " in text_of(case.builds)
    assert _NONE.search(text_of(case.absent)), f"{case.absent} asks for no absence"


@pytest.mark.parametrize(
    "name",
    sorted(
        name for name, case in CASES.items() if "/" in case.recorded and " " not in case.recorded
    ),
)
def test_the_recorded_file_is_there_and_looked_at(name, shared):
    case = CASES[name]
    assert shared_path(f"fixtures/{case.recorded}").is_file()
    if case.recorded == STUDY:
        assert re.search(
            rf"[\"']{name}[\"']",
            "\n".join(
                text
                for label, (_, text) in functions(
                    ROOT / "analysis/curves/test_saturation.py"
                ).items()
                if label.startswith("test_published")
            ),
        )
    else:
        assert name in {one.id for one in summary_of(case.recorded).findings}


def test_where_no_file_has_it_the_reason_is_a_sentence():
    assert all(len(case.recorded.split()) > 3 for case in CASES.values() if " " in case.recorded)
