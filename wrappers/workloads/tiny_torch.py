"""A moment of torch on the device at hand: what `doctor --try` runs under the torch layer."""

import torch

device = "cuda" if torch.cuda.is_available() else "cpu"
model = torch.nn.Linear(64, 64).to(device)
batch = torch.ones(16, 64, device=device)
with torch.no_grad():
    for _ in range(5):
        model(batch)
if device == "cuda":
    torch.cuda.synchronize()
