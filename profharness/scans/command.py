"""The scan of a command: one execution per point and repeat, each with its own values of the axes
(docs/metrics.md#axes).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from profharness.errors import UsageError
from profharness.layers.contract import COMMAND
from profharness.node.probe import Environment
from profharness.options.axes import filled
from profharness.options.request import Request
from profharness.rundir.executions.axes import RANKS, Axis, Requirement, requirements_of
from profharness.rundir.manifest import PointRecord
from profharness.scans.contract import Point, PointOutput, ServerSpec, WorkloadSpec, first_missing
from profharness.scans.design import rounds, settings_of
from profharness.scans.searched import chosen_of, earlier_points, measured_of
from profharness.scans.settings_search import Measured, SettingsSearch

_ID_LENGTH = 80


@dataclass(frozen=True)
class CommandScan:
    """A fixed design, whose points are executed in rounds, or a search, which chooses one after the
    other. What a layer records is of few points, which the bare pass chooses.
    """

    name: str
    axes: tuple[Axis, ...]
    points: tuple[Point, ...]
    requirements: tuple[Requirement, ...] = ()
    backends: tuple[str, ...] = (COMMAND,)
    item: str = "item"
    adaptive: bool = False
    settings: tuple[Point, ...] = ()
    search: SettingsSearch | None = None
    known: tuple[Measured, ...] = ()

    @staticmethod
    def fits(request: Request) -> bool:
        """Whether a command is to be executed with several values."""
        return bool(request.command and request.axes)

    @classmethod
    def from_request(
        cls,
        request: Request,
        environment: Environment,  # noqa: ARG003  the values are given
    ) -> CommandScan:
        """Lay out the design and the order of its executions."""
        axes = request.all_axes
        settings = settings_of(axes, request.design, request.seed)
        ids = _ids(axes, settings)
        names = [axis.name for axis in axes]
        each = tuple(
            Point(id=name, backend=COMMAND, params=dict(zip(names, setting, strict=True)))
            for name, setting in zip(ids, settings, strict=True)
        )
        order = () if request.search else rounds(len(each), request.repeats, request.seed)
        return cls(
            name=request.name or Path(request.command[0]).name,
            axes=axes,
            points=tuple(replace(each[at], repeat=repeat) for at, repeat in order),
            requirements=requirements_of(request.require),
            adaptive=request.search is not None,
            settings=each,
            search=SettingsSearch(axes, request.search, request.seed) if request.search else None,
            known=earlier_points(request.warm_start, axes, request.require),
        )

    @property
    def ids(self) -> tuple[str, ...]:
        """The names of all settings, in the order of the design."""
        return tuple(point.id for point in self.settings)

    @property
    def executions(self) -> int:
        """How often the command is executed without layers, but for what is discarded."""
        return len(self.points) if self.search is None else self.search.levels

    def next(self, done: Sequence[PointRecord]) -> Point | None:
        """The execution that follows those that have a record: the first of the order without one,
        or what the search asks for.
        """
        if self.search is None:
            return first_missing(self.points, done)
        places = {name: at for at, name in enumerate(self.ids)}
        known = [record for record in done if record.id in places]
        place = self.search.following(measured_of(known, places, self.requirements), self.known)
        if place is None:
            return None
        point = self.settings[place]
        return replace(point, repeat=sum(record.id == point.id for record in known))

    def profiled(
        self,
        backend: str,  # noqa: ARG002  there is one
        done: Sequence[PointRecord] = (),
    ) -> tuple[Point, ...]:
        """The points that a layer records: the first of the design, the best and the recommended
        one of the bare pass; none before that.
        """
        by_id = {point.id: point for point in self.settings}
        values = {name: tuple(map(str, point.params.values())) for name, point in by_id.items()}
        named = chosen_of(
            values, self.axes, done, self.requirements, searched=self.search is not None
        )
        return tuple(by_id[name] for name in dict.fromkeys(named))

    # the command is executed as it is
    def server(self, backend: str) -> ServerSpec | None:  # noqa: ARG002  no server here
        """None: there is no server."""
        return None

    def workload(self, backend: str) -> WorkloadSpec:
        """Raises UsageError: no worker of ours measures a command."""
        raise UsageError(f"{backend}: a command has no worker", "this is a mistake of profharness")

    def result(self, point: Point, pass_name: str, output: PointOutput) -> PointRecord:
        """The record of one execution."""
        return PointRecord(
            id=point.id,
            pass_name=pass_name,
            repeat=point.repeat,
            state="ok" if output.ok else "failed" if output.begun else "skipped",
            error=output.error,
            trials=len(output.trials_ns),
            warmup_trials=len(output.warmup_ns),
            warmup_ns=sum(output.warmup_ns) if output.warmup_ns else None,
            items_per_trial=output.items or None,
            pid=output.pid,
            host=output.host,
            start_monotonic_ns=output.begin_ns,
            end_monotonic_ns=output.end_ns,
            notes=dict(output.notes),
            parameters=self.parameters(point),
            execution=output.execution,
        )

    def parameters(self, point: Point) -> dict[str, int | float | str]:
        """The point's values as figures and JSON show them."""
        return {axis.name: axis.typed(str(point.params[axis.name])) for axis in self.axes}


def texts_of(point: Point) -> dict[str, str]:
    """The values of a point as they are put into words."""
    return {name: str(value) for name, value in point.params.items()}


def words_of(words: Sequence[str], point: Point) -> tuple[str, ...]:
    """The words of a command with the point's values in them."""
    texts = texts_of(point)
    return tuple(filled(word, texts) for word in words)


def ranks_of(request: Request, point: Point) -> int | None:
    """How many ranks of the command an execution of the point is; None for a command that is
    started once, as it is.
    """
    if not request.starts_ranks:
        return None
    return int(str(point.params.get(RANKS, request.ranks)))


def variables_of(axes: Sequence[Axis], point: Point) -> dict[str, str]:
    """The environment variables that the point's values set."""
    return {axis.variable: str(point.params[axis.name]) for axis in axes if axis.variable}


def label_of(params: Mapping[str, object]) -> str:
    """`batch=8 workers=2`, as people call a point."""
    return " ".join(f"{name.removeprefix('env:')}={value}" for name, value in params.items())


def _ids(axes: Sequence[Axis], settings: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
    """A name per setting that is fit for a folder: `batch8-workers2`, a number behind it where two
    would be alike.
    """
    used: dict[str, int] = {}
    ids = []
    for setting in settings:
        plain = "-".join(
            f"{axis.name.rpartition(':')[2]}{value}"
            for axis, value in zip(axes, setting, strict=True)
        )
        name = re.sub(r"[^A-Za-z0-9._-]", "_", plain)[:_ID_LENGTH].lstrip(".-") or "point"
        used[name] = used.get(name, 0) + 1
        ids.append(name if used[name] == 1 else f"{name}.{used[name]}")
    return tuple(ids)
