"""Files and runs that the documents speak of, made where a command looks for them: small ones of
the same kind.
"""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from profharness.cli import run_cli
from tests.readers.kineto.kineto_files import document, event, kernel, launch, op
from tests.run_files import run_of
from tests.samples.keep import unpacked

RUN_NAME = re.compile(r"traces/[\w.-]+|RUN(?:_[AB])?")
RESULTS = "via,batch_size,throughput,latency_ms\n" + "".join(
    f"{via},{size},{speed * size / (size + 8):.3f},{1000 * (size + 8) / speed:.3f}\n"
    for via, speed in (("direct", 1000), ("triton", 800))
    for size in (1, 2, 4, 8, 16, 32, 64)
)
CONTENTS = {
    ".toml": 'name = "nightly"\nbatch_sizes = [1, 2]\n',
    ".py": "print('a job')\n",
    ".csv": RESULTS,
    ".pem": "",
    ".sif": "",
    ".npz": "",
    ".onnx": "",
    ".pt": "",
}


def filled(words: Sequence[str], folder: Path) -> list[str]:
    """The words, with a stand-in below the folder for each run and file that they name and do not
    write; patterns name two files.
    """
    found: list[str] = []
    for before, word in zip(("", *words), words, strict=False):
        named = list(_matching(word)) if "*" in word else [word]
        found += named
        if before in ("-o", "--output"):
            continue
        for one in named:
            _make(one, folder, words)
    return found


def _matching(pattern: str) -> Iterator[str]:
    for text in ("0", "1"):
        yield pattern.replace("*", text)


def _make(word: str, folder: Path, words: Sequence[str]) -> None:
    for name in word.split(",") if "=" not in word else [word.partition("=")[2]]:
        path = folder / name
        if not name or name.startswith("-") or (path.is_absolute() and folder not in path.parents):
            continue
        if RUN_NAME.fullmatch(name):
            _run(path, steps="--steps" in words)
        elif path.name == "certificate.json":
            _certificate(path, folder / "RUN")
        elif name.endswith((".json", ".json.gz")):
            _trace(path, rank=int(path.name.endswith(("1.json", "1.json.gz"))))
        elif path.suffix in CONTENTS:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(CONTENTS[path.suffix])


def _run(path: Path, *, steps: bool) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.exists():
        return
    if steps:
        run_of(path, ranks=2, kernels=400)
    else:
        unpacked("0.1-scan-torch", path.parent).rename(path)


def _certificate(path: Path, run: Path) -> None:
    """That of the run, which it may lie in."""
    _run(run, steps=False)
    run_cli(["certify", str(run), "-o", str(path)])


def _trace(path: Path, rank: int) -> None:
    """Forty steps of a matrix product, whose shapes were recorded, on a GPU and a host with a
    name.
    """
    events = []
    for step in range(40):
        at, number = 1_000.0 * step, step + 1
        sizes = {"Input_Dims": [[512, 512], [512, 512]], "Input_type": ["float", "float"]}
        events += [
            event("user_annotation", f"ProfilerStep#{step}", at, 990.0, pid=100 + rank),
            op("aten::mm", at + 10, 60.0, number, **sizes) | {"pid": 100 + rank},
            launch("hipLaunchKernel", at + 20, 10.0, number) | {"pid": 100 + rank},
            kernel("gemm_kernel", at + 50, 400.0, device=rank, correlation=number),
        ]
    about = {"host_name": "node", "baseTimeNanoseconds": 10**18}
    data = json.dumps(document(events, **about)).encode()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
