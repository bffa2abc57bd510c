"""Command lines that run nothing: plans, wrong words and help texts."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from pathlib import Path

from answers.sides import Question
from answers.stand_ins import RELEASES, StandIns

COMMAND = ("--", "python", "train.py", "--epochs", "1")
AMD = ("rocprofv3", "rocprof", "rocprof-sys", "rocprof-compute", "amd-log")
OTHERS = ("torch", "onnxruntime")
# option sets of each AMD layer, beside none
MORE = {
    "rocprofv3": (
        "--hip-trace",
        "--sys-trace",
        "--stats --hsa-trace",
        "--pmc SQ_WAVES,GRBM_COUNT --passes 3",
        "--pmc activity --yes",
        "--marker-trace --rccl-trace --capture after=1s,for=2s",
        "--tool-arg rocprofv3:--truncate-kernels --capture steps=10:30",
        "--pmc SQ_WAVES --yes --kernel-include-regex gemm --kernel-iteration-range [10-20]",
    ),
    "rocprof": ("--hip-trace", "--sys-trace", "--pmc SQ_WAVES,GRBM_COUNT --passes 3", "--stats"),
    "rocprof-sys": ("--hip-trace", "--rocprof-sys-mode run", "--rocprof-sys-mode python"),
    "rocprof-compute": ("--tool-arg rocprof-compute:--no-roof",),
    "amd-log": ("--capture all",),
}
SCANS = (
    "particlenet",
    "saturation",
    "train-cifar100",
    "finetune-gpt-neo",
    "particlenet-onnx",
    "particlenet-torchscript",
    "deepmet",
    "particlenet-onnx-client",
    "particlenet-torchscript-client",
    "deepmet-client",
    "particlenet-perf-analyzer",
    "multi-process",
)
OPTIONS = (
    "--batch-sizes 1,4 --trials 3",
    "--batch-sizes 4..64",
    "--backend torch",
    "--backend onnxruntime",
    "--backend torch,onnxruntime",
    "--profile torch",
    "--profile onnxruntime",
    "--profile torch,onnxruntime",
    "--compile",
    "--torchscript",
    "--isolate",
    "--order desc",
    "--order random --seed 7",
    "--warmup 5",
    "--min-seconds 0.5 --profile-trials 3",
    "--threads 2",
    "--inputs hep",
    "--ragged padded",
    "--flops-per-item 1e6",
    "--device cpu",
    "--telemetry off",
    "--telemetry cpu --telemetry-hz 50",
    "--idle-seconds 3",
    "--via triton",
    "--via triton --concurrency 1,2,4 --time 1",
    "--via triton --rate 10,20 --arrivals constant",
    "--via triton --protocol http --clients 2",
    "--via triton --shared-memory system --instances 2",
    "--via triton --profile torch",
    "--via triton --concurrency 1..8 --think-ms 2 --clients-per-job 4 --queue-delay-us 100",
    "--via perf-analyzer --concurrency 1,2",
    "--url 127.0.0.1:8001 --model m --concurrency 1",
    "--url http://127.0.0.1:8000 --model m --rate 5 --timeout 3",
    "--streams 1,2 --batch-sizes 4",
    "--streams 1 --pin numa --memory bind",
    "--streams 1 --pin none --time 1",
    "--name called",
    "--server-command 'python serve.py' --ready http://127.0.0.1:9/health --model m",
    "--via triton --latency-limit p99=20ms --max-batch-size 8",
    "--python /usr/bin/python3",
    "--profile rocprofv3 --hip-trace",
    "--strict --quiet",
)
COMMANDS = (
    "--profile torch",
    "--profile torch,onnxruntime",
    "--profile torch --bare",
    "--ranks 2 --profile torch",
    "--profile torch --hook exec",
    "--profile torch --capture all",
    "--profile torch --capture steps=10:30",
    "--profile torch --capture after=1s,for=2s",
    "--profile torch --telemetry off --name x",
    "",
    "--profile torch,rocprofv3 --passes 3",
    "--profile torch,rocprof,amd-log --yes",
    "--profile torch --step-range 'iteration (\\d+)'",
    "--profile rocprofv3,rocprof-sys --bare --yes",
)
WRONG = (
    """
rnu|run resnet|run --profile rocprof9|wrap rocprof9 -- true|run --backend tensorrt
run --batch-sizes 0|run --batch-sizes 64..4|run --trials many|run --model missing.onnx
run --shape pf_points|run missing.toml|run --backend torch --profile onnxruntime
run particlenet -- python x.py|run particlenet -- --foo|run --capture bogus -- true
run --capture steps=30:10 -- true|run --capture steps=1:3|run --strict -- true
run --batch-sizes 1 -- true|run --bare|run --profile torch python train.py|run train.py
run --order up|run --launcher-arg=-N2 -- true|saturation x.csv --jobs many
serve particlenet --grpc-port 99999|calibrate --device gpu|calibrate --device cuda:1 --threads 2
run --warmup some|hotspots x.json --by foo|run --output /proc/profharness -- echo ran
telemetry --seconds 1 -o /proc/profharness|validate .|doctor --python /bin/ls
run --hook exec -- bash x.sh|run -- no-such-program-here|run --device gpu|hotspots missing.json
metrics .|report missing|merge missing.json -o x.pftrace|view missing.pftrace
validate missing.pftrace|saturation missing.csv|compare a b||run --|run --profile|merge
metrics --nope x|run particlenet --pin numa|run --resume|run --resume -o nowhere
run --topology missing.json|ls missing|run --via triton --concurrency 0|run --via triton --rate x
run --rate 5|run --telemetry warp|run --ranks 0 -- true|run --profile rocprofv3 -- true
run --profile rocprof -- true|run --profile rocprof-sys -- true
run --profile rocprof-compute -- true|run --pmc SQ_WAVES -- true
run --profile torch --pmc A -- true|run --profile rocprofv3 --pmc A -- true
run --tool-arg torch:x -- true|run --url nowhere --model m|run --latency-limit fast
merge x.json --window 3:1 -o y|merge x.json --steps a:b -o y|plot x.csv|plot missing.csv -o x.svg
plot missing.csv -o x.doc|compare a b --fail-on nonsense|scrub missing.json|topology --nope
run --container missing.sif -- true|run --launcher pbs -- true|run saturation --isolate
run train-cifar100 --batch-sizes 4|metrics missing.json --steps 3:1|run --inputs missing.npz
--nope
""".strip()
    .replace("\n", "|")
    .split("|")
)
PROGRAMS = (
    "",
    "run",
    "report",
    "merge",
    "hotspots",
    "metrics",
    "saturation",
    "compare",
    "plot",
    "view",
    "validate",
    "scrub",
    "wrap",
    "telemetry",
    "calibrate",
    "serve",
    "topology",
    "doctor",
    "ls",
)


def split(line: str) -> tuple[str, ...]:
    """The words of a line; quotes keep blanks, and backslashes stand for themselves."""
    return tuple(word.strip("'") for word in re.findall(r"'[^']*'|\S+", line))


def plans(stand_ins: StandIns) -> Iterator[Question]:
    """Dry runs of scans and commands, with the tools of every release that the stand-ins play."""
    for name in SCANS:
        more = ("--model", "m.graphdef") if name.startswith("deepmet") else ()
        yield _plan(f"scan {name}", (name, *more))
        yield _plan(f"scan {name} under torch", (name, *more, "--profile", "torch"))
    for line in OPTIONS:
        yield _plan(f"particlenet {line}", ("particlenet", *split(line)))
    for line in COMMANDS:
        yield _plan(f"command {line}", (*split(line), *COMMAND))
    for release, layer in itertools.product(RELEASES, AMD):
        variables = stand_ins.node(release)
        for line in ("", *MORE[layer]):
            words = ("--profile", layer, *split(line))
            yield _plan(f"ROCm {release} {layer} {line}", (*words, *COMMAND), variables)
        yield _plan(
            f"ROCm {release} {layer} of a scan", ("particlenet", "--profile", layer), variables
        )
    both = stand_ins.programs("srun", "apptainer")
    inside = (
        "--container",
        stand_ins.image,
        "--container-init",
        "source x",
        "--container-arg=--rocm",
    )
    for layer in ("torch", "rocprofv3", "amd-log"):
        line = ("--profile", layer, "--launcher", "slurm", "--ranks", "2")
        yield _plan(f"slurm {layer}", (*line, *COMMAND), both)
        yield _plan(f"container {layer}", ("--profile", layer, *inside, *COMMAND), both)
        yield _plan(f"container slurm {layer}", (*line, *inside, *COMMAND), both)
    yield _plan("container scan", ("particlenet", *inside), both)


def _plan(
    name: str, words: tuple[str, ...], variables: tuple[tuple[str, str], ...] = ()
) -> Question:
    line = ("run", "--dry-run", *words)
    return Question("plan", name.strip(), (line,), variables=variables)


def wraps(stand_ins: StandIns) -> Iterator[Question]:
    """What `wrap` would start."""
    for layer in OTHERS:
        for more in ((), ("--hook", "exec"), ("--capture", "steps=2:4")):
            words = ("wrap", layer, *more, "--dry-run", *COMMAND)
            yield Question("wrap plan", " ".join((layer, *more)), (words,))
    for release, layer in itertools.product(RELEASES, AMD):
        for line in ("", MORE[layer][0]):
            words = ("wrap", layer, *split(line), "--dry-run", *COMMAND)
            name = f"ROCm {release} {layer} {line}".strip()
            yield Question("wrap plan", name, (words,), variables=stand_ins.node(release))


def wrong() -> Iterator[Question]:
    """Lines that end with a message and a hint."""
    for line in dict.fromkeys(WRONG):
        yield Question("wrong line", line or "(no words)", (split(line),))


def helps() -> Iterator[Question]:
    """The help of every command. It may be allowed to change."""
    for name in PROGRAMS:
        yield Question("help", name or "(program)", ((*filter(None, (name,)), "--help"),))


def doctors(stand_ins: StandIns) -> Iterator[Question]:
    """What `doctor` says of nodes with each release's tools."""
    for release in RELEASES:
        yield Question(
            "doctor", f"ROCm {release}", (("doctor",),), variables=stand_ins.node(release)
        )
    yield Question("doctor", "no tools", (("doctor", "--json"),))


def scan_files(folder: Path) -> Iterator[Question]:
    """Plans of a scan file, right and wrong."""
    texts = {
        "right": 'batch_sizes = [1, 2]\ntrials = 3\nprofile = ["torch"]\n',
        "unknown": "batches = 3\n",
        "wrong": 'trials = "many"\n',
        "broken": "trials = \n",
    }
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        path = folder / f"{name}.toml"
        if not path.is_file() or path.read_text() != text:
            path.write_text(text)
        yield Question(
            "scan file", name, (("run", "scan.toml", "--dry-run"),), (("scan.toml", path),)
        )
