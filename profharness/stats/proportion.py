"""How far a share of samples can be trusted."""

from __future__ import annotations

import math

from profharness.stats.bootstrap import Z95


def wilson(hits: int, samples: int) -> tuple[float, float]:
    """The 95 % interval of a share of which `hits` of `samples` were seen, between 0 and 1.

    Wilson's score interval (J. Am. Stat. Assoc. 22 (1927) 209): also good for rare hits, and never
    outside of 0 and 1. It takes samples as independent; samples of waves that wait together are
    not, and their share is less certain than this. Raises ValueError for no samples or more hits
    than samples.
    """
    if not 0 <= hits <= samples or not samples:
        raise ValueError(f"{hits} of {samples} samples is no share")
    share, z2 = hits / samples, Z95 * Z95
    centre = (share + z2 / (2 * samples)) / (1 + z2 / samples)
    half = (
        Z95
        / (1 + z2 / samples)
        * math.sqrt(share * (1 - share) / samples + z2 / (4 * samples * samples))
    )
    low = 0.0 if hits == 0 else max(centre - half, 0.0)
    return low, 1.0 if hits == samples else min(centre + half, 1.0)
