"""The loop of every scan worker: load once, then serve points until there are no more. One point's
failure is a result.

A backend gives `load(settings) -> Workload`; everything about files, logs, signals and restarts is
here.
"""

from __future__ import annotations

import abc
import gc
import sys
import time
import traceback
from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Optional, Sequence

from profharness_workloads.shared import lifetime, protocol, ranges, redirect

LONGEST_UNWATCHED_WAIT_S = 60.0
BROKEN = 1


class Measurement(NamedTuple):
    """What one point gave. Times are CLOCK_MONOTONIC nanoseconds; `items` per trial; None is "does
    not apply".

    `streams` and `window` (begin, end): of points that several processes measured at once; `level`:
    of load on a server.
    """

    trials_ns: List[int]
    starts_ns: List[int]
    items: int
    warmup_ns: List[int]
    warmup_starts_ns: List[int]
    device: str
    compile_ns: Optional[int] = None
    cold_cache: Optional[bool] = None
    flops_per_item: Optional[float] = None
    notes: Mapping[str, str] = {}
    streams: Sequence[Mapping[str, Any]] = ()
    window: Sequence[int] = ()
    level: Optional[Mapping[str, Any]] = None


class Workload(abc.ABC):
    """A loaded model on its device. Backends derive from it; `measure` may raise anything for a
    point that fails.
    """

    versions: Mapping[str, str]
    devices: List[Dict[str, Any]]
    device: str
    marks: ranges.Marks = ranges.Marks()
    notes: Mapping[str, str] = {}
    compiles: bool = False
    """Whether the first call of each shape compiles."""

    def judged(self, asked: protocol.Asked) -> Any:
        """The point's parameters, typed, for `measure`. Raises ValueError that names the
        parameter.
        """
        return protocol.judged(asked)

    @abc.abstractmethod
    def measure(self, point: protocol.Point, still_wanted: Callable[[], None]) -> Measurement:
        """Warm up and time one point; `still_wanted` raises when nobody waits for it any more."""

    def recover(self) -> None:  # noqa: B027  most backends have nothing to do here
        """Give back what a failed point held. Raises when the device cannot be used any more."""

    def close(self) -> None:  # noqa: B027  most backends have nothing to close
        """After the last point."""


def main(load: Callable[[protocol.Settings], Workload], environ: Mapping[str, str]) -> int:
    """Serve points; the exit status as in `supervised`."""
    return supervised(
        lambda settings, results, harness: _serve(load, settings, results, harness), environ
    )


def supervised(
    body: Callable[[protocol.Settings, protocol.Results, lifetime.Harness], int],
    environ: Mapping[str, str],
) -> int:
    """Run `body` as a worker, with its end told in the results whatever it is.

    The exit status: 0, 1 broken model or device, 2 usage, 3 missing tool or device, 4 bad input,
    128+n by signal.
    """
    results = None
    try:
        settings = protocol.settings_from(environ)
        results = protocol.Results(settings)
        harness = lifetime.Harness(settings.parent_pid)
        lifetime.guard(harness)
        return body(settings, results, harness)
    except protocol.Refusal as refusal:
        return _refused(results, refusal)
    except Exception as error:  # a model that does not fit, a broken driver: any type
        traceback.print_exc()
        if results is not None:
            results.write("error", error=protocol.one_sentence(error), exit_status=BROKEN)
        return BROKEN
    except lifetime.Stopped as stopped:
        print("profharness worker: %s" % stopped.reason, file=sys.stderr)
        if results is not None:
            results.write("bye", reason=stopped.reason)
        return stopped.status


def _refused(results: Optional[protocol.Results], refusal: protocol.Refusal) -> int:
    print("profharness worker: %s" % refusal.message, file=sys.stderr)
    if refusal.hint:
        print("  %s" % refusal.hint, file=sys.stderr)
    if results is not None:
        results.write("error", error=refusal.message, hint=refusal.hint, exit_status=refusal.code)
    return refusal.code


def _serve(
    load: Callable[[protocol.Settings], Workload],
    settings: protocol.Settings,
    results: protocol.Results,
    harness: lifetime.Harness,
) -> int:
    workload = load(settings)
    results.hello(workload.versions, workload.devices)

    def waiting(waited_s: float) -> None:
        harness.require()
        if not harness.seen and waited_s > LONGEST_UNWATCHED_WAIT_S:
            raise lifetime.Stopped(
                "no point came for a minute and the harness cannot be seen from here", 0
            )

    first = True
    for asked in protocol.asked_points(settings, waiting):
        harness.require()
        results.begin(asked.id)
        with redirect.output_to(settings.point_dir(asked.id)):
            outcome = _attempt(workload, asked, harness.require, first=first)
            usable = outcome["ok"] or _recovered(workload)
        first = False
        results.write("result", id=asked.id, end_monotonic_ns=time.perf_counter_ns(), **outcome)
        if not usable:
            return BROKEN
    workload.close()
    results.write("bye")
    return 0


def _attempt(
    workload: Workload, asked: protocol.Asked, still_wanted: Callable[[], None], *, first: bool
) -> Dict[str, Any]:
    """The fields of a result. Every Exception (out of memory included) becomes a failed point with
    a reason. Raises Refusal where a device or library is missing at the first point, as it is for
    those that load their model in each point: no other point would fare better.
    """
    try:
        measured = workload.measure(workload.judged(asked), still_wanted)
    except (
        Exception
    ) as error:  # a point that fails must not end the scan, whatever the framework raises
        if first and isinstance(error, protocol.Refusal) and error.code == protocol.MISSING:
            raise
        traceback.print_exc()
        failed = Measurement([], [], 0, [], [], workload.device)
        words = (
            error.message if isinstance(error, protocol.Refusal) else protocol.one_sentence(error)
        )
        return dict(ok=False, error=words, **failed._asdict())
    return dict(ok=True, error="", **measured._asdict())


def _recovered(workload: Workload) -> bool:
    """False when the device is spoiled: the process ends, and the harness starts another one at the
    next point.
    """
    try:
        gc.collect()
        workload.recover()
    except Exception:  # a sticky device error may have any type
        traceback.print_exc()
        return False
    return True
