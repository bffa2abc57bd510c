"""Block bootstrap of means: vectorised, seeded, with intervals that stay honest for few samples.

Trials of one point follow each other in time and share clock and thermal state, so whole blocks are
resampled (circular block bootstrap, Politis and Romano 1992). Every statistic used here is a
function of column means, so blocks are taken from prefix sums and the cost does not grow with the
block length.
"""

from __future__ import annotations

import math
import zlib

import numpy as np

from profharness.trace.model import F64

REPLICATES = 1000
MAX_BLOCKS = 256
LEVEL = 0.95
Z95 = 1.959963984540054
# Student's 97.5 % quantile for 1 to 30 degrees of freedom (scipy.stats.t.ppf(0.975, n)); the
# expansion below is good to 1e-6 from there on.
_T_FEW = (
    *(12.7062047362, 4.30265272975, 3.18244630528, 2.7764451052, 2.57058183564),
    *(2.44691185114, 2.36462425159, 2.3060041352, 2.2621571628, 2.22813885199),
    *(2.20098516009, 2.17881282967, 2.16036865646, 2.14478668792, 2.13144954556),
    *(2.11990529922, 2.10981557783, 2.10092204024, 2.09302405441, 2.08596344727),
    *(2.07961384473, 2.0738730679, 2.06865761042, 2.06389856163, 2.05953855275),
    *(2.05552943864, 2.05183051648, 2.0484071418, 2.04522964213, 2.0422724563),
)


def generator(*identity: str | int) -> np.random.Generator:
    """A generator that depends on these words alone, so that a figure is the same on every machine
    and run.
    """
    return np.random.default_rng(zlib.crc32("\x1f".join(map(str, identity)).encode()))


def block_length(samples: int) -> int:
    """The cube root of the number of samples, and so long that at most 256 blocks are drawn."""
    return max(1, round(math.cbrt(samples)), math.ceil(samples / MAX_BLOCKS))


def student95(freedom: int) -> float:
    """Student's 97.5 % quantile: a table up to 30 degrees of freedom, from there on the
    Cornish-Fisher expansion, which is exact to 1e-6 there.
    """
    if freedom < 1:
        return math.inf
    if freedom <= len(_T_FEW):
        return _T_FEW[freedom - 1]
    z = Z95
    first = (z**3 + z) / 4
    second = (5 * z**5 + 16 * z**3 + 3 * z) / 96
    third = (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384
    return z + first / freedom + second / freedom**2 + third / freedom**3


def bootstrap_means(columns: F64, rng: np.random.Generator, replicates: int = REPLICATES) -> F64:
    """Means of resampled blocks: (columns, samples) -> (columns, replicates), all columns by the
    same blocks.

    Deviations are stretched by Student's factor for the number of blocks, so that percentiles of
    the result are usable intervals down to three samples. Raises ValueError for fewer than two
    samples.
    """
    samples = columns.shape[1]
    if samples < 2:
        raise ValueError("a bootstrap needs at least two samples")
    length = block_length(samples)
    blocks = math.ceil(samples / length)
    mean = columns.mean(axis=1, keepdims=True)
    # Centred before summing: prefix sums of large, nearly equal numbers would lose the deviations.
    centred = columns - mean
    prefix = np.concatenate(
        [np.zeros((len(columns), 1)), np.cumsum(np.hstack([centred, centred[:, :length]]), axis=1)],
        axis=1,
    )
    starts = rng.integers(0, samples, (replicates, blocks))
    deviations = (prefix[:, starts + length] - prefix[:, starts]).sum(axis=2) / (blocks * length)
    stretch = math.sqrt(blocks / (blocks - 1)) * student95(blocks - 1) / Z95 if blocks > 1 else 1.0
    return np.asarray(mean + stretch * deviations)


def percentile_interval(replicates: F64, level: float = LEVEL) -> tuple[float, float]:
    """The central interval that holds `level` of the replicates."""
    low, high = np.quantile(replicates, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def quantile_interval(ordered: F64, p: float, independent: float = 1.0) -> tuple[float, float]:
    """95 % interval of the quantile `p` of sorted values by their ranks (David and Nagaraja 2003,
    7.1).

    `independent` is the share of the values that tell as much as independent ones would.
    """
    count = len(ordered)
    half = Z95 * math.sqrt(p * (1 - p) / max(1.0, count * independent)) * count
    return float(ordered[max(0, math.floor(p * count - half))]), float(
        ordered[min(count - 1, math.ceil(p * count + half))]
    )
