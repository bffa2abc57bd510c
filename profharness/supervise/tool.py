"""One pass under a tool that stands around the workload: what must lie ready, when it is overdue,
and how it went.

The engine asks for one of these per pass; for passes without such a tool it does nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from profharness import layers
from profharness.errors import Unavailable
from profharness.findings import Finding, finding
from profharness.launchers import Launcher, Outcome
from profharness.launchers.command import Command
from profharness.layers import around
from profharness.layers.clashes import losing_children
from profharness.layers.contract import Where
from profharness.layers.recorded import holds_counters, holds_kernels, holds_rows
from profharness.node import access
from profharness.rundir.manifest import Artifact, Hello
from profharness.supervise import diagnosis as failures
from profharness.supervise import missing_records as unrecorded
from profharness.supervise import sentences
from profharness.supervise.diagnosis import Evidence, LeftFile, PassEnd
from profharness.supervise.exit_status import Ending
from profharness.supervise.hook_reports import read_byes, read_hellos
from profharness.supervise.missing_records import HookReports
from profharness.supervise.pass_plan import PassPlan

FOLLOW_UP_S = 600.0
_LOG_BYTES = 4 << 20  # of each log the end is searched for the tools' sentences
_RECENT_BYTES = 64 << 10  # and while the pass is running, once a second


class ToolPass:
    """Prepares and judges one pass. `tool` is the layer around the process, None where there is
    only hooks or nothing. On a rank that is not traced the process runs without it, so that only
    what other ranks left is judged.
    """

    def __init__(
        self,
        plan: PassPlan,
        where: Where,
        limit_s: float,
        logs: Callable[[], Sequence[Path]] = tuple,
    ) -> None:
        self.plan = plan
        self.where = where
        self.tool = plan.tool
        self._limit_s = limit_s
        self._logs = logs
        self._recorded = False
        self._cut = ""
        self._if_killed = ""
        self._roots: list[int] = []
        self._ending = Ending(
            where,
            [where.artifacts / layer.name for layer in plan.layers],
            limit_s,
            lambda: read_logs(logs(), _RECENT_BYTES),
        )

    def ready(self, command: Command) -> None:
        """Make the folders and files that the command under its layers relies on."""
        if self.tool is None:
            return
        needed = around.extras((self.tool,), command, self.where)
        self._cut = needed.cut
        if not self.where.traced:
            return
        self._recorded, self._if_killed = needed.hides_status, needed.if_killed
        for folder in needed.folders:
            folder.mkdir(parents=True, exist_ok=True)
        for path, text in needed.files:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        self._ending.around(around.wrap(self.plan.layers, command, self.where).argv)

    def follow(self, pid: int) -> None:
        """The process that was started."""
        self._roots.append(pid)
        self._ending.follow(pid)

    def ended(self, pid: int) -> None:
        """A scan's worker has reported its end."""
        self._ending.ended(pid)

    @property
    def overdue(self) -> Callable[[], bool] | None:
        """What the launcher asks; None where no tool can outlive the workload."""
        return None if self._is_bare else self._ending.overdue

    @property
    def _is_bare(self) -> bool:
        """Whether no tool stands around this process."""
        return self.tool is None or not self.where.traced

    def status(self, outcome: Outcome, log_text: str) -> int:
        """The exit status to pass on for this outcome."""
        return (
            outcome.exit_status
            if self._is_bare
            else failures.final_status(self._ended(outcome), log_text)
        )

    def refused(self, log_text: str, artifacts: Sequence[Artifact]) -> bool:
        """Whether the tool did not take the pass's counters: it said so, and none of its files
        holds a counter.
        """
        recorded = (
            self.where.run_root / artifact.path
            for artifact in artifacts
            if artifact.pass_name == self.plan.name
        )
        return (
            bool(self.plan.counters)
            and sentences.too_many_counters(log_text)
            and not any(holds_counters(path) for path in recorded)
        )

    def refused_so_far(self) -> bool:
        """Whether the tool has refused the counters, asked before the pass has ended."""
        if not self.plan.counters or not sentences.too_many_counters(
            log_text := read_logs(self._logs())
        ):
            return False
        return self.refused(log_text, self.collect())

    def collect(self, known: frozenset[str] = frozenset()) -> tuple[Artifact, ...]:
        """The files that the pass's layers have left so far, without the paths in `known` (relative
        to the run).
        """
        return tuple(
            artifact
            for layer in self.plan.layers
            for artifact in layers.collect(layer, self.where, known)
        )

    def findings(
        self, outcome: Outcome, log_text: str, artifacts: Sequence[Artifact]
    ) -> tuple[Finding, ...]:
        """What went wrong, from the last outcome of the pass, all that was said, and what was
        collected.
        """
        inside = self._inside(artifacts)
        if self.tool is None:
            return inside
        outside = self.of_tool(outcome, log_text, artifacts)
        if self.plan.perturbing and not self.refused(log_text, artifacts):
            outside = (
                *outside,
                finding(
                    "serialising-counters",
                    f"the {self.plan.name} pass changes the workload's speed: "
                    "none of its times is used",
                ),
            )
        if self._cut:
            outside = (
                *outside,
                finding(
                    "window-cut",
                    f"--capture {self._cut}: this {self.tool.name} cannot record that alone, "
                    "so it recorded the whole "
                    f"{self.plan.name} pass; what lies outside is left out of the trace",
                ),
            )
        return (*inside, *outside)

    def of_tool(
        self, outcome: Outcome, log_text: str, artifacts: Sequence[Artifact]
    ) -> tuple[Finding, ...]:
        """What went wrong with the tool around this process: of several ranks each has one, and
        files of its own.
        """
        if self.tool is None or not self.where.traced:
            return ()
        rank = self.where.rank
        own_files = [
            artifact
            for artifact in artifacts
            if artifact.layer == self.tool.name
            and artifact.pass_name == self.plan.name
            and (rank is None or artifact.rank in (None, rank))
        ]
        hellos = [
            hello
            for hello in read_hellos(self.where.hooks)
            if rank is None or hello.rank in (None, rank)
        ]
        users = tuple(hello.pid for hello in hellos if hello.frameworks)
        looked = not outcome.interrupted and self.tool.about.expects_kernels
        files = tuple(
            LeftFile(
                artifact.path,
                artifact.pid,
                _kernels(self.where.run_root / artifact.path, artifact) if looked else None,
            )
            for artifact in own_files
            if not artifact.aside
        )
        own = [hello for hello in hellos if hello.pass_name == self.plan.name]
        losing = losing_children(self.tool, self.where.environment)
        steps = _steps(self.where) if losing else {}
        judged = failures.judge(
            Evidence(
                layer=self.tool.name,
                ended=self._ended(outcome),
                said=log_text,
                files=files,
                users=users,
                expects_kernels=self.tool.about.expects_kernels,
                counting=bool(self.plan.counters),
                refused=self.refused(log_text, artifacts),
                passed_on=self.where.options.args_for(self.tool.name),
                unopened=self._unopened(own),
                closed=access.closed(self.where.environment),
                if_killed=self._if_killed,
                stepped=tuple(hello.pid for hello in own if steps.get(hello.pid)),
                losing=losing,
            )
        )
        lacking = () if outcome.interrupted else self._lacking(own_files)
        # a graver finding says why nothing was recorded at all
        return (*judged, *(() if any(one.severity == "error" for one in judged) else lacking))

    def _lacking(self, own_files: Sequence[Artifact]) -> tuple[Finding, ...]:
        """What a pass of its own was for, where no file holds it."""
        purpose = self.plan.purpose
        if purpose is None or any(
            holds_rows(self.where.run_root / artifact.path)
            for artifact in own_files
            if artifact.format == purpose.leaves
        ):
            return ()
        return (finding("nothing-by-line", f"{self.plan.layers[0].name} {purpose.lacking}"),)

    def _unopened(self, hellos: Sequence[Hello]) -> str:
        """Why the hooks, which start the tool's recording, never did so; empty where they did."""
        capture = self.where.capture
        if (
            not capture.startswith("steps=")
            or self._cut
            or self.tool is None
            or not self.tool.about.steps_by_hooks
            or any(hello.region for hello in hellos)
        ):
            return ""
        if not hellos:
            return (
                f"--capture {capture} is counted in Python processes, "
                "and none of the command loaded the hooks"
            )
        telling = next(
            (message for hello in hellos for message in hello.messages if "roctx" in message), ""
        )
        steps = max(_steps(self.where).get(hello.pid, 0) for hello in hellos)
        return (
            telling
            or f"its window never opened: --capture {capture}, and the program had {steps} steps"
        )

    def _inside(self, artifacts: Sequence[Artifact]) -> tuple[Finding, ...]:
        """What the hooks said, and, for a command, why a layer inside its processes left
        nothing.
        """
        hellos = [
            hello
            for hello in read_hellos(self.where.hooks)
            if hello.pass_name in ("", self.plan.name)
        ]
        missing: list[Finding] = []
        for layer in self.plan.layers:
            if layer.about.scope != "hook" or self.where.is_worker:
                continue
            recorded_pids = {
                artifact.pid
                for artifact in artifacts
                if artifact.layer == layer.name and artifact.pass_name == self.plan.name
            }
            reports = HookReports(
                hellos,
                read_byes(self.where.hooks),
                _steps(self.where),
                recorded_pids,
                self.where.capture,
            )
            missing += unrecorded.nothing_recorded(layer.about, reports)
        explained = " ".join(item.message for item in missing)
        return (
            *missing,
            *(
                item
                for item in unrecorded.message_findings(hellos)
                if item.message.rpartition(" (")[0] not in explained
            ),
        )

    def follow_up(self, launcher: Launcher, outcome: Outcome) -> tuple[Finding, ...]:
        """Run the tool's own analysis of what it left; a failure of it costs only that analysis."""
        if self.tool is None or self._is_bare or outcome.interrupted or outcome.overdue:
            return ()
        analysis_findings: list[Finding] = []
        for command in self.tool.follow_up(self.where):
            if not Path(command.argv[command.argv.index("-p") + 1]).is_dir():
                continue  # the pass left nothing to analyse, which is a finding already
            try:
                launcher.capture(command, FOLLOW_UP_S)
            except Unavailable as error:
                analysis_findings.append(
                    finding(
                        "profiler-failed",
                        f"{self.tool.name}: its own analysis failed ({error.message}); "
                        "its counters are kept",
                        severity="warning",
                    )
                )
        return tuple(analysis_findings)

    def _ended(self, outcome: Outcome) -> PassEnd:
        ends = self._ending.own_ends()
        hellos = {
            hello.pid
            for hello in read_hellos(self.where.hooks)
            if hello.pass_name == self.plan.name
        }
        vanished = any(pid in hellos and not self._ending.said_bye(pid) for pid in self._roots)
        return PassEnd(
            exit_status=outcome.exit_status,
            own_status=self._ending.own_status(outcome),
            overdue=outcome.overdue,
            never_ran=self._recorded and not ends.recorded,
            ran=bool(ends.statuses) or ends.running > 0,
            limit_s=self._limit_s,
            interrupted=outcome.interrupted,
            vanished=vanished,
            guessed=not (ends.recorded or ends.exact),
        )


def _steps(where: Where) -> dict[int, int]:
    """How many steps each process logged, by pid."""
    counts: dict[int, int] = {}
    for path in sorted((where.artifacts / "steps").rglob("steps-*.jsonl")):
        pid = path.stem.rpartition("-")[2]
        if pid.isdigit():
            counts[int(pid)] = path.read_bytes().count(b"\n")
    return counts


def _kernels(path: Path, artifact: Artifact) -> bool | None:
    return holds_kernels(path, artifact.format)


def read_logs(paths: Sequence[Path], limit_bytes: int = _LOG_BYTES) -> str:
    """The ends of the logs, one after another; those that are not there are left out."""
    texts: list[str] = []
    for path in paths:
        try:
            with path.open("rb") as file:
                file.seek(max(0, path.stat().st_size - limit_bytes))
                texts.append(file.read().decode("utf-8", "replace"))
        except OSError:
            continue
    return "\n".join(texts)
