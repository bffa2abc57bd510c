"""What a run is of, and how a scan times its points: the first chapter of `Request`."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Literal

import msgspec

from profharness import layers
from profharness.errors import UsageError
from profharness.options import providers, shapes, texts
from profharness.options.declared import (
    LAYERS,
    OUTPUT,
    SCAN,
    TELEMETRY,
    Limit,
    Only,
    Option,
)

BACKENDS = ("torch", "onnxruntime", "tensorflow", "deepsparse")
SERVED_BACKENDS = BACKENDS[:3]
"""Those that a server of ours can run."""
FOR_SCANS = Only(
    "scan",
    "is for scans, and a command was given",
    "leave it out, or give it to the command itself, after --",
)


def for_commands(hint: str = "leave it out; a command stands after --") -> Only:
    """What only a command understands, and what to do in a scan instead."""
    return Only("command", "is for commands, and a scan was asked for", hint)


def _sources() -> tuple[str, ...]:
    from profharness.layers import telemetry

    return telemetry.names()


def _backends(names: tuple[str, ...]) -> None:
    unknown = [name for name in names if name not in BACKENDS]
    if unknown:
        raise UsageError(
            f"--backend: there is no backend {', '.join(unknown)}",
            f"known backends: {', '.join(BACKENDS)}",
        )
    if len(set(names)) != len(names):
        raise UsageError(
            f"--backend: {','.join(names)} names one twice",
            "name each backend once",
        )


def _device(text: str) -> None:
    if not all(
        one in ("auto", "cpu", "cuda") or one.removeprefix("cuda:").isdigit()
        for one in text.split(",")
    ):
        raise UsageError(
            f"--device: {text!r} is not a device",
            "use auto, cpu, cuda or cuda:1 (cuda is also ROCm's name in torch)",
        )


def _inputs(text: str) -> None:
    if text not in ("normal", "hep") and not Path(text).is_file():
        raise UsageError(
            f"--inputs: there is no file {text}",
            "use normal, hep, or the path of an .npz file",
        )


def _warmup(trials: int | str) -> None:
    if isinstance(trials, int) and trials < 0:
        raise UsageError(
            "--warmup: must not be negative", "use auto, or the number of trials to drop"
        )


def is_sleep(model: str) -> bool:
    """Whether it is the model of known service time that a server of ours can serve:
    `sleep:20ms`.
    """
    return re.fullmatch(r"sleep:\d+(\.\d+)?(us|ms|s)", model) is not None


def layer_names() -> tuple[str, ...]:
    """What --profile may name; a function, so that the shell asks for it only when it completes."""
    return tuple(about.name for about in layers.descriptions())


def _all_layers(_named: str) -> str:
    return f"{', '.join(layer_names())}. Repeat the option, or separate names by commas."


class WorkloadOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What is run, what is recorded beside it, and how a scan times its points."""

    scan: Annotated[
        str,
        Option(
            "The scan: particlenet, or saturation, which looks for the knee of a server by itself.",
            SCAN,
            in_files_only=True,
            examples=("particlenet", "saturation"),
        ),
    ] = "particlenet"
    name: Annotated[str, Option("Name of the run.", OUTPUT, common=True)] = ""
    command: Annotated[
        tuple[str, ...],
        Option("A command and its words, in place of a scan.", SCAN, in_files_only=True),
    ] = ()
    profile: Annotated[
        tuple[str, ...],
        Option(
            "Layer(s): ",
            LAYERS,
            common=True,
            text=texts.NAMES,
            gather=texts.joined_by_commas,
            examples=layer_names,
            more_help=_all_layers,
        ),
    ] = ()
    telemetry: Annotated[
        str,
        Option(
            "auto, off, cpu, amd (our own sysfs reader), nvml, or amdsmi (AMD's library).",
            TELEMETRY,
            common=True,
            choices=_sources,
        ),
    ] = "auto"
    telemetry_hz: Annotated[
        float,
        Option(
            "Telemetry samples per second.",
            TELEMETRY,
            limit=Limit(
                least=0.1,
                most=1000,
                says="{:g} is outside 0.1 to 1000",
                hint="10 suits most runs",
            ),
        ),
    ] = 10.0
    device_counters_hz: Annotated[
        float,
        Option(
            "With --profile device-counters: samples of the hardware counters per second.",
            TELEMETRY,
            limit=Limit(
                least=0.1,
                most=10,
                says="{:g} is outside 0.1 to 10",
                hint="2 suits most runs: each sample costs up to 3 ms per device",
            ),
        ),
    ] = 2.0
    device_counters_from: Annotated[
        str,
        Option(
            "Take hardware counters of the devices from an exporter on the node (omnistat, AMD's "
            "Device Metrics Exporter): http://HOST:PORT/metrics, or from RDC's daemon: rdci or "
            "rdci:HOST:PORT.",
            TELEMETRY,
        ),
    ] = ""
    idle_seconds: Annotated[
        float,
        Option(
            "Wait this long before the workload begins, to measure what the idle device draws.",
            TELEMETRY,
            limit=Limit(
                least=0,
                most=600,
                says="{:g} is outside 0 to 600",
                hint="5 is enough for most sensors; leave it out to skip the idle measurement",
            ),
        ),
    ] = 0.0
    backend: Annotated[
        tuple[str, ...],
        Option(
            "torch, onnxruntime, tensorflow, deepsparse (default: by the model's file; "
            "for the built-in model torch, and also onnxruntime if that layer is asked for).",
            SCAN,
            common=True,
            only=FOR_SCANS,
            text=texts.NAMES,
            gather=texts.joined_by_commas,
            choices=BACKENDS,
            check=_backends,
        ),
    ] = ()
    model: Annotated[
        str,
        Option(
            "particlenet, an ONNX or TorchScript file, a frozen TensorFlow graph (.graphdef, "
            ".pb), a SavedModel folder, or a model's folder in a Triton repository (its shapes "
            "are in config.pbtxt); served: several, A,B.",
            SCAN,
            common=True,
            only=FOR_SCANS,
        ),
    ] = "particlenet"
    device: Annotated[
        str,
        Option(
            "auto, cpu, cuda, cuda:1 (cuda is also ROCm's name in torch).",
            SCAN,
            common=True,
            only=FOR_SCANS,
            check=_device,
            examples=("auto", "cpu", "cuda", "cuda:0", "cuda:1"),
        ),
    ] = "auto"
    allow_fallback: Annotated[
        bool,
        Option(
            "Where the device or provider is missing go on with the next one or the CPU, and say "
            "so.",
            SCAN,
            only=FOR_SCANS,
        ),
    ] = False
    provider: Annotated[
        tuple[str, ...],
        Option(
            "onnxruntime's execution provider, best first: migraphx, rocm, cuda, tensorrt or cpu, "
            "with its options as migraphx:KEY=VALUE,KEY=VALUE. Repeatable.",
            SCAN,
            only=FOR_SCANS,
            text=providers.TEXT,
            check=providers.check,
            examples=providers.NAMES,
            metavar="NAME[:KEY=VALUE,...]",
        ),
    ] = ()
    ort_optimization: Annotated[
        providers.Optimization,
        Option(
            "How far onnxruntime optimises the graph: all (default), extended, basic or off.",
            SCAN,
            only=FOR_SCANS,
        ),
    ] = "all"
    compile: Annotated[
        bool,
        Option("torch.compile the model (reset for each point).", SCAN, only=FOR_SCANS),
    ] = False
    torchscript: Annotated[
        bool, Option("Run the built-in model as TorchScript.", SCAN, only=FOR_SCANS)
    ] = False
    autocast: Annotated[
        Literal["off", "bf16", "fp16"],
        Option(
            "Run models of torch under torch.autocast: off (default), bf16 or fp16.",
            SCAN,
            only=FOR_SCANS,
        ),
    ] = "off"
    batch_sizes: Annotated[
        tuple[int, ...],
        Option(
            "1,4,16 or 4..2048 (powers of two).",
            SCAN,
            common=True,
            only=FOR_SCANS,
            text=texts.COUNTS,
            limit=Limit(
                least=1,
                says="a batch has at least one item",
                hint="write a list such as 1,4,16 or 4..2048",
            ),
        ),
    ] = ()
    trials: Annotated[
        int,
        Option(
            "Trials per point, at least (default 100).",
            SCAN,
            common=True,
            only=FOR_SCANS,
            limit=Limit(
                least=2, says="{} is too few", hint="ask for at least 2; 100 is the default"
            ),
        ),
    ] = 100
    min_seconds: Annotated[
        float,
        Option(
            "Seconds per point, at least (default 2).",
            SCAN,
            common=True,
            only=FOR_SCANS,
            limit=Limit(least=0, says="must not be negative", hint="use 0 for no minimum"),
        ),
    ] = 2.0
    profile_trials: Annotated[
        int,
        Option(
            "Trials per point under a layer (default 10).",
            SCAN,
            only=FOR_SCANS,
            limit=Limit(least=1, says="{} is too few", hint="ask for at least 1"),
        ),
    ] = 10
    warmup: Annotated[
        int | Literal["auto"],
        Option(
            "auto, or a number of trials to drop.",
            SCAN,
            only=FOR_SCANS,
            text=texts.NUMBER,
            check=_warmup,
        ),
    ] = "auto"
    order: Annotated[
        Literal["asc", "desc", "random"],
        Option("asc, desc or random order of the batch sizes.", SCAN, only=FOR_SCANS),
    ] = "asc"
    inputs: Annotated[
        str,
        Option(
            "normal, hep, or an .npz file.",
            SCAN,
            only=FOR_SCANS,
            check=_inputs,
            examples=("normal", "hep"),
        ),
    ] = "normal"
    shape: Annotated[
        dict[str, tuple[int, ...]],
        Option(
            "Free dimensions: NAME:d1,d2 without the batch, or with it NAME:1x3x224x224,NAME:1x16 "
            "or [1,128],[1,128] in the order of the inputs. Repeatable.",
            SCAN,
            names=("--shape", "--shapes", "-shapes"),
            only=FOR_SCANS,
            text=shapes.TEXT,
            gather=shapes.read,
        ),
    ] = {}
    flops_per_item: Annotated[
        float | None,
        Option("Useful FLOP per item, where they cannot be counted.", SCAN, only=FOR_SCANS),
    ] = None
    seed: Annotated[int, Option("Seed of inputs and of random order.", SCAN, only=FOR_SCANS)] = (
        20260101
    )
    threads: Annotated[
        int | None,
        Option(
            "CPU threads of the framework.",
            SCAN,
            only=FOR_SCANS,
            limit=Limit(least=1, says="{} is too few", hint="ask for at least 1"),
        ),
    ] = None
    isolate: Annotated[bool, Option("One worker process per point.", SCAN, only=FOR_SCANS)] = False

    @property
    def models(self) -> tuple[str, ...]:
        """The models of `--model A,B`, in order."""
        return tuple(part.strip() for part in self.model.split(",") if part.strip())
