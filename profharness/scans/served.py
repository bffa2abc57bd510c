"""What the scans of a server have in common: targets (model and framework), points (batch size and
load), workers, records.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from profharness.errors import UsageError
from profharness.layers.contract import framework_of
from profharness.options.request import Request
from profharness.options.serving import ARRIVALS, DEFAULT_BATCH
from profharness.options.workload import is_sleep
from profharness.rundir.levels import SPREAD, TOGETHER, ragged_label
from profharness.rundir.manifest import PointRecord
from profharness.scans.batch import backends_for, check_runtime, item_of, settings_of
from profharness.scans.contract import Point, PointOutput, ServerSpec, WorkloadSpec
from profharness.serving import repository

EXTERNAL = "server"  # the target that stands for a foreign server (`layers.contract.EXTERNAL`)
OUR_MODEL = "model"
SERVER = "profharness_workloads/serving/triton_server.py"
CLIENTS = {"perf-analyzer": "profharness_workloads/perf_analyzer/client.py"}
CLIENT = "profharness_workloads/loadgen/triton_client.py"
DISTINCT = 16  # prepared inputs that requests take in turn
FEWEST = 20  # requests in a window, so that its figures mean something
# under a layer a level is as short as its figures allow: traces grow with every request
PROFILED_S, PROFILED_WARMUP_S = 0.5, 0.5


@dataclass(frozen=True)
class Target:
    """One model under one framework. `label` names it everywhere: `torch`, or `torch@NAME` among
    several models; `torch@triton` or `torch@NAME.triton` among several ways of ragged batching.

    `members` are the targets that are served at once, each by its `name` there.
    """

    label: str
    framework: str
    model: str
    members: tuple[Target, ...] = ()
    ragged: str = "none"

    @property
    def name(self) -> str:
        """A name that KServe takes."""
        return self.label.replace("@", ".")


@dataclass(frozen=True)
class Load:
    """What one level puts on the server: so many requests in flight, or so many per second."""

    concurrency: int | None = None
    rate: float | None = None

    @property
    def word(self) -> str:
        """`c8` or `r20`."""
        return f"c{self.concurrency}" if self.concurrency is not None else f"r{self.rate:.6g}"


@dataclass(frozen=True)
class Service:
    """The workers and points of one request for a served scan."""

    request: Request
    targets: tuple[Target, ...]

    @property
    def labels(self) -> tuple[str, ...]:
        return tuple(target.label for target in self.targets)

    @property
    def batch_sizes(self) -> tuple[int, ...]:
        return tuple(sorted(self.request.batch_sizes or (1,)))

    @property
    def item(self) -> str:
        """What one item of a batch is called."""
        return next(
            (item for target in self.targets if (item := item_of(target.model)) != "item"), "item"
        )

    def point(
        self, label: str, batch: int, load: Load, *, repeat: int = 0, profiled: bool = False
    ) -> Point:
        """One level. Under a layer it is short, and asks for as many requests as a direct scan asks
        for trials.
        """
        request = self.request
        seconds, warmup = (
            (min(request.time, PROFILED_S), min(request.warmup_time, PROFILED_WARMUP_S))
            if profiled
            else (request.time, request.warmup_time)
        )
        file = request.arrivals not in ARRIVALS
        params: dict[str, object] = {
            "backend": label,
            "batch_size": batch,
            "mode": "closed" if load.rate is None else "open",
            "concurrency": load.concurrency,
            "rate": load.rate,
            "arrivals": str(Path(request.arrivals).resolve()) if file else request.arrivals,
            "think_ms": request.think_ms,
            "seconds": seconds,
            "warmup_s": warmup,
            "min_requests": request.profile_trials if profiled else FEWEST,
            "seed": request.seed,
        }
        return Point(
            id=f"{label}-b{batch}-{load.word}",
            backend=label,
            batch_size=batch,
            mode="closed" if load.rate is None else "open",
            concurrency=load.concurrency,
            rate=load.rate,
            repeat=repeat,
            params=params,
        )

    def replayed(self, label: str, done: Sequence[PointRecord]) -> tuple[Point, ...]:
        """The points of a layer pass: those that the bare pass had of this target, failed ones left
        out.
        """
        return tuple(
            self.point(
                label, record.batch_size or 1, Load(record.concurrency, record.rate), profiled=True
            )
            for record in done
            if record.backend == label and not record.repeat and record.state == "ok"
        )

    def client(self, label: str) -> WorkloadSpec:
        """The load generator."""
        request, target = self.request, self._target(label)
        spec = settings_of(request, target.model)
        return WorkloadSpec(
            CLIENTS.get(request.via, CLIENT),
            {
                "backend": label,
                "model": self._model_name(label),
                "models": [[one.name, one.label] for one in target.members],
                "protocol": request.protocol,
                "shared_memory": request.shared_memory,
                "device_id": _number(request.device),
                "compression": request.compression,
                "inputs": spec["inputs"],
                "shapes": spec["shapes"],
                "seed": request.seed,
                "clients": request.clients,
                "distinct": DISTINCT,
                "timeout_s": request.timeout,
                "managed": request.managed,
                "ragged": target.ragged,
                "body": str(Path(request.body).resolve()) if request.body else "",
                "path": request.path,
                "perf_analyzer_args": list(request.perf_analyzer_arg),
                "perf_analyzer_image": str(Path(request.perf_analyzer_image).resolve())
                if request.perf_analyzer_image
                else "",
            },
        )

    def server(self, label: str) -> ServerSpec:
        """The server of one target."""
        request, target = self.request, self._target(label)
        if request.url:
            return ServerSpec(self._model_name(label), urls=request.urls)
        if request.server_command:
            return ServerSpec(
                self._model_name(label),
                command=tuple(shlex.split(request.server_command)),
                ready=request.ready,
            )
        largest = max(request.max_batch_size or DEFAULT_BATCH, *self.batch_sizes)
        settings = {
            **self._model_settings(target),
            "instances": request.instances,
            "max_batch_size": largest,
            "queue_delay_us": request.queue_delay_us,
            "ragged": target.ragged,
            "repository": label,  # below the run's own folder of repositories
        }
        if target.members:
            place = (
                {"device": request.device.split(",")[0]}
                if framework_of(target.label) == TOGETHER
                else {}
            )
            settings |= {
                "models": [
                    {**self._model_settings(one), "name": one.name, **place}
                    for one in target.members
                ]
            }
        return ServerSpec(OUR_MODEL, WorkloadSpec(SERVER, settings))

    def _model_settings(self, target: Target) -> dict[str, object]:
        """What the server must know of one model; several that are compared take the devices in
        turn, each the same one alone and spread.
        """
        devices, settings = self.request.device.split(","), settings_of(self.request, target.model)
        if self.request.together and not target.members:
            settings["device"] = devices[self.labels.index(target.label) % len(devices)]
        return {**settings, "backend": target.framework, "name": OUR_MODEL}

    def record(self, point: Point, pass_name: str, output: PointOutput) -> PointRecord:
        """What the manifest keeps of a level."""
        level = output.level
        return PointRecord(
            id=point.id,
            pass_name=pass_name,
            backend=point.backend,
            batch_size=point.batch_size,
            concurrency=point.concurrency,
            mode=point.mode,
            rate=point.rate,
            level=level,
            result=output.result,
            repeat=point.repeat,
            state="ok" if output.ok else "failed",
            error=output.error,
            compile_ns=output.compile_ns,
            items_per_trial=point.batch_size,
            warmup_ns=level.warmup_ns if level is not None else None,
            pid=output.pid,
            host=output.host,
            device=output.device,
            start_monotonic_ns=output.begin_ns,
            end_monotonic_ns=output.end_ns,
            notes=dict(output.notes),
        )

    def _target(self, label: str) -> Target:
        return next(target for target in self.targets if target.label == label)

    def _model_name(self, label: str) -> str:
        return OUR_MODEL if self.request.managed else self._target(label).model


@dataclass(frozen=True)
class OnServers:
    """What every scan of a service hands on to it."""

    name: str
    service: Service

    @property
    def item(self) -> str:
        return self.service.item

    @property
    def backends(self) -> tuple[str, ...]:
        return self.service.labels

    def result(self, point: Point, pass_name: str, output: PointOutput) -> PointRecord:
        """What the load generator and its requests say."""
        return self.service.record(point, pass_name, output)

    def workload(self, backend: str) -> WorkloadSpec:
        """The load generator."""
        return self.service.client(backend)

    def server(self, backend: str) -> ServerSpec:
        """The server of that target."""
        return self.service.server(backend)


def _number(device: str) -> int:
    """The device in `cuda:1`, the first of a list; 0 where none is named."""
    number = device.split(",", maxsplit=1)[0].partition(":")[2]
    return int(number) if number.isdigit() else 0


def service(request: Request) -> Service:
    """The targets of a request. Raises UsageError where a model fits none of the backends, or a
    batch is larger than the server takes.
    """
    found = Service(request, tuple(_targets(request)))
    if request.managed:
        check_runtime(request, tuple(dict.fromkeys(one.framework for one in found.targets)))
    limit = request.max_batch_size
    if limit is not None and max(found.batch_sizes) > limit:
        raise UsageError(
            f"--batch-sizes: {max(found.batch_sizes)} is more than the server takes at once "
            f"(--max-batch-size {limit})",
            "raise --max-batch-size, or leave out the larger batches",
        )
    return found


def _targets(request: Request) -> list[Target]:
    several = len(request.models) > 1
    if not request.managed:
        if request.body:  # a plain HTTP server has no models
            return [Target(EXTERNAL, EXTERNAL, "")]
        return [
            target
            for model in request.models
            for target in _in_ways(
                request,
                Target(f"{EXTERNAL}@{_word(model)}" if several else EXTERNAL, EXTERNAL, model),
            )
        ]
    found = [
        Target(f"{framework}@{_word(model)}" if several else framework, framework, model)
        for model in request.models
        for framework in _frameworks(request, model, several=several)
    ]
    labels = [target.label for target in found]
    named = [
        Target(f"{target.label}-{at}", target.framework, target.model)
        if labels.count(target.label) > 1
        else target
        for at, target in enumerate(found, 1)
    ]
    ways = [one for target in named for one in _in_ways(request, target)]
    return [*ways, *_together(request, ways)] if request.together else ways


def _in_ways(request: Request, target: Target) -> tuple[Target, ...]:
    """The target once for each way of ragged batching."""
    return tuple(
        replace(target, label=ragged_label(target.label, way, request.ragged), ragged=way)
        for way in request.ragged
    )


def _together(request: Request, targets: list[Target]) -> Iterator[Target]:
    """All of them on one server: on one device, and where there are several once more, each on its
    own. Raises UsageError for less than two.
    """
    if len(targets) < 2:
        raise UsageError(
            "--together: there is one model under one backend, which shares with nothing",
            "name several: --model A,B or --backend torch,onnxruntime",
        )
    first = targets[0]
    yield Target(TOGETHER, first.framework, first.model, tuple(targets), first.ragged)
    if len(set(request.device.split(","))) > 1:
        yield Target(SPREAD, first.framework, first.model, tuple(targets), first.ragged)


def _frameworks(request: Request, model: str, *, several: bool) -> tuple[str, ...]:
    """Of several models each takes those of the asked backends that can run it."""
    if is_sleep(model):
        return ("sleep",)
    if not several or not request.backend:
        return backends_for(request, model)
    fitting: list[str] = []
    refused: UsageError | None = None
    for backend in request.backend:
        try:
            fitting += backends_for(_with_backend(request, backend), model)
        except UsageError as error:
            refused = error
    if not fitting and refused is not None:
        raise refused
    return tuple(fitting)


def _with_backend(request: Request, backend: str) -> Request:
    import msgspec

    return msgspec.structs.replace(request, backend=(backend,))


def _word(model: str) -> str:
    """The model's name as part of a folder's name."""
    path = Path(model)
    if path.name == repository.FILE:  # of a model's folder in a repository
        path = path.resolve().parent
    named = "/" in model or path.suffix in (".onnx", ".pt", ".pth")
    return re.sub(r"[^A-Za-z0-9_.]+", "_", path.stem if named else path.name)
