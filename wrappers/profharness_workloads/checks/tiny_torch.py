"""A moment of torch on the device at hand: what `doctor --try` runs under the torch layer."""

import os
import sys

if __name__ == "__main__":  # siblings are found as profharness_workloads says
    _here = os.path.dirname(os.path.realpath(__file__))
    sys.path[:] = [entry for entry in sys.path if os.path.realpath(entry) != _here]
    sys.path.insert(0, os.path.dirname(os.path.dirname(_here)))

import torch

device = "cuda" if torch.cuda.is_available() else "cpu"
model = torch.nn.Linear(64, 64).to(device)
batch = torch.ones(16, 64, device=device)
with torch.no_grad():
    for _ in range(5):
        model(batch)
if device == "cuda":
    torch.cuda.synchronize()
