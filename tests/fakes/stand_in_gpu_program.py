"""A small program that uses the stand-in HIP runtime; `--help` says what it can be told to do."""

from __future__ import annotations

import argparse
import importlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

parser = argparse.ArgumentParser()
parser.add_argument("--kernels", type=int, default=5)
parser.add_argument("--exit", type=int, default=0)
parser.add_argument("--crash", action="store_true")
parser.add_argument(
    "--abort", action="store_true", help="as by assert() in C: a signal that the tracer handles"
)
parser.add_argument(
    "--raise", dest="raises", action="store_true", help="end by an uncaught exception"
)
parser.add_argument(
    "--system-exit", type=int, help="raise SystemExit with this status, without sys.exit"
)
parser.add_argument(
    "--steps", type=int, default=0, help="this many marked steps, each with --kernels kernels"
)
parser.add_argument("--step-seconds", type=float, default=0.0)
parser.add_argument("--range", default="", help="a range of this name around nothing")
parser.add_argument(
    "--child", action="store_true", help="a child process does the work, under the same tracer"
)
parser.add_argument(
    "--stripped-child", action="store_true", help="the child loses the tracer's environment"
)
parser.add_argument(
    "--framework", action="store_true", help="import the module `tensorflow` of the path"
)
parser.add_argument("--miopen", action="store_true", help="log as MIOpen does")
options, rest = parser.parse_known_args()
print("program:", *rest)

if options.framework:
    importlib.import_module("tensorflow")
hip = importlib.import_module("tests.fakes.stand_in_hip")

if options.child or options.stripped_child:
    environment = {
        name: value
        for name, value in os.environ.items()
        if options.child or name != "STAND_IN_TRACER"
    }
    words = [
        sys.executable,
        __file__,
        "--kernels",
        str(options.kernels),
        *(["--framework"] if options.stripped_child else []),
    ]
    sys.exit(subprocess.run(words, env=environment, check=False).returncode)
if options.miopen and os.environ.get("MIOPEN_ENABLE_LOGGING_CMD"):
    sys.stderr.write(
        "MIOpen(HIP): Command [LogCmdConvolution] ./bin/MIOpenDriver conv -n 1\nnot of MIOpen\n"
    )
if options.kernels:
    hip.allocate(1 << 21)
for number in range(0 if options.steps else options.kernels):
    hip.launch(f"kernel_{number % 2}", workgroups=4 + number)
if options.range:
    with importlib.import_module("profharness_mark").range(options.range):
        pass
for step in range(options.steps):
    for _ in range(options.kernels):
        hip.launch(f"step_{step}")
    time.sleep(options.step_seconds)
    importlib.import_module("profharness_mark").step(items=8)
if options.kernels and not options.steps:
    hip.copy(1 << 20)
if options.crash:
    sys.stdout.flush()
    os.kill(os.getpid(), signal.SIGSEGV)
if options.abort:
    sys.stdout.flush()
    os.kill(os.getpid(), signal.SIGABRT)
if options.raises:
    raise RuntimeError("the program's own")
if options.system_exit is not None:
    raise SystemExit(options.system_exit)
sys.exit(options.exit)
