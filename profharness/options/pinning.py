"""The options of multi-process scans as one typed record: what they mean and which exclude each
other. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Literal

import msgspec

from profharness.errors import UsageError

Pin = Literal["core", "numa", "none"]
Memory = Literal["interleave", "bind", "preferred", "default"]


class PinningOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What was asked of a multi-process scan. `topology` is a file; without one the node's own
    places are taken.
    """

    topology: str = ""
    streams: tuple[int, ...] = ()
    pin: Pin = "core"
    memory: Memory = "interleave"

    @property
    def asked(self) -> bool:
        """Whether the scan runs several processes at once."""
        return bool(self.topology or self.streams)


NAMES = frozenset(field.name for field in msgspec.structs.fields(PinningOptions))
_OF_SINGLE_PROCESSES = {
    "trials": "a point lasts --time seconds",
    "min_seconds": "a point lasts --time seconds",
    "warmup": "a point warms up for --warmup-time seconds",
    "isolate": "every point has processes of its own",
}


def check_given(given: Iterable[str], options: PinningOptions, named: Callable[[str], str]) -> None:
    """Raises UsageError for settings that were given and that this kind of scan would pass over."""
    for key in given:
        if not options.asked and key in ("pin", "memory", "time", "warmup_time"):
            raise UsageError(
                f"{named(key)} is for scans of several processes or of a server, "
                "and this one is neither",
                "add --topology FILE or --streams 1,2,4, or serve the model: --via triton",
            )
        if options.asked and key in _OF_SINGLE_PROCESSES:
            raise UsageError(
                f"{named(key)} is for scans of one process",
                f"leave it out: {_OF_SINGLE_PROCESSES[key]}",
            )


def check(options: PinningOptions, *, served: bool, command: bool) -> None:
    """Limits that a type cannot say. Raises UsageError with the way out."""
    if not options.asked:
        return
    if command or served:
        raise UsageError(
            f"--{'topology' if options.topology else 'streams'}: "
            "processes are started by a scan that runs the model directly",
            "leave it out; a server has --instances, a command --ranks"
            if served
            else "leave it out, or name a scan in place of the command",
        )
    if any(count < 1 for count in options.streams):
        raise UsageError(
            "--streams: a point has at least one process", "write a list such as 1,2,4"
        )
