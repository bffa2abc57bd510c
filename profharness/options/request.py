"""What the user asked for, as one typed record: from flags, from a TOML scan file, or both (flags
win).

The field names are the flags' names with underscores; `from_mapping` turns a wrong key or value
into one sentence that names it.
"""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Literal, get_args, get_origin, get_type_hints

import msgspec

from profharness.errors import InputError, UsageError
from profharness.options import pinning as pinning_options
from profharness.options import serving as serving_options
from profharness.options import tracers as tracer_options
from profharness.options.pinning import PinningOptions
from profharness.options.serving import ServingOptions
from profharness.options.tracers import TracerOptions
from profharness.rundir import capture
from profharness.units import parse_counts

BACKENDS = ("torch", "onnxruntime", "tensorflow")
COMMAND_LINE = "the command line"  # the origin that is told by options rather than by keys


class Request(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Everything that `profharness run` can be told. Defaults are those of
    docs/command-line.md#scans-and-commands.
    """

    scan: str = "particlenet"
    name: str = ""
    command: tuple[str, ...] = ()
    profile: tuple[str, ...] = ()
    telemetry: Literal["auto", "off", "cpu", "amd", "amdsmi", "nvml"] = "auto"
    telemetry_hz: float = 10.0
    idle_seconds: float = 0.0
    backend: tuple[str, ...] = ()
    model: str = "particlenet"
    device: str = "auto"
    compile: bool = False
    torchscript: bool = False
    batch_sizes: tuple[int, ...] = ()
    trials: int = 100
    min_seconds: float = 2.0
    profile_trials: int = 10
    warmup: int | Literal["auto"] = "auto"
    order: Literal["asc", "desc", "random"] = "asc"
    inputs: str = "normal"
    shape: dict[str, tuple[int, ...]] = {}
    flops_per_item: float | None = None
    seed: int = 20260101
    threads: int | None = None
    isolate: bool = False
    capture: str = "default"
    step_range: str = ""
    bare: bool = False
    passes: int | None = None
    yes: bool = False
    hook: Literal["env", "exec"] = "env"
    hip_trace: bool = False
    hsa_trace: bool = False
    kernel_trace: bool = False
    memory_copy_trace: bool = False
    marker_trace: bool = False
    rccl_trace: bool = False
    sys_trace: bool = False
    stats: bool = False
    pmc: tuple[str, ...] = ()
    kernel_include_regex: str = ""
    kernel_iteration_range: str = ""
    rocprof_sys_mode: str = ""
    tool_arg: tuple[str, ...] = ()
    exit_limit: float = 300.0
    via: serving_options.Via = "direct"
    concurrency: tuple[int, ...] = ()
    rate: tuple[float, ...] = ()
    arrivals: str = "poisson"
    think_ms: float = 0.0
    clients_per_job: int = 1
    time: float = 5.0
    warmup_time: float = 1.0
    timeout: float = 30.0
    latency_limit: str = ""
    protocol: Literal["grpc", "http"] = "grpc"
    shared_memory: Literal["none", "system"] = "none"
    compression: Literal["none", "gzip", "deflate"] = "none"
    clients: int = 1
    instances: int = 1
    max_batch_size: int | None = None
    queue_delay_us: int = 0
    allow_fallback: bool = False
    url: str = ""
    token_file: str = ""
    ca: str = ""
    server_command: str = ""
    ready: str = ""
    perf_analyzer_arg: tuple[str, ...] = ()
    perf_analyzer_image: str = ""
    ragged: Literal["none", "padded", "grouped"] = "none"
    together: bool = False
    body: str = ""
    path: str = ""
    topology: str = ""
    streams: tuple[int, ...] = ()
    pin: pinning_options.Pin = "core"
    memory: pinning_options.Memory = "interleave"
    ranks: int = 1
    output: str = ""
    launcher: Literal["local", "slurm", "task"] = "local"  # a task is what slurm has started
    launcher_arg: tuple[str, ...] = ()
    container: str = ""
    container_init: str = ""
    container_arg: tuple[str, ...] = ()
    python: str = ""
    strict: bool = False

    def __post_init__(self) -> None:
        _check(self)
        tracer_options.check(self.tracer, self.profile)
        serving_options.check(self.serving, self.scan, self.profile)
        pinning_options.check(self.pinning, served=self.served, command=bool(self.command))

    @property
    def tracer(self) -> TracerOptions:
        """The options of the AMD tracers. Raises UsageError for a --tool-arg of a wrong form."""
        plain = {
            field.name: getattr(self, field.name)
            for field in msgspec.structs.fields(TracerOptions)
            if field.name != "tool_args"
        }
        return TracerOptions(
            **plain, tool_args=tracer_options.parse_tool_args(self.tool_arg, self.profile)
        )

    @property
    def serving(self) -> ServingOptions:
        """The options of served scans."""
        return ServingOptions(**{name: getattr(self, name) for name in serving_options.NAMES})

    @property
    def served(self) -> bool:
        """Whether a server stands between load and model."""
        return serving_options.is_served(self.scan, self.serving)

    @property
    def pinning(self) -> PinningOptions:
        """The options of multi-process scans."""
        return PinningOptions(**{name: getattr(self, name) for name in pinning_options.NAMES})

    @property
    def models(self) -> tuple[str, ...]:
        """The models of `--model A,B`, in order."""
        return tuple(part.strip() for part in self.model.split(",") if part.strip())


def is_sleep(model: str) -> bool:
    """Whether it is the model of known service time that a server of ours can serve:
    `sleep:20ms`.
    """
    return re.fullmatch(r"sleep:\d+(\.\d+)?(us|ms|s)", model) is not None


def from_mapping(values: Mapping[str, object], origin: str) -> Request:
    """Build a request; `origin` is a file or "the command line". Raises UsageError naming the
    key.
    """
    known = {field.name for field in msgspec.structs.fields(Request)}
    for key in values:
        if key not in known:
            near = difflib.get_close_matches(key, known, 1)
            raise UsageError(
                f"{origin}: there is no setting {key!r}",
                f"did you mean {near[0]!r}?"
                if near
                else f"known settings: {', '.join(sorted(known))}",
            )
    plain = {key: _normalise(key, value, origin) for key, value in values.items()}
    for key, value in plain.items():
        _check_type(key, value, origin)
    return msgspec.convert(plain, Request)


def _check_type(key: str, value: object, origin: str) -> None:
    """Raises UsageError that names the option, and what it takes."""
    kind = _TYPES[key]
    try:
        msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        option = "--" + key.replace("_", "-") if origin == COMMAND_LINE else f"{origin}: {key}"
        only = (
            ", which is all it takes"
            if get_origin(kind) is Literal and len(get_args(kind)) == 1
            else ""
        )
        shown = repr(value) if len(repr(value)) <= 60 else "this value"
        raise UsageError(
            f"{option}: {shown} is not {_in_words(kind)}{only}",
            "see `profharness run --help` for each setting's values",
        ) from error


_WORDS: dict[object, str] = {
    int: "a whole number",
    float: "a number",
    str: "a text",
    bool: "true or false",
    type(None): "",
}


def _in_words(kind: object) -> str:
    """A field's type as a person would say it: `auto or a whole number`, `one of asc, desc,
    random`.
    """
    arguments = get_args(kind)
    if get_origin(kind) is Literal:
        return f"one of {', '.join(arguments)}" if len(arguments) > 1 else str(arguments[0])
    if get_origin(kind) is tuple:
        return {
            int: "a list of whole numbers",
            float: "a list of numbers",
            str: "a list of texts",
        }.get(arguments[0], "a list")
    if get_origin(kind) is dict:
        return "a table of names, each with a list of whole numbers"
    return (
        _WORDS[kind]
        if kind in _WORDS
        else " or ".join(words for each in reversed(arguments) if (words := _in_words(each)))
    )


_TYPES = get_type_hints(Request)

# what only one of the two kinds of run understands; the rest is for both
_FOR_SCANS = (
    serving_options.NAMES
    | pinning_options.NAMES
    | frozenset(
        {
            "backend",
            "model",
            "device",
            "compile",
            "torchscript",
            "batch_sizes",
            "trials",
            "min_seconds",
            "profile_trials",
            "warmup",
            "order",
            "inputs",
            "shape",
            "flops_per_item",
            "threads",
            "seed",
            "isolate",
            "strict",
        }
    )
)
_FOR_COMMANDS = frozenset({"bare", "passes", "yes", "hook", "ranks", "step_range"})


def check_kind(given: Iterable[str], origin: str, *, is_command: bool) -> None:
    """Raises UsageError for a setting that this kind of run would pass over."""
    for key in given:
        option = "--" + key.replace("_", "-") if origin == COMMAND_LINE else f"{origin}: {key}"
        if is_command and key == "strict":
            raise UsageError(
                f"{option} is for scans: a command's own exit status is passed on",
                "gate on `profharness compare --fail-on`, or on the findings of `profharness "
                "report RUN --json`",
            )
        if is_command and key in _FOR_SCANS:
            raise UsageError(
                f"{option} is for scans, and a command was given",
                "leave it out, or give it to the command itself, after --",
            )
        if not is_command and key in _FOR_COMMANDS:
            raise UsageError(
                f"{option} is for commands, and a scan was asked for",
                _INSTEAD.get(key, "leave it out; a command stands after --"),
            )


def check_scan(given: Iterable[str], origin: str, request: Request) -> None:
    """Raises UsageError for a setting that a scan of this kind, served or not, would pass over."""
    if request.command:
        return

    def named(key: str) -> str:
        return "--" + key.replace("_", "-") if origin == COMMAND_LINE else f"{origin}: {key}"

    given = tuple(given)
    serving_options.check_given(given, request.scan, request.serving, named)
    if not request.served:
        pinning_options.check_given(given, request.pinning, named)


_INSTEAD = {
    "bare": "leave it out: a scan always has a bare pass",
    "passes": "leave it out: a scan makes as many passes as its layers need",
    "yes": "leave it out: a scan makes as many passes as its layers need",
    "step_range": "leave it out: a scan's steps are its trials",
    "ranks": "a scan is one process; profile a command: --ranks 4 -- python train.py",
}


def read_scan_file(path: Path) -> dict[str, object]:
    """The settings of a TOML scan file. Raises InputError when it is missing or not TOML."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(
            f"{path}: cannot be read ({error.strerror})",
            "name an existing scan file, or a scan: particlenet",
        ) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(
            f"{path}: not a TOML file ({error})",
            "a scan file holds lines such as batch_sizes = [1, 4, 16]",
        ) from error


def _normalise(key: str, value: object, origin: str) -> object:
    """Texts that stand for lists or tables become those: '4..2048', 'torch,onnxruntime',
    'NAME:2,100'.
    """
    if key in ("batch_sizes", "concurrency", "streams") and isinstance(value, str):
        return parse_counts(
            value, f"--{key.replace('_', '-')}" if origin == COMMAND_LINE else f"{origin}: {key}"
        )
    if key == "rate" and isinstance(value, str):
        return serving_options.parse_rates(
            value, "--rate" if origin == COMMAND_LINE else f"{origin}: rate"
        )
    if key == "pmc":
        return tracer_options.parse_counters(
            [value]
            if isinstance(value, str)
            else [str(part) for part in value]
            if isinstance(value, list | tuple)
            else []
        )
    if key in ("profile", "backend") and isinstance(value, str):
        return tuple(part.strip() for part in value.split(",") if part.strip())
    if key == "warmup" and isinstance(value, str) and value.isdigit():
        return int(value)
    return value


def parse_shape(text: str) -> tuple[str, tuple[int, ...]]:
    """`NAME:d1,d2` of `--shape`. Raises UsageError. Names may hold colons; the last one parts
    them.
    """
    name, _, dims = text.rpartition(":")
    parts = dims.split(",")
    if not name or not all(part.strip().isdigit() and int(part) > 0 for part in parts):
        raise UsageError(
            f"--shape: {text!r} is not NAME:d1,d2",
            "give the dimensions without the batch, for example pf_points:2,100",
        )
    return name, tuple(int(part) for part in parts)


def _check(request: Request) -> None:
    """Limits that a type cannot say. Raises UsageError with the way out."""
    bounded = request.capture not in ("default", "all")
    if bounded and not request.command:
        raise UsageError(
            f"--capture {request.capture}: a scan records all of its few trials under a layer",
            "leave it out; --profile-trials says how many trials",
        )
    capture.period(request.capture)
    _check_step_range(request.step_range)
    for wrong, message, hint in (
        *_wrong_backends(request),
        *_wrong_numbers(request),
        *_wrong_places(request),
    ):
        if wrong:
            raise UsageError(message, hint)


def _check_step_range(pattern: str) -> None:
    """Raises UsageError for what is no regular expression."""
    from profharness.trace.parts.step_ranges import compiled

    if pattern:
        compiled(pattern)


def _wrong_backends(request: Request) -> list[tuple[bool, str, str]]:
    unknown = [name for name in request.backend if name not in BACKENDS]
    return [
        (
            bool(unknown),
            f"--backend: there is no backend {', '.join(unknown)}",
            f"known backends: {', '.join(BACKENDS)}",
        ),
        (
            len(set(request.backend)) != len(request.backend),
            f"--backend: {','.join(request.backend)} names one twice",
            "name each backend once",
        ),
    ]


def _wrong_numbers(request: Request) -> list[tuple[bool, str, str]]:
    warmup = request.warmup
    return [
        (
            request.trials < 2,
            f"--trials: {request.trials} is too few",
            "ask for at least 2; 100 is the default",
        ),
        (
            request.profile_trials < 1,
            f"--profile-trials: {request.profile_trials} is too few",
            "ask for at least 1",
        ),
        (
            any(size < 1 for size in request.batch_sizes),
            "--batch-sizes: a batch has at least one item",
            "write a list such as 1,4,16 or 4..2048",
        ),
        (request.min_seconds < 0, "--min-seconds: must not be negative", "use 0 for no minimum"),
        (
            not 0.1 <= request.telemetry_hz <= 1000,
            f"--telemetry-hz: {request.telemetry_hz:g} is outside 0.1 to 1000",
            "10 suits most runs",
        ),
        (
            not 0 <= request.idle_seconds <= 600,
            f"--idle-seconds: {request.idle_seconds:g} is outside 0 to 600",
            "5 is enough for most sensors; leave it out to skip the idle measurement",
        ),
        (
            isinstance(warmup, int) and warmup < 0,
            "--warmup: must not be negative",
            "use auto, or the number of trials to drop",
        ),
        (
            request.threads is not None and request.threads < 1,
            f"--threads: {request.threads} is too few",
            "ask for at least 1",
        ),
        (
            request.exit_limit <= 0,
            "--exit-limit: must be more than 0",
            "it is how long, in seconds, a profiler may go on after the workload's end",
        ),
        (request.ranks < 1, f"--ranks: {request.ranks} is too few", "ask for at least 1"),
        (
            request.ranks > 1 and not request.command,
            "--ranks: a scan is one process",
            "profile a command: --ranks 4 -- python train.py",
        ),
    ]


def _wrong_places(request: Request) -> list[tuple[bool, str, str]]:
    device = request.device
    own = not (
        request.url or request.server_command
    )  # the model of another's server is a name there
    absent = [
        model
        for model in request.models
        if own
        and not (model == "particlenet" or (request.served and is_sleep(model)))
        and not Path(model).exists()
    ]
    return [
        (
            not request.container and bool(request.container_init or request.container_arg),
            "--container-init and --container-arg go with --container",
            "name the image: --container image.sif, or leave them out",
        ),
        (
            bool(request.container and request.perf_analyzer_image),
            "--container and --perf-analyzer-image: one image in another",
            "name one of them",
        ),
        (
            request.launcher == "local" and bool(request.launcher_arg),
            "--launcher-arg goes with --launcher slurm",
            "add it, or leave it out",
        ),
        (
            not request.models,
            "--model: no model is named",
            "name an .onnx, .pt or .graphdef file, a SavedModel folder, or particlenet",
        ),
        (
            bool(absent),
            f"--model: there is no file {', '.join(absent)}",
            "name an .onnx, .pt or .graphdef file, a SavedModel folder, or particlenet",
        ),
        (
            len(set(request.models)) != len(request.models),
            f"--model: {request.model} names one twice",
            "name each model once",
        ),
        (
            len(request.models) > 1 and not request.served,
            f"--model: {request.model} names several, and a scan without a server takes one",
            "serve them: --via triton; or make a run per model and `profharness compare` them",
        ),
        (
            request.inputs not in ("normal", "hep") and not Path(request.inputs).is_file(),
            f"--inputs: there is no file {request.inputs}",
            "use normal, hep, or the path of an .npz file",
        ),
        (
            not all(
                one in ("auto", "cpu", "cuda") or one.removeprefix("cuda:").isdigit()
                for one in device.split(",")
            ),
            f"--device: {device!r} is not a device",
            "use auto, cpu, cuda or cuda:1 (cuda is also ROCm's name in torch)",
        ),
        (
            "," in device and not request.served,
            f"--device: {device} names several, and a scan without a server takes one",
            "serve it: --via triton deals the instances out, and with --together the models",
        ),
    ]
