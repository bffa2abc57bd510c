"""The batch scan: direct inference at many batch sizes, per backend
(docs/metrics.md#throughput).
"""

from __future__ import annotations

import random
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from profharness.errors import UsageError
from profharness.node.probe import Environment
from profharness.options import providers
from profharness.options.request import Request
from profharness.options.workload import is_sleep
from profharness.rundir.manifest import PointRecord
from profharness.scans.contract import Point, PointOutput, ServerSpec, WorkloadSpec, first_missing
from profharness.serving.model_folder import model_file

# Powers of two as the published scans use them; a CPU would need minutes per trial at the upper
# end.
DEVICE_SIZES = tuple(4 * 2**k for k in range(10))
CPU_SIZES = (1, 2, 4, 8, 16, 32)
REPEATED = 2
_FITTING = {
    ".onnx": "onnxruntime",
    ".pt": "torch",
    ".pth": "torch",
    ".graphdef": "tensorflow",
    ".pb": "tensorflow",
}


@dataclass(frozen=True)
class BatchScan:
    """A fixed sweep: every backend at every batch size, the first and the last point repeated at
    the end.
    """

    name: str
    backends: tuple[str, ...]
    points: tuple[Point, ...]
    profile_points: tuple[Point, ...]
    settings: dict[str, object]
    item: str = "item"
    adaptive: bool = False

    @staticmethod
    def fits(request: Request) -> bool:  # noqa: ARG004  the last one asked
        """It is what every request without a server or further processes means."""
        return True

    @classmethod
    def from_request(cls, request: Request, environment: Environment) -> BatchScan:
        """Lay out the points. Raises UsageError where model file and backend do not fit."""
        backends = backends_for(request, request.model)
        check_runtime(request, backends)
        on_device = (
            request.device != "cpu"
            and bool(environment.accelerators)
            and backends != ("deepsparse",)  # which runs on CPUs alone
        )
        sizes = request.batch_sizes or (DEVICE_SIZES if on_device else CPU_SIZES)
        timed: dict[str, object] = {
            "trials": request.trials,
            "min_seconds": request.min_seconds,
            "warmup": request.warmup,
            "seed": request.seed,
        }
        few: dict[str, object] = {**timed, "trials": request.profile_trials, "min_seconds": 0.0}
        points = tuple(
            _point(backend, size, timed)
            for backend in backends
            for size in _ordered(sizes, request)
        )
        return cls(
            name=request.name or request.scan,
            backends=backends,
            points=_with_repeats(points, backends),
            profile_points=tuple(replace(p, params={**p.params, **few}) for p in points),
            settings=settings_of(request, request.model),
            item=item_of(request.model),
        )

    def next(self, done: Sequence[PointRecord]) -> Point | None:
        """The first point of the sweep that is not done."""
        return first_missing(self.points, done)

    # the worker runs the model itself
    def server(self, backend: str) -> ServerSpec | None:  # noqa: ARG002  no server here
        """None: there is no server."""
        return None

    def profiled(
        self,
        backend: str,
        done: Sequence[PointRecord] = (),  # noqa: ARG002  the sweep is fixed
    ) -> tuple[Point, ...]:
        """The backend's points with few trials, without repeats."""
        return tuple(point for point in self.profile_points if point.backend == backend)

    def result(self, point: Point, pass_name: str, output: PointOutput) -> PointRecord:
        """Keep what the worker measured; throughput is computed by the analysis, from the
        trials.
        """
        return PointRecord(
            id=point.id,
            pass_name=pass_name,
            backend=point.backend,
            batch_size=point.batch_size,
            repeat=point.repeat,
            state="ok" if output.ok else "failed",
            error=output.error,
            trials=len(output.trials_ns),
            warmup_trials=len(output.warmup_ns),
            warmup_ns=sum(output.warmup_ns) if output.warmup_ns else None,
            compile_ns=output.compile_ns,
            items_per_trial=output.items or point.batch_size,
            cold_cache=output.cold_cache,
            pid=output.pid,
            host=output.host,
            device=output.device,
            start_monotonic_ns=output.begin_ns,
            end_monotonic_ns=output.end_ns,
            notes=dict(output.notes),
        )

    def workload(self, backend: str) -> WorkloadSpec:
        """The batch worker of that backend."""
        return WorkloadSpec(
            script=f"profharness_workloads/batch/{backend}_worker.py",
            settings={**self.settings, "backend": backend},
        )


def item_of(model: str) -> str:
    """What an item of a batch is called: jets for the jet taggers, events for models of whole
    events.
    """
    name = model.lower()
    return "jet" if "particlenet" in name else "event" if "deepmet" in name else "item"


def backends_for(request: Request, model: str) -> tuple[str, ...]:
    """Asked backends; without any, torch (or what the model file needs), plus onnxruntime when its
    layer is asked, or onnxruntime alone when one of its own options is.

    Raises UsageError where model file and backend do not fit.
    """
    model = model_file(model)
    fits = (
        "tensorflow"
        if (Path(model) / "saved_model.pb").is_file()
        else _FITTING.get(Path(model).suffix.lower())
    )
    if model != "particlenet" and fits is None:
        raise UsageError(
            f"--model: {model} is no ONNX, TorchScript or TensorFlow model by its name",
            "name an .onnx, .pt or .graphdef file, a SavedModel folder, or a model's folder in a "
            "Triton repository",
        )
    if not request.backend:
        default = (fits or ("onnxruntime" if _of_onnxruntime(request) else "torch"),)
        extra = tuple(
            name
            for name in ("torch", "onnxruntime")
            if name in request.profile and name not in default
        )
        return default if fits else (*default, *extra)
    for backend in request.backend:
        if fits and backend != fits and (fits, backend) != ("onnxruntime", "deepsparse"):
            raise UsageError(
                f"--backend {backend} cannot run {model}",
                f"use --backend {fits}, or a model in the other format",
            )
        if backend == "tensorflow" and not fits:
            raise UsageError(
                "--backend tensorflow cannot run the built-in ParticleNet",
                "name a frozen graph (.graphdef, .pb) or SavedModel folder with --model",
            )
    return request.backend


def _of_onnxruntime(request: Request) -> str:
    """The option by which the request speaks of onnxruntime; "" for none."""
    if request.provider:
        return "--provider"
    return "" if request.ort_optimization == "all" else "--ort-optimization"


def check_runtime(request: Request, frameworks: Sequence[str]) -> None:
    """Raises UsageError where an option of one framework is given and none of these is it."""
    option = _of_onnxruntime(request)
    if option and "onnxruntime" not in frameworks:
        raise UsageError(
            f"{option} is onnxruntime's, and this scan runs {', '.join(frameworks)}",
            "leave it out, or add --backend onnxruntime (which takes .onnx files and particlenet)",
        )
    if request.autocast != "off" and "torch" not in frameworks:
        raise UsageError(
            f"--autocast {request.autocast} is torch's, and this scan runs {', '.join(frameworks)}",
            "leave it out, or add --backend torch (which takes TorchScript files and particlenet)",
        )


def _ordered(sizes: tuple[int, ...], request: Request) -> tuple[int, ...]:
    if request.order == "random":
        return tuple(random.Random(request.seed).sample(sizes, len(sizes)))  # noqa: S311  an order
    return tuple(sorted(sizes, reverse=request.order == "desc"))


def _point(backend: str, size: int, params: dict[str, object]) -> Point:
    return Point(
        id=f"{backend}-b{size}",
        backend=backend,
        batch_size=size,
        params={"backend": backend, "batch_size": size, **params},
    )


def _with_repeats(points: tuple[Point, ...], backends: tuple[str, ...]) -> tuple[Point, ...]:
    """Backend by backend (one worker serves all of its points), the first and last again at its
    end.

    The drift of the repeats widens the intervals.
    """
    laid_out: list[Point] = []
    for backend in backends:
        own = [point for point in points if point.backend == backend]
        again = [own[0], own[-1]][: min(REPEATED, len(own))]
        laid_out += [*own, *(replace(point, repeat=1) for point in again)]
    return tuple(laid_out)


def settings_of(request: Request, model: str) -> dict[str, object]:
    """What a worker must know of the model and its inputs."""
    if request.managed and not (model == "particlenet" or is_sleep(model)):
        model = str(Path(model_file(model)).resolve())
    inputs = (
        request.inputs
        if request.inputs in ("normal", "hep")
        else str(Path(request.inputs).resolve())
    )
    return {
        "model": model,
        "device": request.device,
        "compile": request.compile,
        "torchscript": request.torchscript,
        "inputs": inputs,
        "shapes": {name: list(dims) for name, dims in request.shape.items()},
        "seed": request.seed,
        "threads": request.threads,
        "providers": providers.as_settings(request.provider),
        "optimization": request.ort_optimization,
        "allow_fallback": request.allow_fallback,
        "autocast": request.autocast,
        "flops_per_item": request.flops_per_item,
        "python": request.python,
        "exporter": sys.executable,
    }
