"""The multi-process scan: the same model in 1, 2, ... pinned processes at once, at each batch size
(docs/metrics.md#several-processes).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

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

    @staticmethod
    def fits(request: Request) -> bool:
        """Whether several processes are to run the model at once."""
        return request.pinned

    @classmethod
    def from_request(cls, request: Request, environment: Environment) -> PinnedScan:
        """Lay out the points. Raises UsageError for a topology that the node cannot give, and
        InputError for a file that is none.
        """
        places = _places(request, environment)
        streams = request.streams or _default_streams(len(places.places))
        places.first(max(streams))
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
                _point(backend, size, count, timed)
                for size in request.batch_sizes or (DEFAULT_BATCH,)
                for count in sorted(streams)
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
            places=places,
            item=item_of(request.model),
            settings={
                **settings_of(request, request.model),
                "pin": request.pin,
                "memory": request.memory,
                "places": [
                    {"cpus": list(place.cpus), "device": place.device} for place in places.places
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


def _point(backend: str, size: int, count: int, params: dict[str, object]) -> Point:
    return Point(
        id=f"{backend}-b{size}-n{count}",
        backend=backend,
        batch_size=size,
        processes=count,
        params={"backend": backend, "batch_size": size, "processes": count, **params},
    )


def _seconds(point: Point) -> float:
    value = point.params["seconds"]
    return float(value) if isinstance(value, int | float) else PROFILED_S
