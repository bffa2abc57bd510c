from __future__ import annotations

import html
import json
import random
import re
import shlex
import string
from base64 import b64encode
from hashlib import sha256
from html.parser import HTMLParser

import msgspec
import pytest

from profharness.analysis.pictures.records import Pictures
from profharness.analysis.records import Figure, ProblemRow, Summary, TelemetryRow
from profharness.report.page import content
from profharness.report.page import html as page_html
from profharness.report.page.headline import tiles
from profharness.report.page.html import SIZE_LIMIT, render
from profharness.report.page.stars import star_text, starred_table
from profharness.report.page.verdict import headroom_tile, opening_verdict, spot_commands
from profharness.report.tables.telemetry import telemetry_table
from profharness.report.text import terminal
from profharness.report.text.findings import all_findings
from profharness.report.text.sentences import sentences
from profharness.rundir.shown.packed import unpacked
from tests.report.samples import SAMPLES, command, cpu_scan, empty, failing, gpu_scan, odd_numbers

LINKS = (
    "src",
    "href",
    "action",
    "data",
    "poster",
    "srcset",
    "xlink:href",
    "formaction",
    "background",
    "cite",
    "manifest",
)
VOID = {"meta", "link", "br", "img", "input", "hr"}


class Page(HTMLParser):
    """Text, links and structure of a page; scripts' contents are kept apart from what is seen."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.links: list[str] = []
        self.ids: list[str] = []
        self.tips: list[str] = []
        self.tags: list[str] = []
        self.seen: list[str] = []
        self.stack: list[str] = []
        self.scripts: list[str] = []
        self.attributes: set[str] = set()
        self.options = False
        self.glued = False
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        if tag not in VOID:
            self.stack.append(tag)
        if ("class", "option") in attrs:
            self.options = self.glued = True
        for name, value in attrs:
            self.attributes.add(name)
            if name in LINKS:
                self.links.append(value or "")
            if name == "id":
                self.ids.append(value or "")
            if name == "title":
                self.tips.append(value or "")

    def handle_endtag(self, tag: str) -> None:
        assert self.stack, f"closing {tag} without an opening one"
        assert self.stack.pop() == tag, f"{tag} closed out of order"
        if self.options:
            self.options, self.glued = False, True

    def handle_data(self, data: str) -> None:
        where = self.stack[-1] if self.stack else ""
        if where in {"script", "style"}:
            self.scripts.append(data)
        elif self.glued and self.seen:
            self.seen[-1] += data  # an option is a part of its sentence
        else:
            self.seen.append(data)
        self.glued = False

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.seen).split())


@pytest.fixture(scope="module", params=SAMPLES)
def named_page(request: pytest.FixtureRequest) -> tuple[str, str, Page]:
    text = render(SAMPLES[request.param]())
    return request.param, text, Page(text)


def test_the_page_is_well_formed_and_has_one_of_each_id(named_page: tuple[str, str, Page]) -> None:
    _, _, page = named_page
    assert page.stack == []
    assert len(page.ids) == len(set(page.ids))
    assert page.tags.count("h1") == 1


def test_the_page_is_small_enough_to_mail(named_page: tuple[str, str, Page]) -> None:
    _, text, _ = named_page
    assert len(text.encode()) < SIZE_LIMIT == 2_000_000


def test_the_page_loads_nothing(named_page: tuple[str, str, Page]) -> None:
    _, text, page = named_page
    assert all(link.startswith("#") or link == "data:," for link in page.links)
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', text)
    assert policy is not None
    assert "default-src 'none'" in policy[1]
    assert "connect-src" not in policy[1]
    said = html.unescape(policy[1])
    assert "unsafe" not in said
    engine = re.findall(r'<script type="text/plain" id="plot-engine">(.*?)</script>', text)
    own = re.findall(
        r'<script(?: type="text/plain" id="unpacker")?>(.*?)</script>', text, re.DOTALL
    )
    scripts = [*map(unpacked, engine), *own]
    styles = re.findall(r"<style>(.*?)</style>", text, re.DOTALL)
    for directive, texts in (("script-src", scripts), ("style-src", styles)):
        allowed = re.search(rf"{directive} ([^;]*)", said)
        assert allowed is not None
        hashes = [b64encode(sha256(one.encode()).digest()).decode() for one in texts]
        assert allowed[1].split() == [f"'sha256-{one}'" for one in hashes]
    assert "style" not in page.attributes
    assert not any(name.startswith("on") for name in page.attributes)
    for directive in ("base-uri 'none'", "form-action 'none'"):
        assert directive in policy[1]
    assert "@import" not in text.partition("</style>")[0]
    assert "url(" not in text.partition("</style>")[0]
    assert not {"iframe", "object", "embed", "img", "form"} & set(page.tags)


def test_no_hole_is_visible(named_page: tuple[str, str, Page]) -> None:
    _, _, page = named_page
    shown = [page.text, *page.tips]
    for text in shown:
        assert not re.search(r"\b(nan|NaN|None|inf|Undefined|null)\b", text), text


def test_the_page_opens_with_the_same_three_lines(named_page: tuple[str, str, Page]) -> None:
    name, _, page = named_page
    said = sentences(SAMPLES[name]())
    last = said.trust_alone if "findings" in page.ids else said.trust
    parts = (part.replace("`", "") for part in (said.answer, said.next, last))
    places = [page.text.index(" ".join(part.split())) for part in parts]
    assert places == sorted(places)


def test_every_finding_is_shown_with_advice(named_page: tuple[str, str, Page]) -> None:
    name, _, page = named_page
    for finding in all_findings(SAMPLES[name]()):
        assert finding.id in page.text
        assert " ".join(finding.message.split()) in page.text
        assert finding.advice in page.text


def test_sections_follow_what_was_measured() -> None:
    full, none = Page(render(gpu_scan())).ids, Page(render(empty())).ids
    wanted = [
        "points",
        "curves",
        "saturation",
        "time",
        "roofline",
        "hotspots",
        "trials",
        "telemetry",
        "findings",
        "overhead",
        "provenance",
        "figures",
    ]
    assert [name for name in full if name in wanted] == wanted
    assert [name for name in none if name in wanted] == ["provenance"]
    assert "roofline" not in Page(render(cpu_scan())).ids


def test_the_use_of_the_device_has_a_section_with_the_verdict() -> None:
    page = Page(render(command()))
    assert "use" in page.ids
    assert "plot-work-roofline" in page.ids
    assert page.text.count("Not saturated: the device is idle 30.1 %") == 1
    assert "Hardware counters by operator" in page.text
    assert "use" not in Page(render(gpu_scan())).ids


def test_the_page_says_where_to_look_first_in_the_trace() -> None:
    run = command()
    assert run.run is not None
    stepped = msgspec.structs.replace(run, pictures=Pictures(longest_step=17))
    view = f"profharness view {run.run.path} --at"
    (_, step), (_, kernel) = spot_commands(stepped)
    assert step == f"{view} 17"
    assert shlex.split(kernel)[-1] == run.hotspots[0].rows[0].name
    assert html.escape(kernel) in render(stepped)
    assert spot_commands(msgspec.structs.replace(run, run=None)) == ()


@pytest.mark.parametrize("name", ["123", "a\nb", "x" * 300])
def test_no_line_opens_a_kernel_that_it_cannot_name(name: str) -> None:
    run = command()
    row = msgspec.structs.replace(run.hotspots[0].rows[0], name=name)
    table = msgspec.structs.replace(run.hotspots[0], rows=(row,))
    assert spot_commands(msgspec.structs.replace(run, hotspots=(table,))) == ()


def test_the_page_opens_with_verdict_and_headroom() -> None:
    run = command()
    page = Page(render(run))
    assert run.verdict is not None
    at = [
        page.text.index(words)
        for words in (f"Verdict {run.verdict.text}", "Answer ", "headroom 1.43 times as fast")
    ]
    assert at == sorted(at)
    assert at[2] < page.text.index("How well the device was used")
    assert tiles(run)[0].label != "headroom"  # it is the page's own


def test_a_scan_opens_with_the_verdict_of_the_point_that_it_recommends() -> None:
    scan = gpu_scan()
    assert opening_verdict(scan).startswith("At batch 256 (torch): saturated by memory bandwidth")
    tile = headroom_tile(scan)
    assert tile is not None
    assert (tile.text, tile.note) == ("1.40", "times as fast at most at batch 256 (torch)")
    assert opening_verdict(empty()) == ""
    assert headroom_tile(empty()) is None


def test_the_merged_trace_is_named_with_the_command_that_opens_it() -> None:
    run = command()
    assert run.run is not None
    assert f"profharness view {run.run.path}" in Page(render(run)).text
    spaced = msgspec.structs.replace(run.run, path="traces/a b;c")
    moved = Page(render(msgspec.structs.replace(run, run=spaced)))
    assert "profharness view 'traces/a b;c'" in moved.text
    assert "profharness view" not in Page(render(empty())).text


def test_telemetry_has_no_digits_below_those_of_the_largest_value() -> None:
    row = TelemetryRow(
        metric="cpu_tree_wait",
        unit="cores",
        device="node7",
        mean=0.39281,
        low=0.00001895,
        high=1.42734,
        samples=25,
    )
    table = telemetry_table(msgspec.structs.replace(cpu_scan(), telemetry=(row,)))
    assert table is not None
    assert [cell.text for cell in table.rows[0][1:4]] == ["0.393 cores", "0 cores", "1.427 cores"]
    silent = telemetry_table(
        msgspec.structs.replace(
            cpu_scan(), telemetry=(msgspec.structs.replace(row, mean=0.0, low=0.0, high=0.0),)
        )
    )
    assert silent is not None
    assert silent.rows[0][3].text == "0 cores"


def test_the_tile_of_a_step_says_what_it_is_of_the_steps() -> None:
    figure = Figure(value=15.49e6, unit="ns", source="bare pass, 59 steady steps", note="mean")
    run = msgspec.structs.replace(command(), metrics={"step_time": figure})
    assert [tile.note for tile in tiles(run) if tile.label == "step"] == [
        "mean of the steady steps"
    ]


def test_every_navigation_link_has_its_target(named_page: tuple[str, str, Page]) -> None:
    _, _, page = named_page
    assert {link[1:] for link in page.links if link.startswith("#")} <= set(page.ids)


def test_figures_carry_their_provenance() -> None:
    page = Page(render(gpu_scan()))
    tips = " | ".join(page.tips)
    assert "from rocprofv3 pass, kernels table; covers 97 % of kernel time" in tips
    assert "from bare pass, amd telemetry at 10 Hz" in tips
    assert "HFU – needs a counter pass (--pmc)" in page.text


def test_the_reason_of_a_withheld_verdict_stands_below_the_points() -> None:
    scan = cpu_scan()
    needs = "a quiet node, as other work held the cores; it ran on 1.4 of 8 allowed cores"
    held = msgspec.structs.replace(scan.points[0], verdict=None, verdict_needs=needs)
    page = Page(
        render(
            msgspec.structs.replace(
                scan,
                points=(held, *scan.points[1:]),
            )
        )
    )
    assert page.text.count("no verdict: needs a quiet node, as other work held the cores") == 1
    assert f"no verdict: needs {needs}" in page.tips
    assert "no verdict:" not in Page(render(scan)).text


def test_long_kernel_names_are_folded_and_kept_whole() -> None:
    text = render(gpu_scan())
    assert "at::native::reduce_kernel&lt;…&gt;" in text
    assert html.escape("at::native::MeanOps<float, float, float, float>") in text


def test_clocks_versions_and_command_line_are_there() -> None:
    text = Page(render(gpu_scan())).text
    for part in (
        "−400 ns to 800 ns",
        "1.90 µs",
        "kineto 1.2.3",
        "torch 2.13.0",
        "3f2a91c (main, clean)",
        "profharness run particlenet --device cuda",
        "rows without an end time were left out",
    ):
        assert part in text


def test_plot_data_is_valid_json_without_numbers_that_are_not() -> None:
    for build in (gpu_scan, odd_numbers, failing):
        text = render(build())
        found = re.search(r'<script type="text/plain" id="plot-data">(.*?)</script>', text)
        drawn = set(re.findall(r'data-plot="([^"]+)"', text))
        assert (found is not None) == bool(drawn)
        if found is not None:
            figures = json.loads(unpacked(found[1]), parse_constant=pytest.fail)
            assert set(figures) == drawn


def test_hostile_text_stays_text() -> None:
    scan = gpu_scan()
    evil = "</script><img src=x onerror=alert(1)>"
    points = tuple(
        msgspec.structs.replace(point, backend=evil, point=f"{evil}{index}")
        for index, point in enumerate(scan.points)
    )
    hot = tuple(
        msgspec.structs.replace(
            table,
            rows=tuple(msgspec.structs.replace(row, name=evil + row.name) for row in table.rows),
        )
        for table in scan.hotspots
    )
    page = Page(render(msgspec.structs.replace(scan, points=points, hotspots=hot, source=evil)))
    assert "img" not in page.tags
    assert page.stack == []


@pytest.mark.slow
def test_many_points_and_trials_stay_below_the_limit() -> None:
    scan = gpu_scan()
    points = tuple(
        msgspec.structs.replace(
            point, trials_ms=tuple(1.0 + (i % 97) * 1e-3 for i in range(20_000))
        )
        for point in scan.points
    )
    rows = tuple(
        msgspec.structs.replace(scan.hotspots[0].rows[2], name=f"{'k' * 300}{i}")
        for i in range(3000)
    )
    big = msgspec.structs.replace(
        scan, points=points, hotspots=(msgspec.structs.replace(scan.hotspots[0], rows=rows),)
    )
    text = render(big)
    assert len(text.encode()) < SIZE_LIMIT
    assert "2988 further rows are shown by the page's script" in text


def _noise(seed: int, length: int) -> str:
    """Text that no compression makes shorter than its entropy."""
    letters = random.Random(seed)
    return "".join(letters.choice(string.ascii_letters + "<>:_,") for _ in range(length))


def _many(kind: str) -> Summary:
    """More of one kind than any run that was seen."""
    scan = gpu_scan()
    change: dict[str, object] = {}
    if kind == "points":
        change["points"] = tuple(
            msgspec.structs.replace(
                scan.points[at % 20], point=f"p{at}", batch_size=1 + at, backend=f"b{at % 12}"
            )
            for at in range(3000)
        )
    elif kind == "devices":
        values = tuple(float(at * 7919 % 1009) + 0.123 for at in range(1000))
        change["telemetry"] = tuple(
            msgspec.structs.replace(
                scan.telemetry[0], metric=metric, device=f"gpu{rank}", at_s=values, values=values
            )
            for metric in ("power_w", "clock_mhz", "gpu_percent", "temperature_c", "a", "b", "c")
            for rank in range(128)
        )
    elif kind == "kernels":
        change["hotspots"] = tuple(
            msgspec.structs.replace(
                scan.hotspots[0],
                by=by,
                rows=tuple(
                    msgspec.structs.replace(scan.hotspots[0].rows[at % 7], name=_noise(at, 300))
                    for at in range(3000)
                ),
            )
            for by in ("kernel", "op")
        )
    elif kind == "findings":
        change["findings"] = tuple(
            msgspec.structs.replace(scan.findings[0], message=_noise(at, 200)) for at in range(1500)
        )
    elif kind == "sources":
        change["sources"] = tuple(
            msgspec.structs.replace(scan.sources[0], path=f"{at}{_noise(at, 60)}")
            for at in range(1000)
        )
    return msgspec.structs.replace(scan, **change)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("points", "The plots leave out the last 2500 points"),
        ("devices", "16 of 128 devices"),
        ("kernels", "further rows are in hotspots.csv"),
        ("findings", "and 1480 more: "),
        ("sources", "further rows are shown by the page's script"),
    ],
)
def test_the_page_stays_small_and_says_what_it_leaves_out(kind: str, said: str) -> None:
    text = render(_many(kind))
    assert len(text.encode()) < SIZE_LIMIT
    assert said in Page(text).text


def test_plots_without_room_say_where_their_data_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_html, "PLOTS_ROOM", 30_000)
    page = Page(render(gpu_scan()))
    assert "plot-throughput" in page.ids
    assert "plot-trials" not in page.ids
    assert "Its data have no room on this page" in page.text


def test_of_many_points_and_problems_the_first_are_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(content, "MOST_ROWS", 20)
    monkeypatch.setattr(content, "MOST_DRAWN", 15)
    monkeypatch.setattr(content, "_POINTS", 2)
    monkeypatch.setattr(terminal, "_ROWS", 5)
    scan = cpu_scan()
    points = tuple(
        msgspec.structs.replace(scan.points[0], point=f"p{size}", batch_size=size)
        for size in range(1, 31)
    )
    problems = tuple(
        ProblemRow(source=f"x{at}", severity="error", count=1, message="it is not there")
        for at in range(25)
    )
    big = msgspec.structs.replace(scan, points=points, problems=problems)
    page = Page(render(big))
    assert "10 further points: " in page.text
    assert "The plots leave out the last 15 points" in page.text
    assert "28 further points: " in page.text  # of which every figure is listed
    assert "5 further problems: " in page.text
    assert ("x19" in page.text, "x20" in page.text) == (True, False)
    assert "25 further points: profharness metrics --json lists all" in terminal.render(
        big, 100, color=False
    )


def test_few_points_are_shown_whole() -> None:
    scan = cpu_scan()
    assert "further" not in Page(render(scan)).text + terminal.render(scan, 100, color=False)


def test_the_page_has_one_meaning_of_plus_minus() -> None:
    page = Page(render(gpu_scan()))
    assert "standard error" not in page.text + " ".join(page.tips)
    assert "95 % interval of the mean, with the drift of repeated points" in page.text


def test_figures_of_device_kernels_are_missing_once_on_a_cpu() -> None:
    scan = cpu_scan()
    needs = "kernels: --profile torch, or rocprofv3 on AMD"
    metrics = {
        **scan.metrics,
        **{
            name: Figure(value=None, unit="share", needs=needs) for name in ("busy", "idle", "fill")
        },
    }
    page = Page(render(msgspec.structs.replace(scan, metrics=metrics)))
    assert "3 figures of device work – no device kernels: a CPU run" in page.text
    assert needs not in page.text
    gpu = gpu_scan()
    assert (
        needs
        in Page(
            render(msgspec.structs.replace(gpu, metrics={**gpu.metrics, "busy": metrics["busy"]}))
        ).text
    )


def test_rates_of_a_command_are_among_the_tiles() -> None:
    text = Page(render(SAMPLES["command"]())).text
    assert "steps per second 2.430 steps/s slowed by the profiler" in text
    assert "throughput 622 items/s" in text


def test_counters_of_the_hardware_stand_in_the_tile_before_the_drivers_waves() -> None:
    shares = {"wave_fill": 0.04, "cu_active": 0.38}
    figures = {name: Figure(value=share, unit="share") for name, share in shares.items()}
    run = command()

    def told(**metrics: Figure) -> list[tuple[str, str]]:
        shown = tiles(msgspec.structs.replace(run, metrics=metrics))
        fill = ("fill", "wave fill", "CUs active")
        return [(tile.label, tile.text) for tile in shown if tile.label in fill]

    assert told(**figures) == [("CUs active", "38.0 %")]
    assert told(wave_fill=figures["wave_fill"]) == [("wave fill", "4.0 %")]
    of_kernels = Figure(value=0.5, unit="share")
    assert [label for label, _ in told(**figures, fill=of_kernels)] == ["fill"]


def test_the_captured_steps_stand_in_the_provenance() -> None:
    assert "capture 20 steps captured (10 to 29)" in Page(render(SAMPLES["command"]())).text


def test_a_star_stands_at_every_level_that_ties_with_the_best() -> None:
    summary = cpu_scan()
    (series,) = summary.series
    alone = msgspec.structs.replace(series, overlaps_best=())
    clear = starred_table(msgspec.structs.replace(summary, series=(alone,)))
    assert clear is not None
    assert len(clear.marked) == 1
    assert (
        star_text(msgspec.structs.replace(summary, series=(alone,)))
        == "★ marks the recommended level."
    )
    best = max(series.levels, key=lambda level: series.throughput[series.levels.index(level)])
    others = tuple(level for level in series.levels if level != best)[-2:]
    tied_summary = msgspec.structs.replace(
        summary, series=(msgspec.structs.replace(series, overlaps_best=others),)
    )
    tied = starred_table(tied_summary)
    assert tied is not None
    recommended = series.recommended.at if series.recommended else best
    assert len(tied.marked) == len({best, recommended, *others})
    assert all(tied.rows[index][0].text.startswith("★") for index in tied.marked)
    assert "no level is proven best" in render(tied_summary)
