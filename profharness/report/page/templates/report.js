(function () {
  "use strict";
  var root = document.documentElement;
  var failures = [];
  function failed(message) {
    failures.push(String(message));
    root.dataset.errors = failures.join(" | ");
  }
  window.addEventListener("error", function (event) { failed(event.message || "a resource failed to load"); }, true);
  window.addEventListener("unhandledrejection", function (event) { failed(event.reason); });
  document.addEventListener("securitypolicyviolation", function (event) { failed("blocked " + event.violatedDirective + " " + event.blockedURI); });

  // Colours of text and grid come from the page's style sheet, so that plots follow light, dark and print.
  function template() {
    var style = getComputedStyle(root);
    function color(name) { return style.getPropertyValue("--" + name).trim(); }
    var axis = {
      gridcolor: color("grid"), linecolor: color("line"), zerolinecolor: color("line"), tickcolor: color("line"), ticks: "outside", ticklen: 4,
      automargin: true, title: { font: { size: 12.5, color: color("soft") }, standoff: 10 }, tickfont: { size: 11.5 }
    };
    return {
      layout: {
        paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", xaxis: axis, yaxis: axis,
        font: { family: getComputedStyle(document.body).fontFamily, size: 12.5, color: color("ink") },
        legend: { font: { size: 12 }, bgcolor: "rgba(0,0,0,0)" },
        hoverlabel: { bgcolor: color("card"), bordercolor: color("line"), font: { color: color("ink"), size: 12.5 }, align: "left", namelength: -1 }
      }
    };
  }

  var config = {
    responsive: true, displaylogo: false, displayModeBar: false, scrollZoom: false
  };

  function drawAll() {
    var holders = Array.prototype.slice.call(document.querySelectorAll(".plot"));
    var drawn = [];
    if (holders.length && window.Plotly) {
      var figures = JSON.parse(document.getElementById("plot-data").textContent);
      var look = template();
      drawn = holders.map(function (holder) {
        var figure = figures[holder.dataset.plot];
        holder.textContent = "";
        return window.Plotly.newPlot(holder, figure.data, Object.assign({}, figure.layout, { template: look }), config);
      });
    }
    Promise.all(drawn).then(function () { root.dataset.plots = "drawn " + drawn.length; }, failed);
    return holders;
  }

  function followScheme(holders) {
    function recolour() {
      var look = template();
      holders.forEach(function (holder) { if (holder.layout) { window.Plotly.relayout(holder, { template: look }); } });
    }
    window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", recolour);
    window.matchMedia("print").addEventListener("change", recolour);
  }

  // Provenance: the title attribute becomes a text that the keyboard reaches as well.
  function tips() {
    var box = document.createElement("div");
    box.id = "tip";
    box.setAttribute("role", "tooltip");
    document.body.appendChild(box);
    function show(target) {
      box.textContent = target.dataset.tip;
      box.style.display = "block";
      var at = target.getBoundingClientRect();
      var left = Math.min(at.left, root.clientWidth - box.offsetWidth - 12);
      var below = at.bottom + 7 + box.offsetHeight < window.innerHeight;
      box.style.left = Math.max(left, 8) + window.scrollX + "px";
      box.style.top = (below ? at.bottom + 7 : at.top - box.offsetHeight - 7) + window.scrollY + "px";
      target.setAttribute("aria-describedby", "tip");
    }
    function hide() { box.style.display = "none"; }
    function find(event) { return event.target.closest ? event.target.closest("[data-tip]") : null; }
    document.querySelectorAll("[title]").forEach(function (one) {
      one.dataset.tip = one.title;
      one.removeAttribute("title");
    });
    document.addEventListener("mouseover", function (event) { var one = find(event); if (one) { show(one); } else { hide(); } });
    document.addEventListener("focusin", function (event) { var one = find(event); if (one) { show(one); } else { hide(); } });
    document.addEventListener("focusout", hide);
    document.addEventListener("keydown", function (event) { if (event.key === "Escape") { hide(); } });
  }

  // A table is one stop of the Tab key; arrow keys move between its figures.
  function roving(table) {
    var stops = Array.prototype.slice.call(table.querySelectorAll("[tabindex]"));
    stops.forEach(function (stop, index) { stop.tabIndex = index === 0 ? 0 : -1; });
    table.addEventListener("keydown", function (event) {
      var steps = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 };
      var from = stops.indexOf(document.activeElement);
      if (from < 0 || !(event.key in steps)) { return; }
      var to = stops[from + steps[event.key]];
      if (to) {
        stops[from].tabIndex = -1;
        to.tabIndex = 0;
        to.focus();
        event.preventDefault();
      }
    });
  }

  try {
    tips();
    document.querySelectorAll("table").forEach(roving);
    followScheme(drawAll());
  } catch (error) {
    failed(error);
  }
})();
