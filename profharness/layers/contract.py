"""What a layer is: how a tool is put around or into the workload, and all that the rest of the
harness says of it.

A layer has no state and no run method, and never asks which other layers are on; `measure.schedule`
decides that. Readers of the tools' files are in `readers`, separate from the layers.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, NamedTuple, Protocol

from profharness.errors import UsageError
from profharness.launchers.command import Command
from profharness.layers.options import TracerOptions
from profharness.layers.releases import Version
from profharness.node.probe import Environment
from profharness.rundir.layer_facts import LayerFacts

COMMAND = "command"  # the target that stands for a user's own command, beside the names of backends
EXTERNAL = "server"  # the target that stands for a foreign server, a command like any other
PROCESSES = frozenset({"torch", "onnxruntime", "tensorflow", "deepsparse", COMMAND})
"""The targets of a tool that stands around any process."""
AROUND_HINT = "it goes around a process: profile a scan's backend or a command"


def framework_of(target: str) -> str:
    """What runs in a target's process: its backend (`torch@NAME` is torch), or a command."""
    framework = target.partition("@")[0]
    return COMMAND if framework == EXTERNAL else framework


@dataclass(frozen=True)
class Where:
    """Places and settings that a layer may use when it prepares a command for one pass.

    `rank` is None for a single process. `python` runs our wrappers beside the workload. `counters`
    is not empty in a pass that collects hardware counters. `spill` is where a tool may put
    temporary files, None for the working directory.

    Where one execution counts several groups, `groups` holds them, and `counters` all of their
    names. `purpose` is the name of what a pass of its own is for (`Purpose`). `traced` is False on
    a rank that runs without the layers. `ranks` is how many ranks the command has, also where they
    are still to be started, and `untraced` says that some of them run without the layers.
    """

    run_root: Path
    pass_name: str
    wrappers: Path
    host: str
    capture: str = "default"
    hook: Literal["env", "exec"] = "env"
    is_worker: bool = False
    rank: int | None = None
    python: str = "python3"
    environment: Environment = field(default_factory=Environment)
    options: TracerOptions = field(default_factory=TracerOptions)
    counters: tuple[str, ...] = ()
    spill: Path | None = None
    groups: tuple[tuple[str, ...], ...] = ()
    purpose: str = ""
    traced: bool = True
    ranks: int = 1
    untraced: bool = False

    @property
    def artifacts(self) -> Path:
        return self.run_root / "artifacts"

    @property
    def hooks(self) -> Path:
        return self.run_root / "control" / "hooks"

    @property
    def statuses(self) -> Path:
        """Where wrappers/status.py records how the workload itself ended."""
        return self.run_root / "control" / self.pass_name / "status"

    @property
    def owner(self) -> str:
        """The folder of this process's files, where the tool cannot name it by its pid."""
        return str(self.rank or 0)


@dataclass(frozen=True)
class Availability:
    """What a probe says: usable or not, the version found, and why not, with the way out."""

    available: bool
    version: str = ""
    why: str = ""


@dataclass(frozen=True)
class Extras:
    """What must lie ready before a prepared command starts. `hides_status`: the tool's exit status
    is not the workload's.

    `cut` is the capture window that was asked for where the tool cannot keep to it: it records
    everything. `notes` stand in the plan; `costs` are those that a user must hear before the
    command starts, since hours may follow. `starts` is how often the tool starts the command by
    itself, at least and at most. `if_killed` is what a killed program means for the tool's files,
    where a user should know it.
    """

    folders: tuple[Path, ...] = ()
    files: tuple[tuple[Path, str], ...] = ()
    hides_status: bool = False
    notes: tuple[str, ...] = ()
    costs: tuple[str, ...] = ()
    cut: str = ""
    starts: tuple[int, int] = (1, 1)
    if_killed: str = ""


@dataclass(frozen=True)
class Attachment:
    """How a tool is put to a process that runs already, and made to let go of it.

    `command` has no word of the process's own. It lets go after the time that its words hold
    (`timed`), or at a line on its stdin; before its time, at SIGINT or at that line. The time
    counts from the output that `attached` (a regular expression) finds, or from when the process
    has mapped a `library` of that beginning, since output may wait in a buffer. `late`: the
    process may still write files when the tool has ended. `fails_with_torch`: it may fail in a
    process that runs torch. `memory` is where the tool keeps what it was told when it first
    attached to this process.
    """

    command: Command
    timed: bool
    attached: str = ""
    library: str = ""
    late: bool = False
    fails_with_torch: bool = False
    memory: Path | None = None
    notes: tuple[str, ...] = ()


class Program(NamedTuple):
    """One name under which a tool may be installed, and the oldest ROCm release that has it under
    this name.

    `column` is where the table of releases holds its own version; empty for a program whose version
    decides nothing.
    """

    name: str
    since: Version
    column: str = ""


class Sign(NamedTuple):
    """A sentence of a tool as a regular expression (letter case is ignored), the finding that it
    means, and in which words. `advice` is the way out where the finding's own says less.
    """

    pattern: str
    finding: str
    message: str
    advice: str = ""


class Purpose(NamedTuple):
    """What a tool records in a pass of its own beside kernels, other than counters.

    `name` ends the pass's name, `option` is the field of `TracerOptions` that asks for it, `does`
    the end of a sentence about the pass, `leaves` the format of its files, and `lacking` what a
    file without rows says.
    """

    name: str
    option: str
    does: str
    leaves: str
    lacking: str


@dataclass(frozen=True, kw_only=True)
class Description:
    """One layer as data. Plans, checks of options, failures, the probe, help and the README's table
    read it.

    `gives` and `needs` are its row in the README. `claims` is what it occupies in the process: two
    layers with a common claim never share a pass. `targets` are the backends that it can observe,
    and `command`; `attach_hint` says what to do where there is none of them. `perturbing`: it
    changes the workload's speed so much that no time of its pass is ever used, and it runs alone.
    `facts` is what the readers of a run need to know, and goes into its manifest.

    `purposes` is what it records in passes of their own. `honours` are the fields of
    `TracerOptions` that it obeys. `steps_by_hooks`: the hooks tell the tool when a window of steps
    begins. `silent` is what a process did that used the framework and left no file; `windowed`: its
    window is the hooks' own. `expects_kernels`: files without kernels mean that something went
    wrong. `further_steps` are the names under which --tool-arg reaches what `follow_up` runs.

    `attaches` says since when it can attach to a process that runs already; empty where it cannot.
    `refusals` are the sentences by which it refuses its command line, `signs` those by which it
    tells other failures, and `caught` the one by which it names (as the first group) the signal
    that ends the process: regular expressions. The estimates of size are of one trial of a scan and
    of 20 steps or so of a command. `trial` is the program, relative to wrappers/, that `doctor
    --try` runs.
    """

    name: str
    gives: str
    needs: str
    scope: Literal["hook", "prefix", "sidecar"]
    claims: frozenset[str]
    facts: LayerFacts
    targets: frozenset[str] = PROCESSES
    attach_hint: str = AROUND_HINT
    perturbing: bool = False
    programs: tuple[Program, ...] = ()
    honours: frozenset[str] = frozenset()
    purposes: tuple[Purpose, ...] = ()
    steps_by_hooks: bool = False
    windowed: bool = False
    silent: str = "it wrote no file"
    expects_kernels: bool = True
    attaches: str = ""
    refusals: tuple[str, ...] = ()
    signs: tuple[Sign, ...] = ()
    caught: str = ""
    further_steps: tuple[str, ...] = ()
    bytes_per_trial: int = 100_000
    bytes_per_command: int = 1_000_000
    trial: str = "profharness_workloads/checks/tiny_torch.py"

    @property
    def is_tool(self) -> bool:
        """Whether it has a command line of its own, so that --tool-arg reaches it."""
        return self.scope == "prefix"

    @property
    def counts(self) -> bool:
        """Whether it collects hardware counters by name."""
        return "pmc" in self.honours


class Layer(Protocol):
    """One file of this folder, or of another package. What is not needed by a tool keeps the
    defaults given here.
    """

    about: Description

    @property
    def name(self) -> str:
        return self.about.name

    def probe(self, environment: Environment) -> Availability:
        """Pure: from what the probe found on the node."""

    def prepare(self, command: Command, where: Where) -> Command:
        """The command as it must be started under this layer. Raises UsageError for what this
        tool's version cannot do.
        """

    def extras(self, command: Command, where: Where) -> Extras:  # noqa: ARG002  a default
        """What `prepare` relies on, for the same arguments."""
        return Extras()

    def attach(self, pid: int, for_ns: int, where: Where) -> Attachment:  # noqa: ARG002  a default
        """How it is put to a process that runs. Raises Unavailable where the tool is missing or too
        old for that.
        """
        raise UsageError(f"{self.name} cannot attach to a running process")

    # most tools leave nothing to do
    def follow_up(self, where: Where) -> tuple[Command, ...]:  # noqa: ARG002  a default
        """Commands to run once the pass has ended, on the files that it left."""
        return ()
