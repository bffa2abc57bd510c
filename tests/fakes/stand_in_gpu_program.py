"""A small program that uses the stand-in HIP runtime: `stand_in_gpu_program.py [--kernels N] [--exit N] [--crash] [--child] [--stripped-child]`."""

from __future__ import annotations

import argparse
import importlib
import os
import signal
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

parser = argparse.ArgumentParser()
parser.add_argument("--kernels", type=int, default=5)
parser.add_argument("--exit", type=int, default=0)
parser.add_argument("--crash", action="store_true")
parser.add_argument("--child", action="store_true", help="a child process does the work, under the same tracer")
parser.add_argument("--stripped-child", action="store_true", help="the child loses the tracer's environment")
parser.add_argument("--framework", action="store_true", help="import the module `tensorflow` of the path")
parser.add_argument("--miopen", action="store_true", help="log as MIOpen does")
options, rest = parser.parse_known_args()
print("program:", *rest)

if options.framework:
    importlib.import_module("tensorflow")
hip = importlib.import_module("tests.fakes.stand_in_hip")

if options.child or options.stripped_child:
    environment = {name: value for name, value in os.environ.items() if options.child or name != "STAND_IN_TRACER"}
    words = [sys.executable, __file__, "--kernels", str(options.kernels), *(["--framework"] if options.stripped_child else [])]
    sys.exit(subprocess.run(words, env=environment, check=False).returncode)
if options.miopen and os.environ.get("MIOPEN_ENABLE_LOGGING_CMD"):
    sys.stderr.write("MIOpen(HIP): Command [LogCmdConvolution] ./bin/MIOpenDriver conv -n 1\nnot of MIOpen\n")
for number in range(options.kernels):
    hip.launch(f"kernel_{number % 2}", workgroups=4 + number)
if options.kernels:
    hip.copy(1 << 20)
if options.crash:
    sys.stdout.flush()
    os.kill(os.getpid(), signal.SIGSEGV)
sys.exit(options.exit)
