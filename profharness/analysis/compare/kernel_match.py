"""Whether two traced passes ran the same kernels: figures joined across passes rest on that
(docs/metrics.md#traced-and-bare).
"""

from __future__ import annotations

import numpy as np

from profharness.analysis.kernels.categories import function_name
from profharness.analysis.run.trials import Trials
from profharness.findings import Finding, finding
from profharness.stats.intervals import contains, lasting, merge
from profharness.trace.columns.table import NULL
from profharness.trace.model import Trace

TOLERATED = 0.02
PerTrial = dict[str, float]


def kernels_differ(trace: Trace, trials: Trials) -> tuple[Finding, ...]:
    """One finding per point whose kernels per trial, by function name, differ by more than 2 %
    between two passes.

    Tools spell template arguments differently, so that names are cut to the function. Kernels
    outside trials (warm-up) do not count; within a pass each layer stands for itself.
    """
    by_point: dict[str, dict[tuple[str, str], PerTrial]] = {}
    for (pass_name, point), counts in _counts(trace, trials).items():
        for layer, names in counts.items():
            by_point.setdefault(point, {})[(pass_name, layer)] = names
    findings = []
    for point, groups in by_point.items():
        (first, base), *others = groups.items()
        worst = max(
            ((_distance(base, names), other) for other, names in others), default=(0.0, first)
        )
        if worst[0] > TOLERATED:
            findings.append(
                finding(
                    "kernels-differ",
                    f"kernels per trial differ by {100 * worst[0]:.1f} % between the passes "
                    f"{first[0]} and {worst[1][0]}",
                    point=point,
                    difference_share=worst[0],
                )
            )
    return tuple(findings)


def _distance(first: PerTrial, second: PerTrial) -> float:
    """Share of the kernels of a trial that the other does not have."""
    names = first.keys() | second.keys()
    apart = sum(abs(first.get(name, 0.0) - second.get(name, 0.0)) for name in names)
    return apart / max(sum(first.values()) + sum(second.values()), 1e-12)


def _counts(trace: Trace, trials: Trials) -> dict[tuple[str, str], dict[str, PerTrial]]:
    """Kernels per trial by (pass, point), layer and function name."""
    kernels = trace.kernels
    functions: dict[int, str] = {}
    per_source: dict[tuple[str, str], dict[str, PerTrial]] = {}
    for (pass_name, key), point_trials in trials.items():
        code = trace.strings.find(key)
        inside = merge(lasting(point_trials.starts_ns, point_trials.durations_ns))
        rows = np.flatnonzero(
            (kernels.point == code) & (code != NULL) & contains(inside, kernels.start_ns)
        )
        for source in np.unique(kernels.source[rows]).tolist():
            if source == NULL or trace.sources[source].pass_name != pass_name:
                continue
            names, counts = np.unique(
                kernels.name[rows[kernels.source[rows] == source]], return_counts=True
            )
            per_trial = per_source.setdefault((pass_name, key), {}).setdefault(
                trace.sources[source].layer, {}
            )
            for name, count in zip(names.tolist(), counts.tolist(), strict=True):
                function = functions.setdefault(name, function_name(trace.strings[name]))
                per_trial[function] = per_trial.get(function, 0.0) + count / len(
                    point_trials.durations_ns
                )
    return per_source
