"""Packets that compare the clocks of two nodes: who is answered, what is written, and how long it
may take.
"""

from __future__ import annotations

import socket
import time

import pytest

from profharness.measure.meeting import clock_link
from profharness.measure.meeting.clock_link import Meeting, answerer, ask

HERE = ("127.0.0.1",)


def in_s(seconds: float) -> float:
    return time.monotonic() + seconds


def test_one_clock_is_apart_from_itself_by_nothing():
    with answerer("n0", HERE, bind="127.0.0.1") as told:
        found = ask(told, in_s(3))
    assert found is not None
    assert abs(found.offset_ns) <= found.width_ns
    assert found.answers > 1


def test_a_clock_that_is_ahead_is_found_within_the_width(monkeypatch):
    real = time.clock_gettime_ns
    apart = 123_456_789_000
    with answerer("n0", HERE, bind="127.0.0.1") as told:
        # the answering thread looks the function up at each packet, so it is told apart by its name
        def shifted(clock):
            import threading

            return real(clock) + (apart if threading.current_thread().daemon else 0)

        monkeypatch.setattr(clock_link.time, "clock_gettime_ns", shifted)
        found = ask(told, in_s(3))
    assert found is not None
    assert abs(found.offset_ns - apart) <= found.width_ns


def test_a_packet_without_the_nonce_is_not_answered():
    with answerer("n0", HERE, bind="127.0.0.1") as told:
        wrong = Meeting(host="n0", port=told.port, addresses=HERE, nonce="00" * 16)
        begun = time.monotonic()
        assert ask(wrong, in_s(0.5)) is None
        assert time.monotonic() - begun < 2
        assert ask(told, in_s(3)) is not None


def test_an_answer_without_the_nonce_is_not_believed():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as liar:
        liar.bind(("127.0.0.1", 0))
        liar.settimeout(2)
        told = Meeting(host="n0", port=liar.getsockname()[1], addresses=HERE, nonce="11" * 16)
        import threading

        def lie():
            packet, sender = liar.recvfrom(64)
            liar.sendto(b"\x22" * 16 + packet[16:], sender)

        thread = threading.Thread(target=lie)
        thread.start()
        assert ask(told, in_s(0.5)) is None
        thread.join()


def test_an_address_that_answers_is_found_among_others():
    with answerer("n0", ("127.0.0.2", "127.0.0.1"), bind="127.0.0.1") as told:
        assert ask(told, in_s(3)) is not None


def test_nobody_holds_a_run_up():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as silent:
        silent.bind(("127.0.0.1", 0))
        told = Meeting(host="n0", port=silent.getsockname()[1], addresses=HERE, nonce="11" * 16)
        begun = time.monotonic()
        assert ask(told, in_s(clock_link.LIMIT_S / 3)) is None
        assert time.monotonic() - begun < clock_link.LIMIT_S


@pytest.mark.parametrize("times", [1, 3])
def test_the_thread_ends_with_what_it_serves(times):
    import threading

    before = threading.active_count()
    for _ in range(times):
        with answerer("n0", HERE, bind="127.0.0.1"):
            assert threading.active_count() == before + 1
    assert threading.active_count() == before
