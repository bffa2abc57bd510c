"""Run a command and note how it ended: `python status.py FOLDER -- COMMAND ...`.

Stands between a profiler and the workload where the profiler's own exit status may say something
else. One file per execution: FOLDER/status-<pid of this process>.json with {"v", "pid",
"start_monotonic_ns"}, and once the command has ended "status" (128 + n for signal n), "by_signal"
and "end_monotonic_ns". The command may come in PROFHARNESS_RECORDED_ARGV, as JSON, where a shell in
between would evaluate its words.
"""

from __future__ import annotations

import json
import os
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))  # not there under python -I
import child

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, List, Mapping, NoReturn


VARIABLE = "PROFHARNESS_RECORDED_ARGV"


def note(path: str, facts: Mapping[str, object]) -> None:
    """Replace the file as a whole; a disk that is full must not keep the workload from running."""
    partial = path + ".part"
    try:
        with open(partial, "w", encoding="ascii") as file:
            json.dump(facts, file)
        os.replace(partial, path)
    except OSError as error:
        sys.stderr.write(
            "profharness: cannot note the exit status in %s: %s\n" % (path, error.strerror)
        )


def main(arguments: List[str]) -> NoReturn:
    """Run the command after FOLDER and `--`, note its start and its end, and end as it did."""
    argv = json.loads(os.environ.pop(VARIABLE)) if VARIABLE in os.environ else arguments[2:]
    if len(arguments) < 1 or not argv or (len(arguments) > 1 and arguments[1] != "--"):
        sys.exit("usage: status.py FOLDER -- COMMAND [ARGUMENTS ...]")
    folder = arguments[0]
    try:
        os.makedirs(folder, exist_ok=True)
    except OSError:
        pass  # note() says so
    path = os.path.join(folder, "status-%d.json" % os.getpid())
    facts: Dict[str, Any] = {"v": 1, "start_monotonic_ns": time.monotonic_ns()}
    process = child.start(argv)
    facts["pid"] = process.pid
    note(path, facts)
    returncode = process.wait()
    note(
        path,
        dict(
            facts,
            status=child.shell_status(returncode),
            by_signal=returncode < 0,
            end_monotonic_ns=time.monotonic_ns(),
        ),
    )
    child.end_as(returncode)


if __name__ == "__main__":
    main(sys.argv[1:])
