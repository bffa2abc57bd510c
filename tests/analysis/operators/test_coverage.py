"""How much of a trace its operators explain, each reason built once."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from profharness.analysis.kernels.facts import KernelFacts, Yardstick
from profharness.analysis.operators.coverage import known_work, misfits, operator_share
from profharness.analysis.operators.engine import NO_INPUT, OperatorInput
from profharness.analysis.operators.records import (
    KnownWork,
    OperatorShare,
    add_known_work,
    add_operator_shares,
)
from profharness.analysis.operators.table import TableText
from profharness.analysis.time.linking import link_kernels
from profharness.findings import Finding
from profharness.readers.kineto import reader
from profharness.trace.columns.table import NULL
from profharness.trace.model import Ops, Trace
from tests.analysis.operators import launched

KNOWN = KnownWork(
    matrix_kernel_ns=74_000,
    known_ns=20_000,
    reasons={
        "graph replay": 30_000,
        "no formula": 10_000,
        "no operator around the launch": 7_000,
        "launch not in the file": 5_000,
        "no shapes": 2_000,
    },
)
SHARE = OperatorShare(
    kernel_ns=85_000,
    in_operators_ns=43_000,
    reasons={
        "graph replay": 30_000,
        "no operator around the launch": 7_000,
        "launch not in the file": 5_000,
    },
)


@pytest.fixture
def trace(tmp_path: Path) -> Trace:
    return reader.read(launched.write(tmp_path / "t.json"))


def known(trace: Trace, operator_input: OperatorInput = NO_INPUT) -> KnownWork | None:
    facts = KernelFacts(trace, Yardstick(operator_input=operator_input))
    return known_work(facts, link_kernels(trace))


def test_each_reason_has_the_time_of_its_kernels(trace: Trace) -> None:
    found = known(trace)
    assert found == KNOWN
    assert list(found.reasons) == list(KNOWN.reasons)
    assert found.share == pytest.approx(20 / 74)


def test_a_users_formula_makes_an_operator_known(trace: Trace) -> None:
    found = known(trace, OperatorInput((TableText("mine", launched.FORMULA),)))
    assert found is not None
    assert found.known_ns == 30_000
    assert "no formula" not in found.reasons
    assert known(trace) == KNOWN  # it holds for those who gave it


def test_entries_for_kernels_count_where_no_operator_of_known_work_launched_them(
    trace: Trace,
) -> None:
    text = """
[[formula]]
match = "/^Cijk_/"
kernel = true
kind = "expression"
flops = "1000"
bytes = "64"
dtype = "bf16"
"""
    operator_input = OperatorInput((TableText("mine", text),))
    found = known(trace, operator_input)
    assert found == KnownWork(matrix_kernel_ns=74_000, known_ns=74_000, reasons={})
    work = KernelFacts(trace, Yardstick(operator_input=operator_input)).work
    by_time = {
        int(ns): (flops, moved, NULL if code == NULL else work.dtypes[code])
        for ns, flops, moved, code in zip(
            trace.kernels.dur_ns, work.flops, work.low_bytes, work.dtype, strict=True
        )
    }
    assert by_time.pop(20_000)[::2] == (launched.FLOPS, "fp32")  # its operator tells
    relu = by_time.pop(11_000)
    assert (np.isnan(relu[0]), relu[2]) == (True, NULL)
    assert set(by_time.values()) == {(1000.0, 64.0, "bf16")}


def test_only_the_time_in_a_window_counts(trace: Trace) -> None:
    half = trace.kernels.dur_ns // 2
    found = known_work(KernelFacts(trace), link_kernels(trace), half)
    assert found is not None
    assert (found.matrix_kernel_ns, found.known_ns) == (37_000, 10_000)
    assert known_work(KernelFacts(trace), link_kernels(trace), np.zeros_like(half)) is None


def test_kernel_time_that_was_launched_inside_of_an_operator(trace: Trace) -> None:
    found = operator_share(trace, link_kernels(trace))
    assert found == SHARE
    assert found.share == pytest.approx(43 / 85)


def test_without_operators_or_kernels_there_is_no_share(tmp_path: Path) -> None:
    events = tuple(event for event in launched.EVENTS if event["cat"] != "cpu_op")
    bare = reader.read(launched.write(tmp_path / "bare.json", events))
    assert operator_share(bare, link_kernels(bare)) is None
    found = known(bare)
    assert found is not None
    assert found.reasons == {
        "no operator around the launch": 39_000,
        "graph replay": 30_000,
        "launch not in the file": 5_000,
    }
    events = tuple(event for event in launched.EVENTS if event["cat"] == "cpu_op")
    host = reader.read(launched.write(tmp_path / "host.json", events))
    assert known(host) is None
    assert operator_share(host, link_kernels(host)) is None


def found_misfits(trace: Trace, text: str) -> tuple[Finding, ...]:
    operator_input = OperatorInput((TableText("mine.toml", text),))
    return misfits(KernelFacts(trace, Yardstick(operator_input=operator_input)))


def test_entries_that_do_not_fit_are_counted(trace: Trace) -> None:
    relu = launched.TOO_FAR.replace("my::fused", "/relu|mm/")
    (found,) = found_misfits(trace, launched.TOO_FAR + relu)
    assert found.id == "formula-misfit"
    assert found.severity == "warning"
    assert found.message == (
        "3 operator calls have no figure of work, as the formula that is meant for them does not fit: "
        "mine.toml, entry 2 (/relu|mm/) (2 calls); mine.toml, entry 1 (my::fused) (1 call)"
    )
    assert found.figures == {"calls": 3, "entries": 2, "entry": "mine.toml, entry 2 (/relu|mm/)"}
    (found,) = found_misfits(trace, launched.TOO_FAR)
    assert found.message == (
        "1 operator call has no figure of work, as the formula that is meant for it does not fit: "
        "mine.toml, entry 1 (my::fused) (1 call)"
    )


def test_of_many_entries_three_are_named(trace: Trace, tmp_path: Path) -> None:
    names = [f"my::op{number}" for number in range(5)]
    events = tuple(
        launched.operator(name, 20.0 * place, launched.MM) for place, name in enumerate(names)
    )
    trace = reader.read(launched.write(tmp_path / "five.json", events))
    text = "".join(launched.TOO_FAR.replace("my::fused", name) for name in names)
    (found,) = found_misfits(trace, text)
    assert found.message.endswith("entry 3 (my::op2) (1 call); 2 more")


def test_where_entries_fit_nothing_is_said(trace: Trace) -> None:
    assert found_misfits(trace, launched.FORMULA) == ()
    assert misfits(KernelFacts(replace(trace, ops=Ops.empty()))) == ()


def test_files_add_up() -> None:
    both = add_known_work([KNOWN, None, KNOWN])
    assert both is not None
    assert (both.matrix_kernel_ns, both.known_ns) == (148_000, 40_000)
    assert both.reasons == {reason: 2 * ns for reason, ns in KNOWN.reasons.items()}
    shares = add_operator_shares([None, SHARE])
    assert shares == SHARE
    assert add_known_work([None]) is None
    assert add_operator_shares([]) is None


def test_no_matrix_kernel_has_no_share() -> None:
    assert KnownWork(matrix_kernel_ns=0, known_ns=0, reasons={}).share is None
    assert OperatorShare(kernel_ns=0, in_operators_ns=0, reasons={}).share is None
