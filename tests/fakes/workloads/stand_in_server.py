"""A stand-in for a model server: ready at once, opens and closes windows, ends when told. It serves
nothing.

What it does is in the variable STAND_IN, a JSON object: `refuse` (an exit status), `server_dies_at`
(a level's key).
"""

import json
import os
import pathlib
import sys
import time

control = pathlib.Path(os.environ["PROFHARNESS_CONTROL_DIR"])
spec = json.loads(pathlib.Path(os.environ["PROFHARNESS_SPEC"]).read_text())
does = json.loads(os.environ.get("STAND_IN", "{}"))
parent = os.getppid()
print("server of", spec["model"], flush=True)
if "refuse" in does:
    with (control / "results-0-0.jsonl").open("a") as file:
        file.write(
            json.dumps(
                {
                    "v": 1,
                    "kind": "error",
                    "error": "no such device here",
                    "hint": "use --device cpu",
                    "exit_status": does["refuse"],
                }
            )
            + "\n"
        )
    sys.exit(does["refuse"])
ready = {
    "v": 1,
    "pid": os.getpid(),
    "host": "h",
    "grpc": "127.0.0.1:1",
    "http": "127.0.0.1:2",
    "metrics": "",
    "token": "",
    "tls": False,
    "ca": "",
    "models": [
        {
            "name": one["name"],
            "version": "1",
            "max_batch_size": spec["max_batch_size"],
            "instances": spec["instances"],
            "inputs": [],
            "outputs": [],
            "device": one["device"],
        }
        for one in spec.get("models") or [spec]
    ],
    "device": "cpu",
    "versions": {},
}
partial = control / ".ready.partial"
partial.write_text(json.dumps(ready))
partial.replace(control / "server-ready.json")
answered = 0
while os.getppid() == parent:
    levels = control / "levels.jsonl"
    lines = levels.read_text().splitlines() if levels.exists() else []
    for line in lines[answered:]:
        said = json.loads(line)
        if said["kind"] == "stop":
            print("stopped", flush=True)
            sys.exit(0)
        if (
            said.get("id") == does.get("server_dies_at")
            and said["kind"] == "open"
            and not (control / "died").exists()
        ):
            (control / "died").touch()
            print("Segmentation fault in the model", flush=True)
            os.kill(os.getpid(), 11)
        with (control / "windows.jsonl").open("a") as file:
            file.write(
                json.dumps(
                    {
                        "v": 1,
                        "kind": {"open": "opened", "close": "closed"}[said["kind"]],
                        "id": said["id"],
                        "monotonic_ns": time.monotonic_ns(),
                    }
                )
                + "\n"
            )
    answered = len(lines)
    time.sleep(0.005)
