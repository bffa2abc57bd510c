"""How the layers of one pass nest around a command: hooks inside, then the exit recorder, then the
tool. Pure.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path

from profharness.launchers.command import Command
from profharness.layers.contract import Extras, Layer, Where

# characters that rocprof's shell script would evaluate in the command's arguments
_EVALUATED = re.compile(r'[$`"\\!\n]')
ARGV_VARIABLE = "PROFHARNESS_RECORDED_ARGV"
# the hooks note the exit status: a tracer inside the process may change it, or crash, after
# Python's own end
STATUS_VARIABLE = "PROFHARNESS_EXIT_STATUS"


def wrap(layers: Sequence[Layer], command: Command, where: Where) -> Command:
    """The command under all layers. Raises UsageError for what a tool's version cannot do."""
    hooks = [layer for layer in layers if layer.about.scope == "hook"]
    tools = [layer for layer in layers if layer.about.scope != "hook"]
    for layer in hooks:
        command = layer.prepare(command, where)
    if any(layer.extras(command, where).hides_status for layer in tools):
        command = recorded(command, where)
    if any("hsa-tool" in layer.about.claims for layer in tools) and command.env.get(
        "PROFHARNESS_HOOKS_DIR"
    ):
        command = command.with_env({STATUS_VARIABLE: "1"})
    for layer in tools:
        command = layer.prepare(command, where)
    return command


def extras(layers: Sequence[Layer], command: Command, where: Where) -> Extras:
    """What all of them need, for the command before it was wrapped."""
    each = [layer.extras(command, where) for layer in layers]
    hides = any(one.hides_status for one in each)
    return Extras(
        folders=tuple(folder for one in each for folder in one.folders)
        + ((where.statuses,) if hides else ()),
        files=tuple(file for one in each for file in one.files),
        hides_status=hides,
        notes=tuple(note for one in each for note in one.notes),
        costs=tuple(cost for one in each for cost in one.costs),
        starts=(
            max((one.starts[0] for one in each), default=1),
            max((one.starts[1] for one in each), default=1),
        ),
        cut=next((one.cut for one in each if one.cut), ""),
        if_killed=next((one.if_killed for one in each if one.if_killed), ""),
    )


def recorded(command: Command, where: Where) -> Command:
    """The command under wrappers/status.py, which notes how it ended before the tool can say
    something else.

    Arguments that a shell would evaluate travel in a variable, since one of the tools hands its
    command to `eval`.
    """
    recorder = (where.python, str(where.wrappers / "status.py"), str(where.statuses))
    if any(_EVALUATED.search(word) for word in command.argv):
        return Command(
            recorder, {**command.env, ARGV_VARIABLE: json.dumps(command.argv)}, command.cwd
        )
    return command.with_prefix((*recorder, "--"))


def execution(command: Command, where: Where) -> str:
    """A name for this execution: a scan's workers are started once per backend, and again after a
    death.
    """
    parts = [where.pass_name]
    if where.is_worker:
        parts.append(
            Path(command.env.get("PROFHARNESS_SPEC") or "worker").stem.removeprefix("spec-")
        )
        point = command.env.get("PROFHARNESS_ONLY_POINT") or command.env.get(
            "PROFHARNESS_FIRST_POINT"
        )
        parts += [point] if point else []
    return ".".join(parts)


def own_folder(layer: str, command: Command, where: Where) -> Path:
    """artifacts/<layer>/<host>/<rank>/<execution>, for tools that overwrite what an earlier
    execution left.
    """
    return where.artifacts / layer / where.host / where.owner / execution(command, where)
