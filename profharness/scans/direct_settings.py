"""One setting of a scan of a model that is run directly: its worker, its point, its record."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from profharness.errors import UsageError
from profharness.node.probe import Environment
from profharness.options.request import Request
from profharness.rundir.executions.records import ExecutionRecord
from profharness.rundir.manifest import PointRecord
from profharness.scans.batch import BatchScan
from profharness.scans.contract import Point, PointOutput, WorkloadSpec
from profharness.scans.served import Load
from profharness.stats.throughput import summarise_trials


@dataclass(frozen=True)
class DirectSetting:
    """A model under one framework with one setting. What concerns load and server is there because
    a served setting has it (`scans.served.Service`).
    """

    request: Request
    framework: str
    scan: BatchScan
    batch_sizes: tuple[int, ...]

    @classmethod
    def of(cls, request: Request, environment: Environment) -> DirectSetting:
        """Raises UsageError where it stands for several backends, or for no single batch size."""
        scan = BatchScan.from_request(request, environment)
        if len(scan.backends) > 1:
            raise UsageError(
                "--scan: each setting is of one model under one backend, and there are "
                f"{', '.join(scan.backends)}",
                "make the backend an axis (--scan backend=torch,onnxruntime), or name one",
            )
        return cls(request, scan.backends[0], scan, request.batch_sizes or (1,))

    @property
    def item(self) -> str:
        return self.scan.item

    def point(
        self,
        label: str,
        batch: int,
        load: Load,  # noqa: ARG002  there is no server to load
        *,
        repeat: int = 0,
        profiled: bool = False,
    ) -> Point:
        """Its trials; few of them under a layer."""
        planned = self.scan.profile_points if profiled else self.scan.points
        params = {**planned[0].params, "backend": self.framework, "batch_size": batch}
        return replace(
            planned[0],
            id=f"{label}-b{batch}",
            backend=label,
            batch_size=batch,
            repeat=repeat,
            params=params,
        )

    def server(self, label: str) -> None:
        """None: there is no server."""

    def client(self, label: str) -> WorkloadSpec:  # noqa: ARG002  there is one worker
        """The batch worker."""
        return self.scan.workload(self.framework)

    def record(self, point: Point, pass_name: str, output: PointOutput) -> PointRecord:
        """What the manifest keeps of its trials."""
        return self.scan.result(point, pass_name, output)


def execution_of(durations_ns: Sequence[int], items: int, key: str) -> ExecutionRecord:
    """What trials of `items` each come to, as the scan over axes compares them."""
    stats = summarise_trials(durations_ns, items, key)
    return ExecutionRecord(
        wall_ns=sum(durations_ns),
        rate=stats.throughput,
        unit="items",
        items=items * len(durations_ns),
    )
