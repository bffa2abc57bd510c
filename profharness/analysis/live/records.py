"""The state of a run at a moment, as its live page shows it."""

from __future__ import annotations

import msgspec

from profharness.analysis.records import PointSummary
from profharness.stats.time_left import TimeLeft


class LivePoint(msgspec.Struct, frozen=True, kw_only=True):
    """One measurement that has ended. `took_s` is the time since the one before in its pass ended;
    None where the clocks do not say it.
    """

    pass_name: str
    key: str
    name: str
    summary: PointSummary
    took_s: float | None = None


class LivePass(msgspec.Struct, frozen=True, kw_only=True):
    """One pass: what stands around the workload, how far it is. `points` is None where results
    decide on their number, 0 for a command; `seconds` is how long it took, or takes so far.
    """

    name: str
    layers: tuple[str, ...] = ()
    counters: int = 0
    state: str = "planned"
    done: int = 0
    points: int | None = 0
    seconds: float | None = None


class LiveSeries(msgspec.Struct, frozen=True, kw_only=True):
    """One sampled metric of a device (empty for the host) over the last minutes: seconds before the
    newest sample (negative), and values in `unit`.
    """

    metric: str
    unit: str
    device: str = ""
    host: str = ""
    at_s: tuple[float, ...] = ()
    values: tuple[float, ...] = ()


class LiveAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """What the run came to, as the terminal says it, and where its report lies; `failed` says why
    there is no answer.
    """

    answer: str = ""
    next: str = ""
    trust: str = ""
    report: str = ""
    command: str = ""
    failed: str = ""


class LiveRun(msgspec.Struct, frozen=True, kw_only=True):
    """The whole of it. `state` is that of the manifest, or `preparing` before there is one.

    `now` is what is measured and since how many seconds, `following` what comes then, of which
    `more` are not named. `curve` holds the points of the pass that throughput comes from, each once
    over its repeats; `axes` are the names of the axes of a scan of a command.
    """

    title: str
    state: str = "preparing"
    error: str = ""
    kind: str = ""
    facts: tuple[str, ...] = ()
    command: tuple[str, ...] = ()
    unit: str = "items/s"
    seconds: float | None = None
    passes: tuple[LivePass, ...] = ()
    points: tuple[LivePoint, ...] = ()
    curve: tuple[PointSummary, ...] = ()
    curve_pass: str = ""
    axes: tuple[str, ...] = ()
    now: str = ""
    now_s: float | None = None
    following: tuple[str, ...] = ()
    more: int = 0
    done: int = 0
    planned: int | None = None
    left: TimeLeft = TimeLeft(None, "")
    findings: tuple[str, ...] = ()
