"""Which package an accelerator module of the node's own meter is (`accel0` of Cray's pm_counters).

Nothing on the node says it, and the board's order is not that of the PCI addresses everywhere. But
module and package draw the same power: in parts of the run of two seconds and more (the meters'
clocks agree no better than a second), what each module draws beyond the mean of all modules goes
with what its package draws beyond the mean of all packages. A module is tied to a package where
they correlate by `ALIKE` or more, each is the other's best by `MARGIN`, over `FEWEST` parts or
more. Where all do the same at the same time nothing stands out, and the map is unknown.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from profharness.analysis.power.records import ModulePlace
from profharness.stats.packages import CPU, MODULE, Package
from profharness.stats.streams import Stream
from profharness.trace.model import F64, Samples

ALIKE, MARGIN, FEWEST = 0.9, 0.3, 16
_PART_NS = 2_000_000_000
_MOST_PARTS = 512
_TOGETHER = "the modules' powers rose and fell together: load one package at a time to tell them"


def module_map(every: Sequence[Stream], found: Sequence[Package]) -> tuple[ModulePlace, ...]:
    """A place for each module of each node, its package empty with a reason where unknown. Empty
    where the node meters no module.
    """
    hosts = dict.fromkeys(one.host for one in every)
    return tuple(place for host in hosts for place in _of_host(host, every, found))


def _of_host(host: str, every: Sequence[Stream], found: Sequence[Package]) -> Iterator[ModulePlace]:
    modules: dict[str, Samples] = {}
    for name in ("power_module", "power_module_energy"):  # means by the counter are better
        for one in every:
            metric, _, module = one.metric.partition(":")
            if one.host == host and metric == name and module:
                modules[module] = one.samples
    if not modules:
        return
    packages = [one for one in found if one.host == host and one.scope not in (CPU, MODULE)]
    if not packages:
        why = "no driver gives the power of a package"
        yield from (ModulePlace(host=host, module=name, why=why) for name in modules)
        return
    if len(modules) == len(packages) == 1:
        yield ModulePlace(
            host=host, module=next(iter(modules)), package=_name(packages[0]), why="the only one"
        )
        return
    drawn = [one.counter if len(one.counter) else one.power for one in packages]
    alike, parts = _alike(list(modules.values()), drawn)
    for row, name in enumerate(modules):
        yield _placed(host, name, row, alike, parts, packages)


def _name(package: Package) -> str:
    return package.identity.removeprefix(f"{package.host}/") if package.host else package.identity


def _alike(modules: Sequence[Samples], packages: Sequence[Samples]) -> tuple[F64, int]:
    """Correlations (modules × packages) of what each draws beyond the mean of its like, and the
    number of parts that they rest on; NaN where one never changes.
    """
    every = (*modules, *packages)
    begin = max(int(one.at_ns.min()) for one in every)
    end = min(int(one.until_ns.max()) for one in every)
    count = min(max((end - begin) // _PART_NS, 0), _MOST_PARTS)
    none = np.full((len(modules), len(packages)), np.nan)
    if not count:
        return none, 0
    means = np.stack([_means(one, begin, end, count) for one in every])
    kept = np.isfinite(means).all(axis=0)
    means = means[:, kept]
    if means.shape[1] < FEWEST:
        return none, means.shape[1]
    ours, theirs = (
        _scaled(group - group.mean(axis=0))
        for group in (means[: len(modules)], means[len(modules) :])
    )
    return ours @ theirs.T, means.shape[1]


def _means(samples: Samples, begin: int, end: int, count: int) -> F64:
    middle = samples.at_ns + np.maximum(samples.until_ns - samples.at_ns, 0) // 2
    part = (middle - begin) * count // (end - begin)
    kept = (part >= 0) & (part < count) & np.isfinite(samples.value)
    number = np.bincount(part[kept], minlength=count)
    sums = np.bincount(part[kept], samples.value[kept], count)
    return np.divide(sums, number, out=np.full(count, np.nan), where=number > 0)


def _scaled(rows: F64) -> F64:
    """Each row with mean 0 and length 1; NaN where it does not change."""
    rows = rows - rows.mean(axis=1, keepdims=True)
    length = np.linalg.norm(rows, axis=1, keepdims=True)
    scaled: F64 = np.divide(rows, length, out=np.full(rows.shape, np.nan), where=length > 1e-6)
    return scaled


def _placed(
    host: str, name: str, row: int, alike: F64, parts: int, packages: Sequence[Package]
) -> ModulePlace:
    if parts < FEWEST:
        why = f"{FEWEST} parts of {_PART_NS // 1_000_000_000} s with samples of all"
        return ModulePlace(host=host, module=name, why=f"it takes {why}")
    if not np.isfinite(alike[row]).any():
        return ModulePlace(host=host, module=name, why=_TOGETHER)
    best = int(np.nanargmax(alike[row]))
    value = float(alike[row, best])
    rivals = np.concatenate((np.delete(alike[row], best), np.delete(alike[:, best], row)))
    if value < ALIKE or np.nanmax(rivals, initial=-1.0) > value - MARGIN:
        return ModulePlace(host=host, module=name, why=_TOGETHER)
    return ModulePlace(
        host=host, module=name, package=_name(packages[best]), correlation=value, why="by power"
    )
