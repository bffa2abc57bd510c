"""The site builds without a warning; every link and anchor inside of it leads somewhere, and no
page fetches anything from elsewhere.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from tests import needs
from tests.conftest import ROOT

needs.packages("mkdocs", "material")
pytestmark = pytest.mark.slow
DRAWN_BY_A_LIBRARY = "mermaid"
"""The theme fetches a library for what is marked so."""
LOADS = {
    ("img", "src"),
    ("script", "src"),
    ("iframe", "src"),
    ("source", "src"),
    ("video", "src"),
    ("object", "data"),
}
FETCHED_LINKS = {"stylesheet", "icon", "preload", "preconnect", "dns-prefetch", "manifest"}
RAW = re.compile(r"\| --- \||\]\(|```|\n#+ |\n[-*] |<!--|\*\*[A-Za-z][^*]*\*\*")
IN_STYLES = re.compile(r"(?:url\(|@import\s+)\s*[\"']?(?:https?:)?//", re.IGNORECASE)


@dataclass
class Read(HTMLParser):
    """What the checks need of one page."""

    links: list[str] = field(default_factory=list)
    fetched: list[str] = field(default_factory=list)
    anchors: list[str] = field(default_factory=list)
    classes: set[str] = field(default_factory=set)
    words: list[str] = field(default_factory=list)
    in_cells: list[str] = field(default_factory=list)
    quiet: int = 0
    cell: int = 0

    def __post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.anchors += [given["id"]] if given.get("id") else []
        self.classes |= set(given.get("class", "").split())
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        self.fetched += [given[name] for kind, name in LOADS if kind == tag and name in given]
        self.fetched += re.findall(r"(\S+)(?: [\d.]+[wx])?(?:,|$)", given.get("srcset", ""))
        if tag == "link" and FETCHED_LINKS & set(given.get("rel", "").split()):
            self.fetched.append(given.get("href", ""))
        self.quiet += tag in ("code", "script", "style")
        self.cell += tag == "td"

    def handle_endtag(self, tag: str) -> None:
        self.quiet -= tag in ("code", "script", "style")
        self.cell -= tag == "td"

    def handle_data(self, data: str) -> None:
        if self.cell:
            self.in_cells.append(data)
        if not self.quiet:
            self.words.append(data)


def read(text: str) -> Read:
    page = Read()
    page.feed(text)
    page.close()
    return page


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built site. The proxies of the environment lead nowhere, so that nothing is fetched."""
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        env={
            **os.environ,
            "NO_MKDOCS_2_WARNING": "1",
            "https_proxy": "http://127.0.0.1:9",
            "http_proxy": "http://127.0.0.1:9",
        },
    )
    assert done.returncode == 0, done.stderr
    assert "WARNING" not in done.stderr
    return folder


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[Path, Read]:
    return {path: read(path.read_text(encoding="utf-8")) for path in sorted(site.rglob("*.html"))}


def inside(pages: dict[Path, Read]) -> Iterator[tuple[Path, str, Path, str]]:
    """Every link that stays within the site: the page, the link, its target and its anchor."""
    for page, held in pages.items():
        for link in held.links if page.name != "404.html" else ():
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (page.parent / unquote(parts.path)).resolve() if parts.path else page
            yield page, link, target / "index.html" if target.is_dir() else target, parts.fragment


def test_every_link_inside_leads_to_a_page(pages: dict[Path, Read]) -> None:
    links = list(inside(pages))
    assert len(links) > 1000
    lost = {f"{page.name}: {link}" for page, link, target, _ in links if not target.is_file()}
    assert not lost


def test_every_anchor_inside_is_there(pages: dict[Path, Read]) -> None:
    found = [one for one in inside(pages) if one[3] and one[2].suffix == ".html"]
    assert len(found) > 300
    lost = {
        f"{page.name}: {link}"
        for page, link, target, anchor in found
        if unquote(anchor) not in pages[target].anchors
    }
    assert not lost


def test_anchors_of_a_page_are_unique(pages: dict[Path, Read]) -> None:
    for path, page in pages.items():
        twice = {one for one in page.anchors if page.anchors.count(one) > 1}
        assert not twice, path.name


def test_no_page_fetches_anything_from_elsewhere(site: Path, pages: dict[Path, Read]) -> None:
    for path, page in pages.items():
        assert page.fetched, path.name
        assert not [one for one in page.fetched if urlsplit(one).netloc], path.name
        assert DRAWN_BY_A_LIBRARY not in page.classes, path.name
    for sheet in site.rglob("*.css"):
        assert not IN_STYLES.search(sheet.read_text(encoding="utf-8")), sheet.name


def test_every_document_is_a_page(site: Path) -> None:
    for document in (ROOT / "docs").rglob("*.md"):
        page = document.relative_to(ROOT / "docs").with_suffix(".html")
        assert (site / page).is_file(), page


def test_markup_became_what_it_means(pages: dict[Path, Read]) -> None:
    """Tables, links, fences and headings that the site's Markdown reads in another way than
    GitHub's would stand there as text.
    """
    for path, page in pages.items():
        text = "".join(page.words)
        assert r"\|" not in "".join(page.in_cells), path.name
        raw = RAW.search(text)
        assert not raw, f"{path.name}: {text[max(0, raw.start() - 80) :][:200]}"


@pytest.mark.parametrize(
    ("origin", "link", "path"),
    [
        ("README.md", "docs/metrics.md", "metrics.md"),
        ("README.md", "docs/report.png", "report.png"),
        ("README.md", "SECURITY.md", "SECURITY.md"),
        ("docs/command-line.md", "../SECURITY.md", "SECURITY.md"),
        ("docs/explanation/trust.md", "../../SECURITY.md", "../SECURITY.md"),
        ("docs/explanation/trust.md", "../../README.md", "../index.md"),
        ("docs/how-to/slurm.md", "../metrics.md", "../metrics.md"),
        ("docs/how-to/slurm.md", "serve.md", "serve.md"),
    ],
)
def test_links_are_those_of_the_site(origin: str, link: str, path: str) -> None:
    from docs import site_hooks

    assert site_hooks.site_path(link, origin) == path


def test_the_check_itself_sees_what_is_wrong() -> None:
    page = read(
        '<link rel="stylesheet" href="https://a.example/x.css"><img srcset="//b.example/y.png 2x">'
        '<h2 id="there">T</h2><a href="other.html#gone">x</a><p>| --- | and <code>](</code></p>'
    )
    assert page.fetched == ["https://a.example/x.css", "//b.example/y.png"]
    assert page.anchors == ["there"]
    assert page.links == ["other.html#gone"]
    assert "".join(page.words) == "Tx| --- | and "
    assert IN_STYLES.search('@import "//c.example/d.css"')
    assert not IN_STYLES.search("a { background: url(data:image/png;base64,AA) }")
