"""Launch geometry of a ROCm torch.profiler pass, taken from a rocprofv3 pass of the same run. Pure.

Kineto on ROCm records no registers, and older releases no grid at all; rocprofv3 has both. The two
are different executions of one program, so that their kernels are joined by name and by order of
start, within a point of the scan and a rank where both passes have them. A name counts as the same
work only where both passes ran it equally often, or as far as the passes ran the same kernels in
the same order from the start. What a record has itself is never replaced.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from profharness.trace.columns.keys import distinct, pack
from profharness.trace.columns.table import NULL
from profharness.trace.model import I64, Kernels, Problem, Source, Strings, Trace

GEOMETRY = (
    "workgroups",
    "workgroup_count_x",
    "workgroup_count_y",
    "workgroup_count_z",
    "workgroup_size_x",
    "workgroup_size_y",
    "workgroup_size_z",
    "vgpr",
    "accum_vgpr",
    "sgpr",
    "lds_bytes",
    "lds_dynamic_bytes",
    "scratch_bytes",
)
# columns of which a difference shows that two records are not the same launch
_SHAPE = GEOMETRY[:7]
_SUFFIXES = (" [clone .kd]", ".kd")


@dataclass(frozen=True)
class Match:
    """How much of one pass got its geometry from another: `matched` of the `kernels` that lacked
    some of it.
    """

    pass_name: str
    donor: str
    matched: int
    kernels: int


@dataclass(frozen=True)
class PassRole:
    """What one pass gives or takes: the position of its first source with such kernels, and what
    its kernels say.
    """

    gives: bool
    first_source: int
    counted: bool
    ranked: bool
    pointed: bool


Roles = Mapping[tuple[str, bool], PassRole]
"""By name of the pass and whether it gives."""


def enrich_geometry(trace: Trace, roles: Roles | None = None) -> tuple[Trace, tuple[Match, ...]]:
    """The trace with the geometry that its Kineto passes on ROCm lack, and one match per such pass.

    Times, names, order and number of records stay. Each match is also a Problem of severity info.
    Without kernels of rocprofv3 in another pass the trace is returned as it is. `roles` are those
    of the whole of which `trace` is a part, which must hold all kernels of its ranks.
    """
    kernels = trace.kernels
    roles = pass_roles(trace) if roles is None else roles
    donor = donor_of(roles)
    if donor is None:
        return trace, ()
    from_rows = _giving_rows(trace).get(donor, np.zeros(0, np.int64))
    columns = {name: getattr(kernels, name).copy() for name in GEOMETRY}
    matches, problems = [], []
    for pass_name, rows in _receivers(trace, donor).items():
        given, taken = roles[donor, True], roles[pass_name, False]
        needy = (kernels.workgroups[rows] == NULL) | (kernels.vgpr[rows] == NULL)
        if not needy.any():
            continue
        to, origin = _pairs(
            trace, rows, from_rows, (given.ranked and taken.ranked, given.pointed and taken.pointed)
        )
        usable = np.isin(to, rows[needy]) & (kernels.name[to] != NULL) & _agree(kernels, to, origin)
        usable &= (kernels.workgroups[origin] != NULL) | (kernels.vgpr[origin] != NULL)
        to, origin = to[usable], origin[usable]
        for name, column in columns.items():
            own = getattr(kernels, name)
            column[to] = np.where(own[to] == NULL, own[origin], own[to])
        match = Match(pass_name, donor, len(to), int(needy.sum()))
        matches.append(match)
        problems.append(
            Problem(
                "info",
                trace.sources[int(kernels.source[rows[0]])].path,
                match.matched,
                match_sentence(match),
            )
        )
    if not matches:
        return trace, ()
    return replace(
        trace, kernels=kernels.with_columns(**columns), problems=(*trace.problems, *problems)
    ), tuple(matches)


def match_sentence(match: Match) -> str:
    """The match rate in a sentence."""
    return (
        f"geometry of {match.matched} of {match.kernels} kernels of the {match.pass_name} pass "
        f"taken from the {match.donor} pass"
        " by name and order"
    )


# ---------------------------------------------------------------- who gives, who receives


def pass_roles(trace: Trace) -> dict[tuple[str, bool], PassRole]:
    """The passes of a trace that give or take geometry."""
    ranks, points = _ranks(trace, np.arange(len(trace.kernels))), trace.kernels.point
    counted = np.zeros(len(trace.kernels) + 1, np.bool_)
    counted[trace.counters.kernel] = True
    return {
        (name, gives): PassRole(
            gives,
            int(trace.kernels.source[rows].min()),
            bool(counted[rows].any()),
            bool((ranks[rows] != NULL).any()),
            bool((points[rows] != NULL).any()),
        )
        for gives, passes in ((True, _giving_rows(trace)), (False, _taking_rows(trace)))
        for name, rows in passes.items()
    }


def join_roles(one: Roles, other: Roles) -> dict[tuple[str, bool], PassRole]:
    """The roles of two parts together."""
    joined = dict(one)
    for key, role in other.items():
        known = joined.get(key, role)
        joined[key] = PassRole(
            role.gives,
            min(known.first_source, role.first_source),
            known.counted or role.counted,
            known.ranked or role.ranked,
            known.pointed or role.pointed,
        )
    return joined


def donor_of(roles: Roles) -> str | None:
    """The rocprofv3 pass to take from: the first one without counters, which disturb the least."""
    giving = sorted(
        (role.counted, role.first_source, name) for (name, gives), role in roles.items() if gives
    )
    return giving[0][2] if giving else None


def gives_geometry(source: Source) -> bool:
    """Whether kernels of this source have all that there is to know of a launch."""
    return source.layer == "rocprofv3"


def takes_geometry(trace: Trace, position: int) -> bool:
    """Whether Kineto recorded the kernels of the source at this position on ROCm."""
    return trace.sources[position].format == "kineto" and _is_rocm(
        trace, trace.sources[position], position
    )


def _giving_rows(trace: Trace) -> dict[str, I64]:
    return _rows_by_pass(trace, [gives_geometry(source) for source in trace.sources])


def _taking_rows(trace: Trace) -> dict[str, I64]:
    return _rows_by_pass(
        trace, [takes_geometry(trace, position) for position in range(len(trace.sources))]
    )


def _receivers(trace: Trace, donor: str) -> dict[str, I64]:
    return {name: rows for name, rows in _taking_rows(trace).items() if name != donor}


def _rows_by_pass(trace: Trace, chosen: list[bool]) -> dict[str, I64]:
    source = trace.kernels.source
    mine = np.append(np.array(chosen, np.bool_), False)[source]  # NULL reads the last entry
    rows = np.flatnonzero(mine)
    names = list(
        dict.fromkeys(trace.sources[position].pass_name for position in source[rows].tolist())
    )
    numbers = np.array(
        [names.index(one.pass_name) if one.pass_name in names else NULL for one in trace.sources],
        np.int64,
    )
    return {
        name: rows[numbers[source[rows]] == number] for number, name in enumerate(names) if name
    }


def _is_rocm(trace: Trace, source: Source, position: int) -> bool:
    """By the versions that the file names, else by the maker of the devices that its kernels ran
    on.
    """
    if any(name.startswith(("hip_", "roctracer_")) for name, _ in source.details):
        return True
    devices = distinct(trace.kernels.device[trace.kernels.source == position])
    return any(
        trace.devices[int(device)].vendor.lower() == "amd" for device in devices if device != NULL
    )


# ---------------------------------------------------------------- which record is which


def _pairs(trace: Trace, to: I64, origin: I64, told: tuple[bool, bool]) -> tuple[I64, I64]:
    """Rows of both passes that are the same launch: those of equally frequent names, and those of
    the common beginning.

    `told`: whether both passes know ranks, and points.
    """
    both = np.concatenate((to, origin))
    is_to = np.arange(len(both)) < len(to)
    place = pack(_places(trace, both, told))
    key = pack([place, _names(trace)[trace.kernels.name[both]]])
    order = np.lexsort((trace.kernels.device[both], trace.kernels.start_ns[both], place))
    both, is_to, place, key = (
        both[order],
        is_to[order],
        place[order],
        np.unique(key[order], return_inverse=True)[1],
    )
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


def _places(trace: Trace, rows: I64, told: tuple[bool, bool]) -> list[I64]:
    """Rank and point of each row; one that either pass knows nothing of does not tell kernels
    apart.
    """
    columns = (_ranks(trace, rows), trace.kernels.point[rows].astype(np.int64))
    return [
        column if known else np.zeros(len(rows), np.int64)
        for column, known in zip(columns, told, strict=True)
    ]


def _ranks(trace: Trace, rows: I64) -> I64:
    kernels = trace.kernels
    ranks = np.array(
        [NULL if source.rank is None else source.rank for source in trace.sources], np.int64
    )[kernels.source[rows]]
    return np.where(ranks == NULL, kernels.rank[rows], ranks).astype(np.int64)


def _names(trace: Trace) -> I64:
    """For each string its number as a kernel's name, the same with and without the suffix of a
    kernel descriptor; the last stands for NULL.
    """
    pool = Strings()

    def plain(text: str) -> str:
        return next(
            (text.removesuffix(suffix) for suffix in _SUFFIXES if text.endswith(suffix)), text
        )

    used = set(distinct(trace.kernels.name).tolist())
    return np.array(
        [
            *(
                pool.code(plain(text)) if number in used else NULL
                for number, text in enumerate(trace.strings.texts)
            ),
            NULL,
        ],
        np.int64,
    )


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
