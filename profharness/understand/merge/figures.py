"""What a merged trace tells of each kernel beside what was recorded (docs/formats.md#perfetto)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from profharness.errors import InputError
from profharness.rundir.manifest import Manifest
from profharness.rundir.paths import MANIFEST
from profharness.trace.kernel_figures import KernelFigures
from profharness.trace.model import Trace
from profharness.trace.parts.cutting import Cut
from profharness.writers.options import KernelTeller

if TYPE_CHECKING:
    from profharness.analysis.kernels.counter_work import CountedMeans
    from profharness.analysis.kernels.facts import Yardstick

_ALL = Cut()


def after_all(tell: KernelTeller | None, parts: Iterable[Trace]) -> KernelTeller | None:
    """What tells the figures of kernels once it has seen all parts, where it has to; only then are
    they read.
    """
    return tell.after(parts) if isinstance(tell, _Teller) and tell.wants_all else tell


def teller(
    paths: Sequence[Path],
    manifest: Manifest | None,
    cut: Cut = _ALL,
    max_kernels: int | None = None,
) -> KernelTeller:
    """What tells the figures of the kernels of what is merged, in one piece or in parts.

    Where kernels are cut away, an operator may seem to have launched one kernel alone: then only
    the fill is told.
    """
    if max_kernels is None and replace(cut, ranks=None).is_all:
        return _Teller(tuple(paths), manifest)

    def fills(trace: Trace) -> KernelFigures:
        from profharness.analysis.use import each_kernel

        return each_kernel.fills(trace)

    return fills


@dataclass(frozen=True, eq=False)
class _Teller:
    """`manifest` is that of a run that is merged alone. `seen` is what the counters of all parts
    say, where the kernels of one part are told after a look at all.
    """

    paths: tuple[Path, ...]
    manifest: Manifest | None
    seen: CountedMeans | None = None

    def __call__(self, trace: Trace) -> KernelFigures:
        """The figures of the kernels of a trace, or of one of its parts."""
        from profharness.analysis.use import each_kernel

        passes = () if self.manifest is None else self.manifest.passes
        perturbing = [record.name for record in passes if record.perturbing]
        return each_kernel.of_each(
            trace, self._yardstick, perturbing, limits=self._sees_counters(trace)
        )

    @property
    def wants_all(self) -> bool:
        """Whether counters of one part may speak for kernels of another."""
        if len(self.paths) > 1 or self.manifest is None:
            return False
        return any(record.counters for record in self.manifest.passes)

    def after(self, parts: Iterable[Trace]) -> _Teller:
        """The same, with what the counters of all parts say; one part is in memory at a time."""
        from profharness.analysis.kernels.counter_work import CountedMeans

        seen = CountedMeans()
        for part in parts:
            seen.add(part)
        return replace(self, seen=seen) if seen.counters else self

    def _sees_counters(self, trace: Trace) -> bool:
        """Whether no counters stand in records that this trace does not hold: traffic that they saw
        may be more than tensors need at least, and name another limiter.
        """
        if len(self.paths) > 1:
            return False
        return self.seen is not None or len(trace.counters) > 0 or not self.wants_all

    @cached_property
    def _yardstick(self) -> Yardstick | None:
        """The ceilings that a report takes: those that a run keeps, and this machine's. None where
        they are not known: several runs may each keep their own, and a calibration may be damaged.
        """
        from profharness.analysis.kernels.facts import Yardstick
        from profharness.node import ceilings as calibration

        if self.manifest is None:
            alone = not any((path / MANIFEST).is_file() for path in self.paths)
            return Yardstick(calibration.stored()) if alone else None
        try:
            kept = calibration.for_run(self.paths[0])
        except InputError:
            return None
        nodes = self.manifest.nodes
        return Yardstick(kept, nodes[0].versions if nodes else None, means=self.seen)
