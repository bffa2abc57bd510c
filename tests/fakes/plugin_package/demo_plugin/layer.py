"""A tracer that stands around the command and leaves one file of kernels."""

from __future__ import annotations

from pathlib import Path

from profharness.launchers.command import Command
from profharness.layers.around import own_folder
from profharness.layers.contract import Availability, Description, Extras, Layer, Program, Where
from profharness.node.probe import Environment
from profharness.rundir.layer_facts import LayerFacts, LeftFile, LeftFiles


class DemoLayer(Layer):
    """Two kernels per execution."""

    about = Description(
        name="demo",
        gives="two kernels",
        needs="anywhere",
        scope="prefix",
        claims=frozenset({"demo"}),
        programs=(Program("demo-tool", (5, 7)),),
        honours=frozenset({"hip_trace"}),
        bytes_per_command=3_000_000,
        facts=LayerFacts(LeftFiles("execution", (LeftFile(r".*\.demo", "demo"),)), kernels=1),
    )

    def probe(self, environment: Environment) -> Availability:
        found = environment.tools.get("demo-tool")
        return Availability(available=found is not None, why="put demo-tool on the PATH")

    def prepare(self, command: Command, where: Where) -> Command:
        folder = own_folder(self.name, command, where)
        return command.with_prefix(("demo-tool", str(folder / "out.demo"), "--"))

    def extras(self, command: Command, where: Where) -> Extras:
        return Extras(folders=(Path(own_folder(self.name, command, where)),))
