"""Trains a small vision transformer that is written in plain layers of torch: a workload to try
`profharness replay` on.

    profharness run --profile torch -- python benchmarks/vit_in_plain_layers.py [--steps 40]

It needs torch alone, makes its own images, and runs on a GPU where there is one.
"""

from __future__ import annotations

import argparse
import time

import torch
from torch import nn


class Block(nn.Module):
    """Attention and two linear layers, each after a norm and around a shortcut."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.before_attention = nn.LayerNorm(width)
        self.attention = nn.MultiheadAttention(width, heads, batch_first=True)
        self.before_mlp = nn.LayerNorm(width)
        self.mlp = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        )

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Tokens [batch, tokens, width] to the same."""
        inner = self.before_attention(tokens)
        attended, _ = self.attention(inner, inner, inner, need_weights=False)
        tokens = tokens + attended
        mixed: torch.Tensor = tokens + self.mlp(self.before_mlp(tokens))
        return mixed


class VisionTransformer(nn.Module):
    """Patches of an image [batch, 3, side, side] as tokens, blocks, the mean token, a class."""

    def __init__(self, side: int = 64, patch: int = 8, width: int = 192, blocks: int = 4) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, width, patch, stride=patch)
        self.position = nn.Parameter(torch.zeros(1, (side // patch) ** 2, width))
        self.blocks = nn.Sequential(*(Block(width, 3) for _ in range(blocks)))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, 100)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Images to the logits of 100 classes."""
        tokens = self.patches(images).flatten(2).transpose(1, 2) + self.position
        logits: torch.Tensor = self.head(self.norm(self.blocks(tokens)).mean(1))
        return logits


def main() -> None:
    """Train on random images, and print the time of a step."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--batch", type=int, default=16)
    asked = parser.parse_args()
    torch.manual_seed(0)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = VisionTransformer().to(device)
    optimizer = torch.optim.AdamW(model.parameters())
    images = torch.randn(asked.batch, 3, 64, 64, device=device)
    classes = torch.randint(100, (asked.batch,), device=device)
    start = time.perf_counter()
    for _ in range(asked.steps):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(images), classes)
        loss.backward()
        optimizer.step()
    print(f"{(time.perf_counter() - start) / asked.steps:.4f} s per step, loss {loss.item():.3f}")


if __name__ == "__main__":
    main()
