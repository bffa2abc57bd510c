"""The distinct inputs of a level as messages, prepared before load runs; with particle counts that
vary, if asked.

Ragged events (`ragged`): every item has a number of particles of its own, which its mask tells
(`hep`, FILE.npz) or which is drawn between a quarter and all of the asked number. `padded` fills
each request's items with zeros up to the largest of them; `grouped` sends items of one size
together, without zeros, so that its requests hold fewer items. `triton` sends the same requests as
`grouped`, to a server that puts requests of different sizes into one batch. All use the same items.
"""

from __future__ import annotations

import itertools
from typing import Any, Dict, List, Mapping, NamedTuple, Sequence, Tuple

import numpy as np

from profharness_workloads.loadgen.messages import Tensor, contiguous
from profharness_workloads.loadgen.settings import ClientSpec, Level, Model
from profharness_workloads.shared.inputs import Arrays, TensorSpec, checked, filled, pool, root_name
from profharness_workloads.shared.protocol import Refusal

FEWEST_SHARE = 4


class Prepared(NamedTuple):
    """Tensors of each distinct request. `padded_share` is the part of all particles that are
    padding (ragged levels).
    """

    requests: Tuple[Tuple[Tensor, ...], ...]
    usual: Tuple[str, ...]
    padded_share: float
    particles: float

    @property
    def bytes_per_request(self) -> float:
        """Mean size of the tensors of one request, protocol and compression left out."""
        total: int = sum(tensor.array.nbytes for request in self.requests for tensor in request)
        return total / max(1, len(self.requests))


def prepare(spec: ClientSpec, model: Model, level: Level) -> Prepared:
    """Raises Refusal when the inputs do not fit the model, or its inputs have no particle axis to
    vary.
    """
    if model.max_batch_size and level.batch_size > model.max_batch_size:
        raise Refusal(
            "batch %d is larger than the model's max_batch_size %d"
            % (level.batch_size, model.max_batch_size)
        )
    if not model.max_batch_size and level.batch_size != 1:
        raise Refusal(
            "model %s takes no batches: batch %d cannot be sent" % (model.name, level.batch_size)
        )
    specs, usual = filled(model.inputs, spec.shapes, spec.inputs)
    checked(spec.inputs, specs)
    sets = pool(specs, level.batch_size, spec.inputs, level.seed, most=max(2, spec.distinct))
    share, particles = 0.0, 0.0
    if level.ragged != "none":
        sets, share, particles = _ragged(model.inputs, specs, sets, level, spec.inputs)
    requests = tuple(_tensors(model, arrays) for arrays in sets)
    return Prepared(requests, tuple(usual), share, particles)


def _tensors(model: Model, arrays: Arrays) -> Tuple[Tensor, ...]:
    batched = arrays if model.max_batch_size else tuple(array[0] for array in arrays)
    return tuple(
        Tensor(spec.name, datatype, array)
        for spec, datatype, array in zip(model.inputs, model.datatypes, contiguous(batched))
    )


def _family(name: str) -> str:
    return root_name(name).split("_")[0]


def _axes(free: Sequence[TensorSpec], specs: Sequence[TensorSpec]) -> Dict[str, int]:
    """Particles by family of inputs: the last dimension of those that the model leaves free."""
    particles = {}
    for open_spec, spec in zip(free, specs):
        if open_spec.dims and open_spec.dims[-1] is None:
            particles[_family(spec.name)] = int(spec.dims[-1] or 1)
    if not particles:
        raise Refusal(
            "ragged requests need inputs whose last dimension is free; this model has none"
        )
    return particles


def _ragged(
    free: Sequence[TensorSpec],
    specs: Sequence[TensorSpec],
    sets: Sequence[Arrays],
    level: Level,
    kind: str,
) -> Tuple[List[Arrays], float, float]:
    """(requests, share of padding, mean particles per item) from sets of full events, each cut to
    its own length.
    """
    axes = _axes(free, specs)
    rng = np.random.default_rng([level.seed, 7])
    items = [np.concatenate([arrays[at] for arrays in sets]) for at in range(len(specs))]
    total = len(items[0])
    counts = {
        family: _own_lengths(specs, items, family)
        if _has_mask(specs, family, kind)
        else rng.integers(max(1, most // FEWEST_SHARE), most + 1, total)
        for family, most in sorted(axes.items())
    }
    main = max(axes, key=lambda family: axes[family])
    rows = _rows(counts[main], level)
    requests = [_cut(specs, items, counts, chosen) for chosen in rows]
    sent = sum(
        int(counts[family][chosen].max()) * len(chosen) for family in counts for chosen in rows
    )
    real = sum(int(lengths.sum()) for lengths in counts.values())
    return requests, 1 - real / sent, real / total


def _has_mask(specs: Sequence[TensorSpec], family: str, kind: str) -> bool:
    """Whether the inputs say themselves which particles are there; masks drawn from a normal do
    not.
    """
    return kind != "normal" and any(root_name(spec.name) == family + "_mask" for spec in specs)


def _own_lengths(specs: Sequence[TensorSpec], items: Sequence[Any], family: str) -> Any:
    """Particles up to the last one that the item's mask lets through; one at the least."""
    mask = next(
        array for spec, array in zip(specs, items) if root_name(spec.name) == family + "_mask"
    )
    present = (mask != 0).reshape(len(mask), -1, mask.shape[-1]).any(axis=1)
    return np.maximum(1, (present * np.arange(1, present.shape[1] + 1)).max(axis=1))


def _rows(counts: Any, level: Level) -> List[Any]:
    """Which items go into which request: as they come, or those of one length together, at most a
    batch of them.
    """
    size = level.batch_size
    if level.ragged == "padded":
        return [np.arange(at, at + size) for at in range(0, len(counts), size)]
    order = np.argsort(counts, kind="stable")
    groups = [list(group) for _, group in itertools.groupby(order, key=lambda at: counts[at])]
    return [
        np.array(group[at : at + size]) for group in groups for at in range(0, len(group), size)
    ]


def _cut(
    specs: Sequence[TensorSpec], items: Sequence[Any], counts: Mapping[str, Any], chosen: Any
) -> Arrays:
    cut_arrays = []
    for spec, array in zip(specs, items):
        rows = array[chosen]
        lengths = counts.get(_family(spec.name))
        if lengths is not None:
            longest = int(lengths[chosen].max())
            rows = rows[..., :longest].copy()
            beyond = np.arange(longest) >= lengths[chosen].reshape(-1, *[1] * len(spec.dims))
            rows[np.broadcast_to(beyond, rows.shape)] = 0
        cut_arrays.append(rows)
    return tuple(cut_arrays)
