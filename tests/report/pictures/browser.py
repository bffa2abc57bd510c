"""Pictures in a real browser, without the rest of the page: ECharts, the painters and the
options.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

from profharness.report.plots.base import Plot

BROWSER = next(
    (
        found
        for name in ("chromium", "chromium-browser", "google-chrome")
        if (found := shutil.which(name))
    ),
    None,
)
_PAGE = Path(__file__).parents[3] / "profharness/report/page"
ECHARTS = next(_PAGE.rglob("echarts.min.js"), None)
"""The script, where it is installed with the page."""
_SCRIPT = """
(function () {
  "use strict";
  var root = document.documentElement, failures = [];
  function failed(message) { failures.push(String(message)); root.dataset.errors = failures.join(" | "); }
  window.addEventListener("error", function (event) { failed(event.message); });
  document.addEventListener("securitypolicyviolation", function (event) { failed("blocked " + event.violatedDirective); });
  ["warn", "error"].forEach(function (level) { console[level] = function (text) { failed(text); }; });
  function resolved(part, key) {
    if (Array.isArray(part)) { return part.map(function (one) { return resolved(one, ""); }); }
    if (part !== null && typeof part === "object") {
      var made = {};
      Object.keys(part).forEach(function (name) { made[name] = resolved(part[name], name); });
      return made;
    }
    if (key === "renderItem") { return profharness.painters[part]; }
    if ((key === "formatter" || key === "labelFormatter") && typeof part === "string") {
      var cut = part.split(":"), format = profharness.formats[cut[0]];
      return format ? function (value) { return format(value, cut[1]); } : part;
    }
    return part;
  }
  var drawn = 0;
  document.querySelectorAll(".plot").forEach(function (holder) {
    var option = resolved(JSON.parse(holder.nextElementSibling.textContent), "");
    var chart = echarts.init(holder, null, { renderer: "svg" });
    option.animation = false;
    chart.setOption(option);
    if (profharness.actions && profharness.actions[holder.dataset.plot]) { profharness.actions[holder.dataset.plot](chart, holder); }
    drawn += holder.querySelectorAll("svg path").length > 0 ? 1 : 0;
    profharness.charts = (profharness.charts || []).concat([chart]);
  });
  root.dataset.drawn = String(drawn);
}());
"""


def page_of(plots: Iterable[Plot], after: str = "", echarts: Path | None = ECHARTS) -> str:
    """A page that draws these pictures one below the other, and runs a script `after` that."""
    assert echarts is not None
    painters = sorted((_PAGE / "templates/painters").glob("*.js"))
    scripts = [
        echarts.read_text("utf-8"),
        "var profharness = { painters: {}, formats: {}, actions: {} };",
        *(path.read_text("utf-8") for path in painters),
    ]
    holders = "".join(
        f"<h3>{plot.title}</h3><p>{plot.description}</p>"
        f'<div class="plot" data-plot="{plot.name}" style="height:{plot.height}px"></div>'
        f'<script type="application/json">{json.dumps(json.loads(plot.json)).replace("<", chr(92) + "u003c")}</script>'
        for plot in plots
    )
    body = "".join(f"<script>{text}</script>" for text in (*scripts,))
    return (
        '<!DOCTYPE html><html><meta charset="utf-8"><style>body{font:14px sans-serif}</style>'
        f"<body>{holders}{body}<script>{_SCRIPT}</script><script>{after}</script></body></html>"
    )


def opened(page: Path, folder: Path, width: int = 1200) -> tuple[dict[str, str], str]:
    """The data attributes of the page's root after its scripts have run, and the whole of it."""
    assert BROWSER is not None
    argv = [
        BROWSER,
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--no-first-run",
        "--disable-background-networking",
        f"--user-data-dir={folder}",
        f"--window-size={width},1400",
        "--virtual-time-budget=5000",
        "--dump-dom",
        page.as_uri(),
    ]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=120, check=True)
    opening = re.search(r"<html[^>]*>", done.stdout)
    assert opening is not None, done.stderr[-2000:]
    return dict(re.findall(r'data-(\w+)="([^"]*)"', opening[0])), done.stdout
