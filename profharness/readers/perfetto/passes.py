"""The passes of a run that were merged into one file: told apart by the names of its processes, of
which each belongs to one pass (`writers/tracks.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from profharness.rundir.older_layers import kernel_order
from profharness.trace.columns.table import NULL
from profharness.trace.model import I64, Trace
from profharness.trace.places import Named

ATTRIBUTE = "profharness.source."
_BETWEEN = " · "  # the parts of a process's name
_LONGEST_NUMBER = 9  # digits of a source's number in a file of ours


@dataclass(frozen=True)
class MergedPass:
    """One pass of a merged file, and the layers that its sources had."""

    name: str
    layers: tuple[str, ...]

    @property
    def layer(self) -> str:
        """The one of its layers that speaks for kernels first."""
        order = kernel_order()
        return min(
            self.layers, key=lambda layer: (layer not in order, order.get(layer, 0)), default=""
        )


def merged_passes(attributes: Mapping[str, str]) -> tuple[MergedPass, ...]:
    """The passes that a file says it was merged of, in the order of their tools' files, which a run
    lists after all trials and telemetry; none for a tool's own file.
    """
    stated: dict[int, dict[str, str]] = {}
    for key, value in attributes.items():
        number, _, what = key.removeprefix(ATTRIBUTE).partition(".")
        if key.startswith(ATTRIBUTE) and number.isdecimal() and len(number) <= _LONGEST_NUMBER:
            stated.setdefault(int(number), {})[what] = value
    layers: dict[str, list[str]] = {}
    for _, told in sorted(stated.items()):
        if name := told.get("pass", ""):
            layers[name] = layers.pop(name, [])  # behind the passes whose last file came before
            layers[name] += [told["layer"]] if told.get("layer") else []
    return tuple(MergedPass(name, tuple(dict.fromkeys(of))) for name, of in layers.items())


def by_pass(trace: Trace, passes: Sequence[MergedPass]) -> Trace | None:
    """The trace of one file with a source per pass, behind one of what belongs to none (telemetry).
    None where device work, calls or operators do not say which pass they are of: on several hosts,
    where numbers of processes repeat.
    """
    (source,) = trace.sources
    places = _places(source.names, passes)
    tables = {name: getattr(trace, name) for name in ("kernels", "copies", "api", "ops", "marks")}
    found = {name: _looked_up(table.pid, places) for name, table in tables.items()}
    if any((found[name] == 0).any() for name in ("kernels", "copies", "api", "ops")):
        return None
    with_calls = set(np.unique(found["api"]).tolist())
    sources = (
        replace(source, has_host_calls=False),
        *(
            replace(
                source,
                pass_name=one.name,
                layer=one.layer,
                has_host_calls=place in with_calls,
                pid=_only(number for number, at in places.items() if at == place),
                details=(),
                names=(),
                units=(),
            )
            for place, one in enumerate(passes, 1)
        ),
    )
    return replace(
        trace,
        sources=sources,
        **{name: table.with_columns(source=found[name]) for name, table in tables.items()},
    )


def _places(names: Sequence[Named], passes: Sequence[MergedPass]) -> dict[int, int]:
    """The place of each process's pass among the sources, by its number."""
    longest_first = sorted(enumerate(passes, 1), key=lambda one: -len(one[1].name))
    return {
        entry.pid: place
        for entry in names
        if entry.tid == NULL
        for place in (_place(entry.name, longest_first),)
        if place
    }


def _place(process: str, passes: Sequence[tuple[int, MergedPass]]) -> int:
    return next(
        (
            place
            for place, one in passes
            if process == one.name or process.startswith(one.name + _BETWEEN)
        ),
        0,
    )


def _looked_up(pids: I64, places: Mapping[int, int]) -> I64:
    known, of_row = np.unique(pids, return_inverse=True)
    codes = np.array([places.get(pid, 0) for pid in known.tolist()], np.int64)
    found: I64 = codes[of_row] if len(known) else np.zeros(0, np.int64)
    return found


def _only(numbers: Iterable[int]) -> int | None:
    found = list(numbers)
    return found[0] if len(found) == 1 else None
