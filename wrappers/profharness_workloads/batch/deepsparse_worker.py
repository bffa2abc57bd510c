"""Scan worker for deepsparse, or for onnxruntime where no interpreter with deepsparse was named.

It runs in an interpreter that the user made and named by --python. What it needs beyond the
standard library is imported only when the engine is there, so that an interpreter without anything
hears what it lacks. Driven by PROFHARNESS_* variables and the spec file alone (see protocol).
"""

from __future__ import annotations

import os
import sys

if __name__ == "__main__":  # siblings are found as profharness_workloads says
    _here = os.path.dirname(os.path.realpath(__file__))
    sys.path[:] = [entry for entry in sys.path if os.path.realpath(entry) != _here]
    sys.path.insert(0, os.path.dirname(os.path.dirname(_here)))

import importlib
from typing import Any

from profharness_workloads.shared import deepsparse_engines, worker
from profharness_workloads.shared.protocol import MISSING, Refusal, Settings


def _module(name: str) -> Any:
    return importlib.import_module("profharness_workloads.batch.%s" % name)


def instead(settings: Settings, why: str) -> worker.Workload:
    """The model in onnxruntime, with notes that say why. Raises Refusal where this interpreter has
    none either.
    """
    workload: Any = _module("onnxruntime_worker").load(settings)
    workload.notes["fallback"] = "%s; onnxruntime %s ran the model instead" % (
        why,
        workload.versions["onnxruntime"],
    )
    served: worker.Workload = workload
    return served


def load(settings: Settings) -> worker.Workload:
    """The model in deepsparse where this interpreter has it, else in onnxruntime. Raises Refusal
    (MISSING) where the user named the interpreter, with what is wrong with it, unless a fallback is
    allowed.
    """
    spec = settings.spec
    package, why = deepsparse_engines.found()
    if package is not None:
        served: worker.Workload = _module("deepsparse_workload").DeepsparseWorkload(
            settings, package
        )
        return served
    if spec.allow_fallback:
        return instead(settings, why)
    if not spec.python:
        return instead(settings, "no interpreter with deepsparse was named by --python")
    raise Refusal(
        why,
        "name an interpreter with deepsparse 1.8.0 by --python (docs/how-to/sparse-models.md says "
        "how to make one); --allow-fallback goes on with onnxruntime",
        MISSING,
    )


if __name__ == "__main__":
    sys.exit(worker.main(load, os.environ))
