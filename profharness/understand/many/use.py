"""How well the devices of several loose files were used: each is read and added up alone, so that
one of them is in memory at a time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

from profharness.analysis.kernels.facts import KernelFacts, Yardstick
from profharness.analysis.operators.engine import NO_INPUT, OperatorInput
from profharness.analysis.use.device_use import UseSums, files_use, use_sums
from profharness.errors import InputError
from profharness.node import ceilings as calibration
from profharness.understand.load import load_files
from profharness.understand.many.figures import linked
from profharness.understand.many.jobs import IN_ONE, FileGroup, Workers, file_groups, read_each
from profharness.understand.replays import with_captures

if TYPE_CHECKING:
    from profharness.analysis.use.records import DeviceUse


@dataclass(frozen=True, eq=False)
class _GroupUse:
    """What one group of files adds, and the devices that it saw, by host and identity."""

    group: FileGroup
    use: UseSums | None
    identities: frozenset[tuple[str, str]]


def use_of_files(
    paths: Sequence[Path], operator_input: OperatorInput = NO_INPUT, workers: Workers = IN_ONE
) -> DeviceUse | None:
    """The use of the devices of several files, as `analysis.use.files_use` has it. None where none
    holds device work.

    Raises InputError for a file that cannot be read, and Unavailable for processes that keep dying.
    """
    yardstick = Yardstick(calibration.stored(), operator_input=operator_input)
    added = partial(_use_of, yardstick=yardstick)
    groups = file_groups(paths)
    with workers.open(paths) as processes:
        read = read_each(processes, added, groups)
        shared = _sharing(read.results)
        again = read_each(processes, added, shared) if shared else None
    for unread in (*read.unread, *(again.unread if again else ())):
        raise InputError(unread.message, unread.hint)
    apart = {path for group in shared for path in group.paths}
    uses = [one for one in read.results if not apart & set(one.group.paths)]
    uses += again.results if again else []
    return files_use([(PurePath(one.group.path).name, one.use) for one in uses])


def are_several(paths: Sequence[Path]) -> bool:
    """Whether these are files that make more than one trace: no run, and not the tables that a tool
    wrote of one process.
    """
    return (
        len(paths) > 1 and not any(path.is_dir() for path in paths) and len(file_groups(paths)) > 1
    )


def _use_of(group: FileGroup, yardstick: Yardstick) -> _GroupUse:
    loaded = with_captures(load_files(group.paths), yardstick.operator_input.captures)
    identities = frozenset(
        (device.host, device.identity) for device in loaded.trace.devices if device.identity
    )
    yardstick = replace(yardstick, counted=loaded.counted)
    return _GroupUse(group, use_sums(KernelFacts(loaded.trace, yardstick)), identities)


def _sharing(read: Sequence[_GroupUse]) -> list[FileGroup]:
    """Groups that saw the same device, as one each: their device time overlaps."""
    known = {one.group.path: one.group for one in read}
    return [
        FileGroup(
            tuple(path for name, group in known.items() if name in names for path in group.paths)
        )
        for names in linked([(one.group.path, one.identities) for one in read])
        if len(names) > 1
    ]
