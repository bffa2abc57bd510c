"""A made-up summary that has every picture."""

from __future__ import annotations

import msgspec

from profharness.analysis.pictures.flame import ROOT, Tree
from profharness.analysis.pictures.flame_layout import SAMPLED, flame_of
from profharness.analysis.pictures.records import KINDS, Band, Pictures, RankShare, Strip, Strips
from profharness.analysis.records import Figure, PointSummary, Summary
from profharness.report.text import names
from tests.report.samples import device_use, gpu_scan

HOSTILE = '{a|b}<img src="data:,x" onerror="boom">\u202e;\x1b[31m'


def full(*, several: bool = False) -> Summary:
    """A scan of two settings, or of `several`, with telemetry, ranks, trees and strips."""
    summary, use = gpu_scan(), device_use()
    table = summary.hotspots[0]
    rows = tuple(
        msgspec.structs.replace(row, fill=0.1 * (place + 1)) for place, row in enumerate(table.rows)
    )
    rows = (*rows, msgspec.structs.replace(rows[0], name=HOSTILE))
    kernels = tuple(
        msgspec.structs.replace(use.kernels[0], name=row.name, peak_share=0.05 * (place + 1))
        for place, row in enumerate(rows)
    )
    power = next(row for row in summary.telemetry if row.metric == "power_w")
    cap = msgspec.structs.replace(power, metric="power_limit", mean=700.0)
    return msgspec.structs.replace(
        summary,
        points=tuple(_points(several=several)),
        hotspots=(msgspec.structs.replace(table, rows=rows),),
        use=msgspec.structs.replace(use, kernels=kernels),
        telemetry=(*summary.telemetry, cap),
        pictures=_pictures(),
    )


def _points(*, several: bool) -> list[PointSummary]:
    return [
        PointSummary(
            point=f"torch-b{batch}-c{clients}-{processes}",
            backend="torch",
            batch_size=batch,
            concurrency=clients,
            processes=processes if several else None,
            throughput=100.0 * batch**0.5 * clients**0.2 * processes**0.1,
            metrics={
                names.LATENCY_P50: Figure(
                    value=batch / 3, unit="ms", low=batch / 4, high=batch / 2
                ),
                names.GPU_PERCENT: Figure(value=100.0, unit="%"),
                names.FILL: Figure(value=0.4, unit="share", low=0.35, high=0.44),
            },
        )
        for batch in (1, 4, 16)
        for clients in (1, 2, 8)
        for processes in ((1, 2) if several else (1,))
    ]


def _pictures() -> Pictures:
    tree = Tree(of_device=True)
    model = tree.frame(ROOT, "Model_0", "module")
    for place in range(4):
        layer = tree.frame(model, f"Linear_{place}", "module")
        op = tree.frame(layer, "aten::mm", "op")
        tree.own_ns[tree.frame(op, HOSTILE, "kernel")] += 1_000 * (place + 1)
    flame, sampled = flame_of(tree, "module"), flame_of(tree, SAMPLED)
    assert flame is not None
    assert sampled is not None
    exact = Strip(
        device="0",
        start_ns=0,
        end_ns=900,
        window_ns=900,
        thinned=False,
        kind=tuple(range(len(KINDS))),
        at=tuple(100 * place for place in range(len(KINDS))),
        width=(100,) * len(KINDS),
        before=(0,) * len(KINDS),
        ns=(100,) * len(KINDS),
    )
    binned = Strip(
        device="1",
        start_ns=0,
        end_ns=900,
        window_ns=900,
        thinned=True,
        kind=(0, 8),
        at=(0, 0),
        width=(900, 900),
        before=(0, 300),
        ns=(300, 600),
    )
    return Pictures(
        strips=Strips(strips=(exact, binned)),
        flames=(flame, sampled),
        ranks=tuple(
            RankShare(
                device=f"node0/{rank}/0",
                rank=rank,
                window_ns=1_000,
                compute_ns=500 + rank,
                exposed_communication_ns=100,
                exposed_copy_ns=20,
                idle_ns=380 - rank,
            )
            for rank in range(128)
        ),
        bands=(Band(pass_name="bare", point="torch-b4", start_s=5.0, end_s=50.0),),
    )
