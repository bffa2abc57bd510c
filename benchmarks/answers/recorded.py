"""Recorded files: the shared ones and generated ones, and what is asked of each."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

from answers.sides import Question, Side

# options of the generator: sizes, vendors, graphs, launches that are missing, ranks, clocks
GENERATED = (
    "--kernels 1 --seed 1",
    "--kernels 200 --seed 2 --flavor cuda",
    "--kernels 5000 --seed 3",
    "--kernels 5000 --seed 4 --flavor cuda --graph-fraction 0.3",
    "--kernels 3000 --seed 5 --unlinked-fraction 0.2",
    "--kernels 3000 --seed 6 --graph-fraction 1.0 --kernels-per-step 200",
    "--kernels 2000 --seed 7 --python-stack",
    "--kernels 2500 --seed 8 --rank 0 --world 2",
    "--kernels 2500 --seed 8 --rank 1 --world 2",
    "--kernels 20000 --seed 10 --ts-base 1751410836000000.123 --kernels-per-step 500",
)
PAIRS = (
    ("mi300x_bert_small", "h100_bert_small"),
    ("mi300x_qwen0.5b_prefill", "h100_qwen0.5b_prefill"),
    ("mi300x_bert_small", "mi300x_bert_small"),
    ("sampled_rank0of128", "sampled_rank1of128"),
)
TOGETHER = (
    ("sampled_rank0of128", "sampled_rank1of128"),
    ("mi300x_sglang_graph_capture", "mi300x_sglang_qwen3-8b_decode_hipgraph"),
)


def fixtures(shared: Path) -> Iterator[Question]:
    """Every file and every folder of files among the shared ones."""
    root = shared / "fixtures"
    for path in sorted(root.glob("kineto/*.json.gz")):
        yield from trace_file(f"kineto {path.name}", (path,))
    for folder in ("rocm", "rocm-new"):
        for path in sorted(one for one in (root / folder).rglob("*") if one.is_file()):
            yield from small_file(str(path.relative_to(root)), path)
        for path in sorted(one for one in (root / folder).rglob("*") if one.is_dir()):
            if any(one.is_file() for one in path.iterdir()):
                yield from small_file(f"{path.relative_to(root)}/", path)
    for path in sorted((*root.glob("studies/*.csv"), *root.glob("models/*/*.csv"))):
        yield from scan_table(str(path.relative_to(root)), path)
    for path in sorted((*root.glob("models/*/*.txt"), *root.glob("models/*/*.json"))):
        yield from small_file(str(path.relative_to(root)), path)
    for first, second in PAIRS:
        files = [str(root / "kineto" / f"{name}.json.gz") for name in (first, second)]
        steps = (("compare", *files, "--json"), ("compare", *files))
        yield Question("compare", f"{first} with {second}", steps)
    for names in TOGETHER:
        paths = tuple(root / "kineto" / f"{name}.json.gz" for name in names)
        yield from trace_file(f"together {' and '.join(names)}", paths)


def generated(side: Side, shared: Path, folder: Path) -> Iterator[Question]:
    """Traces of the shared generator, made where they are absent."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for number, line in enumerate(GENERATED):
        path = folder / f"{number}.json"
        if not path.is_file():
            words = [
                str(side.python),
                str(shared / "tools" / "gen_kineto.py"),
                *line.split(),
                "-o",
                str(path),
            ]
            subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
        paths.append(path)
        yield from trace_file(f"generated {line}", (path,))
    yield from trace_file("generated two ranks", tuple(paths[7:9]))


def trace_file(name: str, paths: Sequence[Path]) -> Iterator[Question]:
    """All that can be asked of traces with device work."""
    files = tuple(str(path) for path in paths)
    yield Question("metrics", name, (("metrics", "--json", *files), ("metrics", *files)))
    by = tuple(
        ("hotspots", "--format", "json", "--by", one, *files)
        for one in ("kernel", "op", "category", "call")
    )
    yield Question("hotspots", name, (*by, ("hotspots", "--ops", "--format", "csv", *files)))
    if len(files) == 1:
        yield Question("steps", name, (("metrics", "--steps", "all", "--json", *files),))
    yield merged(name, files)


def small_file(name: str, path: Path) -> Iterator[Question]:
    """A file that may be readable or not: what cannot be read has an answer too."""
    yield Question("metrics", name, (("metrics", "--json", str(path)),))
    yield Question(
        "hotspots",
        name,
        (
            ("hotspots", "--format", "json", str(path)),
            ("hotspots", "--format", "json", "--by", "category", str(path)),
        ),
    )
    yield merged(name, (str(path),))
    if path.suffix == ".pftrace":
        yield Question(
            "validate", name, (("validate", str(path)), ("validate", "--json", str(path)))
        )


def merged(name: str, files: tuple[str, ...]) -> Question:
    """The Perfetto trace of the files, and the check of it."""
    steps = (
        ("merge", "-v", *files, "-o", "merged.pftrace"),
        ("validate", "--json", "merged.pftrace"),
    )
    return Question("merge", name, steps, traces=("merged.pftrace",))


def scan_table(name: str, path: Path) -> Iterator[Question]:
    """A table of results: its curves and their figure."""
    words = ("saturation", str(path))
    steps = ((*words, "--json"), words, (*words, "--jobs", "7", "--latency-limit", "20", "--json"))
    yield Question("saturation", name, steps)
    yield Question("plot", name, (("plot", str(path), "-o", "figure.svg"),), files=("figure.svg",))
