"""A stand-in for somebody's own model server: plain HTTP, torch inside, no KServe, a thread per
connection. `PORT` is its only argument.
"""

import importlib
import sys
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
answers = importlib.import_module("tests.fakes.stand_in_http_answers")
weights = torch.ones(64, 64)


def infer() -> str:
    with torch.no_grad():
        return str(float((weights @ weights).sum()))


answers.serve(int(sys.argv[1]), infer)
