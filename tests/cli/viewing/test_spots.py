"""`view --at`: which slice a step's number or a kernel's name means, and the link that shows it."""

from __future__ import annotations

import json
from pathlib import Path
from urllib.parse import parse_qs, unquote

import pytest

from profharness.cli.viewing.link import DEFAULT_UI, Link, Spot
from profharness.cli.viewing.spots import kernel_spot, spot_in, step_spot
from profharness.errors import UsageError
from profharness.readers import read
from profharness.trace.model import Kernels, Marks, Source, Strings, Trace
from profharness.writers.perfetto import write
from tests.analysis.time.test_by_launch import ahead
from tests.writers.rich.kineto_file import write_kineto

BASE = 1_795_000_000_000_000_000


def trace() -> Trace:
    """Kernels a, a_long, a, a#2 and steps 3, 4, the latter on two ranks."""
    strings = Strings(("gemm_a", "gemm_a_long", "x#2", "ProfilerStep#3", "ProfilerStep#4", "step"))
    kernels = Kernels.build(
        start_ns=[400, 100, 200, 300],
        dur_ns=[5, 50, 9, 7],
        name=[0, 1, 0, 2],
        source=0,
    )
    marks = Marks.build(
        start_ns=[0, 500, 510], dur_ns=[500, 70, 90], name=[3, 4, 4], kind=5, source=0
    )
    return Trace((Source("t", "kineto"),), strings, kernels=kernels, marks=marks)


@pytest.mark.parametrize(
    ("at", "start", "dur"),
    [
        ("gemm_a", 200, 9),  # the whole name, not the longer launch of another with it in its name
        ("gemm", 100, 50),
        ("gemm#1", 100, 50),
        ("gemm#3", 400, 5),
        ("gemm_a#2", 400, 5),
        ("x#2", 300, 7),  # a name that looks like a launch's number
        ("x#2#1", 300, 7),
    ],
)
def test_a_kernel_is_found_by_name_part_and_number(at: str, start: int, dur: int) -> None:
    spot = kernel_spot(trace(), at)
    assert (spot.start_ns, spot.dur_ns) == (start, dur)


def test_a_step_is_that_of_the_slowest_rank() -> None:
    assert (step_spot(trace(), 3).start_ns, step_spot(trace(), 4).start_ns) == (0, 510)
    assert step_spot(trace(), 4).words == "step 4, 90 ns"


@pytest.mark.parametrize(
    ("at", "hint"), [("conv", "hotspots"), ("gemm#4", "1 to 3"), ("#1", "hotspots")]
)
def test_what_is_not_there_is_told_with_what_is(at: str, hint: str) -> None:
    with pytest.raises(UsageError) as error:
        kernel_spot(trace(), at)
    assert hint in error.value.hint


def test_a_step_that_is_not_there_is_told_with_those_that_are() -> None:
    with pytest.raises(UsageError) as error:
        step_spot(trace(), 9)
    assert error.value.hint == "its steps are 3 to 4"
    with pytest.raises(UsageError, match="no such step"):
        step_spot(Trace((), Strings()), 0)


def test_a_hostile_name_stays_on_its_line() -> None:
    with pytest.raises(UsageError) as error:
        kernel_spot(trace(), "a\x1b[31m\nb")
    assert "\x1b" not in error.value.message
    assert "\n" not in error.value.message


def test_the_link_selects_the_slice_and_pins_tracks() -> None:
    link = Link(DEFAULT_UI, 9001, "/x/m.pftrace", Spot(1_000_000, 100_000, "step 3"))
    _, _, told = link.ui_url.partition("#!/?")
    parameters = {name: values[0] for name, values in parse_qs(told).items()}
    assert (parameters["ts"], parameters["dur"]) == ("1000000", "100000")
    assert (parameters["visStart"], parameters["visEnd"]) == ("980000", "1120000")
    commands = json.loads(parameters["startupCommands"])
    assert {command["id"] for command in commands} == {
        "dev.perfetto.ExpandTracksByRegex",
        "dev.perfetto.PinTracksByRegex",
    }
    assert all(len(c["args"]) == 1 and isinstance(c["args"][0], str) for c in commands)
    assert all(c not in unquote(told.partition("startupCommands=")[0]) for c in "[]{}")


def test_the_spot_is_found_in_a_merged_trace(tmp_path: Path) -> None:
    write(read(write_kineto(tmp_path / "t.json")), tmp_path / "m.pftrace")
    step = spot_in(tmp_path / "m.pftrace", None, "3")
    assert (step.start_ns, step.dur_ns) == (BASE, 100_000)
    kernel = spot_in(tmp_path / "m.pftrace", None, "sgemm")
    assert (kernel.start_ns, kernel.dur_ns) == (BASE + 30_000, 12_000)


def test_a_step_is_shown_with_what_it_launched_and_its_length_on_the_device() -> None:
    """Marked from 40 to 60, run from 205 to 305."""
    spot = step_spot(ahead().build(), 2)
    assert (spot.start_ns, spot.dur_ns, spot.words) == (40, 20, "step 2, 100 ns")
    assert spot.ran == (205, 305)
    assert spot.window[0] <= 40 < 305 <= spot.window[1]
