"""Models in deepsparse, the engine for sparse and quantised ONNX models on CPUs: what
deepsparse_worker.py serves where its interpreter has the engine.

The engine is compiled for fixed shapes, one per batch size, from a copy of the model: it rewrites
the file whose shapes it is to fix. Timed: the single `engine.run`.
"""

from __future__ import annotations

import contextlib
import os
import sys
from time import perf_counter_ns
from typing import Any, Callable, Dict, Iterator, List, NamedTuple

import numpy as np

from profharness_workloads.shared import (
    deepsparse_engines,
    flops,
    inputs,
    models,
    onnx_files,
    timing,
    worker,
)
from profharness_workloads.shared.protocol import (
    BAD_INPUT,
    Point,
    Refusal,
    Settings,
    plain_reason,
)


class Compiled(NamedTuple):
    """The engine of one batch size, the time that it took to make, and the share of the model's
    operators that it runs itself.
    """

    engine: Any
    made_ns: int
    share: float


class DeepsparseWorkload(worker.Workload):
    """One model in deepsparse; each point has an engine compiled for its batch size."""

    device = "cpu"

    def __init__(self, settings: Settings, package: Any):
        spec = settings.spec
        if spec.device not in ("auto", "cpu"):
            raise Refusal(
                "--device %s: deepsparse runs on CPUs alone" % spec.device,
                "use --device cpu, or another backend",
            )
        self._settings, self._package = settings, package
        self._path = (
            models.built_in_file(spec, "onnx")
            if models.is_built_in(spec)
            else models.model_file(spec)
        )
        self._cores = spec.threads or len(os.sched_getaffinity(0))
        self.versions = {
            "python": sys.version.split()[0],
            "deepsparse": deepsparse_engines.version_of(package),
            "numpy": np.__version__,
        }
        self.devices = [{"index": 0, "kind": "cpu", "name": "cpu"}]
        self.notes: Dict[str, str] = {"engine_cores": str(self._cores)}
        declared = onnx_files.signature(self._path)
        self._specs, usual = inputs.filled(declared, spec.shapes, spec.inputs)
        inputs.checked(spec.inputs, self._specs)
        if usual and not models.is_built_in(spec):
            self.notes["shapes"] = (
                "usual particle counts taken for the free dimensions of %s" % ", ".join(usual)
            )
        self._flops = self._counted()

    def _counted(self) -> flops.Count:
        """Once, where no tool records; by a run of onnxruntime, where this interpreter has it."""
        spec = self._settings.spec
        if self._settings.recorded or spec.flops_per_item is not None:
            return flops.Count(spec.flops_per_item)
        arrays = inputs.pool(self._specs, 1, spec.inputs, spec.seed)[0]
        feeds = {spec.name: array for spec, array in zip(self._specs, arrays)}
        return flops.onnx_count(self._path, feeds)

    def measure(self, point: Point, still_wanted: Callable[[], None]) -> worker.Measurement:
        """Warm up and time runs of the engine of this batch size; making it is its compile time."""
        notes = dict(self.notes)
        sets = self._input_sets(point)
        compiled = self._compiled(point)
        notes.update(notes_of(compiled))
        action = timing.Action(inputs.in_turn(sets), compiled.engine.run, _nothing)
        warm = timing.warm_up(action, point.warmup, self.marks.warm_up_span(point.id))
        trials = timing.trials(action, point.trials, point.min_seconds, still_wanted)
        if not warm.agreed:
            notes["warmup"] = (
                "stopped at the cap of %g s before the last trials agreed" % timing.WARM_UP_CAP_S
            )
        if self._flops.note:
            notes["flops"] = self._flops.note
        notes["inputs"] = "%d sets in turn" % len(sets)
        notes["input_bytes_per_item"] = "%.17g" % (
            sum(array.nbytes for array in sets[0]) / point.batch_size
        )
        return worker.Measurement(
            trials.durations_ns,
            trials.starts_ns,
            point.batch_size,
            warm.durations_ns,
            warm.starts_ns,
            self.device,
            compile_ns=compiled.made_ns,
            flops_per_item=self._flops.flops,
            notes=notes,
        )

    @contextlib.contextmanager
    def ready(self, point: Point) -> Iterator[timing.Action]:
        """The point's call as `measure` times it, not warmed up; the notes tell of its engine."""
        sets = self._input_sets(point)
        compiled = self._compiled(point)
        self.notes.update(notes_of(compiled))
        yield timing.Action(inputs.in_turn(sets), compiled.engine.run, _nothing)

    def _input_sets(self, point: Point) -> List[List[Any]]:
        spec = self._settings.spec
        seed = spec.seed if point.seed is None else point.seed
        sets = inputs.pool(self._specs, point.batch_size, spec.inputs, seed)
        return [[np.ascontiguousarray(array) for array in arrays] for arrays in sets]

    def _compiled(self, point: Point) -> Compiled:
        """An engine of this batch size, made from a copy of the model, which is gone when the
        engine is there. Raises Refusal for a model that deepsparse cannot load.
        """
        shapes = [[point.batch_size, *spec.dims] for spec in self._specs]
        with onnx_files.copied(self._path, self._settings.control_dir) as copy:
            begin_ns = perf_counter_ns()
            try:
                engine = self._package.Engine(
                    copy,
                    batch_size=point.batch_size,
                    num_cores=self._cores,
                    input_shapes=shapes,
                )
            except Exception as error:  # what the engine raises has no common base
                raise Refusal(
                    "%s: deepsparse cannot load it: %s" % (self._path, plain_reason(error)),
                    "check that the file is whole, and that its opset is one that this version "
                    "knows; --backend onnxruntime says whether the model is sound",
                    BAD_INPUT,
                ) from error
        made_ns = perf_counter_ns() - begin_ns
        return Compiled(engine, made_ns, float(engine.fraction_of_supported_ops))


def notes_of(compiled: Compiled) -> Dict[str, str]:
    """What an engine says of itself: the share of operators that it supports, its instruction set,
    and how long it took to make.
    """
    engine = compiled.engine
    vnni = "_vnni" if getattr(engine, "cpu_vnni", False) else ""
    return {
        "supported_operators": "%.4f" % compiled.share,
        "instructions": "%s%s" % (getattr(engine, "cpu_avx_type", ""), vnni),
        "engine_ns": str(compiled.made_ns),
    }


def _nothing() -> None:
    """`engine.run` returns when its outputs are there."""
