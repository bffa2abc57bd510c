"""A notebook that opens a run or files through profharness in Python (nbformat 4.5). It holds code
and the words of the report, and no outputs: whoever opens it runs it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import msgspec

from profharness.analysis.records import Summary
from profharness.report.documents.extract import extract
from profharness.report.documents.markdown import opening, paragraph

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


def notebook(summary: Summary, paths: Sequence[str]) -> bytes:
    """The notebook of a run (one path) or of files, as they are reached from where it lies."""
    cells = [cell.as_json(place) for place, cell in enumerate(_cells(summary, paths))]
    document = {
        "cells": cells,
        "metadata": {"kernelspec": _KERNEL, "language_info": {"name": "python"}},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    return msgspec.json.format(msgspec.json.encode(document), indent=1) + b"\n"


def _cells(summary: Summary, paths: Sequence[str]) -> Iterator[Cell]:
    page = extract(summary)
    said = (("Answer", page.said.answer), ("Next", page.said.next), ("Trust", page.said.trust))
    blocks = [*opening(page), *(paragraph(label, text) for label, text in said)]
    yield Cell("markdown", "\n\n".join(block.rstrip("\n") for block in blocks) + "\n")
    name = "run" if summary.run is not None else "recording"
    opened = "open" if summary.run is not None else "read"
    words = ", ".join(map(repr, paths))
    yield Cell("code", f"import profharness\n\n{name} = profharness.{opened}({words})\n{name}")
    yield Cell("code", f"{name}.verdict")
    if summary.run is not None and summary.points:
        yield Cell("code", f"{name}.points.to_pandas()")
    yield Cell("code", f"{name}.metrics()")
    if summary.hotspots and summary.hotspots[0].rows:
        yield Cell("code", f"{name}.hotspots(by={summary.hotspots[0].by!r}).head(20)")
    yield Cell("code", f"{name}.plot()")
