"""What the head of a merged trace says: where its records come from, the clocks of the run, and the
nodes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast, get_args

from profharness import __version__
from profharness.errors import UsageError
from profharness.rundir.manifest import Manifest
from profharness.rundir.shown.screen import one_line
from profharness.trace.model import Source
from profharness.units import several
from profharness.writers.options import (
    RATE_UNIT,
    ClockReading,
    GpuRepresentation,
    HostFacts,
    WriteOptions,
)


def attributes(
    named: str, manifest: Manifest | None, sources: Sequence[Source]
) -> dict[str, str | int]:
    """What the trace of what was `named` says of itself in the viewer's overview."""
    stated: dict[str, str | int] = {"profharness.source": named, "profharness.version": __version__}
    if manifest is not None:
        stated |= {
            "profharness.run_id": manifest.id,
            "profharness.argv": " ".join(manifest.argv),
            "profharness.created": manifest.created,
        }
    for number, source in enumerate(sources):
        if source.bound_ns is not None:
            stated[f"profharness.clock.{number}.bound_ns"] = source.bound_ns
        if source.residual_ns is not None:
            stated[f"profharness.clock.{number}.residual_ns"] = source.residual_ns
        if source.alignment:
            stated[f"profharness.clock.{number}.alignment"] = f"{source.path}: {source.alignment}"
    return stated


def write_options(
    manifest: Manifest | None, gpu_repr: GpuRepresentation = "render-stage"
) -> WriteOptions:
    """The options of writing, with the reference host's wall clock and the nodes' facts where a
    manifest has them.
    """
    from profharness.analysis.kernels.categories import op_category
    from profharness.report.text.sampled import metric_title
    from profharness.trace.sample_metrics import metric_of

    def kind(name: str) -> str:
        category = op_category(name)
        return "" if category == "other" else category

    def title(metric: str) -> str:
        known = metric_of(metric)
        return metric if known is None else metric_title(metric, known.unit)

    if manifest is None:
        return WriteOptions(gpu_repr=gpu_repr, operator_kind=kind, metric_title=title)
    reference = manifest.nodes[0].host if manifest.nodes else ""
    readings = tuple(
        ClockReading(reading.boot_ns, reading.realtime_ns)
        for reading in manifest.clocks
        if reading.host == reference
    )
    rate = RATE_UNIT if manifest.scan is None else f"{several(one_line(manifest.scan.item, 40))}/s"
    hosts = tuple(
        HostFacts(
            host=node.host,
            sysname="Linux",
            release=node.kernel,
            cpus=len(node.cpus_allowed) or None,
        )
        for node in manifest.nodes
    )
    return WriteOptions(
        gpu_repr=gpu_repr,
        clocks=readings,
        hosts=hosts,
        operator_kind=kind,
        rate_unit=rate,
        metric_title=title,
    )


def gpu_representation(text: str) -> GpuRepresentation:
    """One of the two by its name. Raises UsageError for another."""
    for name in get_args(GpuRepresentation):
        if text == name:
            return cast("GpuRepresentation", name)
    raise UsageError(
        f"--gpu-repr: {text!r} is not a representation", "use render-stage or track-event"
    )
