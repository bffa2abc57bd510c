"""`replay --pmc`: hardware counters beside the times of each call."""

from __future__ import annotations

import msgspec

from profharness.analysis.kernels.counter_records import CounterRow
from profharness.cli.replaying.rounds import Done
from profharness.errors import UsageError
from profharness.measure.replay import counting
from profharness.measure.replay.process import Asked
from profharness.rundir.private.folders import private_folder
from profharness.rundir.shown.screen import mention
from profharness.understand.replay.counted import counters_of
from profharness.understand.replay.recorded import Recorded


def check(groups: tuple[str, ...], asked: Asked, given: Recorded) -> None:
    """Raises UsageError for a trace without a device, and what else would keep the tool from
    counting, before anything is timed.
    """
    if not given.hot.on_device:
        raise UsageError(
            f"--pmc: the operators of {given.source} ran on the CPU, and rocprofv3 counts on AMD "
            "devices",
            "leave it out, or name a trace of an AMD device",
        )
    with private_folder() as folder:
        counting.check(groups, asked, folder)


def counted(done: Done, groups: tuple[str, ...], asked: Asked) -> Done:
    """The same table with counters. Raises Unavailable and UsageError as `wrap` does, and
    InputError for files that cannot be read.
    """
    from profharness.secrets.scrub import findings

    found: dict[int, tuple[CounterRow, ...]] = {task.id: () for task in done.tasks}
    with private_folder() as folder:
        for one in counting.count(done.tasks, asked, groups, folder, findings):
            for finding in one.findings:
                mention(f"{finding.severity}: {finding.message}")
            for number, rows in counters_of(one.files, one.lines).items():
                found[number] += rows
    table_rows = tuple(
        msgspec.structs.replace(row, counters=found[task.id])
        for row, task in zip(done.table.rows, done.tasks, strict=True)
    )
    return Done(msgspec.structs.replace(done.table, rows=table_rows), done.lines, done.tasks)
