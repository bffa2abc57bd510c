"""A stand-in for somebody's own model server on a GPU: plain HTTP; each request launches one kernel
of the stand-in HIP runtime. `PORT` is its only argument.
"""

import importlib
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
hip = importlib.import_module("tests.fakes.stand_in_hip")
answers = importlib.import_module("tests.fakes.stand_in_http_answers")


def infer() -> str:
    hip.launch("infer")
    return "1"


for _ in range(5):
    hip.launch("warm_up")
answers.serve(int(sys.argv[1]), infer)
