"""Why a command on the CPU moved: operators on other inputs, that switched, that are called more
often; and noise.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from profharness import readers
from profharness.analysis.compare.operator_reasons import (
    OperatorSide,
    operator_reasons,
    other_inputs,
    side,
)
from profharness.analysis.compare.runs import compare
from profharness.analysis.records import HotspotRow, Hotspots, Partition, Summary
from profharness.analysis.summarise import summarise_trace
from profharness.cli.compare import _lines
from profharness.findings import finding
from tests.readers.kineto.kineto_files import document, event, op, write

MS = 1000


def row(
    name: str,
    calls: int,
    total: int,
    whole: int,
    *,
    shapes: str | None = None,
    dtypes: str | None = None,
) -> HotspotRow:
    return HotspotRow(
        name=name,
        category="other",
        calls=calls,
        total_ns=total,
        share=total / whole,
        mean_ns=total / calls,
        median_ns=None,
        min_ns=None,
        max_ns=None,
        std_ns=None,
        shapes=shapes,
        dtypes=dtypes,
    )


def ran(time: float, running: float = 1.0, **operators: tuple[int, int]) -> OperatorSide:
    """Operators by name: calls and ns."""
    whole = sum(total for _, total in operators.values())
    return OperatorSide(
        time,
        Hotspots(
            by="op",
            total_ns=whole,
            rows=tuple(
                row(name, calls, total, whole) for name, (calls, total) in operators.items()
            ),
        ),
        running,
    )


def told(
    a: OperatorSide, b: OperatorSide, noise: float | None = None
) -> list[tuple[str, str, float]]:
    return [
        (one.kind, one.message, round(one.effect or 0.0, 6))
        for one in operator_reasons(a, b, noise)
    ]


def test_effects_are_time_per_step_as_shares_of_as() -> None:
    # A: 10 per step, all of it operators, of which mm takes 8. B: 16, of which a fifth is none: mm
    # takes 0.875 of 12.8, that is 11.2. add loses 0.4, which is too little.
    a, b = ran(10.0, mm=(10, 800), add=(10, 200)), ran(16.0, 0.8, mm=(10, 1_120), add=(10, 160))
    assert told(a, b) == [("operator-time", "mm takes 1.40 times as long per call", 0.32)]
    assert told(a, a) == []


def test_an_operator_that_is_called_more_often() -> None:
    ((kind, message, effect),) = told(
        ran(10.0, mm=(10, 500), add=(10, 500)), ran(15.0, mm=(20, 1_000), add=(10, 500))
    )
    assert (kind, message, effect) == ("operator-time", "mm is called 2.00 times as often", 0.5)


def test_operators_of_one_run_alone_are_a_switch() -> None:
    found = told(
        ran(10.0, conv=(10, 900), add=(10, 100)), ran(5.0, mkldnn=(10, 400), add=(10, 100))
    )
    assert found[0] == (
        "operators-switched",
        "gone: conv (90.0 % of operator time); new: mkldnn (80.0 % of operator time)",
        -0.5,
    )


def test_effects_within_the_noise_are_not_told() -> None:
    a, b = ran(10.0, mm=(10, 800), add=(10, 200)), ran(12.0, mm=(10, 1_000), add=(10, 200))
    assert [message for _, message, _ in told(a, b)] == ["mm takes 1.25 times as long per call"]
    assert told(a, b, noise=0.3) == []


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        (
            ("[[128, 384], [384, 384]]", '["float", "float"]'),
            ("[[512, 384], [384, 384]]", '["float", "float"]'),
            "on inputs 512x384, 384x384 instead of 128x384, 384x384",
        ),
        (
            ("[[8]]", '["float", "Scalar"]'),
            ("[[8]]", '["c10::BFloat16", "Scalar"]'),
            "on BFloat16 instead of float",
        ),
        (("[[8]]", '["float"]'), ("[[8]]", '["float"]'), ""),
        ((None, None), ("[[8]]", '["float"]'), ""),
        (("[[8]]", "x"), ("damaged", "x"), ""),
        (
            ("[[8], []]", '["float", "Scalar"]'),
            ("[[8], [], []]", '["float", "", "Scalar"]'),
            "",
        ),  # the same tensors, other scalars
    ],
)
def test_other_inputs_are_told(
    before: tuple[str | None, str | None], after: tuple[str | None, str | None], said: str
) -> None:
    one, two = (
        row("mm", 1, 10, 10, shapes=shapes, dtypes=dtypes) for shapes, dtypes in (before, after)
    )
    assert other_inputs(one, two) == said


def recorded(folder: Path, name: str, rows: int, length: int) -> Summary:
    """Twelve steps: a product that takes `length` us on inputs of `rows`, and a sum of 1 ms, whose
    inputs were not recorded.
    """
    events, at = [], 0
    for step in range(12):
        whole = length + 2 * MS
        events += [
            event("user_annotation", f"ProfilerStep#{step}", at, whole),
            op(
                "aten::mm",
                at + 100,
                length,
                step,
                Input_Dims=[[rows, 64], [64, 64]],
                Input_type=["float", "float"],
            ),
            op("aten::sum", at + 200 + length, MS, 100 + step),
        ]
        at += whole
    return summarise_trace(readers.read(write(folder / f"{name}.json", document(events))), name)


def test_two_recorded_commands_end_to_end(tmp_path: Path) -> None:
    small, large = (
        recorded(tmp_path, "small", 128, 4 * MS),
        recorded(tmp_path, "large", 512, 16 * MS),
    )
    comparison = compare(small, large)
    (reason,) = comparison.reasons
    assert reason.message == (
        "aten::mm takes 4.00 times as long per call, on inputs 512x64, "
        "64x64 instead of 128x64, 64x64"
    )
    assert reason.effect == pytest.approx(2.0, rel=0.02)  # twelve more ms of six
    (table,) = comparison.hotspots
    assert (
        next(one.reason for one in table.rows if one.name == "aten::mm")
        == "on inputs 512x64, 64x64 instead of 128x64, 64x64"
    )
    (line,) = [line.split() for line in _lines(comparison, ()) if line.lstrip().startswith("why")]
    assert line[:5] == ["why", f"{100 * (reason.effect or 0):+.1f}", "%", "aten::mm", "takes"]
    assert compare(small, small).reasons == ()


def test_a_run_with_device_work_is_explained_by_its_kernels(tmp_path: Path) -> None:
    import msgspec

    small = recorded(tmp_path, "small", 128, 4 * MS)
    assert side(small, 1.0) is not None
    partition = Partition(
        window_ns=10,
        compute_ns=10,
        exposed_communication_ns=0,
        exposed_copy_ns=0,
        idle_ns=0,
        communication_ns=0,
        copy_ns=0,
    )
    assert side(msgspec.structs.replace(small, partition=partition), 1.0) is None
    assert side(msgspec.structs.replace(small, hotspots=()), 1.0) is None


def test_errors_of_a_run_stand_beside_its_name(tmp_path: Path) -> None:
    import msgspec

    whole = recorded(tmp_path, "whole", 128, 4 * MS)
    cut = msgspec.structs.replace(
        whole, findings=(finding("run-incomplete", "x"), finding("cpu-pressure", "y"))
    )
    first, second = list(_lines(compare(whole, cut), ()))[:2]
    assert first == "A  whole"
    assert second == "B  whole   (not sound by itself: run-incomplete)"
