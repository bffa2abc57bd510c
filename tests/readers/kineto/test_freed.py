"""What was read of a file is freed as soon as nobody holds it, without a collection of garbage: a
page of many ranks reads one after the other.
"""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator
from pathlib import Path

import pytest

from profharness.readers.kineto import reader, streams
from profharness.trace.wanted import Wanted
from tests.readers.kineto.kineto_files import document, kernel, launch, op, write


@pytest.fixture
def no_collection() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("no_collection")
@pytest.mark.parametrize("wanted", Wanted)
def test_the_rows_of_a_file_are_freed_with_the_trace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wanted: Wanted
) -> None:
    made = []
    for rows in set(streams._ROWS.values()):

        def watched(self, strings, kept=rows.__init__):
            kept(self, strings)
            made.append(weakref.ref(self))

        monkeypatch.setattr(rows, "__init__", watched)
    events = [
        op("aten::mm", 0, 30, 1),
        launch("hipLaunchKernel", 5, 2, 1),
        kernel("k", 10, 20, correlation=1),
    ]
    trace = reader.read(write(tmp_path / "t.json", document(events)), wanted=wanted)
    strings = weakref.ref(trace.strings)
    assert len(trace.kernels) == 1
    assert made
    assert [rows() for rows in made] == [None] * len(made)
    del trace
    assert strings() is None
