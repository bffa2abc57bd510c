"""Run directories of every kind, recorded once by the old checkout; what is asked of each."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from answers.sides import HARNESS, STAND_IN, Question, Side
from answers.stand_ins import StandIns

TRAIN = """
import torch
model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(40):
    optimizer.zero_grad()
    model(torch.ones(4, 8)).sum().backward()
    optimizer.step()
print("trained")
"""
TINY = (
    "particlenet",
    "--batch-sizes",
    "1,4",
    "--trials",
    "3",
    "--min-seconds",
    "0.1",
    "--profile-trials",
    "2",
)
SLEEP = ("--via", "triton", "--model", "sleep:20ms", "--telemetry", "off", "--time", "1")
SEARCH = ("saturation", "--model", "sleep:20ms", "--telemetry", "off", "--time", "1")
TWO = (
    "--via",
    "triton",
    "--model",
    "sleep:10ms,sleep:20ms",
    "--together",
    "--device",
    "cuda:0,cuda:1",
    "--concurrency",
    "1,2",
    "--telemetry",
    "off",
    "--time",
    "1",
)
QUIET = ("--telemetry", "off")
PAIRS = (
    ("torch", "onnxruntime"),
    ("torch", "torch-layer"),
    ("torch", "torch"),
    ("v3-6.2", "v3-7.0"),
    ("v3-7.0", "v1-6.1"),
    ("command-bare", "command-torch"),
    ("sweep", "search"),
    ("triton", "sweep"),
)
LISTED = ("torch", "command-bare", "v3-7.0", "crash", "killed", "search")


@dataclass(frozen=True)
class Recording:
    """A run that is recorded: the words after `run`, where and by which program.

    `fresh`: both sides also record it anew, and what they leave must have the same form.
    """

    name: str
    words: tuple[str, ...]
    variables: tuple[tuple[str, str], ...] = ()
    program: str = HARNESS
    fresh: bool = False
    command: tuple[str, ...] = ()

    @property
    def line(self) -> tuple[str, ...]:
        end = ("--", *self.command) if self.command else ()
        return ("run", *self.words, "-o", "run", *end)

    @property
    def scan(self) -> bool:
        return not self.command


class Recorder:
    """Records runs into a folder, each one once."""

    def __init__(self, side: Side, folder: Path, stand_ins: StandIns) -> None:
        self.side = side
        self.folder = folder
        self.stand_ins = stand_ins
        self.train = folder / "programs" / "train.py"  # alone, as Python imports from its folder
        self.train.parent.mkdir(parents=True, exist_ok=True)
        if not self.train.is_file():
            self.train.write_text(TRAIN)

    def all(self) -> tuple[Recording, ...]:
        return (*self._scans(), *self._served(), *self._commands(), *self._amd())

    def _scans(self) -> Iterator[Recording]:
        yield Recording("torch", (*TINY, "--backend", "torch"), fresh=True)
        yield Recording("onnxruntime", (*TINY, "--backend", "onnxruntime", *QUIET), fresh=True)
        yield Recording("torch-layer", (*TINY, "--backend", "torch", "--profile", "torch"))
        yield Recording("layers", (*TINY, "--profile", "torch,onnxruntime", "--telemetry", "cpu"))
        yield Recording(
            "pinned",
            (
                "particlenet",
                "--backend",
                "onnxruntime",
                "--streams",
                "1,2",
                "--batch-sizes",
                "2",
                "--time",
                "0.5",
                "--warmup-time",
                "0.2",
                "--profile",
                "onnxruntime",
            ),
        )

    def _served(self) -> Iterator[Recording]:
        yield Recording(
            "triton",
            (
                "particlenet",
                "--via",
                "triton",
                "--concurrency",
                "1,2",
                "--time",
                "0.5",
                "--warmup-time",
                "0.2",
                *QUIET,
            ),
        )
        yield _played("search", SEARCH, service_ms=20, instances=3)
        yield _played("sweep", (*SLEEP, "--concurrency", "1,2,4"), service_ms=20, instances=2)
        yield _played("rates", (*SLEEP, "--rate", "20,40"), service_ms=20, instances=2)
        yield _played("two-models", TWO, service_ms=20, instances=1)
        yield _played("killed", (*SLEEP, "--concurrency", "1,2,4"), kill_harness_at="sleep-b1-c4")
        yield _played(
            "server-died", (*SLEEP, "--concurrency", "1,2"), server_dies_at="sleep-b1-c2", slow_s=1
        )

    def _commands(self) -> Iterator[Recording]:
        train = (str(self.side.python), str(self.train))
        yield Recording("command-bare", QUIET, fresh=True, command=train)
        yield Recording("command-cpu", ("--telemetry", "cpu"), command=train)
        yield Recording(
            "command-torch", ("--profile", "torch", "--bare", *QUIET), fresh=True, command=train
        )
        yield Recording(
            "command-all", ("--profile", "torch", "--capture", "all", *QUIET), command=train
        )
        yield Recording(
            "command-ranks",
            ("--ranks", "2", "--profile", "torch", *QUIET),
            fresh=True,
            command=train,
        )
        yield Recording(
            "failing",
            QUIET,
            fresh=True,
            command=(str(self.side.python), "-c", "raise SystemExit(3)"),
        )
        inside = ("--container", self.stand_ins.image, "--profile", "torch", *QUIET)
        yield Recording(
            "container",
            inside,
            self.stand_ins.programs("apptainer"),
            fresh=True,
            command=("python", str(self.train)),
        )
        tasks = ("--launcher", "slurm", "--ranks", "2", "--profile", "torch", *QUIET)
        yield Recording("slurm", tasks, self.stand_ins.programs("srun"), fresh=True, command=train)

    def _amd(self) -> Iterator[Recording]:
        """Each AMD layer with the tools of the releases that its files differ between."""
        for release in ("6.2", "6.3", "6.4", "7.0"):
            yield self._tool(f"v3-{release}", release, "rocprofv3 --hip-trace", "--kernels 6 a b")
        for release in ("5.7", "6.1", "6.4"):
            yield self._tool(f"v1-{release}", release, "rocprof --sys-trace", "--kernels 6")
        for release in ("6.2", "7.0"):
            yield self._tool(f"sys-{release}", release, "rocprof-sys", "--kernels 6")
            yield self._tool(f"compute-{release}", release, "rocprof-compute", "--kernels 4")
        yield self._tool("log-6.4", "6.4", "amd-log", "--miopen")
        yield self._tool("log-7.0", "7.0", "amd-log", "--miopen")
        yield self._tool(
            "pmc-6.2", "6.2", "rocprofv3 --pmc SQ_WAVES,FETCH_SIZE --yes", "--kernels 4"
        )
        yield self._tool(
            "pmc-7.0", "7.0", "rocprofv3 --pmc SQ_WAVES,FETCH_SIZE --yes", "--kernels 4"
        )
        yield self._tool("pmc-v1", "6.1", "rocprof --pmc SQ_WAVES,FETCH_SIZE --yes", "--kernels 4")
        yield self._tool(
            "steps", "7.0", "rocprofv3 --marker-trace", "--steps 8 --kernels 3 --step-seconds 0.01"
        )
        yield self._tool("window", "7.0", "rocprofv3 --capture steps=2:5", "--steps 8 --kernels 3")
        yield self._tool("child", "7.0", "rocprofv3", "--child --kernels 4")
        yield self._tool("crash", "7.0", "rocprofv3", "--crash")
        yield self._tool("raises", "6.4", "rocprofv3", "--raise")
        yield self._tool("refused", "6.3", "rocprofv3 --tool-arg rocprofv3:--bogus", "--kernels 2")
        yield self._tool("amd-ranks", "7.0", "rocprofv3 --ranks 2", "--kernels 6")
        yield self._tool("several", "6.4", "rocprofv3,rocprof,amd-log --yes --bare", "--kernels 6")

    def _tool(self, name: str, release: str, line: str, program: str) -> Recording:
        words = ("--profile", *line.split(), *QUIET)
        command = (str(self.side.python), self.stand_ins.program, *program.split())
        return Recording(name, words, self.stand_ins.node(release), fresh=True, command=command)

    def record(self, recording: Recording) -> Path | None:
        """The run directory, recorded where it is not there yet; None where no run came of it."""
        folder = self.folder / recording.name
        run = folder / "run"
        if not (folder / "done").is_file():
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            given = {**dict(recording.variables), "PROFHARNESS_CACHE": str(self.folder / "cache")}
            done = self.side.run(recording.line, folder, given, program=recording.program)
            (folder / "said").write_text(f"exit code {done.returncode}\n{done.stdout}{done.stderr}")
            (folder / "done").touch()
        if not (run / "manifest.json").is_file():
            print(f"no run directory came of {recording.name}: see {folder}/said", file=sys.stderr)
            return None
        return run


def _played(name: str, words: tuple[str, ...], **does: object) -> Recording:
    """A served scan with the stand-in server and load generator, which do as they are told."""
    return Recording(name, words, (("STAND_IN", json.dumps(does)),), STAND_IN)


def questions(recorder: Recorder, wanted: Callable[[str], bool]) -> Iterator[Question]:
    """What is asked of every run; runs of which nothing is wanted are not recorded."""
    recordings = recorder.all()
    absent = Path("run")
    needed = [
        one
        for one in recordings
        if any(wanted(asked.title) for asked in of_run(one, absent)) or _paired(one.name, wanted)
    ]
    with ThreadPoolExecutor(2) as pool:
        made = dict(
            zip((one.name for one in needed), pool.map(recorder.record, needed), strict=True)
        )
    for recording in needed:
        run = made[recording.name]
        if run is not None:
            yield from of_run(recording, run)
    for first, second in PAIRS:
        runs = made.get(first), made.get(second)
        if runs[0] is not None and runs[1] is not None:
            copies = (("first", runs[0]), ("second", runs[1]))
            steps = (
                ("compare", "first", "second", "--json"),
                ("compare", "first", "second"),
                ("compare", "first", "second", "--fail-on", "throughput<-5%"),
            )
            yield Question("compare", f"run {first} with {second}", steps, copies)
    listed = tuple(
        (f"runs/{name}", path) for name in LISTED if (path := made.get(name)) is not None
    )
    if listed:
        yield Question("ls", "runs", (("ls", "runs"),), listed)
    given = {"PROFHARNESS_CACHE": str(recorder.folder / "new-cache")}
    for recording in (one for one in recordings if one.fresh):
        steps = (
            recording.line,
            ("metrics", "run", "--json"),
            ("hotspots", "run", "--format", "json"),
            ("report", "run", "--json"),
        )
        variables = tuple({**dict(recording.variables), **given}.items())
        yield Question("fresh run", recording.name, steps, variables=variables, fresh=True)


def _paired(name: str, wanted: Callable[[str], bool]) -> bool:
    """Whether a wanted question needs the run beside others."""
    pairs = any(name in pair and wanted(f"compare/run {pair[0]} with {pair[1]}") for pair in PAIRS)
    return pairs or (name in LISTED and wanted("ls/runs"))


def of_run(recording: Recording, run: Path) -> Iterator[Question]:
    """The questions of one run, each of a copy of it."""
    name, copies = f"run {recording.name}", (("run", run),)
    by = tuple(
        ("hotspots", "run", "--format", "json", "--by", one)
        for one in ("kernel", "op", "category", "call")
    )
    yield Question("metrics", name, (("metrics", "run", "--json"), ("metrics", "run")), copies)
    yield Question("steps", name, (("metrics", "run", "--steps", "all", "--json"),), copies)
    yield Question("hotspots", name, (("hotspots", "run", "--format", "json"), *by), copies)
    merge = (
        ("merge", "run", "-v", "-o", "merged.pftrace"),
        ("merge", "run", "--overlay", "-o", "over.pftrace"),
        ("validate", "run"),
    )
    yield Question("merge", name, merge, copies, traces=("merged.pftrace", "over.pftrace"))
    report = (("report", "run"), ("report", "run", "--json"))
    yield Question("report", name, report, copies, ("run/report.html",))
    if recording.scan:
        yield Question(
            "saturation", name, (("saturation", "run", "--json"), ("saturation", "run")), copies
        )
    plot = (
        ("plot", "run", "-o", "figure.svg"),
        ("plot", "run", "--resources", "-o", "resources.svg"),
    )
    yield Question("plot", name, plot, copies, ("figure.svg", "resources.svg"))
