"""The command lines of a pass: what it starts, and what must lie ready for it. The dry run prints
these.
"""

from __future__ import annotations

from profharness.launchers.command import Command
from profharness.layers import around
from profharness.layers.contract import Extras, Where
from profharness.layers.hooks import through_exec_hook, with_hooks
from profharness.measure import served_commands
from profharness.measure.executions import commands as of_points
from profharness.measure.plan import RunPlan, is_served, worker_setup
from profharness.scans.command import CommandScan
from profharness.supervise.pass_plan import PassPlan


def hooked_command(run_plan: RunPlan, where: Where) -> Command:
    """The user's command under the hooks, which mark steps in every pass."""
    command = with_hooks(Command(run_plan.request.command, run_plan.request.variables), where)
    if run_plan.rank.world > 1:
        command = command.with_env({"PROFHARNESS_RANK": str(run_plan.rank.rank)})
    return through_exec_hook(command, where) if run_plan.request.hook == "exec" else command


def wrapped_command(run_plan: RunPlan, plan: PassPlan) -> Command:
    """The user's command under the hooks and, on a rank that is traced, the pass's layers."""
    where = run_plan.where(plan, is_worker=False)
    layers = plan.layers if where.traced else ()
    return around.wrap(layers, hooked_command(run_plan, where), where)


def planned_commands(run_plan: RunPlan, plan: PassPlan) -> tuple[Command, ...]:
    """What one pass would start, in its container if there is one: a worker per backend, or the
    command.
    """
    return tuple(run_plan.launcher.composed(command) for command in _commands_here(run_plan, plan))


def _commands_here(run_plan: RunPlan, plan: PassPlan) -> tuple[Command, ...]:
    if run_plan.scan is None:
        return (wrapped_command(run_plan, plan),)
    if isinstance(run_plan.scan, CommandScan):
        return tuple(of_points.commands(run_plan, run_plan.scan, plan))
    if is_served(run_plan.scan):
        return served_commands.target_commands(run_plan, run_plan.scan, plan)
    where = run_plan.where(plan, is_worker=True)
    return tuple(
        worker_setup(run_plan, run_plan.scan, plan, where, backend).command()
        for backend in plan.targets
    )


def _plain_commands(run_plan: RunPlan, plan: PassPlan, where: Where) -> list[Command]:
    """What the pass's layers are put around."""
    scan = run_plan.scan
    if scan is None or isinstance(scan, CommandScan):
        return [hooked_command(run_plan, where)]
    if is_served(scan):
        return [
            served_commands.server_command(run_plan, scan, plan, label) for label in plan.targets
        ]
    return [worker_setup(run_plan, scan, plan, where, backend).plain() for backend in plan.targets]


def planned_extras(run_plan: RunPlan, plan: PassPlan) -> Extras:
    """What must lie ready for one pass."""
    where = run_plan.where(plan, is_worker=not run_plan.request.command)
    of_commands = [
        around.extras(plan.layers, command, where)
        for command in _plain_commands(run_plan, plan, where)
    ]
    return Extras(
        files=tuple(file for extras in of_commands for file in extras.files),
        notes=tuple(note for extras in of_commands for note in extras.notes),
        costs=tuple(cost for extras in of_commands for cost in extras.costs),
        starts=max((extras.starts for extras in of_commands), default=(1, 1)),
        cut=next((extras.cut for extras in of_commands if extras.cut), ""),
    )


def planned_follow_up(run_plan: RunPlan, plan: PassPlan) -> tuple[Command, ...]:
    """What the tools of one pass run once it has ended."""
    where = run_plan.where(plan, is_worker=not run_plan.request.command)
    return tuple(command for layer in plan.layers for command in layer.follow_up(where))


def difference(command: Command) -> dict[str, str]:
    """What was set for the command; unset names are left out."""
    return {name: value for name, value in command.env.items() if value is not None}
