"""A stand-in for a scan worker: speaks the protocol, needs no framework, and fails on request.

A point's `do` is: ok, fail (a result that is not ok), die (SIGKILL in the middle), exit3 (refuses
at the start).
"""

import json
import os
import pathlib
import signal
import sys
import time

control = pathlib.Path(os.environ["PROFHARNESS_CONTROL_DIR"])
spec = json.loads(pathlib.Path(os.environ["PROFHARNESS_SPEC"]).read_text())
points = [json.loads(line) for line in (control / "points.jsonl").read_text().splitlines()]
points = [p for p in points if p["kind"] == "point" and p["params"]["backend"] == spec["backend"]]
only, first = os.environ.get("PROFHARNESS_ONLY_POINT"), os.environ.get("PROFHARNESS_FIRST_POINT")
if only:
    points = [p for p in points if p["id"] == only]
elif first:
    points = points[[p["id"] for p in points].index(first) :]
for n in range(1000):
    try:
        handle = os.open(control / f"results-0-{n}.jsonl", os.O_CREAT | os.O_EXCL | os.O_WRONLY)
        break
    except FileExistsError:
        continue


def write(**line):
    os.write(handle, (json.dumps({"v": 1, **line}) + "\n").encode())


if spec.get("refuse"):
    code = spec["refuse"]
    write(
        kind="error",
        error="no ROCm device is visible to torch",
        hint="use --device cpu",
        exit_status=code,
    )
    sys.exit(spec.get("tool_status", code))
if spec.get("broken"):
    print("ImportError: libfoo.so: cannot open shared object file", file=sys.stderr)
    sys.exit(1)
write(kind="hello", pid=os.getpid(), host="h", argv=sys.argv, versions={}, devices=[])
for point in points:
    write(kind="begin", id=point["id"], monotonic_ns=time.monotonic_ns())
    do = point["params"].get("do", "ok")
    if do == "die":
        folder = (
            pathlib.Path(os.environ["PROFHARNESS_RUN_DIR"])
            / "points"
            / os.environ["PROFHARNESS_PASS"]
            / point["id"]
        )
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "stderr.log").write_text("HSA_STATUS_ERROR_OUT_OF_RESOURCES\n")
        os.kill(os.getpid(), signal.SIGKILL)
    ok = do == "ok"
    write(
        kind="result",
        id=point["id"],
        ok=ok,
        error="" if ok else "RuntimeError: out of memory",
        trials_ns=[100, 110] if ok else [],
        starts_ns=[1000, 1200] if ok else [],
        items=4,
        warmup_ns=[500],
        warmup_starts_ns=[300],
        end_monotonic_ns=time.monotonic_ns(),
    )
write(kind="bye")
