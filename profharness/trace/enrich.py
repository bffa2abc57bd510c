"""Launch geometry of a ROCm torch.profiler pass, taken from a rocprofv3 pass of the same run. Pure.

Kineto on ROCm records no registers, and older releases no grid at all; rocprofv3 has both. The two are different
executions of one program, so that their kernels are joined by name and by order of start, within a point of the scan and
a rank where both passes have them. A name counts as the same work only where both passes ran it equally often, or as far
as the passes ran the same kernels in the same order from the start. What a record has itself is never replaced.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from profharness.trace.keys import pack
from profharness.trace.model import I64, NULL, Kernels, Problem, Source, Strings, Trace

GEOMETRY = ("workgroups", "workgroup_count_x", "workgroup_count_y", "workgroup_count_z", "workgroup_size_x", "workgroup_size_y", "workgroup_size_z",
            "vgpr", "accum_vgpr", "sgpr", "lds_bytes", "lds_dynamic_bytes", "scratch_bytes")
# columns of which a difference shows that two records are not the same launch
_SHAPE = GEOMETRY[:7]
_SUFFIXES = (" [clone .kd]", ".kd")


@dataclass(frozen=True)
class Match:
    """How much of one pass got its geometry from another: `matched` of the `kernels` that lacked some of it."""

    pass_name: str
    donor: str
    matched: int
    kernels: int


def enrich_geometry(trace: Trace) -> tuple[Trace, tuple[Match, ...]]:
    """The trace with the geometry that its Kineto passes on ROCm lack, and one match per such pass.

    Times, names, order and number of records stay. Each match is also a Problem of severity info. Without kernels of
    rocprofv3 in another pass the trace is returned as it is.
    """
    kernels = trace.kernels
    giving = _donor(trace)
    if giving is None:
        return trace, ()
    donor, from_rows = giving
    columns = {name: getattr(kernels, name).copy() for name in GEOMETRY}
    matches, problems = [], []
    for pass_name, rows in _receivers(trace, donor).items():
        needy = (kernels.workgroups[rows] == NULL) | (kernels.vgpr[rows] == NULL)
        if not needy.any():
            continue
        to, origin = _pairs(trace, rows, from_rows)
        usable = np.isin(to, rows[needy]) & (kernels.name[to] != NULL) & _agree(kernels, to, origin)
        usable &= (kernels.workgroups[origin] != NULL) | (kernels.vgpr[origin] != NULL)
        to, origin = to[usable], origin[usable]
        for name, column in columns.items():
            own = getattr(kernels, name)
            column[to] = np.where(own[to] == NULL, own[origin], own[to])
        match = Match(pass_name, donor, len(to), int(needy.sum()))
        matches.append(match)
        problems.append(Problem("info", trace.sources[int(kernels.source[rows[0]])].path, match.matched, told(match)))
    if not matches:
        return trace, ()
    return replace(trace, kernels=kernels.with_columns(**columns), problems=(*trace.problems, *problems)), tuple(matches)


def told(match: Match) -> str:
    """The match rate in a sentence."""
    return (f"geometry of {match.matched} of {match.kernels} kernels of the {match.pass_name} pass taken from the {match.donor} pass"
            " by name and order")


# ---------------------------------------------------------------- who gives, who receives

def _donor(trace: Trace) -> tuple[str, I64] | None:
    """The rocprofv3 pass to take from, and its kernels: the first one without counters, which disturb the least."""
    passes = _rows_by_pass(trace, [source.layer == "rocprofv3" for source in trace.sources])
    counted = np.unique(trace.counters.kernel)
    plain = [(name, rows) for name, rows in passes.items() if not np.isin(rows, counted).any()]
    return next(iter([*plain, *passes.items()]), None)


def _receivers(trace: Trace, donor: str) -> dict[str, I64]:
    """Rows of the kernels that Kineto recorded on ROCm, by pass."""
    found = _rows_by_pass(trace, [source.format == "kineto" and _is_rocm(trace, source, position) for position, source in enumerate(trace.sources)])
    return {name: rows for name, rows in found.items() if name != donor}


def _rows_by_pass(trace: Trace, chosen: list[bool]) -> dict[str, I64]:
    source = trace.kernels.source
    mine = np.append(np.array(chosen, np.bool_), False)[source]  # NULL reads the last entry
    rows = np.flatnonzero(mine)
    names = list(dict.fromkeys(trace.sources[position].pass_name for position in source[rows].tolist()))
    numbers = np.array([names.index(one.pass_name) if one.pass_name in names else NULL for one in trace.sources], np.int64)
    return {name: rows[numbers[source[rows]] == number] for number, name in enumerate(names) if name}


def _is_rocm(trace: Trace, source: Source, position: int) -> bool:
    """By the versions that the file names, else by the maker of the devices that its kernels ran on."""
    if any(name.startswith(("hip_", "roctracer_")) for name, _ in source.details):
        return True
    devices = np.unique(trace.kernels.device[trace.kernels.source == position])
    return any(trace.devices[int(device)].vendor.lower() == "amd" for device in devices if device != NULL)


# ---------------------------------------------------------------- which record is which

def _pairs(trace: Trace, to: I64, origin: I64) -> tuple[I64, I64]:
    """Rows of both passes that are the same launch: those of equally frequent names, and those of the common beginning."""
    both = np.concatenate((to, origin))
    is_to = np.arange(len(both)) < len(to)
    place = pack(_places(trace, both, is_to))
    key = pack([place, _names(trace)[trace.kernels.name[both]]])
    order = np.lexsort((trace.kernels.start_ns[both], place))
    both, is_to, place, key = both[order], is_to[order], place[order], np.unique(key[order], return_inverse=True)[1]
    size = int(key.max()) + 1
    here, there = np.bincount(key[is_to], minlength=size), np.bincount(key[~is_to], minlength=size)
    even = here == there
    by_name = np.argsort(key, kind="stable")
    by_name = by_name[even[key[by_name]]]
    pairs = [(both[by_name[is_to[by_name]]], both[by_name[~is_to[by_name]]])]
    shared = (here > 0) & (there > 0)
    for one in np.unique(place[shared[key] & ~even[key]]).tolist():
        inside = np.flatnonzero((place == one) & shared[key])
        first, second = inside[is_to[inside]], inside[~is_to[inside]]
        length = _common(key[first], key[second])
        first, second = first[:length], second[:length]
        odd = ~even[key[first]]
        pairs.append((both[first[odd]], both[second[odd]]))
    return np.concatenate([pair[0] for pair in pairs]), np.concatenate([pair[1] for pair in pairs])


def _places(trace: Trace, rows: I64, is_to: npt.NDArray[np.bool_]) -> list[I64]:
    """Rank and point of each row; one that either pass knows nothing of does not tell kernels apart."""
    kernels = trace.kernels
    ranks = np.array([NULL if source.rank is None else source.rank for source in trace.sources], np.int64)[kernels.source[rows]]
    rank = np.where(ranks == NULL, kernels.rank[rows], ranks).astype(np.int64)
    point = kernels.point[rows].astype(np.int64)
    return [column if all((column[side] != NULL).any() for side in (is_to, ~is_to)) else np.zeros(len(rows), np.int64) for column in (rank, point)]


def _names(trace: Trace) -> I64:
    """For each string its number as a kernel's name, the same with and without the suffix of a kernel descriptor; the last stands for NULL."""
    pool = Strings()

    def plain(text: str) -> str:
        return next((text.removesuffix(suffix) for suffix in _SUFFIXES if text.endswith(suffix)), text)

    used = set(np.unique(trace.kernels.name).tolist())
    return np.array([*(pool.code(plain(text)) if number in used else NULL for number, text in enumerate(trace.strings.texts)), NULL], np.int64)


def _common(first: I64, second: I64) -> int:
    """How many entries of two sequences are equal from the beginning."""
    length = min(len(first), len(second))
    differing = np.flatnonzero(first[:length] != second[:length])
    return int(differing[0]) if len(differing) else length


def _agree(kernels: Kernels, to: I64, origin: I64) -> npt.NDArray[np.bool_]:
    """Where no recorded extent of the one contradicts the other."""
    result = np.ones(len(to), np.bool_)
    for name in _SHAPE:
        own, other = getattr(kernels, name)[to], getattr(kernels, name)[origin]
        result &= (own == NULL) | (other == NULL) | (own == other)
    return result
