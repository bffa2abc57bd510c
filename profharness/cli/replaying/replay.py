"""`profharness replay`: run the hottest operators of a trace alone, beside what they took in it."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec

from profharness.errors import UsageError
from profharness.options.declared import Limit, Option
from profharness.rundir.shown.screen import encoded, mention

if TYPE_CHECKING:
    from profharness.understand.replay.recorded import Recorded

TOP = 10


class ReplayLine(msgspec.Struct, frozen=True, kw_only=True):
    """What a line of `replay` asks for."""

    paths: Annotated[
        tuple[Path, ...],
        Option(
            "A run directory, or trace files of torch's profiler with recorded shapes.",
            argument=True,
            metavar="RUN|FILE...",
        ),
    ]
    top: Annotated[
        int, Option("How many calls, the hottest first.", limit=Limit(least=1, most=1000))
    ] = TOP
    device: Annotated[
        str,
        Option("auto (where the trace was recorded), cpu, cuda or cuda:INDEX (also for ROCm)."),
    ] = "auto"
    python: Annotated[str, Option("The workload's interpreter (default: this one).")] = ""
    threads: Annotated[
        int | None,
        Option(
            "CPU threads (default: as recorded where the trace or the run says it, else those of "
            "torch).",
            limit=Limit(least=1),
        ),
    ] = None
    min_seconds: Annotated[
        float,
        Option(
            "Seconds for each call: as much warm, with cold caches, and under the profiler.",
            limit=Limit(above=0),
        ),
    ] = 0.5
    seed: Annotated[int, Option("Of the values in tensors.", limit=Limit(least=0))] = 0
    namespace: Annotated[
        tuple[str, ...],
        Option(
            "Also run operators of this namespace, which the workload's Python must have loaded "
            "by importing torch. Repeatable.",
            metavar="NAME",
        ),
    ] = ()
    memory_limit: Annotated[
        float | None,
        Option(
            "GB of memory that one call may take (default: half of what is free).",
            limit=Limit(above=0),
        ),
    ] = None
    pass_name: Annotated[
        str | None,
        Option(
            "Pass of a run (default: the first one with operators).",
            names=("--pass",),
        ),
    ] = None
    pmc: Annotated[
        tuple[str, ...],
        Option(
            'Also count, under rocprofv3 on an AMD device: "C1 C2" or C1,C2 in one execution. '
            "Repeatable: one execution for each.",
            metavar="COUNTERS",
        ),
    ] = ()
    write_scripts: Annotated[
        Path | None,
        Option(
            "Also write a script for each call into this new folder, which runs it with torch "
            "alone.",
            metavar="FOLDER",
        ),
    ] = None
    json: Annotated[bool, Option("Print one JSON object.")] = False


def replay(line: ReplayLine) -> None:
    """Run the hottest operators of a trace alone, and say what is their own."""
    from profharness.cli.listing.forms import say
    from profharness.cli.replaying import counting, scripts
    from profharness.cli.replaying.rounds import replay_hottest
    from profharness.measure.replay.process import Asked
    from profharness.report.replay.text import replay_text
    from profharness.understand.replay.recorded import recorded

    if not re.fullmatch(r"auto|cpu|cuda(:\d+)?", line.device):
        raise UsageError(
            f"--device: there is no device {line.device!r}", "auto, cpu, cuda or cuda:INDEX"
        )
    if line.write_scripts is not None:
        scripts.check(line.write_scripts)
    given = recorded(line.paths, line.pass_name)
    say(given.problems)
    asked = Asked(
        device=_device(line.device, given),
        python=line.python,
        threads=line.threads or given.threads.count,
        threads_by="asked" if line.threads else given.threads.told_by,
        min_seconds=line.min_seconds,
        seed=line.seed,
        memory_limit=int((line.memory_limit or 0) * 1e9),
        profiler=given.profiler,
    )
    for note in () if line.threads else given.threads.notes:
        mention(note)
    calls = min(line.top, len(given.hot.calls))
    mention(f"replaying {calls} calls, each for about {4 * line.min_seconds:.3g} s")
    if line.pmc:
        counting.check(line.pmc, asked, given)
    done = replay_hottest(given, line.top, line.namespace, asked)
    if line.pmc:
        done = counting.counted(done, line.pmc, asked)
    if line.write_scripts is not None:
        scripts.write(line.write_scripts, done)
    if line.json:
        sys.stdout.write(msgspec.json.format(encoded(done.table), indent=2).decode() + "\n")
        return
    sys.stdout.write(replay_text(done.table))


def _device(wanted: str, given: Recorded) -> str:
    """The device that the trace's times are of. Raises UsageError for another one: times of
    different devices say nothing beside each other.
    """
    on_device = given.hot.on_device
    if wanted == "auto":
        return "cuda" if on_device else "cpu"
    if (wanted == "cpu") == on_device:
        where = "a device" if on_device else "the CPU"
        raise UsageError(
            f"--device {wanted}: the operators of {given.source} ran on {where}",
            "leave --device out: only times of the same kind of device can stand beside each other",
        )
    return wanted
