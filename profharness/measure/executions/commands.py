"""The command lines of a scan of a command: the user's own with a point's values, and the shell
commands around it.
"""

from __future__ import annotations

from collections.abc import Iterator

from profharness.launchers import local_ranks
from profharness.launchers.command import Command
from profharness.layers import around
from profharness.layers.contract import Where
from profharness.layers.hooks import through_exec_hook, with_hooks
from profharness.measure.plan import RunPlan
from profharness.options.axes import filled
from profharness.scans.command import CommandScan, ranks_of, texts_of, variables_of, words_of
from profharness.scans.contract import Point
from profharness.supervise.pass_plan import PassPlan


def point_command(run_plan: RunPlan, scan: CommandScan, point: Point, where: Where) -> Command:
    """The user's command with the point's values, under the hooks, which log its marks; of several
    ranks, what starts them.
    """
    request = run_plan.request
    variables = {**request.variables, **variables_of(scan.axes, point)}
    command = with_hooks(Command(words_of(request.command, point), variables), where)
    command = through_exec_hook(command, where) if request.hook == "exec" else command
    ranks = ranks_of(request, point)
    return command if ranks is None else local_ranks.started(command, ranks)


def wrapped_point_command(
    run_plan: RunPlan, scan: CommandScan, point: Point, plan: PassPlan
) -> Command:
    """The same under the layers of a pass."""
    where = run_plan.where(plan, is_worker=False)
    return around.wrap(plan.layers, point_command(run_plan, scan, point, where), where)


def shell_command(run_plan: RunPlan, scan: CommandScan, point: Point, text: str) -> Command:
    """`--setup`, `--prepare` or `--cleanup` with the point's values, run by the shell."""
    variables = {**run_plan.request.variables, **variables_of(scan.axes, point)}
    return Command(("/bin/sh", "-c", filled(text, texts_of(point))), variables)


def commands(run_plan: RunPlan, scan: CommandScan, plan: PassPlan) -> Iterator[Command]:
    """What the points of a pass start, each once, in the order of the design; of a pass under
    layers, whose points the bare pass chooses, the first of the design stands for them.
    """
    request = run_plan.request
    by_id = {point.id: point for point in scan.settings}
    for name in scan.ids[:1] if plan.layers else scan.ids:
        point = by_id[name]
        for text in (request.setup, request.prepare):
            if text:
                yield shell_command(run_plan, scan, point, text)
        yield wrapped_point_command(run_plan, scan, point, plan)
        if request.cleanup:
            yield shell_command(run_plan, scan, point, request.cleanup)


def executions(scan: CommandScan, plan: PassPlan, discarded: int) -> tuple[int, int]:
    """How often a pass executes the command, at least and at most; a pass under layers has the one
    to three points that the bare pass chooses.
    """
    if plan.layers:
        return 1 + discarded, min(3, len(scan.ids)) * (1 + discarded)
    if scan.search is not None:  # each execution stands by itself
        return (scan.executions * (1 + discarded),) * 2
    count = scan.executions + discarded * len(scan.ids)
    return count, count
