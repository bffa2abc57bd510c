"""Device time of operators: on every recorded file equal, to the ns, to a sum that reads the JSON by
itself.
"""

from __future__ import annotations

import bisect
import gzip
import json
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pytest

from profharness.analysis.kernels import hotspots
from profharness.readers.kineto import reader
from tests.conftest import shared_path
from tests.variants import but_for

FILES = sorted(shared_path("fixtures/kineto").glob("*.json.gz"))
OPERATORS = ("cpu_op", "Operator")
CALLS = ("cuda_runtime", "cuda_driver", "Runtime")
DEVICE = ("kernel", "Kernel", "gpu_memcpy", "gpu_memset", "Memcpy", "Memset")
MARKS = ("ProfilerStep#", "profharness.")


def ns(microseconds: str) -> int:
    whole, _, part = microseconds.partition(".")
    return int(whole) * 1000 + round(float(f"0.{part or 0}") * 1000)


@pytest.mark.slow
@pytest.mark.parametrize(
    "path",
    but_for(FILES, lambda path: path.stat().st_size < 500_000),
    ids=[path.name.partition(".")[0] for path in FILES],
)
def test_device_time_by_operator_is_that_of_the_file(path: Path) -> None:
    events = events_of(path)
    if not any(event.get("cat") in OPERATORS for event in events):
        pytest.skip("the file holds no operators")
    if not any(event.get("cat") in DEVICE for event in events):
        pytest.skip("the file holds no timed device work")
    table = hotspots.by_op(reader.read(path))
    expected, outside = summed(events)
    assert {row.name: row.device_ns for row in table.rows if row.device_ns} == expected
    assert table.device_ns_outside == outside


def test_the_files_are_there(shared: Path) -> None:
    assert len(list((shared / "fixtures/kineto").glob("*.json.gz"))) == len(FILES) > 20


def events_of(path: Path) -> list[dict[str, Any]]:
    """The spans of a file, numbers as they are written."""
    with gzip.open(path) as file:
        document = json.load(file, parse_float=str, parse_int=str)
    events = document.get("traceEvents", ()) if isinstance(document, dict) else document
    return [event for event in events if event.get("ph") == "X"]


def summed(events: list[dict[str, Any]]) -> tuple[dict[str, int], int]:
    """Device time by the name of the innermost operator that is open when the launching call
    begins, and that of work which no operator launched.
    """
    operators: dict[Any, list[tuple[int, int, str]]] = defaultdict(list)
    calls: dict[str, tuple[tuple[bool, int, int], dict[str, Any]]] = {}
    for event in events:
        category = event.get("cat")
        if category in OPERATORS and not event["name"].startswith(MARKS):
            span = (ns(event["ts"]), -ns(event.get("dur", "0")), event["name"])
            operators[event["pid"], event["tid"]].append(span)
        elif category in CALLS and (number := event.get("args", {}).get("correlation")):
            rank = ("Launch" in event["name"], -ns(event["ts"]), ns(event.get("dur", "0")))
            if number not in calls or rank > calls[number][0]:
                calls[number] = (rank, event)
    for spans in operators.values():
        spans.sort(key=lambda span: span[:2])
    starts = {thread: [span[0] for span in spans] for thread, spans in operators.items()}
    inside: Counter[str] = Counter()
    outside = 0
    for event in events:
        if event.get("cat") not in DEVICE:
            continue
        call = calls.get(event.get("args", {}).get("correlation"))
        name = None if call is None else around(call[1], operators, starts)
        length = ns(event.get("dur", "0"))
        if name is None:
            outside += length
        elif length:
            inside[name] += length
    return dict(inside), outside


def around(call: dict[str, Any], operators: Any, starts: Any) -> str | None:
    thread, at = (call["pid"], call["tid"]), ns(call["ts"])
    if thread not in operators:
        return None
    for start, negative, name in reversed(
        operators[thread][: bisect.bisect_right(starts[thread], at)]
    ):
        if start <= at < start - negative:
            return str(name)
    return None
