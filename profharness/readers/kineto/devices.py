"""Kineto's events to columns where only the devices matter, or only times: kernels and copies, and
of the host next to nothing.

Four fifths of a file are the host's, and a table of kernels needs none of it but one thing: ROCm
states in the launching call in which unit a kernel's grid is. So where geometry is wanted, a call's
name, geometry and id are kept.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np

from profharness.readers.kineto import sorting
from profharness.readers.kineto.events import KinetoRows
from profharness.readers.kineto.records import (
    DeviceArgs,
    DeviceKernel,
    DeviceKernelArgs,
    DriverLaunch,
    Event,
    Launch,
    LaunchArgs,
    TimedKernel,
)
from profharness.readers.kineto.unions import UsualOfDevices, UsualOfTimes
from profharness.readers.kineto.values import unwanted
from profharness.trace.columns.table import NULL
from profharness.trace.wanted import Wanted


class DeviceRows(KinetoRows):
    """The rows of kernels and copies. Of calls there are no times and no threads, of operators and
    ranges no rows.
    """

    usual: ClassVar[object] = UsualOfDevices
    wanted: ClassVar[Wanted] = Wanted.DEVICES

    def _adders(self) -> dict[str, Callable[[Any], None]]:
        return super()._adders() | {
            sorting.KERNEL: self._add_placed,
            sorting.CALL: self._add_launches,
            sorting.OP: unwanted,
            sorting.MARK: unwanted,
            sorting.MEMORY: unwanted,
        }

    def ambiguous(self) -> bool:
        """Whether calls share the id of a kernel: which of them launched it tells their duration,
        and that is not here.
        """
        ids = np.sort(self.calls.peek("correlation"))
        shared = ids[1:][(ids[1:] == ids[:-1]) & (ids[1:] != NULL)]
        return len(shared) > 0 and bool(np.isin(shared, self.kernels.peek("correlation")).any())

    def _add_placed(self, events: Sequence[Event | DeviceKernel]) -> None:
        events, start, dur = self._timed(events)
        args = self._decode_args(events, DeviceKernelArgs)
        self._note_kinds(args)
        self.kernels.add(
            len(events),
            start=start,
            dur=dur,
            name=self._name_codes(events),
            device=self._device_codes(events, args),
            stream=self._stream_codes(events, args),
            correlation=self.odd.whole("correlation", [a.correlation for a in args], signed=True),
            grid=self._triples([a.grid for a in args]),
            block=self._triples([a.block for a in args]),
            external=NULL,
            registers=NULL,
            shared=NULL,
            graph=NULL,
            collective=NULL,
        )

    def _add_launches(self, events: Sequence[Event | Launch | DriverLaunch]) -> None:
        args = self._decode_args(events, LaunchArgs)
        self.calls.add(
            len(events),
            name=self._name_codes(events),
            correlation=self.odd.whole("correlation", [a.correlation for a in args], signed=True),
            grid=self._triples([a.grid for a in args]),
            block=self._triples([a.block for a in args]),
            start=0,
            dur=0,
            pid=NULL,
            tid=NULL,
            shared=NULL,
            bytes=NULL,
            kernel=NULL,
        )


class TimeRows(KinetoRows):
    """The rows of kernels and copies: what ran on which device, and when."""

    usual: ClassVar[object] = UsualOfTimes
    wanted: ClassVar[Wanted] = Wanted.TIMES

    def _adders(self) -> dict[str, Callable[[Any], None]]:
        return super()._adders() | {
            sorting.KERNEL: self._add_times,
            sorting.CALL: unwanted,
            sorting.OP: unwanted,
            sorting.MARK: unwanted,
            sorting.MEMORY: unwanted,
        }

    def _add_times(self, events: Sequence[Event | TimedKernel]) -> None:
        events, start, dur = self._timed(events)
        self.kernels.add(
            len(events),
            start=start,
            dur=dur,
            name=self._name_codes(events),
            device=self._device_codes(events, self._decode_args(events, DeviceArgs)),
            stream=NULL,
            correlation=NULL,
            grid=NULL,
            block=NULL,
            external=NULL,
            registers=NULL,
            shared=NULL,
            graph=NULL,
            collective=NULL,
        )
