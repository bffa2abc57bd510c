"""Train an image classifier on CIFAR-100 for some steps: an ordinary script with an ordinary loop,
to be profiled.

Runs by itself (`python train_cifar100.py --model vit`) or by name (`profharness run train-cifar100
--profile torch
-- --model vit`). The models come from transformers' configurations, with random weights; the data
  from the CIFAR-100
archive where it lies below --data-path, else synthetic. Arguments as in AMD's
pytorch-profiling-examples.
"""

from __future__ import annotations

import os
import sys

if __name__ == "__main__":  # siblings are found as profharness_workloads says
    _here = os.path.dirname(os.path.realpath(__file__))
    sys.path[:] = [entry for entry in sys.path if os.path.realpath(entry) != _here]
    sys.path.insert(0, os.path.dirname(os.path.dirname(_here)))

import argparse
import contextlib
import itertools
import time
from typing import Any, Iterator, List, Mapping, NamedTuple, Optional, Sequence

from profharness_workloads.training import cifar100, process_group

MODELS = ("resnet", "swinv2", "vit")
PRECISIONS = ("float32", "automixed", "bfloat16")
SYNTHETIC = 2048
SEED = 20260101


def arguments(words: Optional[Sequence[str]] = None) -> argparse.Namespace:
    """The command line. Raises SystemExit(2) for a wrong one, as argparse does."""
    parser = argparse.ArgumentParser(
        prog="train-cifar100", description="Train on CIFAR-100 for some steps."
    )
    parser.add_argument(
        "--data-path", "-dp", default="data", help="folder of %s (default data)" % cifar100.ARCHIVE
    )
    parser.add_argument(
        "--batch-size", "-bs", type=_count, default=64, help="per rank (default 64)"
    )
    parser.add_argument("--download-only", action="store_true", help="fetch the archive, and end")
    parser.add_argument("--precision", choices=PRECISIONS, default="float32")
    parser.add_argument("--max-epochs", type=_count, default=1)
    parser.add_argument(
        "--max-steps", "-ms", type=_count, default=20, help="over all epochs (default 20)"
    )
    parser.add_argument(
        "--torch-profile", action="store_true", help="the script's own torch.profiler, to profile/"
    )
    parser.add_argument("--model", choices=MODELS, default="resnet")
    parser.add_argument(
        "--image-size",
        type=_count,
        default=32,
        help="images are scaled to it on the device (default 32)",
    )
    parser.add_argument(
        "--layers",
        type=_count,
        help="layers per stage, for a smaller model (default: transformers')",
    )
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda or cuda:INDEX")
    parser.add_argument(
        "--workers",
        "--num-workers",
        type=_count_from_0,
        default=0,
        help="processes per rank that load batches ahead (default 0: the training one loads them)",
    )
    return parser.parse_args(words)


def _count(text: str) -> int:
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError("%r is not a whole number from 1 on" % text)
    return int(text)


def _count_from_0(text: str) -> int:
    if not text.isdigit():
        raise argparse.ArgumentTypeError("%r is not a whole number from 0 on" % text)
    return int(text)


def build(name: str, image_size: int, layers: Optional[int]) -> Any:
    """The classifier with random weights, from the default configuration of transformers for this
    architecture.
    """
    import transformers

    labels = cifar100.CLASSES
    if name == "resnet":
        depths = {"depths": [layers] * 4} if layers else {}
        return transformers.ResNetForImageClassification(
            transformers.ResNetConfig(num_labels=labels, **depths)
        )
    if name == "swinv2":
        depths = {"depths": [layers] * 4} if layers else {}
        config = transformers.Swinv2Config(
            image_size=image_size, window_size=_window(image_size), num_labels=labels, **depths
        )
        return transformers.Swinv2ForImageClassification(config)
    few = {"num_hidden_layers": layers} if layers else {}
    patch = 16 if image_size >= 64 else 4
    config = transformers.ViTConfig(
        image_size=image_size, patch_size=patch, num_labels=labels, **few
    )
    return transformers.ViTForImageClassification(config)


def _window(image_size: int) -> int:
    """Swin's windows must divide the grid of 4 x 4 patches: 7 for 224 pixels, 8 for 256, 2
    for 32.
    """
    grid = image_size // 4
    return next((size for size in (7, 8, 4, 2) if grid % (size * 8) == 0), 1)


class Training(NamedTuple):
    """All that a step needs. `scaler` is None where gradients need no scaling."""

    torch: Any
    model: Any
    optimizer: Any
    device: Any
    precision: str
    scaler: Any


def prepare(torch: Any, asked: argparse.Namespace, device: Any, *, several: bool) -> Training:
    """Model, optimizer and precision on the device."""
    torch.manual_seed(SEED)
    model = build(asked.model, asked.image_size, asked.layers).to(device)
    if asked.precision == "bfloat16":
        model = model.to(torch.bfloat16)
    if several:
        model = torch.nn.parallel.DistributedDataParallel(
            model, device_ids=[device.index] if device.type == "cuda" else None
        )
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    scaled = asked.precision == "automixed" and device.type == "cuda"
    return Training(
        torch,
        model,
        optimizer,
        device,
        asked.precision,
        torch.amp.GradScaler("cuda") if scaled else None,
    )


@contextlib.contextmanager
def casting(training: Training) -> Iterator[None]:
    """float16 on a GPU, with scaled gradients; on a CPU autocast offers bfloat16, which needs no
    scaling.
    """
    torch, device = training.torch, training.device
    if training.precision != "automixed":
        yield
        return
    with torch.autocast(
        device.type, dtype=torch.float16 if device.type == "cuda" else torch.bfloat16
    ):
        yield


def batches(
    images: cifar100.Images, rank: process_group.Rank, asked: argparse.Namespace
) -> Iterator[Any]:
    """Index arrays, epoch by epoch: each rank has its own share of a shuffle that all ranks
    know.
    """
    import numpy as np

    for epoch in range(asked.max_epochs):
        order = np.random.default_rng([SEED, epoch]).permutation(len(images.labels))[
            rank.rank :: rank.world
        ]
        for first in range(0, len(order) - asked.batch_size + 1, asked.batch_size):
            yield order[first : first + asked.batch_size]


class Batches:
    """What a worker of the loader is asked for: the images of one batch, by their rows."""

    def __init__(self, images: cifar100.Images) -> None:
        self.images = images

    def __getitem__(self, rows: Any) -> Any:
        return self.images.pixels[rows], self.images.labels[rows]


def loaded(
    training: Training, images: cifar100.Images, rank: process_group.Rank, asked: argparse.Namespace
) -> Iterator[Any]:
    """Pixels and labels of at most `max_steps` batches, as tensors of the host; workers load ahead,
    two batches each.
    """
    torch = training.torch
    asked_for = list(itertools.islice(batches(images, rank, asked), asked.max_steps))
    if not asked.workers:
        for rows in asked_for:
            pixels, labels = Batches(images)[rows]
            yield torch.from_numpy(pixels), torch.from_numpy(labels)
        return
    yield from torch.utils.data.DataLoader(
        Batches(images),
        batch_size=None,  # a batch is asked for at once
        sampler=asked_for,
        num_workers=asked.workers,
        pin_memory=training.device.type == "cuda",
    )


def to_device(training: Training, batch: Any, image_size: int) -> Any:
    """One batch: pixels as the model's type, normalised and scaled on the device, and labels."""
    torch, device = training.torch, training.device
    pixels, labels = (part.to(device, non_blocking=True) for part in batch)
    kind = torch.bfloat16 if training.precision == "bfloat16" else torch.float32
    mean, std = (
        torch.tensor(values, device=device, dtype=kind).view(1, 3, 1, 1)
        for values in (cifar100.MEAN, cifar100.STD)
    )
    pixels = (pixels.to(kind) / 255 - mean) / std
    if image_size != cifar100.SIDE:
        pixels = torch.nn.functional.interpolate(
            pixels, size=(image_size, image_size), mode="bilinear"
        )
    return pixels, labels


def step(training: Training, pixels: Any, labels: Any) -> Any:
    """Forward, loss, backward, update; the loss stays on the device."""
    training.optimizer.zero_grad(set_to_none=True)
    with casting(training):
        logits = training.model(pixel_values=pixels).logits
        loss = training.torch.nn.functional.cross_entropy(logits.float(), labels)
    if training.scaler is None:
        loss.backward()
        training.optimizer.step()
    else:
        training.scaler.scale(loss).backward()
        training.scaler.step(training.optimizer)
        training.scaler.update()
    return loss.detach()


class Steps(NamedTuple):
    """Wall seconds of each step, the device waited for at its end, and its loss."""

    seconds: List[float]
    losses: List[float]


def train(
    training: Training, images: cifar100.Images, rank: process_group.Rank, asked: argparse.Namespace
) -> Steps:
    """At most `max_steps` steps, each with the wait for its batch."""
    done = Steps([], [])
    ready = loaded(training, images, rank, asked)
    while True:
        began = time.perf_counter()
        batch = next(ready, None)
        if batch is None:
            break
        pixels, labels = to_device(training, batch, asked.image_size)
        loss = step(training, pixels, labels)
        done.losses.append(
            float(loss)
        )  # waits for the device, as a script that prints its loss does
        done.seconds.append(time.perf_counter() - began)
    return done


def profiler(torch: Any, asked: argparse.Namespace, rank: process_group.Rank) -> Any:
    """--torch-profile: the script's own recording, apart from any layer around it."""
    if not asked.torch_profile:
        return contextlib.nullcontext()
    os.makedirs("profile", exist_ok=True)
    kinds = [torch.profiler.ProfilerActivity.CPU]
    if torch.cuda.is_available():
        kinds.append(torch.profiler.ProfilerActivity.CUDA)
    path = os.path.join("profile", "trace-%d.json" % rank.rank)
    return torch.profiler.profile(
        activities=kinds, on_trace_ready=lambda made: made.export_chrome_trace(path)
    )


def report(
    done: Steps, asked: argparse.Namespace, rank: process_group.Rank, images: cifar100.Images
) -> None:
    """Rank 0 says what was done; the first step, which compiles and tunes, is left out of the
    mean.
    """
    if rank.rank:
        return
    later = done.seconds[1:] or done.seconds
    mean = sum(later) / len(later)
    print("data: %s" % images.origin)
    print(
        "steps: %d of batch %d per rank, %d rank(s), %s, %s"
        % (len(done.seconds), asked.batch_size, rank.world, asked.model, asked.precision)
    )
    print(
        "step time (mean, without the first): %.4f s, %.1f images/s"
        % (mean, asked.batch_size * rank.world / mean)
    )
    print("loss: %.4f -> %.4f" % (done.losses[0], done.losses[-1]))


def main(words: Optional[Sequence[str]] = None, environ: Mapping[str, str] = os.environ) -> int:
    """Exit status: 0, 1 no step could be made, 2 usage, 3 a library or device is missing, 4 damaged
    data.
    """
    asked = arguments(words)
    try:
        if asked.download_only:
            print(cifar100.download(asked.data_path))
            return 0
        rank = process_group.find(environ)
        images = cifar100.load(
            asked.data_path, max(SYNTHETIC, 2 * asked.batch_size * rank.world), SEED
        )
    except cifar100.DataError as error:
        print("train-cifar100: %s" % error, file=sys.stderr)
        return 4
    if len(images.labels) // rank.world < asked.batch_size:
        print(
            "train-cifar100: --batch-size %d is more than the %d images of a rank"
            % (asked.batch_size, len(images.labels) // rank.world),
            file=sys.stderr,
        )
        return 2
    try:
        import torch
        import transformers
    except ImportError as error:
        print("train-cifar100: %s; pip install 'profharness[training]'" % error, file=sys.stderr)
        return 3
    transformers.logging.set_verbosity_error()
    from profharness_workloads.batch.torch_worker import chosen_device
    from profharness_workloads.shared.protocol import Refusal

    try:
        device = torch.device(chosen_device(torch, asked.device, rank.local))
    except Refusal as refusal:
        print("train-cifar100: %s" % refusal.message, file=sys.stderr)
        return refusal.code
    several = process_group.join(torch, rank, device)
    training = prepare(torch, asked, device, several=several)
    with profiler(torch, asked, rank):
        done = train(training, images, rank, asked)
    report(done, asked, rank, images)
    if several:
        torch.distributed.destroy_process_group()
    return 0


if __name__ == "__main__":
    sys.exit(main())
