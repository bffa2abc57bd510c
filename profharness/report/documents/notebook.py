"""A notebook that opens a run, files, or both sides of a comparison through profharness in Python
(nbformat 4.5). It holds code and the words of the report, and no outputs: whoever opens it runs it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import msgspec

from profharness.analysis.compare.records import Comparison
from profharness.analysis.records import Summary
from profharness.report.documents.extract import VERDICT, Extract, extract
from profharness.report.documents.markdown import opening, paragraph

Kind = Literal["run", "scan", "recording"]
_KERNEL = {"display_name": "Python 3", "language": "python", "name": "python3"}


@dataclass(frozen=True)
class Cell:
    """One cell: `code` or `markdown`, and its text."""

    kind: str
    text: str

    def as_json(self, place: int) -> dict[str, object]:
        """The cell as the format has it; its id is its place, so that the same is written again."""
        of_code: dict[str, object] = {}
        if self.kind == "code":
            of_code = {"execution_count": None, "outputs": []}
        return {
            "cell_type": self.kind,
            "id": f"cell-{place}",
            "metadata": {},
            "source": self.text.splitlines(keepends=True),
            **of_code,
        }


@dataclass(frozen=True)
class Opened:
    """What a notebook opens: a run, the CSV of a scan (one path each) or files, as they are reached
    from where it lies.
    """

    paths: Sequence[str]
    kind: Kind

    @property
    def call(self) -> str:
        """The call that opens it."""
        opened = "open" if self.kind == "run" else "read"
        return f"profharness.{opened}({', '.join(map(repr, self.paths))})"


def notebook(cells: Iterable[Cell]) -> bytes:
    """The notebook of these cells."""
    document = {
        "cells": [cell.as_json(place) for place, cell in enumerate(cells)],
        "metadata": {"kernelspec": _KERNEL, "language_info": {"name": "python"}},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    return msgspec.json.format(msgspec.json.encode(document), indent=1) + b"\n"


def cells(summary: Summary, opened: Opened) -> Iterator[Cell]:
    """The words of a report, then its figures in Python."""
    page = extract(summary)
    # the verdict is a cell of its own
    yield _words(page, [said for said in page.said if said[0] != VERDICT])
    name = opened.kind
    yield Cell("code", f"import profharness\n\n{name} = {opened.call}\n{name}")
    yield Cell("code", f"{name}.verdict")
    if name != "recording" and summary.points:
        yield Cell("code", f"{name}.points.to_pandas()")
    yield Cell("code", f"{name}.metrics({'' if summary.metrics else 'points=True'})")
    if summary.hotspots and summary.hotspots[0].rows:
        yield Cell("code", f"{name}.hotspots(by={summary.hotspots[0].by!r}).head(20)")
    yield Cell("code", f"{name}.plot()")


def cells_of_two(
    page: Extract, comparison: Comparison, opened: tuple[Opened, Opened]
) -> Iterator[Cell]:
    """The words of a comparison, then both sides in Python and what changed from `a` to `b`."""
    yield _words(page, page.said)
    calls = "\n".join(f"{name} = {one.call}" for name, one in zip("ab", opened, strict=True))
    yield Cell("code", f"import profharness\n\n{calls}")
    yield Cell("code", "a")
    yield Cell("code", "b")
    yield Cell("code", "a.compare(b)")
    if comparison.hotspots:
        by = comparison.hotspots[0].by
        yield Cell("code", _HOTSPOTS.format(by=by))
    yield Cell("code", "a.plot()")
    yield Cell("code", "b.plot()")


_HOTSPOTS = """\
columns = ["name", "calls", "total_ns", "mean_ns"]
both = a.hotspots(by={by!r})[columns].merge(
    b.hotspots(by={by!r})[columns], on="name", how="outer", suffixes=("_a", "_b")
)
both["slower_ns"] = both["total_ns_b"].fillna(0) - both["total_ns_a"].fillna(0)
both.sort_values("slower_ns", key=abs, ascending=False).head(20)"""


def _words(page: Extract, said: Iterable[tuple[str, str]]) -> Cell:
    blocks = [*opening(page), *(paragraph(label, text) for label, text in said)]
    return Cell("markdown", "\n\n".join(block.rstrip("\n") for block in blocks) + "\n")
