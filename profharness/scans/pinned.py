"""The multi-process scan: the same model in 1, 2, ... pinned processes at once, at each batch size;
or in plans of N processes by M cores (docs/metrics.md#several-processes).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from profharness.errors import UsageError
from profharness.node import topology
from profharness.node.probe import Environment
from profharness.node.topology import Topology
from profharness.options.request import Request
from profharness.rundir.manifest import PointRecord, StreamRecord
from profharness.scans.batch import backends_for, check_runtime, item_of, settings_of
from profharness.scans.contract import Point, PointOutput, ServerSpec, WorkloadSpec, first_missing

DEFAULT_BATCH = 16  # as the multi-process benchmark of the DeepSparse examples has it
PROFILED_S = 1.0


@dataclass(frozen=True)
class PinnedScan:
    """A fixed sweep over processes (and batch sizes), the first and the last point repeated at the
    end.
    """

    name: str
    backends: tuple[str, ...]
    points: tuple[Point, ...]
    places: Topology
    settings: dict[str, object]
    item: str = "item"
    adaptive: bool = False
    left_out: tuple[str, ...] = ()

    @property
    def notes(self) -> tuple[str, ...]:
        """What the user is told before the run starts."""
        if not self.left_out:
            return ()
        listed = ", ".join(self.left_out)
        return (f"plans of more cores than this job has are left out (N x M): {listed}",)

    @staticmethod
    def fits(request: Request) -> bool:
        """Whether several processes are to run the model at once."""
        return request.pinned

    @classmethod
    def from_request(cls, request: Request, environment: Environment) -> PinnedScan:
        """Lay out the points. Raises UsageError for a topology that the node cannot give, and
        InputError for a file that is none.
        """
        layouts = _layouts(request, environment)
        timed: dict[str, object] = {
            "seconds": request.time,
            "warmup_seconds": request.warmup_time,
            "seed": request.seed,
        }
        points: list[Point] = []
        backends = backends_for(request, request.model)
        check_runtime(request, backends)
        for backend in backends:
            own = [
                _point(backend, size, count, layout, timed)
                for size in request.batch_sizes or (DEFAULT_BATCH,)
                for layout in layouts
                for count in layout.streams
            ]
            points += [
                *own,
                *(
                    replace(point, repeat=1)
                    for point in {end.id: end for end in (own[0], own[-1])}.values()
                ),
            ]
        return cls(
            name=request.name or request.scan,
            backends=tuple(dict.fromkeys(point.backend for point in points)),
            points=tuple(points),
            places=layouts[0].places,
            left_out=tuple(plan for layout in layouts for plan in layout.left_out),
            item=item_of(request.model),
            settings={
                **settings_of(request, request.model),
                "pin": request.pin,
                "memory": request.memory,
                "places": [
                    {"cpus": list(place.cpus), "device": place.device}
                    for place in layouts[0].places.places
                ],
            },
        )

    def next(self, done: Sequence[PointRecord]) -> Point | None:
        """The first point of the sweep that is not done."""
        return first_missing(self.points, done)

    # the processes run the model themselves
    def server(self, backend: str) -> ServerSpec | None:  # noqa: ARG002  no server here
        """None: there is no server."""
        return None

    def profiled(
        self,
        backend: str,
        done: Sequence[PointRecord] = (),  # noqa: ARG002  the sweep is fixed
    ) -> tuple[Point, ...]:
        """The backend's points in a shorter window, without repeats."""
        return tuple(
            replace(point, params={**point.params, "seconds": min(PROFILED_S, _seconds(point))})
            for point in self.points
            if point.backend == backend and not point.repeat
        )

    def result(self, point: Point, pass_name: str, output: PointOutput) -> PointRecord:
        """Where each process ran; throughput is computed by the analysis, from the batches."""
        return PointRecord(
            id=point.id,
            pass_name=pass_name,
            backend=point.backend,
            batch_size=point.batch_size,
            processes=point.processes,
            cores_per_process=point.cores_per_process,
            repeat=point.repeat,
            state="ok" if output.ok else "failed",
            error=output.error,
            trials=sum(stream.batches for stream in output.streams),
            compile_ns=output.compile_ns,
            items_per_trial=output.items or point.batch_size,
            pid=output.pid,
            host=output.host,
            device=output.device,
            start_monotonic_ns=output.begin_ns,
            end_monotonic_ns=output.end_ns,
            notes=dict(output.notes),
            streams=tuple(
                StreamRecord(
                    pid=stream.pid, cpus=stream.cpus, device=stream.device, batches=stream.batches
                )
                for stream in output.streams
            ),
        )

    def workload(self, backend: str) -> WorkloadSpec:
        """The worker that starts the processes of that backend."""
        return WorkloadSpec(
            script="profharness_workloads/pinned/worker.py",
            settings={**self.settings, "backend": backend},
        )


@dataclass(frozen=True)
class _Layout:
    """Where processes run, and how many of them at once are points; `cores` of each, or None where
    a topology says it. `left_out` are the plans that do not fit, such as `4 x 2`.
    """

    places: Topology
    streams: tuple[int, ...]
    cores: int | None = None
    left_out: tuple[str, ...] = ()


def _layouts(request: Request, environment: Environment) -> tuple[_Layout, ...]:
    """One per number of cores, largest first; without --cores-per-process the one topology. Raises
    UsageError for processes that find no place.
    """
    if not request.cores_per_process:
        places = _places(request, environment)
        streams = request.streams or _default_streams(len(places.places))
        places.first(max(streams))
        return (_Layout(places, tuple(sorted(streams))),)
    node = topology.look(allowed=environment.cpus_allowed or None)
    layouts = []
    for cores in sorted(set(request.cores_per_process), reverse=True):
        places = topology.divide(node, cores)
        most = len(places.places)
        wanted = sorted(set(request.streams)) or [most]
        streams = tuple(count for count in wanted if count <= most)
        left_out = tuple(f"{count} x {cores}" for count in wanted if count > most)
        layouts.append(_Layout(places, streams, cores, left_out))
    if not any(layout.streams for layout in layouts):
        raise UsageError(
            f"--streams, --cores-per-process: no plan of "
            f"{', '.join(plan for layout in layouts for plan in layout.left_out)} fits this job's "
            f"{len(node.threads)} core{'s' if len(node.threads) != 1 else ''}",
            "ask for fewer processes or cores, or leave --streams out: then each plan fills the "
            "job's cores",
        )
    return tuple(layouts)


def _places(request: Request, environment: Environment) -> Topology:
    """The file's places, checked against the job's CPUs; without a file one per L3 cache, or per
    core where those are too few.
    """
    allowed = environment.cpus_allowed or topology.look().allowed
    if request.topology:
        return topology.check(topology.read(Path(request.topology)), allowed, request.topology)
    node = topology.look(allowed=allowed)
    by_cache = topology.propose(node, "l3")
    return (
        by_cache if len(by_cache.places) >= max(request.streams) else topology.propose(node, "core")
    )


def _default_streams(places: int) -> tuple[int, ...]:
    """1, 2, 4 ... and all."""
    return tuple(sorted({*(2**k for k in range(places.bit_length()) if 2**k <= places), places}))


def _point(backend: str, size: int, count: int, layout: _Layout, timed: dict[str, object]) -> Point:
    params = {"backend": backend, "batch_size": size, "processes": count, **timed}
    name = f"{backend}-b{size}-n{count}"
    if layout.cores is not None:
        name += f"-c{layout.cores}"
        params["places"] = [list(place.cpus) for place in layout.places.places[:count]]
    return Point(
        id=name,
        backend=backend,
        batch_size=size,
        processes=count,
        cores_per_process=layout.cores,
        params=params,
    )


def _seconds(point: Point) -> float:
    value = point.params["seconds"]
    return float(value) if isinstance(value, int | float) else PROFILED_S
