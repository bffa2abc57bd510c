"""The one sequence of every pass: its order, refused counters, signals, and that no file escapes
the search for secrets.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from profharness.findings import Finding, finding
from profharness.launchers import Outcome
from profharness.launchers.command import Command
from profharness.launchers.local import LocalLauncher
from profharness.layers.contract import COMMAND, Availability, Description, Layer, Where
from profharness.measure import wrap
from profharness.measure.counter_split import PassQueue
from profharness.measure.pass_records import ManifestRecords
from profharness.measure.passes import EndedPass, Execution, run_passes
from profharness.measure.plan import RunPlan
from profharness.measure.progress import NullProgress
from profharness.measure.ranks import RankInfo
from profharness.measure.recorder import Recorder
from profharness.measure.schedule import Schedule
from profharness.node.probe import Environment
from profharness.options.request import Request
from profharness.rundir.layer_facts import LayerFacts, LeftFile, LeftFiles
from profharness.rundir.lost import LostFile
from profharness.rundir.manifest import Artifact, Manifest
from profharness.rundir.paths import RunDir
from profharness.supervise.pass_plan import PassPlan
from profharness.supervise.tool import ToolPass


class StubLayer(Layer):
    """A layer inside the process that leaves one text per pass."""

    about = Description(
        name="torch",
        gives="",
        needs="",
        scope="hook",
        claims=frozenset(),
        facts=LayerFacts(LeftFiles("execution", (LeftFile(r".+\.txt", "text"),))),
    )

    def probe(self, environment: Environment) -> Availability:
        return Availability(available=True)

    def prepare(self, command: Command, where: Where) -> Command:
        return command


def leave(root: Path, pass_name: str) -> str:
    """A file of the layer's, as its path below the run."""
    path = root / "artifacts" / "torch" / "n" / "0" / pass_name / "left.txt"
    path.parent.mkdir(parents=True)
    path.write_text("left")
    return str(path.relative_to(root))


def pass_named(name: str, counters: tuple[str, ...] = ()) -> PassPlan:
    return PassPlan(name, (StubLayer(),), (COMMAND,), counters)


def run_plan_of(root: Path, *plans: PassPlan) -> RunPlan:
    request = Request(command=(sys.executable, "-c", "pass"), output=str(root))
    return RunPlan(
        request,
        root,
        RankInfo(),
        Environment(host="n"),
        LocalLauncher(),
        sys.executable,
        Schedule(plans),
        None,
    )


@dataclass(frozen=True)
class StubPass:
    """Starts nothing, and notes what it is asked."""

    run_plan: RunPlan
    steps: list[str]
    plan: PassPlan
    signals: tuple[int, ...] = ()
    points: int | None = None

    @property
    def where(self) -> Where:
        return self.run_plan.where(self.plan, is_worker=False)

    def make_ready(self) -> None:
        self.steps.append(f"ready {self.plan.name}")

    def logs(self) -> Sequence[Path]:
        return ()

    def execute(self, tool: ToolPass) -> Execution:
        self.steps.append(f"execute {tool.plan.name}")
        leave(self.run_plan.root, tool.plan.name)
        return Execution((Outcome(7, 1, 10, 20, self.signals),), (("program",),), {"A": "1"})


@dataclass
class StubRecords:
    """Notes what is to be recorded; refuses passes of more than two counters."""

    steps: list[str] = field(default_factory=list)

    def begin(self, plan: PassPlan) -> None:
        self.steps.append(f"begin {plan.name}")

    def end(self, ended: EndedPass) -> bool:
        self.steps.append(f"end {ended.plan.name}")
        return len(ended.plan.counters) > 2

    def split(self, ended: EndedPass, halves: Sequence[PassPlan]) -> None:
        self.steps.append(f"split {ended.plan.name} into {len(halves)}")

    def lose(self, *lost: LostFile) -> None:
        self.steps += [f"lost {one.path}" for one in lost]


def test_each_pass_goes_through_the_same_steps_and_a_refused_one_comes_in_halves(tmp_path):
    plans = (pass_named("torch"), pass_named("c", ("A", "B", "C")))
    run_plan, records = run_plan_of(tmp_path, *plans), StubRecords()

    def pass_of(plan: PassPlan) -> StubPass:
        return StubPass(run_plan, records.steps, plan)

    ended = run_passes(PassQueue(plans, None), pass_of, records, NullProgress(), 1.0)

    def steps(name: str) -> list[str]:
        return [f"{step} {name}" for step in ("begin", "ready", "execute", "end")]

    assert records.steps == [
        *steps("torch"),
        *steps("c"),
        "split c into 2",
        *steps("ca"),
        *steps("cb"),
    ]
    assert [(one.plan.name, one.workload_status) for one in ended] == [
        ("torch", 7),
        ("ca", 7),
        ("cb", 7),
    ]


def test_a_signal_ends_the_run_after_the_pass_that_it_came_in(tmp_path):
    plans = (pass_named("one"), pass_named("two"))
    run_plan, records = run_plan_of(tmp_path, *plans), StubRecords()

    def pass_of(plan: PassPlan) -> StubPass:
        return StubPass(run_plan, records.steps, plan, signals=(15,))

    ended = run_passes(PassQueue(plans, None), pass_of, records, NullProgress(), 1.0)
    assert [one.plan.name for one in ended] == ["one"]
    assert records.steps[-1] == "end one"


def test_the_files_of_every_pass_are_searched_for_secrets_before_they_are_told(tmp_path):
    plans = (pass_named("one"), pass_named("two"))
    run_plan = run_plan_of(tmp_path / "run", *plans)
    empty = Manifest(
        id="r", created="2026-01-01T00:00:00Z", profharness="0", kind="command", argv=()
    )
    recorder = Recorder(RunDir.create(run_plan.root), empty)
    searched: list[tuple[Path, list[str]]] = []

    def find_secrets(root: Path, artifacts: Sequence[Artifact]) -> tuple[Finding, ...]:
        searched.append((root, [artifact.path for artifact in artifacts]))
        return (finding("secrets-in-artifact", "values that look secret"),)

    records = ManifestRecords(run_plan, recorder, find_secrets)
    run_passes(
        PassQueue(plans, None),
        lambda plan: StubPass(run_plan, [], plan),
        records,
        NullProgress(),
        1.0,
    )
    root = run_plan.root
    assert searched == [
        (root, ["artifacts/torch/n/0/one/left.txt"]),
        (root, ["artifacts/torch/n/0/two/left.txt"]),
    ]
    manifest = RunDir.open(root).read_manifest()
    assert {path for _, paths in searched for path in paths} == {
        artifact.path for artifact in manifest.artifacts
    }
    found = [one.id for one in manifest.findings]
    assert found.count("secrets-in-artifact") == 2
    assert [
        (record.state, record.exit_status, record.argv, record.env, record.executions)
        for record in manifest.passes
    ] == [("done", 7, (("program",),), {"A": "1"}, 1)] * 2


def test_the_files_of_a_wrapped_command_are_searched_for_secrets(tmp_path):
    plan = pass_named("wrap-r0-1")
    searched: list[str] = []

    def find_secrets(root: Path, artifacts: Sequence[Artifact]) -> tuple[Finding, ...]:
        searched.extend(artifact.path for artifact in artifacts)
        return (finding("secrets-in-artifact", "values that look secret"),)

    path = leave(tmp_path, plan.name)
    result = wrap.execute(wrap.WrapPass(run_plan_of(tmp_path, plan), plan), find_secrets)
    assert result.exit_status == 0
    assert searched == [artifact.path for artifact in result.artifacts] == [path]
    assert "secrets-in-artifact" in [one.id for one in result.findings]
