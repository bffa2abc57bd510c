"""The parts of the live page: what they say, and that nothing foreign in them is obeyed."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from itertools import pairwise
from xml.etree import ElementTree as ET

import pytest

from profharness.analysis.live.records import LiveAnswer, LivePass, LivePoint, LiveRun, LiveSeries
from profharness.analysis.records import Figure, PointSummary
from profharness.report.live.page import Moment, own_script, page_text, parts, policy
from profharness.report.page.script import by_hash
from profharness.stats.time_left import TimeLeft

HOSTILE = "<img src=x onerror=alert(1)>\"'&\x1b[31m\u202e</svg><script>alert(2)</script>"


def measured(batch: int, rate: float, backend: str = "torch") -> PointSummary:
    return PointSummary(
        point=f"{backend}-b{batch}",
        backend=backend,
        batch_size=batch,
        throughput=rate,
        trials=30,
        latency_ms=batch / rate * 1e3,
        metrics={"throughput": Figure(value=rate, unit="", low=0.9 * rate, high=1.1 * rate)},
    )


def live(curve: tuple[PointSummary, ...], **more: object) -> LiveRun:
    made = tuple(
        LivePoint(pass_name="bare", key=one.point, name=one.point, summary=one, took_s=2.0)
        for one in curve
    )
    values: dict[str, object] = {
        "title": "particlenet",
        "state": "running",
        "unit": "jets/s",
        "points": made,
        "curve": curve,
        "curve_pass": "bare",
        "done": len(curve),
        "planned": 8,
        "now": "torch batch 8",
        "now_s": 3.0,
        "following": ("torch batch 16",),
        "more": 4,
        "left": TimeLeft(75.0, "the 3 points so far took 15 s each on average"),
        "passes": (LivePass(name="bare", state="running", done=3, points=8, seconds=45.0),),
    }
    return LiveRun(**(values | more))  # type: ignore[arg-type]  # the fields of a record, by name


def test_it_says_what_is_measured_what_is_next_and_how_long() -> None:
    told = parts(Moment(live((measured(1, 10.0), measured(2, 20.0)))))
    opening = told["opening"]
    assert "torch batch 8" in opening
    assert "torch batch 16; and 4 more" in opening
    assert "about 1:15" in opening
    assert "15 s each on average" in opening
    assert "2 of 8 points" in opening
    assert "20.0 ± 2.0" in told["points"]
    assert told["points"].index("torch-b2") < told["points"].index("torch-b1"), "the newest first"


def test_the_curve_has_a_line_per_backend_with_intervals_where_they_belong() -> None:
    points = tuple(
        measured(batch, batch * factor, backend)
        for backend, factor in (("torch", 10.0), ("onnxruntime", 20.0))
        for batch in (1, 2, 4)
    )
    html = parts(Moment(live(points)))["curve"]
    svg = ET.fromstring(html[html.index('<svg class="chart"') : html.rindex("</svg>") + 6])
    lines = list(svg.iter("polyline"))
    assert [one.get("stroke") for one in lines] == ["#d1495b", "#2e75b6"], "as in the report"
    marks = [(float(one.get("cx", "")), float(one.get("cy", ""))) for one in svg.iter("circle")]
    torch, onnxruntime = marks[:3], marks[3:]
    steps = [second[0] - first[0] for first, second in pairwise(torch)]
    assert steps[0] == pytest.approx(steps[1], abs=0.2), "sizes double on a log axis"
    assert [x for x, _ in torch] == [x for x, _ in onnxruntime]
    # twice the throughput is twice as far above the axis
    axis = next(float(one.get("y1", "")) for one in svg.iter("line") if one.get("class") == "axis")
    heights = [axis - y for _, y in marks]
    assert heights[3:] == pytest.approx([2 * height for height in heights[:3]], abs=0.3)
    bars = [one.get("d", "") for one in svg.iter("path")]
    low = float(bars[0].split(" ")[1].split("h")[0])
    high = float(bars[0].split("V")[1].split("M")[0])
    assert axis - low == pytest.approx(0.9 * heights[0], abs=0.2)
    assert axis - high == pytest.approx(1.1 * heights[0], abs=0.2)


def test_axes_of_a_command_have_a_line_per_setting_of_the_others() -> None:
    points = tuple(
        PointSummary(
            point=f"batch{batch}-mode{mode}",
            throughput=float(batch),
            parameters={"batch": batch, "mode": mode},
        )
        for mode in ("fast", "exact")
        for batch in (1, 2, 3)
    )
    html = parts(Moment(live(points, axes=("batch", "mode"), unit="items/s")))["curve"]
    assert html.count("<polyline") == 2
    assert "mode fast" in html
    assert "mode exact" in html
    assert ">batch</text>" in html


def hostile_moment() -> Moment:
    point = PointSummary(
        point=HOSTILE,
        backend=HOSTILE,
        batch_size=4,
        state="failed",
        error=HOSTILE,
    )
    good = measured(4, 10.0, HOSTILE)
    other = measured(8, 10.0, HOSTILE + "2")
    run = live(
        (good, other),
        title=HOSTILE,
        error=HOSTILE,
        facts=(HOSTILE,),
        command=(HOSTILE,),
        unit=HOSTILE,
        now=HOSTILE,
        following=(HOSTILE,),
        left=TimeLeft(1.0, HOSTILE),
        findings=(HOSTILE,),
        passes=(LivePass(name=HOSTILE, layers=(HOSTILE,), state=HOSTILE),),
        points=(
            LivePoint(pass_name=HOSTILE, key=HOSTILE, name=HOSTILE, summary=point),
            LivePoint(pass_name="bare", key="a", name=HOSTILE, summary=good),
        ),
    )
    series = LiveSeries(
        metric=HOSTILE, unit=HOSTILE, device=HOSTILE, host=HOSTILE, at_s=(-1.0, 0.0), values=(1, 2)
    )
    return Moment(run, (series,))


class Tags(HTMLParser):
    """The elements of a text, as a browser would make them."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.names: set[str] = set()
        self.attributes: set[str] = set()
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.add(tag)
        self.attributes |= {name for name, _ in attrs}


@pytest.mark.parametrize("state", ["running", "ended", "failed"])
def test_names_of_programs_are_shown_and_never_obeyed(state: str) -> None:
    moment = hostile_moment()
    if state == "ended":
        answer = LiveAnswer(answer=HOSTILE, next=HOSTILE, trust=HOSTILE, report=HOSTILE)
        moment = Moment(moment.run, moment.telemetry, answer=answer, ended=True)
    if state == "failed":
        answer = LiveAnswer(failed=HOSTILE, command=HOSTILE)
        moment = Moment(moment.run, moment.telemetry, answer=answer, ended=True)
    for name, html in parts(moment).items():
        tags = Tags(html)
        assert not tags.names & {"img", "script", "iframe", "style", "link", "a"}, name
        assert not {one for one in tags.attributes if one.startswith("on")}, name
        assert "style" not in tags.attributes, "the policy forbids styles of elements"
        assert "\x1b" not in html, name
        assert "\u202e" not in html, name
        assert "&lt;img" in html, name


def test_the_page_allows_its_own_script_and_connections_to_itself_alone() -> None:
    page = page_text()
    assert str(by_hash([own_script()])) in policy()
    assert "default-src 'none'" in policy()
    assert "connect-src 'self'" in policy()
    assert "unsafe" not in policy()
    assert page.count("<script>") == 1
    assert f"<script>{own_script()}</script>" in page
    assert not re.search(r"https?://", page), "nothing of elsewhere"


def test_a_killed_run_is_called_so_and_one_that_is_over_says_how() -> None:
    killed = parts(Moment(live((measured(1, 10.0),)), answer=LiveAnswer(), ended=True))
    assert ">killed<" in killed["head"]
    assert "ended before its answer was made" in killed["opening"]
    answer = LiveAnswer(answer="Best is 10 jets/s.", report="/data/run/report.html")
    over = parts(Moment(live((), state="done"), answer=answer, ended=True))
    assert "Best is 10 jets/s." in over["opening"]
    assert "/data/run/report.html" in over["opening"]
    assert "Left" not in over["opening"]


def test_what_is_far_below_the_largest_value_is_zero() -> None:
    series = LiveSeries(metric="cpu_tree", unit="cores", at_s=(-1.0, 0.0), values=(2.0, 0.0013))
    html = parts(Moment(live(()), (series,)))["telemetry"]
    assert ">0 cores<" in html
    assert "0 to 2 in 0:01" in html
