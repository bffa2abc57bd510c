"""Geometry of a Kineto pass on ROCm from a rocprofv3 pass of the same run."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from profharness.trace.columns.table import NULL
from profharness.trace.enrich import GEOMETRY, Match, enrich_geometry
from profharness.trace.model import Counters, Device, Kernels, Source, Strings, Trace
from tests.trace.making import traces

KINETO = Source(
    "torch.json",
    "kineto",
    pass_name="torch",
    layer="torch",
    details=(("hip_runtime_version", "60400000"),),
)
ROCPROFV3 = Source("r.db", "rocpd", pass_name="rocprofv3", layer="rocprofv3")


def _trace(
    torch: list[str],
    rocprofv3: list[str],
    *,
    points: tuple[list[str], list[str]] | None = None,
    source: Source = KINETO,
) -> Trace:
    """Kernels by name in order of start; the k-th of rocprofv3 has 10 + k workgroups and 100 + k
    registers.
    """
    strings = Strings()
    names = strings.codes([*torch, *rocprofv3])
    n, m = len(torch), len(rocprofv3)
    point = strings.codes([*points[0], *points[1]]) if points else NULL
    start = np.concatenate((np.arange(n) * 10 + 5000, np.arange(m) * 7))
    none, given_rows = np.full(n, NULL), np.arange(m)
    return Trace(
        (source, ROCPROFV3),
        strings,
        kernels=Kernels.build(
            start_ns=start,
            dur_ns=3,
            name=names,
            point=point,
            source=np.repeat([0, 1], [n, m]),
            workgroups=np.concatenate((none, given_rows + 10)),
            workgroup_count_x=np.concatenate((none, given_rows + 10)),
            vgpr=np.concatenate((none, given_rows + 100)),
            lds_bytes=np.concatenate((none, given_rows * 0 + 4096)),
        ),
    )


def _workgroups(torch: list[str], rocprofv3: list[str], **more: object) -> list[int]:
    enriched, _ = enrich_geometry(_trace(torch, rocprofv3, **more))  # type: ignore[arg-type]  # columns
    return enriched.kernels.workgroups[: len(torch)].tolist()


@given(st.lists(st.sampled_from("abc"), min_size=1, max_size=20))
def test_the_same_kernels_get_exactly_their_own_geometry(names: list[str]) -> None:
    trace = _trace(names, names)
    enriched, matches = enrich_geometry(trace)
    n = len(names)
    for column in GEOMETRY:
        values = getattr(enriched.kernels, column)
        assert values[:n].tolist() == values[n:].tolist()
    assert matches == (Match("torch", "rocprofv3", n, n),)
    (problem,) = enriched.problems
    assert (problem.severity, problem.source, problem.count) == ("info", "torch.json", n)
    assert problem.message == (
        f"geometry of {n} of {n} kernels of the torch pass taken from the rocprofv3 pass by "
        "name and order"
    )


@given(st.lists(st.sampled_from("abc"), max_size=12), st.lists(st.sampled_from("abc"), max_size=12))
def test_only_kernels_of_the_same_name_give_and_none_gives_twice(
    torch: list[str], rocprofv3: list[str]
) -> None:
    found = _workgroups(torch, rocprofv3)
    for name, number in zip(torch, found, strict=True):
        assert number == NULL or rocprofv3[number - 10] == name
    taken = [number for number in found if number != NULL]
    assert len(set(taken)) == len(taken)


@pytest.mark.slow
@given(traces())
def test_nothing_but_missing_geometry_changes(trace: Trace) -> None:
    trace = replace(
        trace,
        sources=tuple(
            replace(source, pass_name=source.format, layer=source.format)
            for source in trace.sources
        ),
        devices=tuple(replace(device, vendor="AMD") for device in trace.devices),
        kernels=trace.kernels.with_columns(
            workgroups=np.where(
                np.arange(len(trace.kernels)) % 2, NULL, np.arange(len(trace.kernels))
            ),
            vgpr=3,
        ),
    )
    enriched, _ = enrich_geometry(trace)
    for column in fields(Kernels):
        before, after = getattr(trace.kernels, column.name), getattr(enriched.kernels, column.name)
        kept = before != NULL if column.name in GEOMETRY else np.ones(len(before), bool)
        assert before[kept].tolist() == after[kept].tolist()
    for name, table in trace.tables():
        assert name == "kernels" or getattr(enriched, name) is table
    assert enriched.sources == trace.sources


def test_unequal_counts_match_only_as_far_as_the_passes_ran_the_same() -> None:
    # a is equally frequent; b is not, and the orders agree on the first two kernels only
    assert _workgroups(["b", "a", "b", "b"], ["b", "a"]) == [10, 11, NULL, NULL]
    assert _workgroups(["b", "a", "b", "c"], ["a", "b", "c"]) == [NULL, 10, NULL, 12]
    assert _workgroups(["b", "x", "b", "b"], ["b", "y", "b"]) == [
        10,
        NULL,
        12,
        NULL,
    ]  # x and y are in one pass only


def test_points_are_matched_apart_where_both_passes_know_them() -> None:
    points = (["p1", "p2", "p2"], ["p2", "p2", "p1"])
    assert _workgroups(["a", "a", "a"], ["a", "a", "a"], points=points) == [12, 10, 11]
    trace = _trace(["a", "a"], ["a", "a"], points=(["p1", "p2"], ["p1", "p2"]))
    unknown = replace(
        trace,
        kernels=trace.kernels.with_columns(
            point=np.where(trace.kernels.source == 1, NULL, trace.kernels.point)
        ),
    )
    assert enrich_geometry(unknown)[0].kernels.workgroups.tolist() == [10, 11, 10, 11]


def test_what_is_recorded_stays_and_a_contradiction_gives_nothing() -> None:
    trace = _trace(["a", "a"], ["a", "a"])
    own = trace.kernels.workgroups.copy()
    own[:2] = (10, 999)
    enriched, matches = enrich_geometry(
        replace(trace, kernels=trace.kernels.with_columns(workgroups=own))
    )
    assert enriched.kernels.workgroups.tolist() == [10, 999, 10, 11]
    assert enriched.kernels.vgpr.tolist() == [100, NULL, 100, 101]
    assert matches == (Match("torch", "rocprofv3", 1, 2),)


@pytest.mark.parametrize(
    "source",
    [
        replace(KINETO, details=()),  # CUDA, or unknown
        replace(KINETO, format="perfetto"),
        replace(KINETO, pass_name="rocprofv3"),
    ],
)
def test_other_sources_are_left_alone(source: Source) -> None:
    trace = _trace(["a"], ["a"], source=source)
    assert enrich_geometry(trace) == (trace, ())


def test_the_maker_of_the_device_tells_rocm_too_and_a_pass_without_counters_gives_first() -> None:
    trace = _trace(["a"], ["a", "a"], source=replace(KINETO, details=()))
    counting = replace(ROCPROFV3, pass_name="rocprofv3-pmc1")
    trace = replace(
        trace,
        devices=(Device("0", vendor="amd"),),
        sources=(trace.sources[0], counting, ROCPROFV3),
        kernels=trace.kernels.with_columns(device=[0, NULL, NULL], source=[0, 1, 2]),
        counters=Counters.build(1, kernel=1, name=0, value=1.0, source=1),
    )
    enriched, matches = enrich_geometry(trace)
    assert enriched.kernels.workgroups.tolist() == [11, 10, 11]
    assert [match.donor for match in matches] == ["rocprofv3"]


def test_ranks_are_matched_apart() -> None:
    trace = _trace(["a", "a"], ["a", "a"])
    sources = (
        replace(KINETO, rank=0),
        replace(KINETO, rank=1),
        replace(ROCPROFV3, rank=1),
        replace(ROCPROFV3, rank=0),
    )
    enriched, _ = enrich_geometry(
        replace(trace, sources=sources, kernels=trace.kernels.with_columns(source=[0, 1, 2, 3]))
    )
    assert enriched.kernels.workgroups.tolist() == [11, 10, 10, 11]
