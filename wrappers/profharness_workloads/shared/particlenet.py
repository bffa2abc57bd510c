"""Our own ParticleNet with the structure and cost of the AK4 jet tagger that CMS serves; weights
are seeded, untrained.

Structure: two input branches (BatchNorm, 1x1 convolution to 32 channels), joined along the particle
axis; three EdgeConv blocks with 8 neighbours and channels 3x64, 3x96, 3x128, each with a 1x1
shortcut; their outputs joined (288 channels) and convolved to 256; masked mean; 256 -> 128 -> 8;
softmax. 201.468304 MFLOP of matrix work per jet with 100 particles and 10 secondary vertices (2
FLOP per multiply-add). Architecture: H. Qu and L. Gouskos, "Jet tagging via particle clouds", Phys.
Rev. D 101, 056019 (2020).

`python particlenet.py onnx|torchscript PATH SEED` writes it to a file, so that a worker of another
framework need not load torch itself.
"""

from __future__ import annotations

import os
import sys

if __name__ == "__main__":  # siblings are found as profharness_workloads says
    _here = os.path.dirname(os.path.realpath(__file__))
    sys.path[:] = [entry for entry in sys.path if os.path.realpath(entry) != _here]
    sys.path.insert(0, os.path.dirname(os.path.dirname(_here)))

import warnings
from typing import List, Tuple

import numpy as np
import torch
from torch import Tensor, nn

from profharness_workloads.shared.inputs import TensorSpec, hep

VERSION = 1  # part of the cache key: raise it when the numbers or the graph change
NEIGHBOURS = 8
BRANCH = 32
BLOCKS = ((64, 64, 64), (96, 96, 96), (128, 128, 128))
JOINED, HIDDEN, CLASSES = 256, 128, 8
FAR = 1e9  # masked particles are moved here, so that they are nobody's neighbours
# spreads the untrained probabilities, so that a wrong output does not look like a right one
LOGIT_SCALE = 8.0

INPUTS = (
    TensorSpec("pf_points", "float32", (2, 100)),
    TensorSpec("pf_features", "float32", (20, 100)),
    TensorSpec("pf_mask", "float32", (1, 100)),
    TensorSpec("sv_points", "float32", (2, 10)),
    TensorSpec("sv_features", "float32", (11, 10)),
    TensorSpec("sv_mask", "float32", (1, 10)),
)
OUTPUT = "softmax"


def nearest(points: Tensor, count: int) -> Tensor:
    """Indices [N, P, count] of the nearest other points of [N, C, P], by |a|^2 + |b|^2 - 2ab as one
    batched product.
    """
    product = torch.matmul(points.transpose(2, 1), points)
    square = (points * points).sum(dim=1, keepdim=True)
    closeness = 2.0 * product - square - square.transpose(2, 1)
    return closeness.topk(count + 1, dim=-1)[1][:, :, 1:]


class EdgeConv(nn.Module):
    """Mean over the nearest points of a small network of (own features, difference to the
    neighbour), plus shortcut.
    """

    __constants__ = ("count",)  # TorchScript sees constants of a module, not of a file

    def __init__(self, channels_in: int, channels: Tuple[int, ...]):
        super().__init__()
        self.count = NEIGHBOURS
        layers: List[nn.Module] = []
        before = 2 * channels_in
        for width in channels:
            layers += [nn.Conv2d(before, width, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU()]
            before = width
        self.network = nn.Sequential(*layers)
        self.shortcut = nn.Sequential(
            nn.Conv1d(channels_in, before, 1, bias=False), nn.BatchNorm1d(before)
        )

    def forward(self, points: Tensor, features: Tensor) -> Tensor:
        """Features [N, C, P] to [N, channels, P]; neighbours are found in `points` [N, D, P]."""
        jets, channels, particles = features.size(0), features.size(1), features.size(2)
        offset = torch.arange(jets, device=points.device).reshape(-1, 1, 1) * particles
        index = (nearest(points, self.count) + offset).reshape(-1)
        columns = features.transpose(0, 1).reshape(channels, -1).index_select(1, index)
        neighbours = columns.reshape(channels, -1, particles, self.count).transpose(0, 1)
        own = features.unsqueeze(3).expand(-1, -1, -1, self.count)
        edges = self.network(torch.cat((own, neighbours - own), dim=1))
        return torch.relu(self.shortcut(features) + edges.mean(dim=3))


class Branch(nn.Module):
    """Features of one kind of constituent, brought to the common number of channels."""

    def __init__(self, features: int):
        super().__init__()
        self.norm = nn.BatchNorm1d(features)
        self.convolution = nn.Conv1d(features, BRANCH, 1, bias=False)
        self.after = nn.BatchNorm1d(BRANCH)

    def forward(self, features: Tensor, mask: Tensor) -> Tensor:
        return torch.relu(self.after(self.convolution(self.norm(features * mask)))) * mask


class ParticleNet(nn.Module):
    """Probabilities [N, 8] of a batch of jets. Points [N,2,P] in eta and phi, masks [N,1,P] of 0
    and 1.
    """

    __constants__ = ("far",)

    def __init__(self) -> None:
        super().__init__()
        self.far = FAR
        self.pf, self.sv = Branch(20), Branch(11)
        before, total = BRANCH, 0
        blocks = []
        for channels in BLOCKS:
            blocks.append(EdgeConv(before, channels))
            before = channels[-1]
            total += before
        self.block1, self.block2, self.block3 = blocks
        self.joined = nn.Sequential(
            nn.Conv1d(total, JOINED, 1, bias=False), nn.BatchNorm1d(JOINED), nn.ReLU()
        )
        self.head = nn.Sequential(nn.Linear(JOINED, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, CLASSES))

    def forward(
        self,
        pf_points: Tensor,
        pf_features: Tensor,
        pf_mask: Tensor,
        sv_points: Tensor,
        sv_features: Tensor,
        sv_mask: Tensor,
    ) -> Tensor:
        """Probabilities [batch, CLASSES]. Points and features are [batch, channels, n], masks
        [batch, 1, n] with 1 for a particle that is there; n is the number of particles (pf) or of
        secondary vertices (sv).
        """
        mask = torch.cat((pf_mask, sv_mask), dim=2)
        points = torch.cat((pf_points, sv_points), dim=2) * mask
        features = torch.cat((self.pf(pf_features, pf_mask), self.sv(sv_features, sv_mask)), dim=2)
        away = (mask == 0).to(points.dtype) * self.far
        first = self.block1(points + away, features) * mask
        second = self.block2(first + away, first) * mask
        third = self.block3(second + away, second) * mask
        joined = self.joined(torch.cat((first, second, third), dim=1)) * mask
        mean = joined.sum(dim=2) / mask.sum(dim=2).clamp(min=1.0)
        return torch.softmax(self.head(mean), dim=1)


def build(seed: int = 0) -> ParticleNet:
    """The model on the CPU, ready for inference. The BatchNorm statistics are those of 64 seeded
    hep jets.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = ParticleNet()
    with torch.no_grad():
        model.head[2].weight.mul_(LOGIT_SCALE)
        for layer in model.modules():
            if isinstance(layer, (nn.BatchNorm1d, nn.BatchNorm2d)):
                layer.momentum = 1.0  # the statistics of the one batch below, not a running mean
        model.train()(*example(64, seed))
    model.eval()
    return model


def example(batch: int, seed: int = 0) -> Tuple[Tensor, ...]:
    """Seeded hep inputs as CPU tensors."""
    return tuple(
        torch.from_numpy(array) for array in hep(INPUTS, batch, np.random.default_rng(seed))
    )


def export_onnx(model: nn.Module, path: str) -> None:
    """Batch and numbers of particles stay dynamic. Uses the TorchScript-based exporter, which needs
    only onnx.
    """
    names = [spec.name for spec in INPUTS]
    axes = {name: {0: "N", 2: "n_pf" if name.startswith("pf") else "n_sv"} for name in names}
    options = {"dynamo": False} if _version() >= (2, 5) else {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            model,
            example(2),
            path,
            input_names=names,
            output_names=[OUTPUT],
            dynamic_axes={**axes, OUTPUT: {0: "N"}},
            opset_version=13,
            **options,
        )


def export_torchscript(model: nn.Module, path: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.jit.script(model).save(path)


def _version() -> Tuple[int, int]:
    major, minor = torch.__version__.split("+")[0].split(".")[:2]
    return int(major), int(minor)


EXPORTS = {"onnx": export_onnx, "torchscript": export_torchscript}


if __name__ == "__main__":
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS") or 1))
    EXPORTS[sys.argv[1]](build(int(sys.argv[3])), sys.argv[2])
