from __future__ import annotations

import json

import msgspec

from profharness.analysis.records import Summary
from profharness.analysis.use.records import FilesRow
from profharness.report.pictures.fill_peak import LABELLED, fill_peak_plot, marks
from tests.report.samples import device_use, gpu_scan


def known() -> Summary:
    """A scan whose kernels have fill and a share of a ceiling, all but the last."""
    summary, use = gpu_scan(), device_use()
    table = summary.hotspots[0]
    rows = tuple(
        msgspec.structs.replace(row, fill=0.1 * (place + 1)) for place, row in enumerate(table.rows)
    )
    kernels = tuple(
        msgspec.structs.replace(use.kernels[0], name=row.name, peak_share=0.05 * (place + 1))
        for place, row in enumerate(rows[:-1])
    )
    return msgspec.structs.replace(
        summary,
        hotspots=(msgspec.structs.replace(table, rows=rows),),
        use=msgspec.structs.replace(use, kernels=kernels),
    )


def test_kernels_with_both_shares_have_a_mark() -> None:
    summary = known()
    found = marks(summary)
    assert len(found) == len(summary.hotspots[0].rows) - 1
    assert [mark.total_ns for mark in found] == sorted(
        (mark.total_ns for mark in found), reverse=True
    )
    plot = fill_peak_plot(summary)
    assert plot is not None
    data = json.loads(plot.json)["series"][0]["data"]
    assert [one["value"] for one in data[:2]] == [[10.0, 5.0], [20.0, 10.0]]
    assert [one["label"]["show"] for one in data].count(True) == LABELLED
    assert data[0]["symbolSize"] > data[1]["symbolSize"]


def test_of_several_files_the_fill_is_that_of_all_of_them() -> None:
    summary = known()
    assert summary.use is not None
    bare = tuple(msgspec.structs.replace(row, fill=None) for row in summary.hotspots[0].rows)
    kernels = tuple(
        FilesRow(**msgspec.structs.asdict(row), low_ns=1, high_ns=1, files=2, fill=fill)
        for row, fill in zip(summary.use.kernels, (0.25, None, *[0.5] * 99), strict=False)
    )
    of_files = msgspec.structs.replace(
        summary,
        hotspots=(msgspec.structs.replace(summary.hotspots[0], rows=bare),),
        use=msgspec.structs.replace(summary.use, kernels=kernels),
    )
    fills = {mark.name: mark.fill for mark in marks(of_files)}
    assert fills[kernels[0].name] == 0.25
    assert kernels[1].name not in fills


def test_without_ceilings_there_is_none() -> None:
    assert fill_peak_plot(gpu_scan()) is None
