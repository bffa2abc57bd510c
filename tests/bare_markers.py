"""What a clock marker takes on this machine while nothing records: how much wider than its goal a
slow machine may make its bound.

The goals are a microsecond for torch and two for onnxruntime. Either text defines `bare_ns()` for a
program of the tests, with the hooks' folder on its path. `NOTE` keeps one more width in the
program's folder, and `noted` gives the widest of all: a core that a neighbour shares is slower by
half from one second to the next, and the markers may have met it while one measurement did not.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

HOOKS = Path(__file__).resolve().parents[1] / "wrappers" / "hooks"
TORCH = """
import time
from torch._C._profiler import _RecordFunctionFast
def bare_marker():
    region = _RecordFunctionFast("bare")
    before = time.perf_counter_ns()
    region.__enter__()
    region.__exit__(None, None, None)
    return time.perf_counter_ns() - before
def bare_ns(): return min(bare_marker() for _ in range(200))
"""
ONNXRUNTIME = """
import time, numpy, onnxruntime
from profharness_hooks.onnxruntime_hook import _shortest_call, identity_model
options = onnxruntime.SessionOptions()
options.intra_op_num_threads = options.inter_op_num_threads = 1
bare_run = _shortest_call(onnxruntime.InferenceSession(identity_model(), options, providers=["CPUExecutionProvider"]), numpy.zeros(1, numpy.float32))
def bare_marker():
    before = time.perf_counter_ns()
    bare_run()
    return time.perf_counter_ns() - before
def bare_ns(): return min(bare_marker() for _ in range(200))
"""


NOTE = 'open("bare", "a").write("%d\\n" % bare_ns())\n'


def noted(folder: Path) -> int:
    """The widest of what a program noted: its narrowest markers at its slowest moment."""
    return max(map(int, (folder / "bare").read_text().split()))


def widest_torch(bare_ns: int) -> float:
    """A microsecond, or on a machine that is too slow for it a small multiple of what the call
    itself takes there.
    """
    return max(1000, 6 * bare_ns)


def widest_onnxruntime(bare_ns: int) -> float:
    """Two microseconds, or on a machine that is too slow for it little more than what a run takes
    there without a profiler.
    """
    return max(2000, 1.25 * bare_ns)


def measured(text: str) -> int:
    """`bare_ns()` of a process of its own, at its slowest of several moments within a second."""
    moments = "max(time.sleep(0.05) or bare_ns() for _ in range(10))"
    program = f"import sys\nsys.path.insert(0, {str(HOOKS)!r})\n{text}\nprint({moments})"
    done = subprocess.run(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, check=True
    )
    return int(done.stdout)
