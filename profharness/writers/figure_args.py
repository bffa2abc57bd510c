"""What an analysis tells of kernels, as arguments that a viewer shows when one is clicked."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np

from profharness.trace.kernel_figures import BYTES, FILL, FLOPS, LIMITER, OF_PEAK, KernelFigures
from profharness.trace.model import I64
from profharness.writers.interning import entry
from profharness.writers.protobuf import wire
from profharness.writers.protobuf.proto_columns import Double, Field, Message, Same, integers
from profharness.writers.protobuf.schema import Annotation, Interned, Launch, TrackEvent

_NAMES: Final = (FILL, OF_PEAK, FLOPS, BYTES, LIMITER)
_FIRST_IID: Final = (1 << 14) + 1
"""Behind all other names: the figures are named only in the sequences that have them."""
_IID: Final = {name: iid for iid, name in enumerate(_NAMES, _FIRST_IID)}
_LARGEST: Final = float(1 << 62)


@dataclass(frozen=True)
class ArgumentForm:
    """Field numbers of an argument: of itself in its event, and in it of its name, and of a whole
    number, a float and a text; `names` are the interned names that it refers to.
    """

    argument: int
    name: int
    whole: int
    real: int
    text: int
    names: int

    def labels(self) -> tuple[bytes, ...]:
        """The interned names of all figures."""
        return tuple(entry(self.names, iid, name) for name, iid in _IID.items())

    def fields(self, figures: KernelFigures, rows: slice | I64) -> Iterator[Field]:
        """The arguments of these kernels, each where it is known and finite."""
        for name, reals in ((FILL, figures.fill[rows]), (OF_PEAK, figures.of_peak[rows])):
            known = np.isfinite(reals)
            if known.any():
                value = Double(self.real, np.where(known, reals, 0.0))
                yield Message(self.argument, (self._named(name), value), known)
        for name, amounts in ((FLOPS, figures.flops[rows]), (BYTES, figures.moved[rows])):
            known = np.isfinite(amounts) & (amounts >= 0) & (amounts < _LARGEST)
            if known.any():
                whole = np.rint(np.where(known, amounts, 0.0)).astype(np.int64)
                yield Message(
                    self.argument, (self._named(name), integers(self.whole, whole)), known
                )
        limiter = figures.limiter[rows]
        for code, word in enumerate(figures.limiters):
            known = limiter == code
            if known.any():
                said = Same(wire.text(self.text, word))
                yield Message(self.argument, (self._named(LIMITER), said), known)

    def _named(self, name: str) -> Same:
        return Same(wire.integer(self.name, _IID[name]))


LAUNCH: Final = ArgumentForm(
    Launch.ARGS,
    Launch.ARG_NAME_IID,
    Launch.ARG_INT,
    Launch.ARG_DOUBLE,
    Launch.ARG_TEXT,
    Interned.COMPUTE_ARG_NAMES,
)
NOTE: Final = ArgumentForm(
    TrackEvent.DEBUG_ANNOTATIONS,
    Annotation.NAME_IID,
    Annotation.INT,
    Annotation.DOUBLE,
    Annotation.TEXT,
    Interned.DEBUG_ANNOTATION_NAMES,
)
