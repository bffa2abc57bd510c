"""Curves are told apart by mark and line, not by colour alone."""

from __future__ import annotations

from profharness.report.plots.paper_looks import DEVICE_COLOURS, PALETTE, device_colour, looks


def test_published_devices_have_their_published_colours() -> None:
    assert device_colour("Nvidia A100 (40 GB)") == DEVICE_COLOURS["A100"]
    assert device_colour("AMD MI100") == DEVICE_COLOURS["MI100"]
    assert device_colour("my cluster") == ""
    first, second = looks([("AMD MI100",), ("my cluster",)])
    assert first.colour == DEVICE_COLOURS["MI100"]
    assert second.colour in PALETTE


def test_a_device_keeps_its_colour_where_a_note_names_it() -> None:
    direct, served = looks([("direct",), ("triton",)], about="torch, AMD MI210")
    assert direct.colour == served.colour == DEVICE_COLOURS["MI210"]


def test_direct_and_served_of_a_device_share_colour_and_mark_and_differ_in_line_and_filling() -> (
    None
):
    direct, served = looks([("direct", "x"), ("triton", "x")])
    assert (direct.colour, direct.mark) == (served.colour, served.mark)
    assert (direct.line, direct.filled) == ("-", True)
    assert served.line != "-"
    assert not served.filled
    assert served.settings["markerfacecolor"] == "white"


def test_served_curves_among_themselves_are_ordinary() -> None:
    assert [look.filled for look in looks([("triton", "x"), ("triton", "y")])] == [True, True]


def test_twelve_curves_have_twelve_marks_without_any_colour() -> None:
    found = looks([(f"thing {number}",) for number in range(12)])
    assert len({look.mark for look in found}) == 12


def test_no_two_of_many_curves_look_alike_in_black_and_white() -> None:
    for count in (2, 12, 24, 40):
        names = [
            (way, f"thing {number}") for number in range(count // 2) for way in ("direct", "triton")
        ]
        found = looks(names)
        assert len({(one.colour, one.mark, str(one.line), one.filled) for one in found}) == count
    twelve = looks([(way, f"{n}") for n in range(6) for way in ("direct", "triton")])
    assert len({(one.mark, one.filled) for one in twelve}) == 12


def test_many_backends_of_one_device_have_colours_of_their_own() -> None:
    found = looks([("MI210", f"backend {number}") for number in range(6)])
    assert len({look.colour for look in found}) == 6


def test_the_palette_gives_no_colour_that_a_device_has() -> None:
    found = looks([("MI100",), ("MI210",), ("another",), ("one more",)])
    assert len({look.colour for look in found}) == 4
