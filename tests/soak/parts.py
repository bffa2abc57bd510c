"""The parts of `make soak`: each does its work in an empty folder and returns its row."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

from profharness.rundir.requests import read as read_requests
from profharness.trace.columns.table import NULL
from tests.samples.keep import unpacked
from tests.soak.row import Memory, Row

_OURS = (sys.executable, "-m", "profharness")
_SERVER = Path(__file__).parents[1] / "fakes" / "stand_in_timed_server.py"
_PER_SECOND = 800  # requests that the stand-in for a server answers
_FLAT = 1.25  # of a long run's memory at its end over that after a tenth
_SLOWER = 1.5  # of the last tenth of points over the first


_READ = """
import resource, sys
from pathlib import Path
from profharness.rundir.telemetry import read
(source,) = read(Path(sys.argv[1])).sources
held = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
facts = dict(source.details)
print(facts["rows"], facts["missed"], held)
"""


def telemetry(place: Path, *, seconds: float) -> Row:
    """The sampler at 1 kHz, and the reading of what it wrote. A tick that came too late is counted
    by the sampler; lost is one of which nothing is known.
    """
    began = time.monotonic()
    run = place / "telemetry"
    asked = ["run", "--telemetry", "cpu", "--telemetry-hz", "1000", "--quiet", "-o", str(run)]
    with Memory(("profharness.telemetry", str(run))) as memory:
        _done([*asked, "--", "sleep", f"{seconds:.0f}"])
    (path,) = run.glob("telemetry/*.samples.bin")
    read = subprocess.run(
        [sys.executable, "-c", _READ, path], check=True, capture_output=True, text=True
    )
    rows, missed, held = map(int, read.stdout.split())
    faults = () if memory.late <= _FLAT * memory.early + 4 else ("the sampler's memory grows",)
    return Row(
        f"telemetry, read {held} MiB",
        f"{rows:,} rows, {missed:,} late",
        time.monotonic() - began,
        memory.early,
        memory.late,
        max(round(1000 * seconds) - rows - missed, 0),
        faults,
    )


def points(place: Path, *, count: int) -> Row:
    """A scan of many points of a trivial model: the harness's time per point and its memory
    stay flat."""
    began = time.monotonic()
    run, model = place / "points", place / "tiny.onnx"
    _write_model(model)
    sizes = ",".join(map(str, range(1, count + 1)))
    asked = ["run", "-o", str(run), "--model", str(model), "--backend", "onnxruntime"]
    asked += ["--batch-sizes", sizes, "--trials", "3", "--min-seconds", "0.001", "--quiet"]
    with Memory(("profharness run", str(run)), every_s=0.05) as memory:
        _done(asked)
    every = json.loads((run / "manifest.json").read_bytes())["points"]
    kept = [point for point in every if not point.get("repeat")]
    good = {point["id"] for point in kept if point.get("state", "ok") == "ok"}
    ends = np.array(sorted(point["end_monotonic_ns"] for point in kept))
    begins = np.array(sorted(point["start_monotonic_ns"] for point in kept))
    # from one point's end to the next one's begin: what the harness does, whatever the workload
    each = begins[1:] - ends[:-1]
    tenth = max(len(each) // 10, 2)
    first, last = np.median(each[:tenth]) / 1e6, np.median(each[-tenth:]) / 1e6
    faults = () if last <= _SLOWER * first + 5 else (f"{first:.2f} ms, then {last:.2f} ms",)
    reported = time.monotonic()
    _done(["report", str(run)])
    page = (run / "report.html").stat().st_size / 2**20
    amount = f"{count}, {first:.2f} > {last:.2f} ms each"
    row = Row(
        "points of one scan",
        amount,
        time.monotonic() - began,
        memory.by(ends[tenth] / 1e9),
        memory.by(ends[-1] / 1e9),
        count - len(good),
        faults,
    )
    print(f"  report: {time.monotonic() - reported:.1f} s, {page:.1f} MiB", file=sys.stderr)
    return row


def requests(place: Path, *, count: int) -> Row:
    """A closed loop of 8 on a server whose capacity is known, for as long as `count` requests take:
    each has a row that says how it ended, and those that a level counts are there one by one.
    """
    began = time.monotonic()
    run, seconds = place / "requests", max(count / _PER_SECOND, 1.0)
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    server = f"{sys.executable} {_SERVER} {port} --instances 4 --service-ms {4e3 / _PER_SECOND:g}"
    asked = ["run", "-o", str(run), "--server-command", server, "--model", "sleeper", "--quiet"]
    asked += ["--ready", f"http://127.0.0.1:{port}/v2/health/ready", "--concurrency", "8"]
    asked += ["--time", f"{seconds:g}", "--telemetry", "off"]
    with Memory(("profharness run", str(run))) as memory:
        _done(asked)
    levels = [
        point["level"]
        for point in json.loads((run / "manifest.json").read_bytes())["points"]
        if "level" in point
    ]
    rows = answered = failed = cut = ended = 0
    for path in run.rglob("requests.parquet"):
        sent = read_requests(path, path.parent.name).requests
        rows += len(sent)
        answered += int((sent.ok == 1).sum())
        failed += int((sent.ok == 0).sum())
        cut += int((sent.ok == NULL).sum())
        done = sent.done_ns[sent.ok != NULL]
        ended += sum(
            int(((one["window_start_ns"] <= done) & (done < one["window_end_ns"])).sum())
            for one in levels
        )
    told = sum(one.get("requests", 0) for one in levels)
    return Row(
        f"requests, {failed} failed, {cut} cut",
        f"{rows:,} sent, {told:,} measured",
        time.monotonic() - began,
        memory.early,
        memory.late,
        abs(told - ended) + abs(rows - answered - failed - cut),
    )


def runs(place: Path, *, count: int) -> Row:
    """`ls` of many runs."""
    one = unpacked("0.1-command", place / "one")
    below = place / "runs"
    for number in range(count):
        folder = below / f"run-{number:05}"
        folder.mkdir(parents=True)
        shutil.copyfile(one / "manifest.json", folder / "manifest.json")
    began = time.monotonic()
    said = _done(["ls", str(below)])
    seconds = time.monotonic() - began
    listed = sum(line.startswith("done") for line in said.splitlines())
    slow = ("it took more than a second",) if seconds > 1 + 0.5 else ()  # half for its start
    return Row("runs in ls", f"{count} runs", seconds, 0, 0, count - listed, slow)


def _done(asked: list[str]) -> str:
    return subprocess.run([*_OURS, *asked], check=True, stdout=subprocess.PIPE, text=True).stdout


def _write_model(path: Path) -> None:
    import onnx
    from onnx import TensorProto, helper

    weight = helper.make_tensor("w", TensorProto.FLOAT, [4, 2], [1.0] * 8)
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["y"])],
        "tiny",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 4])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", 2])],
        [weight],
    )
    onnx.save(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), path
    )
