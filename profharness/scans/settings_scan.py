"""The scan of a model's settings: every combination of the axes, in rounds or as a search chooses
them, each on a server with those settings, or without `--via` in a worker (docs/metrics.md#axes).
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from profharness.errors import UsageError
from profharness.node.probe import Environment
from profharness.options import setting_axes
from profharness.options.request import Request
from profharness.rundir.executions.axes import Axis, Requirement, requirements_of
from profharness.rundir.executions.records import ExecutionRecord
from profharness.rundir.levels import TOGETHER
from profharness.rundir.manifest import PointRecord
from profharness.scans.contract import (
    Point,
    PointOutput,
    ServerSpec,
    WorkloadSpec,
    first_missing,
)
from profharness.scans.design import rounds, settings_of
from profharness.scans.direct_settings import DirectSetting, execution_of
from profharness.scans.search import STORM
from profharness.scans.searched import chosen_of, earlier_points, measured_of
from profharness.scans.served import Load, Service, Target, service
from profharness.scans.settings_search import Measured, SettingsSearch
from profharness.scans.triton import loads

_WORD = 60
_SPARE = 0.6
"""A level ends early where it cannot reach this share of the best so far."""


@dataclass(frozen=True)
class Variant:
    """One setting of the axes: its values as written, the server of it, and the load."""

    values: tuple[str, ...]
    label: str
    batch: int
    load: Load

    def point(
        self, found: Service | DirectSetting, repeat: int = 0, *, profiled: bool = False
    ) -> Point:
        """One level of it."""
        return found.point(self.label, self.batch, self.load, repeat=repeat, profiled=profiled)


@dataclass(frozen=True)
class SettingsScan:
    """Levels on servers, or in workers, of different settings. What a layer records is of few
    points, which the bare pass chooses.
    """

    name: str
    item: str
    axes: tuple[Axis, ...]
    services: Mapping[str, Service | DirectSetting]
    variants: Mapping[str, Variant]
    requirements: tuple[Requirement, ...] = ()
    points: tuple[Point, ...] = ()
    search: SettingsSearch | None = None
    known: tuple[Measured, ...] = ()

    @staticmethod
    def fits(request: Request) -> bool:
        """Whether settings of a model are to be varied."""
        return bool(request.axes) and not request.command

    @classmethod
    def from_request(
        cls,
        request: Request,
        environment: Environment,
    ) -> SettingsScan:
        """Lay out the design. Raises UsageError where a value fits neither model nor backend, or
        one setting stands for several models or levels.
        """
        axes = request.all_axes
        services: dict[str, Service | DirectSetting] = {}
        variants: dict[str, Variant] = {}
        labels: dict[tuple[str, ...], str] = {}
        item = "item"
        for setting in settings_of(axes, request.design, request.seed):
            found, variant = _variant(request, axes, setting, environment, labels)
            services[variant.label] = found
            item = found.item if found.item != "item" else item
            variants[variant.point(found).id] = variant
        search = SettingsSearch(axes, request.search, request.seed) if request.search else None
        return cls(
            name=request.name or request.scan,
            item=item,
            axes=axes,
            services=services,
            variants=variants,
            requirements=requirements_of(request.require, request.latency_limit),
            points=() if search else _in_rounds(services, variants, request),
            search=search,
            known=earlier_points(request.warm_start, axes, request.require, request.latency_limit),
        )

    @property
    def adaptive(self) -> bool:
        """A search asks for one level after the other."""
        return self.search is not None

    @property
    def backends(self) -> tuple[str, ...]:
        """The servers or workers."""
        return tuple(self.services)

    @property
    def ids(self) -> tuple[str, ...]:
        """The names of all settings, in the order of the design."""
        return tuple(self.variants)

    @property
    def executions(self) -> int:
        """The levels of the bare pass."""
        return len(self.points) if self.search is None else self.search.levels

    @property
    def starts(self) -> int:
        """How often a server is started in the bare pass, at most."""
        if self.search is not None:
            return self.search.levels
        labels = [point.backend for point in self.points]
        return sum(one != other for one, other in zip(labels, ["", *labels], strict=False))

    def next(self, done: Sequence[PointRecord]) -> Point | None:
        """The level that follows: of a search as it chooses; of a design the first that has no
        record, and whose setting has not failed.
        """
        if self.search is None:
            failed = {record.id for record in done if record.state == "failed"}
            left = [point for point in self.points if point.id not in failed]
            return first_missing(left, done)
        ids = list(self.variants)
        places = {name: at for at, name in enumerate(ids)}
        measured = measured_of(
            [record for record in done if record.id in places], places, self.requirements
        )
        place = self.search.following(measured, self.known)
        if place is None:
            return None
        variant = self.variants[ids[place]]
        repeat = sum(record.id == ids[place] for record in done)
        point = variant.point(self.services[variant.label], repeat)
        if self.server(variant.label) is None:
            return point
        least = None if repeat else self._not_worth(done)
        return replace(point, params={**point.params, "least_items_per_s": least})

    def _not_worth(self, done: Sequence[PointRecord]) -> float | None:
        """Items/s below which a level needs no more time: it is far from the best so far, which
        keeps what is required.
        """
        rates = [
            record.execution.rate
            for record in done
            if record.execution is not None
            and record.state == "ok"
            and all(one.kept_by(record.execution.values) for one in self.requirements)
        ]
        return _SPARE * max(rates) if rates else None

    def profiled(self, backend: str, done: Sequence[PointRecord] = ()) -> tuple[Point, ...]:
        """The points that a layer records on this server: of the first setting, the best and the
        recommended one of the bare pass; none before that.
        """
        return tuple(
            self.variants[name].point(self.services[backend], profiled=True)
            for name in dict.fromkeys(self._chosen(done))
            if self.variants[name].label == backend
        )

    def recommended(self, done: Sequence[PointRecord]) -> str | None:
        """The id of the recommended setting, from the records of the bare pass; None before any
        setting was measured.
        """
        chosen = self._chosen(done)
        return chosen[1] if chosen else None

    def _chosen(self, done: Sequence[PointRecord]) -> tuple[str, ...]:
        values = {name: variant.values for name, variant in self.variants.items()}
        return chosen_of(values, self.axes, done, self.requirements, searched=self.adaptive)

    def server(self, backend: str) -> ServerSpec | None:
        """The server with these settings; None where the worker runs the model itself."""
        return self.services[backend].server(backend)

    def workload(self, backend: str) -> WorkloadSpec:
        """The load generator, or the worker."""
        return self.services[backend].client(backend)

    def result(self, point: Point, pass_name: str, output: PointOutput) -> PointRecord:
        """The record of one level, with its values and what a search must know of it."""
        record = self.services[point.backend].record(point, pass_name, output)
        parameters = self.parameters(point)
        result, level = record.result, record.level
        if record.state == "ok" and output.trials_ns:
            items = record.items_per_trial or 1
            execution = execution_of(output.trials_ns, items, point.key)
            return _with(record, parameters, execution=execution)
        if record.state != "ok" or result is None or level is None:
            return _with(record, parameters)
        if result.failed_share > STORM:
            why = f"{100 * result.failed_share:.0f} % of the requests got no answer"
            return _with(record, parameters, state="failed", error=why)
        answered = max(level.requests - level.failed, 0)
        execution = ExecutionRecord(
            wall_ns=level.window_ns,
            rate=result.throughput,
            unit="items",
            items=answered * (point.batch_size or 1),
            values=_values(result.percentiles_ms, result.latency_ms, self.requirements),
        )
        return _with(record, parameters, execution=execution)

    def parameters(self, point: Point) -> dict[str, int | float | str]:
        """The point's values as figures and JSON show them."""
        values = self.variants[point.id].values
        return {axis.name: axis.typed(one) for axis, one in zip(self.axes, values, strict=True)}


def _with(
    record: PointRecord, parameters: dict[str, int | float | str], **changes: object
) -> PointRecord:
    import msgspec

    return msgspec.structs.replace(record, parameters=parameters, **changes)


def _values(
    percentiles_ms: Mapping[str, float],
    mean_ms: float | None,
    requirements: Sequence[Requirement],
) -> dict[str, float]:
    """The 99th percentile of the latency in ms, and whatever is required of it."""
    every = {f"{name}_ms": value for name, value in percentiles_ms.items()}
    if mean_ms is not None:
        every["mean_ms"] = mean_ms
    wanted = dict.fromkeys(("p99_ms", *(one.name for one in requirements)))
    return {name: every[name] for name in wanted if name in every}


def _variant(
    request: Request,
    axes: Sequence[Axis],
    setting: Sequence[str],
    environment: Environment,
    labels: dict[tuple[str, ...], str],
) -> tuple[Service | DirectSetting, Variant]:
    """The server or worker of a setting under a name of its own, and the level on it. `labels` are
    the names so far by the values that make a server. Raises UsageError.
    """
    texts = dict(zip((axis.name for axis in axes), setting, strict=True))
    asked = setting_axes.varied(request, texts)
    own = {
        name: value
        for name, value in texts.items()
        if setting_axes.setting_of(name).place != "load"
    }
    found: Service | DirectSetting
    if asked.served:
        plain = service(asked)
        target = _only(plain)
        label = _label(target.label, own, labels)
        found = replace(plain, targets=(*target.members, replace(target, label=label)))
        levels = loads(asked) if asked.rate or asked.concurrency else (Load(concurrency=1),)
    else:
        found = DirectSetting.of(asked, environment)
        label = _label(found.framework, own, labels)
        levels = (Load(concurrency=1),)
    if len(levels) > 1 or len(found.batch_sizes) > 1:
        raise UsageError(
            "--scan: each setting is measured under one load, and several were given",
            "make them axes: --scan concurrency=1,2,4 --scan batch=1,8",
        )
    return found, Variant(tuple(setting), label, found.batch_sizes[0], levels[0])


def _label(framework: str, values: Mapping[str, str], labels: dict[tuple[str, ...], str]) -> str:
    """`torch@instances2-queue-delay-us500`, fit for a folder: the name of the server with these
    values, with a number behind it where another one would have the same.
    """
    key = (framework, *values.values())
    if key not in labels:
        words = [
            f"{name.rpartition(':')[2]}{value}"
            for name, value in values.items()
            if name != "backend"
        ]
        word = re.sub(r"[^A-Za-z0-9._-]", "_", "-".join(words))[:_WORD]
        label = f"{framework}@{word}" if word else framework
        taken = set(labels.values())
        numbered = (f"{label}.{number}" for number in itertools.count(2))
        labels[key] = next(one for one in itertools.chain((label,), numbered) if one not in taken)
    return labels[key]


def _only(found: Service) -> Target:
    """The one target of a setting: a model under a framework, or several together."""
    if found.request.together:
        return next(target for target in found.targets if target.label == TOGETHER)
    if len(found.targets) > 1:
        named = ", ".join(found.labels)
        raise UsageError(
            f"--scan: each setting is of one model under one backend, and there are {named}",
            "make the backend an axis (--scan backend=torch,onnxruntime), name one, or add "
            "--together for models that share the device",
        )
    return found.targets[0]


def _in_rounds(
    services: Mapping[str, Service | DirectSetting],
    variants: Mapping[str, Variant],
    request: Request,
) -> tuple[Point, ...]:
    """Every setting once per round. In a round the servers come at random, and the levels of one
    server follow each other at random, since each server takes seconds to start.
    """
    ids = list(variants)
    laid_out: list[Point] = []
    by_round: dict[int, list[str]] = {}
    for place, repeat in rounds(len(ids), request.repeats, request.seed):
        by_round.setdefault(repeat, []).append(ids[place])
    for repeat, names in sorted(by_round.items()):
        order = list(dict.fromkeys(variants[name].label for name in names))
        for label in order:
            laid_out += [
                variants[name].point(services[label], repeat)
                for name in names
                if variants[name].label == label
            ]
    return tuple(laid_out)
