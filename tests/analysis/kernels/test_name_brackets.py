"""Names of kernels with thousands of brackets: judged by runs, as one bracket after the other."""

from __future__ import annotations

import re

from hypothesis import given, settings
from hypothesis import strategies as st

from profharness.analysis.kernels.categories import function_name
from tests.steps import calls_of

_ONE = re.compile(r"[<()]|(?<!-)>")


def one_by_one(name: str) -> str:
    """A plain name, which nothing mangled, without what its brackets hold."""
    depth, at = 0, 0
    kept: list[str] = []
    for bracket in _ONE.finditer(name):
        if depth == 0 and bracket.start() > at:
            kept.append(name[at : bracket.start()])
        at = bracket.end()
        if bracket[0] in "<(":
            if bracket[0] == "(" and depth == 0 and kept and not kept[-1].endswith(" "):
                break
            depth += 1
        else:
            depth = max(depth - 1, 0)
    else:
        if depth == 0:
            kept.append(name[at:])
    return "".join(kept).strip().rpartition(" ")[2] or name


@settings(max_examples=2000)
@given(st.text(alphabet="<>()- ab", max_size=24))
def test_brackets_by_runs_are_brackets_one_by_one(name: str) -> None:
    assert function_name(name) == one_by_one(name)


def test_many_brackets_take_few_steps() -> None:
    for some in ("<a>", "<", ")", "<<b>"):
        name = f"k{some * 2000}"
        assert function_name(name) == one_by_one(name)
    assert calls_of(lambda: function_name(f"k{'<a>' * 2000}")) < 100
    assert calls_of(lambda: function_name(f"k{'<' * 2000}{'>' * 2000}")) < 100
