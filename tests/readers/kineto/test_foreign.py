"""Chrome traces of other programs are named, and not read as empty ones of torch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from profharness import readers
from profharness.errors import InputError
from profharness.trace.wanted import Wanted
from tests.readers.kineto.kineto_files import event, kernel, write


def named(name: str) -> dict[str, Any]:
    return {"ph": "M", "name": "process_name", "pid": 3, "args": {"name": name}}


SPAN = {"ph": "X", "name": "fusion.1", "pid": 3, "tid": 1, "ts": 1, "dur": 2}
OTHERS: list[tuple[Any, str]] = [
    ({"traceEvents": [named("/device:GPU:0"), SPAN]}, "TensorFlow or JAX: none of its 1 events"),
    ({"traceEvents": [event("FEE", "f", 1, 1)], "viztracer_metadata": {}}, "VizTracer: none"),
    ({"traceEvents": [SPAN], "beginningOfTime": 3}, r"clang \(-ftime-trace\)"),
    ([SPAN, event("net", "g", 1, 1)], r"another program: .* \(it has no category, net\)"),
    (
        {"traceEvents": [event(f"kind{n}", "g", 1, 1) for n in range(5)]},
        r"another program: none of its 5 events is of .* \(it has kind0, kind1, kind2, kind3, \.\.\.\)",
    ),
]


@pytest.mark.parametrize("wanted", Wanted)
@pytest.mark.parametrize(("content", "said"), OTHERS)
def test_other_programs_are_named(tmp_path: Path, content: Any, said: str, wanted: Wanted) -> None:
    path = write(tmp_path / "t.json", content)
    with pytest.raises(InputError, match=rf"t\.json is a Chrome trace of {said}"):
        readers.read(path, wanted=wanted)


@pytest.mark.parametrize(
    "content",
    [
        {"traceEvents": []},
        {"traceEvents": [named("python")]},
        {"traceEvents": [SPAN], "schemaVersion": 1},
        {"traceEvents": [SPAN, {**SPAN, "cat": "ac2g", "ph": "s"}]},
        {"traceEvents": [SPAN, kernel("k", 1, 1)]},
        {"traceEvents": [SPAN, {**kernel("k", 1, 1), "ph": "B"}]},
        {"traceEvents": [event("cpu_op", "aten::mm", 1, 1)]},
        *(
            {"traceEvents": [{**SPAN, **one}, {"ph": "i", "name": "Record Window End", "ts": 9}]}
            for one in (
                {"cat": "cpu_op"},
                {"cat": "python_function"},
                {"cat": "cuda_runtime"},
                {"cat": "cpu_instant_event", "ph": "i"},
                {"ph": "C", "pid": "GPU 0 Counters", "args": {"": 1}},
            )
        ),
    ],
)
@pytest.mark.parametrize("wanted", Wanted)
def test_files_of_torch_are_read_however_little_they_hold(
    tmp_path: Path, content: Any, wanted: Wanted
) -> None:
    readers.read(write(tmp_path / "t.json", content), wanted=wanted)
