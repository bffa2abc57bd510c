"""What the site needs beyond the files of docs/: the documents at the top of the repository.

README.md is the site's first page. Links that lead from docs/ to those documents, and from them
into docs/, lead to the same pages of the site.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page
from pymdownx.slugs import slugify

TOP = {
    "README.md": "index.md",
    "SECURITY.md": "SECURITY.md",
    "CONTRIBUTING.md": "CONTRIBUTING.md",
    "CHANGELOG.md": "CHANGELOG.md",
}
"""Documents at the top of the repository, with their pages."""
_ROW = re.compile(r"^\|.*\|$", re.MULTILINE)
_CODE = re.compile(r"`[^`]+`")
_NAMED = re.compile(r'(<a id="(?P<anchor>[^"]+)"></a>\n+)(#+ (?P<heading>.+))')
_LINK = re.compile(r"(\]\(|\]: |src=\")(?!\w+:)([^)#\s\"]+)")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the documents at the top to the site's files."""
    root = Path(config.config_file_path).parent
    for name, page in TOP.items():
        text = (root / name).read_text(encoding="utf-8")
        files.append(File.generated(config, page, content=text))
    return files


def on_page_markdown(markdown: str, page: Page, **_given: object) -> str:
    """The page's text with its links as they are within the site."""
    origin = next(
        (name for name, made in TOP.items() if made == page.file.src_uri),
        f"docs/{page.file.src_uri}",
    )

    def moved(match: re.Match[str]) -> str:
        return match[1] + site_path(match[2], origin)

    return _LINK.sub(moved, _NAMED.sub(_unless_equal, _ROW.sub(_bars, markdown)))


def _bars(row: re.Match[str]) -> str:
    """A row of a table. A bar within code has a backslash there for GitHub; the site shows it."""
    return _CODE.sub(lambda code: code[0].replace(r"\|", "|"), row[0])


def _unless_equal(match: re.Match[str]) -> str:
    """A heading without the anchor above it, where its own is the same."""
    same = slugify(case="lower")(match["heading"], "-") == match["anchor"]
    return match[3] if same else match[0]


def site_path(link: str, origin: str) -> str:
    """A link of the document `origin`, a path below the repository, as the site's page has it."""
    target = posixpath.normpath(posixpath.join(posixpath.dirname(origin), link))
    here = posixpath.dirname(TOP.get(origin, origin.removeprefix("docs/")))
    if target in TOP:
        return posixpath.relpath(TOP[target], here or ".")
    if target.startswith("docs/"):
        return posixpath.relpath(target.removeprefix("docs/"), here or ".")
    return link
