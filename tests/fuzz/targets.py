"""Which formats are fuzzed, with the seeds that their corpus begins with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.hostile.seeds import File, Seed, seeds

_LARGEST_SEED = 60_000


@dataclass(frozen=True)
class Target:
    """A format: the name of its file, how its content is changed, and its seeds."""

    name: str
    format: str
    file_name: str

    def files(self, found: Sequence[Seed]) -> list[File]:
        """The small seeds of the format that are single files, unpacked."""
        return [
            seed.files[0]
            for seed in found
            if seed.format == self.format
            and not seed.is_folder
            and len(seed.files[0].data) <= _LARGEST_SEED
        ]


TARGETS = (
    Target("kineto", "kineto", "trace.json"),
    Target("rocprofv3-json", "rocprofv3 JSON", "7_results.json"),
    Target("rocprofv3-csv", "rocprofv3 CSV", "7_kernel_trace.csv"),
    Target("rocprof-v1-csv", "rocprof v1 CSV", "results.stats.csv"),
    Target("rocprof-compute", "rocprof-compute CSV", "pmc_perf.csv"),
    Target("perfetto", "perfetto", "trace.pftrace"),
    Target("amd-log", "AMD log", "amd.log"),
    Target("miopen-log", "MIOpen log", "miopen.log"),
    Target("rocprof-sys-text", "rocprof-sys text", "wall_clock.txt"),
    Target("perf-analyzer", "perf_analyzer JSON", "profile_export.json"),
    Target("onnxruntime", "onnxruntime", "onnxruntime.json"),
    Target("samples-of-code", "samples of code", "7_pc_sampling_stochastic.csv"),
)


def write_corpora(folder: Path) -> dict[str, Path]:
    """A corpus per target, and the kind of its content in the file `kind` beside it."""
    (folder / "seeds").mkdir(parents=True)
    found, made = seeds(folder / "seeds"), {}
    for target in TARGETS:
        files = target.files(found)
        if not files:
            continue
        corpus = made[target.name] = folder / target.name / "corpus"
        corpus.mkdir(parents=True)
        for number, file in enumerate(files):
            (corpus / str(number)).write_bytes(file.data)
        (corpus.parent / "kind").write_text(files[0].kind)
    return made
