"""The layers of runs whose manifests do not yet describe them. A record of the past: new layers are
never added here.
"""

from __future__ import annotations

from collections.abc import Mapping

from profharness.rundir.layer_facts import LayerFacts, LeftFile, LeftFiles

_V3_PID = r"_(\d+)_[a-z_]+\.(?:csv|json|db|pftrace)(?:\.gz)?$"

OLDER: dict[str, LayerFacts] = {
    "torch": LayerFacts(
        LeftFiles("hook", (LeftFile(r".*\.json(\.gz)?", "kineto"),)), hooked=True, kernels=40
    ),
    "onnxruntime": LayerFacts(
        LeftFiles("hook", (LeftFile(r".*\.json(\.gz)?", "onnxruntime"),)), hooked=True
    ),
    "rocprofv3": LayerFacts(
        LeftFiles(
            "process",
            (
                LeftFile(
                    r".*_\d+_pc_sampling_(host_trap|stochastic)\.csv(\.gz)?",
                    "rocprofv3-pc-sampling",
                    aside=True,
                ),
                LeftFile(r"stats_.*\.csv(\.gz)?", "rocprofv3-thread-trace", aside=True),
                LeftFile(r".*\.(att|out)", "rocprofv3-att", aside=True),
                LeftFile(r".*\.db(\.gz)?", "rocpd", turn=0),
                LeftFile(r".*_\d+_results\.json(\.gz)?", "rocprofv3-json", turn=1, whole="closed"),
                LeftFile(r".*\.json(\.gz)?", "rocprofv3-json", aside=True, turn=1, whole="closed"),
                LeftFile(
                    r".*_\d+_([a-z_]*_trace|[a-z_]*counter_collection)\.csv(\.gz)?",
                    "rocprofv3-csv",
                    turn=2,
                ),
                LeftFile(r".*\.csv(\.gz)?", "rocprofv3-csv", aside=True, turn=2),
                LeftFile(r".*\.pftrace(\.gz)?", "pftrace", turn=3),
            ),
            pid=_V3_PID,
            folder=r"_(\d+)$",
            first=True,
        ),
        kernels=10,
    ),
    "rocprof": LayerFacts(
        LeftFiles(
            "execution",
            (
                LeftFile(r"results\.db", "rocprof-db", turn=0, whole="filled"),
                LeftFile(r"results\.json", "rocprof-json", turn=1, whole="closed"),
                LeftFile(r"results\.csv", "rocprof", turn=2, whole="filled"),
                LeftFile(r".*\.csv", "rocprof-csv", aside=True),
                LeftFile(r".*\.json", "rocprof-json", aside=True),
                LeftFile(r".*\.db", "rocprof-db", aside=True),
                LeftFile(r".*\.txt", "rocprof-txt", aside=True),
            ),
        ),
        kernels=20,
    ),
    "rocprof-sys": LayerFacts(
        LeftFiles(
            "execution",
            (
                LeftFile(r"merged\.(proto|pftrace)", "pftrace", aside=True),
                LeftFile(r".*\.(proto|pftrace)", "pftrace", turn=0),
                LeftFile(r".*rocpd[^/]*\.db", "rocpd", turn=1),
                LeftFile(r".*\.txt", "rocprof-sys-txt", aside=True),
                LeftFile(r".*\.json", "rocprof-sys-json", aside=True),
                LeftFile(r".*\.db", "rocprof-sys-db", aside=True),
            ),
            pid=r"-(\d+)\.(?:proto|pftrace|txt|json|db)$",
            deep=True,
        ),
        kernels=30,
    ),
    "rocprof-compute": LayerFacts(
        LeftFiles(
            "execution",
            (
                LeftFile(r"pmc_perf\.csv(\.gz)?", "rocprof-compute", turn=0, whole="filled"),
                LeftFile(r"results_.*\.csv(\.gz)?", "rocprof-compute", turn=1, whole="filled"),
                LeftFile(r"pmc_perf_.*\.csv(\.gz)?", "rocprof-compute", turn=2, whole="filled"),
                LeftFile(r"\d+(_results)?\.db", "rocprof-compute-replay", turn=3, whole="filled"),
                LeftFile(r".*\.csv(\.gz)?", "rocprof-compute", aside=True),
                LeftFile(r"(rocprof_compute|analysis).*\.db", "rocprof-compute-db", aside=True),
            ),
            deep=True,
        )
    ),
    "amd-log": LayerFacts(
        LeftFiles(
            "execution",
            (LeftFile(r"amdlog_.*", "amd-log"), LeftFile(r"miopen-.*", "miopen-log")),
            pid=r"[_-](\d+)(?:\.log)?$",
            filled=True,
        )
    ),
}


def kernel_order(layers: Mapping[str, LayerFacts] = OLDER) -> dict[str, int]:
    """Of the layers whose files may hold kernels, which speaks first: the smallest number."""
    return {name: facts.kernels for name, facts in layers.items() if facts.kernels is not None}


def hooked_layers(layers: Mapping[str, LayerFacts] = OLDER) -> frozenset[str]:
    """The layers that work inside the process, so that they cost time in their windows alone."""
    return frozenset(name for name, facts in layers.items() if facts.hooked)
