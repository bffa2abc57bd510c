"""Whose a track is, against following its parents one by one."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from profharness.readers.perfetto.tracks import Track, Tracks
from profharness.trace.columns.table import NULL
from tests.steps import calls_of

DEEPEST = 64
UUIDS = st.integers(min_value=0, max_value=8)
DECLARED = st.dictionaries(
    UUIDS,
    st.builds(
        Track,
        name=st.sampled_from(["", "kernels", "THREAD 2 (71)", f"THREAD 3 ({2**70})"]),
        parent=UUIDS,
        pid=st.sampled_from([NULL, NULL, 5, 6]),
        tid=st.sampled_from([NULL, NULL, 8]),
    ),
    max_size=9,
)


def tracks_of(declared: dict[int, Track]) -> Tracks:
    """The tracks as if a file had declared them."""
    tracks = Tracks.__new__(Tracks)
    tracks._known = declared
    return tracks


def followed(declared: dict[int, Track], uuid: int, kind: str) -> int:
    """The pid or tid of a track, or of the nearest above that states one."""
    for _ in range(DEEPEST):
        track = declared.get(uuid, Track())
        number = track.pid if kind == "pid" else track.tid
        if kind == "tid" and number == NULL and track.name == "THREAD 2 (71)":
            number = 71
        if number != NULL or not track.parent:
            return number
        uuid = track.parent
    return NULL


@given(DECLARED)
def test_a_track_is_of_the_nearest_process_and_thread_above(declared: dict[int, Track]) -> None:
    """Also where tracks stand in a ring, under one that nobody declared, or under themselves."""
    tracks = tracks_of(declared)
    for uuid in range(10):
        assert tracks.pid(uuid) == followed(declared, uuid, "pid")
        assert tracks.tid(uuid) == followed(declared, uuid, "tid")


def test_a_process_is_looked_for_so_far_up_and_no_further() -> None:
    chain = {n: Track(parent=n + 1) for n in range(1, 100)} | {100: Track(pid=4)}
    tracks = tracks_of(chain)
    assert [tracks.pid(100 - above) for above in (0, DEEPEST - 1, DEEPEST)] == [4, 4, NULL]


def test_a_long_chain_of_tracks_is_not_followed_from_each_of_them() -> None:
    chain = {n: Track(parent=n + 1) for n in range(1, 10_000)}
    assert calls_of(lambda: tracks_of(chain).pid(1)) < 60_000  # following each makes 1.3 million
