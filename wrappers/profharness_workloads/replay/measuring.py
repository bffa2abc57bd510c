"""How long one call takes: warm, with its arguments out of the caches, and under torch's profiler.

All times are nanoseconds of one call. Warm calls are timed in batches, since a clock costs as much
as a short call; each batch is one sample. On a CPU the time that the process waited for a core,
because other programs had them, is taken off each sample and told apart (`waiting`).
"""

from __future__ import annotations

import os
import time
from time import perf_counter_ns
from typing import Any, Callable, Dict, List, NamedTuple, Tuple

from profharness_workloads.replay.waiting import Waiting
from profharness_workloads.shared import timing

BATCH_NS = 200_000
FEWEST = 10  # samples, where the time limit allows it
MOST = 2000
MOST_PROFILED = 300
FIRST = 2  # records of a profiler that begins, which are left out
WRITTEN = 16  # calls of an operator that changes its arguments, before they are restored
SLOW_S = 10.0  # beyond, `FEWEST` is not waited for
LARGEST_CACHE = 128 << 20


class Runner(NamedTuple):
    """One call, made ready: `run` makes it, `restore` puts back what it wrote, `synchronise` waits
    for the device. `waiting` knows how long this process waited for cores.
    """

    run: Callable[[], Any]
    restore: Callable[[], None]
    synchronise: Callable[[], None]
    writes: bool
    waiting: Waiting


def warm(runner: Runner, min_seconds: float) -> Dict[str, Any]:
    """Samples of warm calls, and how many calls warmed up."""

    def trial(_: Any) -> Any:
        return runner.run()

    action = timing.Action(runner.restore, trial, runner.synchronise)
    first = timing.warm_up(
        action, None, timing.no_span, cap_s=max(min_seconds, min(SLOW_S, 4 * min_seconds))
    )
    usual = sorted(first.durations_ns)[len(first.durations_ns) // 2]
    calls = max(1, BATCH_NS // max(1, usual))
    if runner.writes:
        calls = min(calls, WRITTEN)
    samples: List[float] = []
    with timing.collection_off():
        end, begin = min_seconds * 1e9, perf_counter_ns()
        while _goes_on(len(samples), perf_counter_ns() - begin, end):
            samples.append(_batch(runner, calls))
    return {
        "ns": samples,
        "calls": calls,
        "warm_up": len(first.durations_ns),
        "steady": first.agreed,
        "waited": runner.waiting.share(),
    }


def _goes_on(samples: int, spent_ns: float, wanted_ns: float) -> bool:
    if samples < FEWEST:
        return samples < 3 or spent_ns < max(wanted_ns, SLOW_S * 1e9)
    return samples < MOST and spent_ns < wanted_ns


def _batch(runner: Runner, calls: int) -> float:
    run = runner.run
    runner.restore()
    runner.synchronise()
    runner.waiting.begin()
    start = perf_counter_ns()
    for _ in range(calls):
        out = run()
    runner.synchronise()
    stop = perf_counter_ns()
    del out
    return runner.waiting.off(stop - start) / calls


def cold(runner: Runner, evict: Callable[[], None], min_seconds: float) -> List[float]:
    """Samples of single calls, before each of which the caches were filled with something else."""
    samples: List[float] = []
    with timing.collection_off():
        end, begin = min_seconds * 1e9, perf_counter_ns()
        while len(samples) < 3 or (len(samples) < MOST and perf_counter_ns() - begin < end):
            evict()
            samples.append(_batch(runner, 1))
    return samples


def windows(runner: Runner, calls: int) -> List[Tuple[int, int]]:
    """When calls ran, in CLOCK_BOOTTIME ns, for a tool that records around the process: the device
    is idle at both ends, so that all of its work inside of a window is the call's.
    """
    found: List[Tuple[int, int]] = []
    for _ in range(calls):
        runner.restore()
        runner.synchronise()
        start = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
        out = runner.run()
        runner.synchronise()
        found.append((start, time.clock_gettime_ns(time.CLOCK_BOOTTIME)))
        del out
    return found


def cache_bytes(torch: Any, place: Any) -> int:
    """The largest cache before memory; 32 MiB where nothing says."""
    if place.type != "cpu":
        return int(getattr(torch.cuda.get_device_properties(place), "L2_cache_size", 0)) or 32 << 20
    sizes = [0]
    folder = "/sys/devices/system/cpu/cpu0/cache"
    for index in range(8):
        try:
            with open("%s/index%d/size" % (folder, index)) as file:
                text = file.read().strip()
        except OSError:
            continue
        scale = {"K": 1 << 10, "M": 1 << 20}.get(text[-1:], 1)
        sizes.append(int(text.rstrip("KM") or 0) * scale)
    return min(max(sizes), LARGEST_CACHE) or 32 << 20


def evictor(torch: Any, place: Any) -> Callable[[], None]:
    """What writes twice as many bytes as the largest cache holds."""
    buffer = torch.zeros(2 * cache_bytes(torch, place) // 4, device=place)

    def evict() -> None:
        buffer.add_(1.0)

    return evict


def profiled(
    runner: Runner, name: str, options: Dict[str, bool], about: Tuple[Any, float]
) -> List[float]:
    """Samples of single calls as torch's profiler records them, with its options of the trace: the
    time of the operator on the host, or that of its kernels where the device is no CPU.

    `about` is the device, and how many calls to record.
    """
    from torch.profiler import ProfilerActivity, profile

    place, calls = about
    activities = [ProfilerActivity.CPU]
    if place.type != "cpu":
        activities.append(ProfilerActivity.CUDA)
    with _Quiet(), profile(activities=activities, **options) as recorded:
        waited = [_waited(runner) for _ in range(FIRST + int(calls))]
    if place.type != "cpu":
        return _device_times(recorded, name)[FIRST:]
    found = _host_times(recorded, name)
    if len(found) != len(waited):
        return found[FIRST:]
    return [time_ns * (1 - share) for time_ns, share in zip(found, waited)][FIRST:]


def _waited(runner: Runner) -> float:
    """Make one call; the share of its time that was spent waiting for a core."""
    runner.restore()
    runner.synchronise()
    runner.waiting.begin()
    start = perf_counter_ns()
    out = runner.run()
    runner.synchronise()
    whole = perf_counter_ns() - start
    del out
    return 1 - runner.waiting.off(whole) / max(1, whole)


def _host_times(recorded: Any, name: str) -> List[float]:
    """Durations of the outermost records of the operator."""
    found: List[float] = []
    end = 0
    for event in recorded.profiler.kineto_results.events():
        start = _ns(event, "start")
        if event.name() == name and start >= end:
            length = _ns(event, "duration")
            end = start + length
            found.append(float(length))
    return found


def _ns(event: Any, what: str) -> int:
    """A time of a record of the profiler, whose older versions count microseconds."""
    exact = getattr(event, what + "_ns", None)
    return int(exact()) if exact is not None else int(getattr(event, what + "_us")()) * 1000


def _device_times(recorded: Any, name: str) -> List[float]:
    """Sums over the kernels and copies of the outermost records of the operator."""
    found: List[float] = []
    for event in recorded.events():
        parent = event.cpu_parent
        inside = False
        while parent is not None:
            inside = inside or parent.name == name
            parent = parent.cpu_parent
        if event.name == name and not inside:
            total = getattr(event, "device_time_total", None)
            found.append(1000.0 * (event.cuda_time_total if total is None else total))
    return found


class _Quiet:
    """Kineto writes lines to file descriptor 2 that say nothing to a user."""

    def __enter__(self) -> None:
        self._kept = os.dup(2)
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 2)
        os.close(null)

    def __exit__(self, *_error: object) -> None:
        os.dup2(self._kept, 2)
        os.close(self._kept)
