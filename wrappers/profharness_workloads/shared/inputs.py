"""Inputs of trials: seeded arrays by name, made before the timer starts.

Kinds: `normal` (standard normal, masks too, as the published scans draw them), `hep` (valid-prefix
0/1 masks, points inside a jet cone, features in a sane range and zero where masked, categories
inside their tables), or FILE.npz. With masks drawn from a normal the softmax of a jet tagger
saturates to exact 0 and 1: use `hep` to compare numbers.
"""

from __future__ import annotations

import itertools
import os
import re
import zipfile
from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

import numpy as np

from profharness_workloads.shared.protocol import BAD_INPUT, Refusal, plain_reason

POOL_BYTES = 256 * 1024 * 1024
POOL_SETS = (2, 8)

CONE = 0.4  # an AK4 jet: particles lie within this distance of its axis in eta and phi
FEATURE_LIMIT = 5.0
CATEGORIES = {
    "input_cat0": 3,
    "input_cat1": 11,
    "input_cat2": 4,
}  # sizes of DeepMET's embedding tables
USUAL_PARTICLES = {"pf": 100, "sv": 10}  # particles and secondary vertices per jet in CMS

_POSITION = re.compile(r"\[\d+\]$")

Arrays = Tuple[Any, ...]


class TensorSpec(NamedTuple):
    """One input of a model. `dims` are without the batch axis, which comes first; None is a free
    dimension.
    """

    name: str
    dtype: str
    dims: Tuple[Optional[int], ...]

    def __str__(self) -> str:
        return "%s [%s] %s" % (
            self.name,
            ", ".join("?" if d is None else str(d) for d in self.dims),
            self.dtype,
        )


def root_name(name: str) -> str:
    """Name without Triton's position suffix: `pf_mask__2` is `pf_mask`."""
    return re.sub(r"__\d+$", "", name)


def filled(
    specs: Sequence[TensorSpec], shapes: Mapping[str, Tuple[int, ...]], kind: str
) -> Tuple[Tuple[TensorSpec, ...], List[str]]:
    """The inputs with every dimension known, and the names that were filled with the usual particle
    counts.

    Raises Refusal when a shape names no input, contradicts the model, or a dimension stays open.
    """
    by_root = {root_name(name): dims for name, dims in in_order(specs, shapes).items()}
    unknown = sorted(set(by_root) - {root_name(spec.name) for spec in specs})
    if unknown:
        raise Refusal(
            "--shape names %s, which is no input of the model" % ", ".join(unknown),
            "its inputs: %s" % "; ".join(map(str, specs)),
        )
    stored = {root_name(k): v.shape[1:] for k, v in _archive(kind).items()} if is_file(kind) else {}
    complete, usual = [], []
    for spec in specs:
        root = root_name(spec.name)
        dims = by_root.get(root) or stored.get(root)
        if dims is None and None in spec.dims and root.split("_")[0] in USUAL_PARTICLES:
            dims = tuple(USUAL_PARTICLES[root.split("_")[0]] if d is None else d for d in spec.dims)
            usual.append(spec.name)
        complete.append(spec._replace(dims=_fitting(spec, dims)))
    return tuple(complete), usual


def in_order(
    specs: Sequence[TensorSpec], shapes: Mapping[str, Tuple[int, ...]]
) -> Dict[str, Tuple[int, ...]]:
    """The shapes by name; those named `[0]`, `[1]` ... are of the inputs in their order, and a
    single one is of all inputs, as deepsparse.benchmark has it. Raises Refusal where their numbers
    differ.
    """
    if not any(_POSITION.match(name) for name in shapes):
        return {name: tuple(dims) for name, dims in shapes.items()}
    given = [tuple(dims) for dims in shapes.values()]
    if len(given) == 1:
        given *= len(specs)
    if len(given) != len(specs):
        raise Refusal(
            "--shape gives %d shapes, and the model has %d inputs" % (len(given), len(specs)),
            "its inputs, in order and without the batch: %s" % "; ".join(map(str, specs)),
        )
    return {spec.name: dims for spec, dims in zip(specs, given)}


def _fitting(spec: TensorSpec, dims: Optional[Tuple[int, ...]]) -> Tuple[int, ...]:
    if dims is None:
        if None in spec.dims:
            raise Refusal(
                "input %s has free dimensions" % str(spec),
                "give them, without the batch: --shape %s:d1,d2" % spec.name,
            )
        return tuple(d for d in spec.dims if d is not None)
    if len(dims) != len(spec.dims) or any(
        d not in (None, given) for d, given in zip(spec.dims, dims)
    ):
        raise Refusal(
            "shape %s does not fit input %s" % (list(dims), spec),
            "shapes are given without the batch axis",
        )
    return tuple(int(d) for d in dims)


def is_file(kind: str) -> bool:
    return kind.endswith(".npz")


def checked(kind: str, specs: Sequence[TensorSpec]) -> None:
    """Raises Refusal when `kind` is none of ours, or its file does not hold the model's inputs."""
    if is_file(kind):
        _stored(kind, specs)
    elif kind not in _GENERATORS:
        raise Refusal(
            "no inputs named %r" % kind, "use %s or a FILE.npz" % ", ".join(sorted(_GENERATORS))
        )


def pool(
    specs: Sequence[TensorSpec],
    batch: int,
    kind: str,
    seed: int,
    budget_bytes: int = POOL_BYTES,
    most: int = POOL_SETS[1],
) -> List[Arrays]:
    """Distinct input sets for one point, in the model's order: between 2 and `most`, within
    `budget_bytes`.

    Trials take them in turn, so that successive trials see different data while memory stays
    bounded and the device does not wait long for the next trial's inputs. The same seed and batch
    give the same sets.
    """
    per_set = sum(
        batch * int(np.prod(s.dims, dtype=np.int64)) * np.dtype(s.dtype).itemsize for s in specs
    )
    count = max(POOL_SETS[0], min(most, budget_bytes // max(1, per_set)))
    rng = np.random.default_rng([seed, batch])
    if is_file(kind):
        stored = _stored(kind, specs)
        return [_sampled(stored, batch, rng) for _ in range(count)]
    return [_GENERATORS[kind](specs, batch, rng) for _ in range(count)]


def in_turn(sets: Sequence[Any]) -> Callable[[], Any]:
    """A function that gives the sets one after the other, round and round."""
    return itertools.cycle(sets).__next__


def normal(specs: Sequence[TensorSpec], batch: int, rng: np.random.Generator) -> Arrays:
    """Standard normal for floating types; 0 or 1 for whole numbers and booleans, which fits any
    table or mask.
    """
    return tuple(_drawn(spec, batch, rng) for spec in specs)


def _drawn(spec: TensorSpec, batch: int, rng: np.random.Generator) -> Any:
    shape, dtype = (batch, *spec.dims), np.dtype(spec.dtype)
    if dtype.kind == "f":
        precision = np.float64 if dtype == np.float64 else np.float32
        return rng.standard_normal(shape, dtype=precision).astype(dtype, copy=False)
    return rng.integers(0, 2, shape).astype(dtype)


def hep(specs: Sequence[TensorSpec], batch: int, rng: np.random.Generator) -> Arrays:
    """Physics-like inputs by name: X_mask, X_points and X_features share their valid particles.

    Masks [.., 1, n] are 1 for the first particles of a row, a quarter of them to all, and 0 after.
    Points are offsets in eta and phi inside the cone, features are clipped at 5 standard
    deviations; both are 0 where the mask is.
    """
    masks: Dict[str, Any] = {}
    for spec in specs:
        family, _, role = root_name(spec.name).rpartition("_")
        if role == "mask":
            masks[family] = _prefix_mask(spec, batch, rng)
    return tuple(_physical(spec, batch, rng, masks) for spec in specs)


def _prefix_mask(spec: TensorSpec, batch: int, rng: np.random.Generator) -> Any:
    particles = spec.dims[-1] or 1
    valid = rng.integers(max(1, particles // 4), particles + 1, (batch, *[1] * len(spec.dims)))
    return np.broadcast_to(np.arange(particles) < valid, (batch, *spec.dims)).astype(spec.dtype)


def _physical(
    spec: TensorSpec, batch: int, rng: np.random.Generator, masks: Mapping[str, Any]
) -> Any:
    root = root_name(spec.name)
    family, _, role = root.rpartition("_")
    if role == "mask":
        return masks[family]
    if root in CATEGORIES:
        return rng.integers(0, CATEGORIES[root], (batch, *spec.dims)).astype(spec.dtype)
    values = _drawn(spec, batch, rng)
    if role == "points":
        values = np.clip(values * (CONE / 3), -CONE, CONE)
    elif role == "features":
        values = np.clip(values, -FEATURE_LIMIT, FEATURE_LIMIT)
    if family in masks and masks[family].shape[-1] == values.shape[-1]:
        values = values * masks[family]
    return values.astype(spec.dtype, copy=False)


_GENERATORS: Dict[str, Callable[[Sequence[TensorSpec], int, np.random.Generator], Arrays]] = {
    "normal": normal,
    "hep": hep,
}


def _archive(path: str) -> Dict[str, Any]:
    hint = "write it with numpy.savez(FILE, NAME=array, ...), one array per input of the model"
    if os.path.isfile(path) and not zipfile.is_zipfile(path):  # numpy would speak of pickles
        raise Refusal("%s: not an .npz file, or one that was cut short" % path, hint, BAD_INPUT)
    try:
        with np.load(path, allow_pickle=False) as archive:
            return {name: archive[name] for name in archive.files}
    except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
        raise Refusal(
            "%s: not a readable .npz (%s)" % (path, plain_reason(error)), hint, BAD_INPUT
        ) from error


def _stored(path: str, specs: Sequence[TensorSpec]) -> List[Any]:
    """The file's arrays in the model's order. Raises Refusal that names what does not fit."""
    arrays = {root_name(name): array for name, array in _archive(path).items()}
    stored = []
    for spec in specs:
        array = arrays.get(root_name(spec.name))
        if array is None:
            raise Refusal(
                "%s has no array %s" % (path, spec.name), "it holds: %s" % ", ".join(sorted(arrays))
            )
        fits = array.ndim == len(spec.dims) + 1 and all(
            d in (None, n) for d, n in zip(spec.dims, array.shape[1:])
        )
        if not fits or not len(array):
            raise Refusal(
                "%s: array %s has shape %s, the model wants [rows, %s]"
                % (
                    path,
                    spec.name,
                    list(array.shape),
                    ", ".join("any" if d is None else str(d) for d in spec.dims),
                )
            )
        if array.dtype.kind != np.dtype(spec.dtype).kind:
            raise Refusal(
                "%s: array %s is %s, the model wants %s"
                % (path, spec.name, array.dtype, spec.dtype)
            )
        stored.append(np.ascontiguousarray(array, dtype=spec.dtype))
    if len({len(array) for array in stored}) > 1:
        raise Refusal("%s: the arrays differ in their number of rows" % path)
    return stored


def _sampled(arrays: Sequence[Any], batch: int, rng: np.random.Generator) -> Arrays:
    """The same rows of every array; with replacement when the file has fewer rows than the
    batch.
    """
    rows = len(arrays[0])
    chosen = rng.choice(rows, batch, replace=rows < batch)
    return tuple(np.ascontiguousarray(array[chosen]) for array in arrays)
