"""The worker's side of the control folder: its settings, the points that it is asked for, the
results that it leaves.

Points come from `control/<pass>/points.jsonl`, results go to
`control/<pass>/results-<rank>-<n>.jsonl`, one JSON object a line, each with `v` and `kind`. Nothing
is spoken over stdin, stdout or signals, so that a tool may wrap the worker, replay it (every
execution serves the list from its start and opens the next results file) or kill it.
"""

from __future__ import annotations

import json
import os
import re
import socket
import sys
import time
from typing import (
    Any,
    Callable,
    Dict,
    Iterator,
    List,
    Mapping,
    NamedTuple,
    Optional,
    Sequence,
    Tuple,
)

VERSION = 1
SHORTEST_WAIT_S, LONGEST_WAIT_S = 0.001, 0.05
ERROR_CHARACTERS = 400
REASON_CHARACTERS = 160
RANK_VARIABLES = ("PROFHARNESS_RANK", "RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMI_RANK")
LOCAL_RANK_VARIABLES = ("LOCAL_RANK", "SLURM_LOCALID", "OMPI_COMM_WORLD_LOCAL_RANK")

BESIDE = ("", "telemetry")  # runs beside the workload, never in it
TRACERS = (  # by these the vendors' tools load themselves into a process
    "ROCP_TOOL_LIBRARIES",
    "ROCP_TOOL_LIB",
    "HSA_TOOLS_LIB",
    "CUDA_INJECTION64_PATH",
    "NVTX_INJECTION64_PATH",
)

USAGE, MISSING, BAD_INPUT = 2, 3, 4


class Refusal(Exception):  # noqa: N818  named for what the worker does
    """The worker cannot serve at all. `code` is its exit status: USAGE, MISSING (tool or device) or
    BAD_INPUT.
    """

    def __init__(self, message: str, hint: str = "", code: int = USAGE):
        super().__init__(message)
        self.message, self.hint, self.code = message, hint, code


class Provider(NamedTuple):
    """An execution provider of onnxruntime by its full name, with its options as texts."""

    name: str
    options: Mapping[str, str] = {}


class Spec(NamedTuple):
    """What stays the same over all points of a worker. `shapes` are without the batch, `exporter`
    is an interpreter that exports the built-in model where this one (`python`) has no torch.
    """

    backend: str
    model: str
    device: str = "auto"
    compile: bool = False
    inputs: str = "normal"
    shapes: Mapping[str, Tuple[int, ...]] = {}
    seed: int = 0
    threads: Optional[int] = None
    cache_dir: str = ""
    providers: Optional[Tuple[Provider, ...]] = None
    torchscript: bool = False
    flops_per_item: Optional[float] = None
    optimization: str = "all"
    allow_fallback: bool = False
    autocast: str = "off"
    python: str = ""
    exporter: str = ""


class Settings(NamedTuple):
    """Where the worker stands in the run: from PROFHARNESS_* variables and the spec file that they
    name.
    """

    spec: Spec
    control_dir: str
    run_dir: str
    pass_name: str
    layers: Tuple[str, ...]
    artifacts: str
    first_point: str
    only_point: str
    parent_pid: Optional[int]
    rank: Optional[int]
    local_rank: int
    traced: bool = False
    spec_path: str = ""

    @property
    def recorded(self) -> bool:
        """Whether anything records this process: a layer inside it, or a tracer attached from
        outside.
        """
        return self.traced or bool(self.layers)

    @property
    def owner(self) -> str:
        """The folder name of this process among the artifacts of its host."""
        return str(os.getpid() if self.rank is None else self.rank)

    def artifact(self, layer: str, name: str) -> str:
        """Path of a file of this process under the artifacts; its folder is made."""
        folder = os.path.join(self.artifacts, layer, socket.gethostname(), self.owner)
        os.makedirs(folder, exist_ok=True)
        return os.path.join(folder, name)

    def point_dir(self, point_id: str) -> str:
        """Folder of one point's logs; made."""
        folder = os.path.join(self.run_dir, "points", self.pass_name, point_id)
        os.makedirs(folder, exist_ok=True)
        return folder


class Point(NamedTuple):
    """One point as asked. `warmup` is None for "auto". Times are seconds as asked by the user. The
    last four are of points of several processes; `places` are CPUs that are the point's own.
    """

    id: str
    batch_size: int
    trials: int = 100
    min_seconds: float = 0.0
    warmup: Optional[int] = None
    seed: Optional[int] = None
    processes: int = 1
    seconds: float = 0.0
    warmup_seconds: float = 0.0
    places: Tuple[Tuple[int, ...], ...] = ()


class Asked(NamedTuple):
    """A line of the points file, not yet judged."""

    id: str
    params: Mapping[str, Any]


def settings_from(environ: Mapping[str, str]) -> Settings:
    """Raises Refusal when a needed variable is absent or the spec file is not readable."""
    control = _needed(environ, "PROFHARNESS_CONTROL_DIR")
    run_dir = environ.get("PROFHARNESS_RUN_DIR") or os.path.dirname(
        os.path.dirname(os.path.abspath(control))
    )
    return Settings(
        spec=read_spec(_needed(environ, "PROFHARNESS_SPEC")),
        control_dir=control,
        run_dir=run_dir,
        pass_name=environ.get("PROFHARNESS_PASS") or os.path.basename(os.path.abspath(control)),
        layers=_own_layers(environ),
        artifacts=environ.get("PROFHARNESS_ARTIFACTS") or os.path.join(run_dir, "artifacts"),
        first_point=environ.get("PROFHARNESS_FIRST_POINT", ""),
        only_point=environ.get("PROFHARNESS_ONLY_POINT", ""),
        parent_pid=first_number(environ, ("PROFHARNESS_PARENT_PID",)),
        rank=first_number(environ, RANK_VARIABLES),
        local_rank=first_number(environ, LOCAL_RANK_VARIABLES) or 0,
        spec_path=environ.get("PROFHARNESS_SPEC", ""),
        traced=any(environ.get(name) for name in TRACERS)
        or "rocprof" in environ.get("LD_PRELOAD", ""),
    )


def _own_layers(environ: Mapping[str, str]) -> Tuple[str, ...]:
    """None where PROFHARNESS_WORKER is 0: then the layers are the hooks' of a command around us."""
    if environ.get("PROFHARNESS_WORKER") == "0":
        return ()
    return tuple(
        layer for layer in environ.get("PROFHARNESS_LAYERS", "").split(",") if layer not in BESIDE
    )


def _needed(environ: Mapping[str, str], name: str) -> str:
    value = environ.get(name)
    if not value:
        raise Refusal("%s is not set: this worker is started by `profharness run`" % name)
    return value


def first_number(environ: Mapping[str, str], names: Sequence[str]) -> Optional[int]:
    """The first of these variables that holds a whole number, or None."""
    for name in names:
        value = environ.get(name, "")
        if value.isdigit():
            return int(value)
    return None


def read_spec(path: str) -> Spec:
    """Fields that this version does not know are ignored. Raises Refusal for a file that is no
    spec.
    """
    try:
        with open(path, encoding="utf-8") as file:
            return spec_of(json.load(file))
    except (OSError, ValueError, TypeError, AttributeError) as error:
        raise Refusal(
            "%s: not a worker's spec (%s)" % (path, one_sentence(error)), code=BAD_INPUT
        ) from error


def spec_of(raw: Mapping[str, Any]) -> Spec:
    """The spec in a decoded file; fields that it does not know are ignored. Raises ValueError,
    TypeError or AttributeError for values of wrong types.
    """
    fields: Dict[str, Any] = {name: raw[name] for name in Spec._fields if raw.get(name) is not None}
    fields["shapes"] = {
        name: tuple(int(d) for d in dims) for name, dims in (raw.get("shapes") or {}).items()
    }
    if fields.get("providers"):
        fields["providers"] = tuple(
            Provider(str(one["name"]), dict(one.get("options") or {})) for one in raw["providers"]
        )
    return Spec(**fields)


def judged(asked: Asked) -> Point:
    """The point's parameters, typed. Raises ValueError that names the parameter."""
    params = asked.params
    batch = params.get("batch_size")
    if not isinstance(batch, int) or batch < 1:
        raise ValueError("batch_size must be a whole number from 1 on, not %r" % (batch,))
    warmup = params.get("warmup", "auto")
    seed = params.get("seed")
    return Point(
        asked.id,
        batch,
        trials=max(1, int(params.get("trials", Point._field_defaults["trials"]))),
        min_seconds=float(params.get("min_seconds") or 0.0),
        warmup=None if warmup in (None, "auto") else max(0, int(warmup)),
        seed=None if seed is None else int(seed),
        processes=max(1, int(params.get("processes") or 1)),
        seconds=float(params.get("seconds") or 0.0),
        warmup_seconds=float(params.get("warmup_seconds") or 0.0),
        places=tuple(tuple(int(cpu) for cpu in cpus) for cpus in params.get("places") or ()),
    )


def asked_points(settings: Settings, waiting: Callable[[float], None]) -> Iterator[Asked]:
    """The points for this worker's backend, in the order of the file, until its `end`.

    While there is no `end`, further lines are waited for; `waiting` is called with the seconds
    waited since the last line and raises to give up.
    """
    skipping = bool(settings.first_point)
    for record in _lines(os.path.join(settings.control_dir, "points.jsonl"), waiting):
        kind = record.get("kind")
        if kind == "end":
            return
        if kind != "point":
            continue
        asked = Asked(str(record.get("id")), record.get("params") or {})
        skipping = skipping and asked.id != settings.first_point
        if skipping or (settings.only_point and asked.id != settings.only_point):
            continue
        if asked.params.get("backend", settings.spec.backend) == settings.spec.backend:
            yield asked


def _lines(path: str, waiting: Callable[[float], None]) -> Iterator[Dict[str, Any]]:
    """Whole lines of a file that another process appends to; a line without its newline is not
    there yet.
    """
    position, number = 0, 0
    wait_s, waited_s = SHORTEST_WAIT_S, 0.0
    while True:
        text = _read_from(path, position)
        whole = text[: text.rfind(b"\n") + 1]
        position += len(whole)
        for line in whole.splitlines():
            number += 1
            if line.strip():
                yield _decoded(line, path, number)
        if whole:
            wait_s, waited_s = SHORTEST_WAIT_S, 0.0
            continue
        waiting(waited_s)
        time.sleep(wait_s)
        waited_s += wait_s
        wait_s = min(LONGEST_WAIT_S, 2 * wait_s)


def _read_from(path: str, position: int) -> bytes:
    try:
        with open(path, "rb") as file:
            file.seek(position)
            return file.read()
    except FileNotFoundError:
        return b""


def _decoded(line: bytes, path: str, number: int) -> Dict[str, Any]:
    try:
        record = json.loads(line.decode("utf-8"))
        if isinstance(record, dict):
            return record
        problem = "not an object"
    except ValueError as error:
        problem = str(error)
    raise Refusal("%s line %d: %s" % (path, number, problem), code=BAD_INPUT)


class Results:
    """The results file of this execution: the next free number for this rank, one write per
    line.
    """

    def __init__(self, settings: Settings):
        os.makedirs(settings.control_dir, exist_ok=True)
        rank = settings.rank or 0
        number = 0
        while True:
            self.path = os.path.join(settings.control_dir, "results-%d-%d.jsonl" % (rank, number))
            try:
                self._fd = os.open(
                    self.path,
                    os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC,
                    0o666,
                )
                return
            except FileExistsError:
                number += 1

    def write(self, kind: str, **fields: Any) -> None:
        """Append one record; a reader never sees a part of a line that was once whole."""
        record = {"v": VERSION, "kind": kind, **fields}
        line = json.dumps(record, separators=(",", ":")).encode("utf-8") + b"\n"
        while line:  # a regular file takes it whole; a full quota may not
            line = line[os.write(self._fd, line) :]

    def hello(self, versions: Mapping[str, str], devices: List[Dict[str, Any]]) -> None:
        """Who serves. A worker that cannot serve writes a record of kind `error` in its place."""
        self.write(
            "hello",
            pid=os.getpid(),
            host=socket.gethostname(),
            argv=[sys.executable, *sys.argv],
            versions=dict(versions),
            devices=devices,
        )

    def begin(self, point_id: str) -> None:
        self.write("begin", id=point_id, monotonic_ns=time.perf_counter_ns())


def joined(notes: Sequence[Mapping[str, str]]) -> Dict[str, str]:
    """The notes of several models or processes as those of one point: times (`_ns`) are added,
    texts that differ stand in a row, empty ones are left out.
    """
    together: Dict[str, str] = {}
    for name in dict.fromkeys(name for one in notes for name in one):
        values = [str(one[name]) for one in notes if one.get(name)]
        if values:
            together[name] = (
                str(sum(map(int, values)))
                if name.endswith("_ns")
                else "; ".join(sorted(set(values)))
            )
    return together


def plain_reason(error: BaseException) -> str:
    """The first sentence of a framework's message, without onnxruntime's codes and torch's advice;
    the type where it says nothing.
    """
    text = next(
        (line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__
    )
    text = re.split(r"\.\s+(?=[A-Z])", _ONNX_CODES.sub("", text), maxsplit=1)[0].rstrip(".")
    return text if len(text) <= REASON_CHARACTERS else text[: REASON_CHARACTERS - 1] + "…"


_ONNX_CODES = re.compile(r"^\[ONNXRuntimeError\] : \d+ : [A-Z_]+ : ")


def one_sentence(error: BaseException) -> str:
    """Type and first line of the message, without line breaks, cut at ERROR_CHARACTERS."""
    lines = [_ONNX_CODES.sub("", line.strip()) for line in str(error).splitlines() if line.strip()]
    text = "%s: %s" % (type(error).__name__, lines[0]) if lines else type(error).__name__
    return text if len(text) <= ERROR_CHARACTERS else text[: ERROR_CHARACTERS - 1] + "…"
