"""Traces of operators with recorded inputs and of their kernels, written out by hand."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace

from profharness.analysis.kernels.facts import KernelFacts, Yardstick
from profharness.analysis.measurement import Measurement, measure
from profharness.analysis.operators.engine import NO_INPUT, OperatorInput
from profharness.analysis.summarise import summarise_trace
from profharness.analysis.time.whole import Whole
from profharness.findings import Finding
from profharness.trace.columns.table import NULL
from profharness.trace.model import Device, Trace
from tests.analysis.scene import Scene

A100 = Device(
    "0", name="NVIDIA A100-SXM4-80GB", vendor="NVIDIA", architecture="sm_80", compute_units=108
)
MI300X = Device(
    "0", name="AMD Instinct MI300X", vendor="AMD", architecture="gfx942", compute_units=304
)
MI210 = Device("0", name="MI210", vendor="AMD", architecture="gfx90a", compute_units=104)


@dataclass
class DeviceWork:
    """Kernels one after the other in ns; operators where their kernels are."""

    device: Device = A100
    at: int = 0
    scene: Scene = field(init=False)
    inputs: list[tuple[str, ...]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.scene = Scene(devices=(self.device,))

    def op(self, name, *tensors, length=1000, start=None, strides=None, concrete=None) -> int:
        """An operator from `start` (default: now) on; a tensor is (type, extents)."""
        begin = self.at if start is None else start
        types, shapes = [one for one, _ in tensors], [other for _, other in tensors]
        texts = (shapes, types, strides or [], concrete or [])
        self.inputs.append(tuple(json.dumps(text) if text else "" for text in texts))
        return self.scene.op(name, begin, begin + length)

    def kernel(self, name, length, op=NULL, *, workgroups=NULL, pause=0, stream=0) -> None:
        begin = self.at + pause
        end = begin + length
        self.scene.kernel(begin, end, name=name, op=op, workgroups=workgroups, stream=stream)
        self.at = end

    def copy(self, length, op, kind="d2d") -> None:
        """A copy or fill that is no kernel."""
        self.scene.copy(self.at, self.at + length, kind=kind)
        self.scene.rows["copies"][-1]["op"] = op
        self.at += length

    def build(self) -> Trace:
        trace = self.scene.build()
        if not self.inputs:
            return trace

        def codes(place):
            given = [texts[place] for texts in self.inputs]
            return [trace.strings.code(text) if text else NULL for text in given]

        columns = {"shapes": 0, "dtype": 1, "strides": 2, "concrete": 3}
        made = {name: codes(place) for name, place in columns.items()}
        return replace(trace, ops=trace.ops.with_columns(**made))


def measured(trace: Trace) -> Measurement:
    return measure(trace, known=Whole(trace, KernelFacts(trace)))


def found_in(trace: Trace, name: str, given: OperatorInput = NO_INPUT) -> list[Finding]:
    summary = summarise_trace(trace, "made up", yardstick=Yardstick(operator_input=given))
    return [one for one in summary.findings if one.id == name]
