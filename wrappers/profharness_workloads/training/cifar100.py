"""CIFAR-100 as tensors: from the python archive or its folder, fetched on request, or synthetic of
the same shape.

Source of data and format: A. Krizhevsky, https://www.cs.toronto.edu/~kriz/cifar.html (python
version).
"""

from __future__ import annotations

import hashlib
import io
import os
import pickle
import sys
import tarfile
import urllib.request
from typing import Any, NamedTuple, Optional

import numpy as np

ARCHIVE = "cifar-100-python.tar.gz"
FOLDER = "cifar-100-python"
ADDRESS = "https://www.cs.toronto.edu/~kriz/" + ARCHIVE
MD5 = "eb9058c3a382ffc7106e4002c42a8d85"  # as published beside the archive
CLASSES = 100
SIDE = 32
MEAN = (0.5071, 0.4865, 0.4409)  # of the training images, per channel, in units of 255
STD = (0.2673, 0.2564, 0.2762)


class DataError(Exception):
    """The data cannot be used; the message says what to do."""


class Images(NamedTuple):
    """`pixels` uint8 [n, 3, 32, 32], `labels` int64 [n]; `origin` says where they are from."""

    pixels: Any
    labels: Any
    origin: str


def load(data_path: str, count: int, seed: int) -> Images:
    """The training images below `data_path`, or `count` synthetic ones where there are none;
    `origin` says which.
    """
    images = read(data_path)
    return synthetic(count, seed) if images is None else images


def read(data_path: str) -> Optional[Images]:
    """The training images, or None where neither folder nor archive is. Raises DataError for a
    damaged one.
    """
    folder = os.path.join(data_path, FOLDER, "train")
    archive = os.path.join(data_path, ARCHIVE)
    try:
        if os.path.isfile(folder):
            with open(folder, "rb") as file:
                return _images(file.read(), folder)
        if os.path.isfile(archive):
            with tarfile.open(archive, "r:gz") as tar:
                member = tar.extractfile(FOLDER + "/train")
                if member is None:
                    raise DataError("%s holds no %s/train" % (archive, FOLDER))
                return _images(member.read(), archive)
    except (
        OSError,
        tarfile.TarError,
        pickle.UnpicklingError,
        KeyError,
        EOFError,
        ValueError,
    ) as error:
        raise DataError("%s: not CIFAR-100 in its python form (%s)" % (data_path, error)) from error
    return None


class _Arrays(pickle.Unpickler):
    """Reads arrays and plain containers only: a pickle may otherwise run anything."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) in (
            ("numpy.core.multiarray", "_reconstruct"),
            ("numpy._core.multiarray", "_reconstruct"),
            ("numpy", "ndarray"),
            ("numpy", "dtype"),
            ("_codecs", "encode"),  # how older protocols spell bytes
        ):
            return super().find_class(module, name)
        raise pickle.UnpicklingError("%s.%s has no place in it" % (module, name))


def _images(data: bytes, origin: str) -> Images:
    record = _Arrays(io.BytesIO(data), encoding="bytes").load()
    pixels = np.asarray(record[b"data"], np.uint8).reshape(-1, 3, SIDE, SIDE)
    labels = np.asarray(record[b"fine_labels"], np.int64)
    if len(labels) != len(pixels):
        raise DataError("%s: %d images and %d labels" % (origin, len(pixels), len(labels)))
    return Images(pixels, labels, origin)


def synthetic(count: int, seed: int) -> Images:
    """Random pixels and labels: the same work for the device, nothing to be learnt."""
    rng = np.random.default_rng(seed)
    pixels = rng.integers(0, 256, (count, 3, SIDE, SIDE), dtype=np.uint8)
    return Images(pixels, rng.integers(0, CLASSES, count), "synthetic (random pixels and labels)")


def download(data_path: str) -> str:
    """Fetch the archive into `data_path`, unless it is there whole. Raises DataError when it cannot
    be had.
    """
    path = os.path.join(data_path, ARCHIVE)
    if os.path.isfile(path) and _md5(path) == MD5:
        return path
    os.makedirs(data_path, exist_ok=True)
    partial = path + ".part"
    try:
        print("fetching %s" % ADDRESS, file=sys.stderr)
        urllib.request.urlretrieve(ADDRESS, partial)
    except OSError as error:
        raise DataError(
            "%s cannot be fetched (%s); put it into %s by hand, or train on synthetic data"
            % (ADDRESS, error, data_path)
        ) from error
    if _md5(partial) != MD5:
        raise DataError(
            "what came from %s has another checksum; it was left at %s" % (ADDRESS, partial)
        )
    os.replace(partial, path)
    return path


def _md5(path: str) -> str:
    digest = hashlib.md5()  # the checksum that the archive is published with, against cut downloads
    with open(path, "rb") as file:
        for block in iter(lambda: file.read(1 << 20), b""):
            digest.update(block)
    return digest.hexdigest()
