"""The options of multi-process scans, the fourth chapter of `Request`, and which exclude each
other. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Annotated, Literal

from profharness.errors import UsageError
from profharness.options import texts
from profharness.options.declared import PROCESSES, Limit, Option
from profharness.options.serving import ServingOptions
from profharness.options.workload import FOR_SCANS

Pin = Literal["core", "numa", "none"]
Memory = Literal["interleave", "bind", "preferred", "default"]


class PinningOptions(ServingOptions, frozen=True, kw_only=True):
    """What was asked of a multi-process scan. `topology` is a file; without one the node's own
    places are taken.
    """

    topology: Annotated[
        str,
        Option(
            "JSON list with a list of CPU ids per process (see `profharness topology`).",
            PROCESSES,
            only=FOR_SCANS,
        ),
    ] = ""
    streams: Annotated[
        tuple[int, ...],
        Option(
            "Processes at once: 1,2,4 or 1..16 (default 1, 2, 4 ... "
            "and as many as the topology has lists; with --cores-per-process as many as fill the "
            "job's cores).",
            PROCESSES,
            only=FOR_SCANS,
            text=texts.COUNTS,
            limit=Limit(
                least=1,
                says="a point has at least one process",
                hint="write a list such as 1,2,4",
            ),
        ),
    ] = ()
    cores_per_process: Annotated[
        tuple[int, ...],
        Option(
            "Cores of each process: 8,4,2,1 compares 1 process of 8 cores with 2 of 4, 4 of 2 and "
            "8 of 1 on a job of 8 cores; with --streams every N by M that fits.",
            PROCESSES,
            only=FOR_SCANS,
            text=texts.COUNTS,
            limit=Limit(
                least=1,
                says="a process has at least one core",
                hint="write a list such as 1,2,4",
            ),
        ),
    ] = ()
    pin: Annotated[
        Pin,
        Option(
            "core (default): each process on its list; numa: on the nodes of its list; none.",
            PROCESSES,
            only=FOR_SCANS,
        ),
    ] = "core"
    memory: Annotated[
        Memory,
        Option(
            "Where a process's memory lies among the nodes of its CPUs: interleave (default), "
            "bind, preferred, default.",
            PROCESSES,
            only=FOR_SCANS,
        ),
    ] = "interleave"

    @property
    def pinned(self) -> bool:
        """Whether the scan runs several processes at once."""
        return bool(self.topology or self.streams or self.cores_per_process)


_OF_SINGLE_PROCESSES = {
    "trials": "a point lasts --time seconds",
    "min_seconds": "a point lasts --time seconds",
    "warmup": "a point warms up for --warmup-time seconds",
    "isolate": "every point has processes of its own",
}


def check_given(given: Iterable[str], options: PinningOptions, named: Callable[[str], str]) -> None:
    """Raises UsageError for settings that were given and that this kind of scan would pass over."""
    for key in given:
        if not options.pinned and key in ("pin", "memory", "time", "warmup_time"):
            raise UsageError(
                f"{named(key)} is for scans of several processes or of a server, "
                "and this one is neither",
                "add --topology FILE, --streams 1,2,4 or --cores-per-process 1,2, or serve the "
                "model: --via triton",
            )
        if options.pinned and key in _OF_SINGLE_PROCESSES:
            raise UsageError(
                f"{named(key)} is for scans of one process",
                f"leave it out: {_OF_SINGLE_PROCESSES[key]}",
            )


def check(options: PinningOptions) -> None:
    """Raises UsageError where something else than a scan would have to start the processes, and
    where two options give them their cores.
    """
    if options.topology and options.cores_per_process:
        raise UsageError(
            "--topology and --cores-per-process: both say which cores each process gets",
            "leave one of them out",
        )
    if options.pinned and (options.command or options.served):
        named = (
            "topology"
            if options.topology
            else "streams"
            if options.streams
            else "cores-per-process"
        )
        raise UsageError(
            f"--{named}: processes are started by a scan that runs the model directly",
            "leave it out; a server has --instances, a command --ranks"
            if options.served
            else "leave it out, or name a scan in place of the command",
        )
