"""When requests are to be sent: arrivals of an open loop, shared out among client processes. Times
are integer ns.
"""

from __future__ import annotations

from typing import Any, Iterator, NamedTuple, Optional, Sequence

import numpy as np

from profharness_workloads.shared.protocol import BAD_INPUT, Refusal

CONSTANT, POISSON = "constant", "poisson"
_AHEAD = 4096


class Arrivals(NamedTuple):
    """The arrivals of one level: `constant` or `poisson` at `rate` (1/s), or the instants of a
    file, over and over.

    `offsets_ns` are a file's instants from its first line's origin, and `period_ns` after which it
    begins again.
    """

    kind: str
    rate: float
    seed: int = 0
    offsets_ns: Optional[Any] = None
    period_ns: int = 0

    def instants(self, start_ns: int, client: int = 0, clients: int = 1) -> Iterator[int]:
        """Instants of every `clients`-th arrival from the `client`-th on, without end.

        All clients draw the same sequence from the same seed, so that together they make it once.
        """
        for block in self._blocks(start_ns):
            first = (client - block[0]) % clients
            yield from block[1][first::clients].tolist()

    def _blocks(self, start_ns: int) -> Iterator[Any]:
        """(number of the first, instants) of successive stretches."""
        number, at = 0, 0.0
        rng = np.random.default_rng(self.seed)
        while True:
            if self.offsets_ns is not None:
                times = self.offsets_ns + (number // len(self.offsets_ns)) * self.period_ns
            else:
                gap = 1e9 / self.rate
                if self.kind == POISSON:
                    times = at + np.cumsum(rng.exponential(gap, _AHEAD))
                    at = float(times[-1])
                else:
                    times = (number + np.arange(_AHEAD)) * gap
                times = times.astype(np.int64)
            yield number, start_ns + times
            number += len(times)


def arrivals_from(kind: str, rate: float, seed: int) -> Arrivals:
    """`kind` is constant, poisson or the path of a file. Raises Refusal for a rate or a file that
    cannot be used.
    """
    if kind in (CONSTANT, POISSON):
        if not rate > 0:
            raise Refusal("an open loop needs a rate above 0, not %r" % (rate,))
        return Arrivals(kind, rate, seed)
    offsets = _offsets(kind)
    mean = max(1, int(offsets[-1] - offsets[0]) // max(1, len(offsets) - 1))
    period = int(offsets[-1]) + mean
    return Arrivals(kind, len(offsets) / (period / 1e9), seed, offsets, period)


def _offsets(path: str) -> Any:
    hint = (
        "one arrival a line, in seconds from the start, ascending; "
        "further columns after a comma are not read"
    )
    try:
        with open(path, encoding="utf-8") as file:
            lines = [line.split(",")[0].strip() for line in file]
        seconds = np.array([float(line) for line in lines if line and not line.startswith("#")])
    except (OSError, ValueError) as error:
        raise Refusal(
            "%s: not a file of arrival times (%s)" % (path, error), hint, BAD_INPUT
        ) from error
    if (
        not len(seconds)
        or not np.isfinite(seconds).all()
        or seconds[0] < 0
        or (np.diff(seconds) < 0).any()
    ):
        raise Refusal(
            "%s: not a file of arrival times (empty, negative or not ascending)" % path,
            hint,
            BAD_INPUT,
        )
    return np.rint(seconds * 1e9).astype(np.int64)


def shares(total: int, clients: int) -> Sequence[int]:
    """`total` slots dealt out evenly: the first ones get one more."""
    return [total // clients + (1 if client < total % clients else 0) for client in range(clients)]
