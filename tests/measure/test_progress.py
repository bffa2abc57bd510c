from __future__ import annotations

import io

import pytest

from profharness.analysis.records import Estimate
from profharness.measure.progress import (
    Beside,
    LogProgress,
    NullProgress,
    TerminalProgress,
    open_progress,
)
from profharness.units import format_number


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Clock:
    """A clock that tests move by hand."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_a_pipe_gets_one_line_per_pass() -> None:
    stream = io.StringIO()
    with open_progress(stream) as progress:
        progress.pass_started("bare", 2)
        progress.point_done("bare", "batch 4", 1)
        assert stream.getvalue() == ""
        progress.point_done("bare", "batch 8", 2)
        progress.pass_done("bare", 58.4, None)
        progress.pass_started("torch", 2)
        progress.point_done("torch", "batch 8", 2)
        progress.pass_done("torch", 31.0, Estimate(value=0.031, low=0.027, high=0.035))
    assert (
        stream.getvalue()
        == "bare: 2/2 points, 0:58\ntorch: 2/2 points, 0:31, overhead 3.1 % ± 0.4\n"
    )


def test_an_interrupted_pass_says_how_far_it_came() -> None:
    stream = io.StringIO()

    def interrupted() -> None:
        with LogProgress(stream) as progress:
            progress.pass_started("bare", 10)
            progress.point_done("bare", "batch 256", 7)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert stream.getvalue() == "bare: stopped after 7/10 points, the last being batch 256\n"


def test_a_terminal_shows_the_live_page_in_short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rate, the curve so far as heights over zero, what follows, and what was sampled."""
    monkeypatch.setenv("COLUMNS", "140")
    monkeypatch.setenv("TERM", "xterm")
    stream, clock = Terminal(), Clock()
    with TerminalProgress(stream, now=clock) as progress:
        progress.pass_started("bare", 4)
        for number, rate in enumerate((800.0, 1600.0, 3200.4), 1):
            clock.now += 2.0
            beside = Beside(rate, "jets/s", f"batch {2**number}", lambda: "97 W")
            progress.point_done("bare", f"batch {2 ** (number - 1)}", number, beside)
        progress.refresh()
    said = stream.getvalue()
    assert f"batch 4   0:02 left   {format_number(3200)} jets/s ▂▄█   next batch 8   97 W" in said


def test_what_is_sampled_is_asked_for_only_where_it_is_shown() -> None:
    def asked() -> str:
        raise AssertionError("nobody shows it")

    for progress in (NullProgress(), LogProgress(io.StringIO())):
        with progress:
            progress.pass_started("bare", 1)
            progress.point_done("bare", "batch 1", 1, Beside(1.0, "jets/s", "", asked))


def test_an_adaptive_pass_has_no_total() -> None:
    stream = io.StringIO()
    with LogProgress(stream) as progress:
        progress.pass_started("bare", None)
        progress.point_done("bare", "concurrency 8", 1)
        progress.pass_done("bare", 5.0, None)
    assert stream.getvalue() == "bare: 1 point, 0:05\n"


def test_a_terminal_shows_points_elapsed_time_left_and_overhead(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setenv("TERM", "xterm")
    stream, clock = Terminal(), Clock()
    with TerminalProgress(stream, now=clock) as progress:
        progress.pass_started("rocprofv3", 10)
        clock.now += 24.0
        progress.point_done("rocprofv3", "batch 256", 6)
        progress.refresh()
        running = stream.getvalue()
        progress.pass_done("rocprofv3", 40.0, Estimate(value=0.02, low=0.01, high=0.03))
    done = stream.getvalue()[len(running) :]
    assert "████████████░░░░░░░░" in running
    assert " 6/10" in running
    assert "0:24" in running
    assert "batch 256   0:16 left" in running
    assert "0:40" in done
    assert "overhead 2.0 % ± 1.0" in done


def test_an_adaptive_pass_on_a_terminal_counts_without_a_total(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    stream = Terminal()
    with TerminalProgress(stream, now=Clock()) as progress:
        progress.pass_started("bare", None)
        progress.point_done("bare", "concurrency 8", 3)
        progress.pass_done("bare", 5.0, None)
    assert "░░░░" in stream.getvalue()
    assert " 3 " in stream.getvalue()


def test_quiet_says_nothing_and_each_stream_gets_its_kind() -> None:
    stream = io.StringIO()
    with open_progress(stream, quiet=True) as progress:
        assert isinstance(progress, NullProgress)
        progress.pass_started("bare", 2)
        progress.point_done("bare", "batch 4", 1)
        progress.pass_done("bare", 1.0, None)
    assert stream.getvalue() == ""
    assert isinstance(open_progress(io.StringIO()), LogProgress)
    assert isinstance(open_progress(Terminal()), TerminalProgress)
