"""What of a run is done, measured now and to come, from its manifest and its points' folders."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from profharness.analysis.live.points import key_of, point_words
from profharness.analysis.live.records import LivePass
from profharness.rundir.manifest import Manifest, PassRecord, PointRecord
from profharness.stats.time_left import Part, TimeLeft, Took, time_left

BARE = "bare"
NAMED = 4
"""Of what comes next, so many are named."""
_S = 1e9


@dataclass(frozen=True)
class Clock:
    """The node's clocks now, in ns: CLOCK_BOOTTIME, and how far it is ahead of CLOCK_MONOTONIC."""

    boot_ns: int
    ahead_ns: int

    def boot_of(self, monotonic_ns: int) -> int:
        """A time of CLOCK_MONOTONIC as one of CLOCK_BOOTTIME."""
        return monotonic_ns + self.ahead_ns


@dataclass(frozen=True)
class Order:
    """`took` is by pass and key; the rest as in `LiveRun`."""

    passes: tuple[LivePass, ...]
    took_s: Mapping[tuple[str, str], float]
    now: str
    now_s: float | None
    following: tuple[str, ...]
    more: int
    done: int
    planned: int | None
    left: TimeLeft


def order_of(manifest: Manifest, clock: Clock, begun: Collection[str] = ()) -> Order:
    """The order of a run. `begun` are the keys of those points of the running pass that
    have a folder, for a search, whose points nobody planned.
    """
    took = _took(manifest, clock)
    running = next((one for one in manifest.passes if one.state == "running"), None)
    ahead, open_ended = _ahead(manifest)
    since = None if running is None else _since(manifest, running, clock)
    passes = tuple(_pass(manifest, record, clock) for record in manifest.passes)
    if manifest.scan is None:
        return _of_command(manifest, passes, since)
    known = {(point.pass_name, key_of(point)) for point in manifest.points}
    now = ""
    if running is not None:
        named = [key for name, key in ahead if name == running.name]
        open_now = [key for key in begun if (running.name, key) not in known]
        now = named[0] if named else open_now[-1] if open_now else ""
    rest = [key for name, key in ahead if (name, key) != (running and running.name, now)]
    parts = [Part(name, key.partition("~")[0]) for name, key in ahead]
    done = [Took(Part(name, key.partition("~")[0]), one) for (name, key), one in took.items()]
    left = time_left(done, parts, since or 0.0)
    if open_ended:
        left = _of_search(manifest, took, since)
    elif manifest.state != "running":
        left = TimeLeft(None, "")
    return Order(
        passes=passes,
        took_s=took,
        now=point_words(now) if now else "",
        now_s=since,
        following=tuple(map(point_words, rest[:NAMED])),
        more=max(len(rest) - NAMED, 0),
        done=len(known),
        planned=_levels(manifest) if open_ended else len(known) + len(ahead),
        left=left,
    )


def _levels(manifest: Manifest) -> int | None:
    """How many points a search by so many levels measures in its bare pass; None for another."""
    levels = manifest.scan.settings.get("search") if manifest.scan is not None else None
    return levels if isinstance(levels, int) else None


def _of_search(
    manifest: Manifest, took: Mapping[tuple[str, str], float], since: float | None
) -> TimeLeft:
    """A search names its points one by one, and may know how many there will be."""
    levels, bare = _levels(manifest), [one for (name, _), one in took.items() if name == BARE]
    if levels is None or not bare:
        return TimeLeft(None, "not known: each result decides on the point after it")
    mean = sum(bare) / len(bare)
    rest = max(levels - len(_of(manifest.points, BARE)), 0)
    return TimeLeft(
        max(rest * mean - (since or 0.0), 0.0),
        f"{rest} of {levels} points are to come, and one took {mean:.3g} s on average",
    )


def _of_command(manifest: Manifest, passes: tuple[LivePass, ...], since: float | None) -> Order:
    """A command has passes alone, of which each executes it once."""
    planned = [one.name for one in manifest.passes if one.state == "planned"]
    running = next((one for one in passes if one.state == "running"), None)
    ended = [one for one in passes if one.state == "done" and one.seconds is not None]
    done = [Took(Part("", "the command"), one.seconds or 0.0) for one in ended]
    ahead = [Part("", "the command")] * (len(planned) + (running is not None))
    left = TimeLeft(None, "")
    if manifest.state == "running" and ahead:
        left = (
            time_left(done, ahead, since or 0.0)
            if done
            else TimeLeft(None, "not known: the command has not been executed before")
        )
        if done:
            total = sum(took.seconds for took in done) / len(done)
            left = TimeLeft(left.seconds, f"an execution so far took {total:.3g} s on average")
    return Order(
        passes=passes,
        took_s={},
        now="" if running is None else f"the command, {pass_words(running)}",
        now_s=since,
        following=tuple(f"the {name} pass" for name in planned[:NAMED]),
        more=max(len(planned) - NAMED, 0),
        done=len(ended),
        planned=len(passes),
        left=left,
    )


def pass_words(one: LivePass) -> str:
    """What stands around the workload in a pass."""
    around = ", ".join(one.layers)
    return f"under {around}" if around else "without layers"


def _ahead(manifest: Manifest) -> tuple[list[tuple[str, str]], bool]:
    """Pass and key of each point that has no record yet, in order; and whether there are points
    that nobody can name yet.
    """
    if manifest.scan is None:
        return [], False
    known = {(point.pass_name, key_of(point)) for point in manifest.points}
    ahead: list[tuple[str, str]] = []
    open_ended = False
    for record in manifest.passes:
        if record.state not in ("planned", "running"):
            continue
        keys = manifest.scan.planned.get(record.name, ())
        open_ended = open_ended or not keys
        ahead += [(record.name, key) for key in keys if (record.name, key) not in known]
    return ahead, open_ended


def _took(manifest: Manifest, clock: Clock) -> dict[tuple[str, str], float]:
    """By pass and key the seconds of each measured point, from the end of the one before it, or the
    begin of the pass.
    """
    began = {one.name: one.start_boot_ns for one in manifest.passes}
    last: dict[str, int] = {}
    took: dict[tuple[str, str], float] = {}
    for point in manifest.points:
        before = last.get(point.pass_name) or began.get(point.pass_name)
        if point.end_monotonic_ns is None:
            continue
        end = clock.boot_of(point.end_monotonic_ns)
        if before is not None and end > before and point.state == "ok":
            took[point.pass_name, key_of(point)] = (end - before) / _S
        last[point.pass_name] = max(end, last.get(point.pass_name, 0))
    return took


def _since(manifest: Manifest, running: PassRecord, clock: Clock) -> float | None:
    """Seconds since the last point of the running pass ended, or the pass began."""
    ends = [
        clock.boot_of(point.end_monotonic_ns)
        for point in _of(manifest.points, running.name)
        if point.end_monotonic_ns is not None
    ]
    began = max([*ends, running.start_boot_ns or 0])
    return max(clock.boot_ns - began, 0) / _S if began else None


def _of(points: Sequence[PointRecord], pass_name: str) -> list[PointRecord]:
    return [point for point in points if point.pass_name == pass_name]


def _pass(manifest: Manifest, record: PassRecord, clock: Clock) -> LivePass:
    points: int | None = 0
    if manifest.scan is not None:
        points = len(manifest.scan.planned.get(record.name, ())) or None
    end = record.end_boot_ns or (clock.boot_ns if record.state == "running" else None)
    began = record.start_boot_ns
    return LivePass(
        name=record.name,
        layers=record.layers,
        counters=len(record.counters),
        state=record.state,
        done=len(_of(manifest.points, record.name)),
        points=points,
        seconds=None if end is None or began is None else max(end - began, 0) / _S,
    )
