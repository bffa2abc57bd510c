"""How the clock of a node stands to that of rank 0's node, by packets there and back: before the
passes and after each, from the leader of every other node.

Rank 0 answers each packet that carries the run's nonce with the nonce and its CLOCK_BOOTTIME.
An answer was stamped between the asking and its arrival, so that each packet bounds the difference
of both clocks from both sides; the bounds of some hundred packets together are what is written down
(after Cristian 1989). The nonce and the port stand in the run directory.
"""

from __future__ import annotations

import secrets
import select
import socket
import struct
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import msgspec

from profharness.measure.meeting.waiting import FIRST_S
from profharness.measure.plan import RunPlan
from profharness.rundir.clock_files import LINK_FILE
from profharness.rundir.manifest import ClockSnapshot
from profharness.rundir.paths import RunDir, write_atomic
from profharness.telemetry.clocks import read_clocks

LIMIT_S = 3.0
"""How long one reading may hold a run up, all waiting together."""
_PACKETS = 300
_ENOUGH_S = 1.0  # for all packets of a reading, once one was answered
_ANSWER_S = 0.1
_BYTES = 16
_ASK, _ANSWER = struct.Struct("<16sQQ"), struct.Struct("<16sQq")


class Meeting(msgspec.Struct, frozen=True, kw_only=True):
    """Where rank 0 answers: its host, port and addresses, and the run's nonce (hex)."""

    v: int = 1
    host: str
    port: int
    addresses: tuple[str, ...]
    nonce: str


@dataclass(frozen=True)
class Reading:
    """What is to be added to the own CLOCK_BOOTTIME for that of rank 0, within `width_ns` to both
    sides, by so many answers.
    """

    offset_ns: int
    width_ns: int
    answers: int


def path_of(run: RunDir) -> Path:
    """Where rank 0 says where it answers."""
    return run.root / "control" / "clocks" / "meeting.json"


@contextmanager
def answering(run_plan: RunPlan, run: RunDir) -> Iterator[None]:
    """Answer the leaders of other nodes, where there may be any. Without a socket they go by the
    wall clocks.
    """
    rank = run_plan.rank
    if rank.world == 1 or rank.one_node or run_plan.request.node_clocks != "ping":
        yield
        return
    with ExitStack() as open_for_others:
        with suppress(OSError):
            told = open_for_others.enter_context(answerer(run_plan.host, own_addresses()))
            write_atomic(path_of(run), msgspec.json.encode(told), mode=0o600)
        yield


@contextmanager
def answerer(
    host: str,
    addresses: Sequence[str],
    bind: str = "0.0.0.0",  # noqa: S104  other nodes ask
) -> Iterator[Meeting]:
    """Answers in a thread of its own for as long as this is open. Raises OSError without a socket.

    Only packets that carry the nonce are answered, with as many bytes as they have.
    """
    nonce = secrets.token_bytes(_BYTES)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as channel:
        channel.bind((bind, 0))
        port = int(channel.getsockname()[1])
        thread = threading.Thread(target=_answer, args=(channel, nonce), daemon=True)
        thread.start()
        try:
            yield Meeting(host=host, port=port, addresses=tuple(addresses), nonce=nonce.hex())
        finally:
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as last, suppress(OSError):
                everywhere = bind == "0.0.0.0"  # noqa: S104  asked, not bound to
                last.sendto(nonce, ("127.0.0.1" if everywhere else bind, port))
                thread.join(LIMIT_S)


def _answer(channel: socket.socket, nonce: bytes) -> None:
    """Until a packet that is the nonce alone comes."""
    while True:
        try:
            packet, sender = channel.recvfrom(64)
            now = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
        except OSError:
            return
        if packet == nonce:
            return
        if len(packet) == _ASK.size and packet[:_BYTES] == nonce:
            with suppress(OSError):
                channel.sendto(_ANSWER.pack(nonce, _ASK.unpack(packet)[1], now), sender)


class ClockLink:
    """What the leader of another node writes beside its clock readings: those of both nodes at one
    instant, before the passes and after each.
    """

    def __init__(self, run_plan: RunPlan, run: RunDir) -> None:
        self._asks = run_plan.rank.leads_node and run_plan.request.node_clocks == "ping"
        self._host, self._run = run_plan.host, run

    def read(self, phase: str) -> None:
        """One reading, in at most `LIMIT_S`; nothing where nobody answers."""
        if not self._asks:
            return
        deadline = time.monotonic() + LIMIT_S
        told = _await_meeting(path_of(self._run), deadline)
        if told is None or told.host == self._host:
            return
        with suppress(OSError, ValueError):
            found = ask(told, deadline)
            if found is not None:
                self._write(phase, told.host, found)

    def _write(self, phase: str, reference: str, found: Reading) -> None:
        own = read_clocks()
        line = ClockSnapshot(
            host=self._host,
            phase=phase,
            boot_ns=own.boot_ns,
            monotonic_ns=own.monotonic_ns,
            monotonic_raw_ns=own.monotonic_raw_ns,
            realtime_ns=own.realtime_ns,
            width_ns=own.width_ns,
            reference=reference,
            reference_ns=own.boot_ns + found.offset_ns,
            reference_width_ns=found.width_ns,
        )
        path = self._run.telemetry / f"{self._host}{LINK_FILE}"
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("ab") as file:
            file.write(msgspec.json.encode(line) + b"\n")


def _await_meeting(path: Path, deadline: float) -> Meeting | None:
    """What rank 0 wrote; None where it wrote nothing until then."""
    while True:
        try:
            return msgspec.json.decode(path.read_bytes(), type=Meeting)
        except (OSError, msgspec.DecodeError):
            if time.monotonic() + FIRST_S > deadline - _ENOUGH_S:
                return None
            time.sleep(FIRST_S)


def ask(told: Meeting, deadline: float) -> Reading | None:
    """The reading by the first address that answers; None where none does until then (by
    CLOCK_MONOTONIC). Raises OSError without a socket, ValueError for a nonce that is none.
    """
    nonce = bytes.fromhex(told.nonce)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as channel:
        channel.settimeout(0)
        number = 0
        while time.monotonic() < deadline - _ANSWER_S:
            for address in told.addresses:
                number += 1
                if _round(channel, nonce, number, (address, told.port)) is not None:
                    return _many(channel, nonce, (address, told.port), deadline)
    return None


def _many(
    channel: socket.socket, nonce: bytes, address: tuple[str, int], deadline: float
) -> Reading | None:
    """What the answers to many packets say together. Where they contradict each other, since the
    clocks drift by more than the narrowest leaves, that one alone counts.
    """
    until = min(deadline, time.monotonic() + _ENOUGH_S)
    bounds: list[tuple[int, int]] = []
    for number in range(1 << 20, (1 << 20) + _PACKETS):
        if (found := _round(channel, nonce, number, address)) is not None:
            bounds.append(found)
        if time.monotonic() > until:
            break
    if not bounds:
        return None
    low, high = max(low for low, _ in bounds), min(high for _, high in bounds)
    if low > high:
        low, high = min(bounds, key=lambda pair: pair[1] - pair[0])
    return Reading((low + high) // 2, (high - low + 1) // 2, len(bounds))


def _round(
    channel: socket.socket, nonce: bytes, number: int, address: tuple[str, int]
) -> tuple[int, int] | None:
    """The least and the most that the other clock is ahead, by one packet; None without its
    answer.
    """
    clock, boot = time.clock_gettime_ns, time.CLOCK_BOOTTIME
    with suppress(OSError):
        sent = clock(boot)
        channel.sendto(_ASK.pack(nonce, number, 0), address)
        deadline = time.monotonic() + _ANSWER_S
        while (left := deadline - time.monotonic()) > 0 and select.select([channel], [], [], left)[
            0
        ]:
            packet = channel.recv(64)
            came = clock(boot)
            if len(packet) == _ANSWER.size:
                theirs, answered, stamp = _ANSWER.unpack(packet)
                if theirs == nonce and answered == number:
                    return stamp - came, stamp - sent
    return None


def own_addresses() -> tuple[str, ...]:
    """The addresses of this host by its name, the loopback last."""
    with suppress(OSError):
        found = socket.getaddrinfo(socket.gethostname(), None, socket.AF_INET, socket.SOCK_DGRAM)
        return tuple(dict.fromkeys([*(str(one[4][0]) for one in found), "127.0.0.1"]))
    return ("127.0.0.1",)
