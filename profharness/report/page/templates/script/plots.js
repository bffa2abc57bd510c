// Plots: each is drawn when it comes near the screen, all of them before the page is printed.
var charts = [];
var figures = null;  // what each plot shows
var printing = false;
var NARROW = 500;    // pixels of a plot's width, under which it is drawn as on a telephone
var PRINTED = 680;   // pixels of a plot's width on paper, where all stand below each other
var MOST_LINES = 8;  // of a legend, beyond which it scrolls

// The option with functions in place of their names. `owner` is the series, axis or component around.
function resolved(part, owner, option) {
  if (Array.isArray(part)) {
    if (part.length && (typeof part[0] !== "object" || Array.isArray(part[0]))) { return part; }
    return part.map(function (one) { return resolved(one, one, option); });
  }
  if (part === null || typeof part !== "object") { return part; }
  var made = {};
  Object.keys(part).forEach(function (key) {
    var value = part[key];
    if (key === "formatter" && typeof value === "string") { made[key] = formatter(value, owner, option); }
    else if (key === "renderItem" && typeof value === "string") { made[key] = painter(value); }
    else if (key === "data" || key === "words" || key === "itemPayload") { made[key] = value; }
    else { made[key] = resolved(value, key === "xAxis" || key === "yAxis" ? value : owner || value, option); }
  });
  return made;
}

function formatter(text, owner, option) {
  var name = text.split(":", 1)[0];
  if (!Object.prototype.hasOwnProperty.call(profharness.formats, name)) { throw new Error("no format " + name); }
  return profharness.formats[name](text.slice(name.length + 1), owner, option);
}

function painter(name) {
  if (!Object.prototype.hasOwnProperty.call(profharness.painters, name)) { throw new Error("no painter " + name); }
  return profharness.painters[name];
}

var family = null;
function font() {
  family = family || getComputedStyle(document.body).fontFamily.replace(/"/g, "'");
  return family;
}

function theme() {
  var color = profharness.color;
  var axis = {
    nameLocation: "middle",
    nameGap: 26,
    nameTextStyle: { color: color("soft"), fontSize: 12.5 },
    axisLine: { show: true, lineStyle: { color: color("line") } },
    axisTick: { show: true, lineStyle: { color: color("line") } },
    minorTick: { show: false },
    axisLabel: { color: color("soft"), fontSize: 11.5, hideOverlap: true },
    splitLine: { show: true, lineStyle: { color: color("grid") } }
  };
  function axisWith(more) { return Object.assign({}, axis, more); }
  return {
    textStyle: { fontFamily: font(), fontSize: 12 },
    valueAxis: axis,
    logAxis: axis,
    categoryAxis: axisWith({ splitLine: { show: false } }),
    legend: { textStyle: { color: color("ink"), fontSize: 12 }, inactiveColor: color("line"), itemWidth: 20, itemHeight: 9, itemGap: 12 },
    dataZoom: {
      backgroundColor: "none", borderColor: color("line"), fillerColor: color("band"),
      handleStyle: { color: color("card"), borderColor: color("accent") }, moveHandleStyle: { color: color("line") },
      emphasis: { handleStyle: { color: color("card"), borderColor: color("accent") }, moveHandleStyle: { color: color("accent") } }
    },
    tooltip: {
      backgroundColor: color("card"), borderColor: color("line"), textStyle: { color: color("ink"), fontSize: 12.5 },
      axisPointer: { lineStyle: { color: color("soft") } }
    }
  };
}

var ruler = null;
function textWidth(text) {
  ruler = ruler || document.createElement("canvas").getContext("2d");
  ruler.font = "12px " + font();
  return ruler.measureText(text).width;
}

// The height that a legend of these names needs: its lines break where one is full.
function legendHeight(names, width) {
  var lines = 1, used = 0;
  names.forEach(function (name) {
    var item = 20 + 5 + textWidth(name) + 12;
    if (used && used + item > width) { lines += 1; used = 0; }
    used += item;
  });
  return { lines: lines, height: lines * 21 };
}

function legendOf(option, width) {
  var legend = option.legend || { show: false };
  var names = legend.show === false ? [] : (legend.data || option.series).map(function (one) { return one.name || one; });
  return names.length ? legendHeight(names, width - 16) : { lines: 0, height: 0 };
}

// What every plot has in common; an option's own words come first.
function completed(option, width) {
  var legend = option.legend || { show: false };
  var needs = legendOf(option, width);
  var many = needs.lines > MOST_LINES;
  var top = needs.lines ? (many ? 34 : needs.height + 10) : 12;
  var both = {
    animation: false,
    legend: Object.assign({ left: 0, top: 0, type: many ? "scroll" : "plain", padding: 2 }, legend),
    tooltip: Object.assign({ trigger: "item", renderMode: "richText", confine: true, transitionDuration: 0 }, option.tooltip)
  };
  if (option.xAxis || option.grid) {
    both.grid = Object.assign({ left: 6, right: 14, top: top, bottom: 6, outerBoundsMode: "same", outerBoundsContain: "all", containLabel: false }, option.grid);
  }
  both.tooltip.renderMode = "richText";
  if (option.xAxis && !Array.isArray(option.xAxis)) { both.xAxis = Object.assign({ nameTruncate: { maxWidth: width - 24 } }, option.xAxis); }
  var made = Object.assign({}, option, both);
  if (width < NARROW && option.narrow) { narrowed(made, option.narrow); }
  delete made.narrow;
  return made;
}

// What an option says of narrow screens: more of its y axis and of its series.
function narrowed(made, narrow) {
  made.yAxis = Object.assign({}, made.yAxis, narrow.yAxis);
  made.series = made.series.map(function (one, at) { return Object.assign({}, one, narrow.series[at]); });
}

// A plot grows by what its legend needs beyond one line, and as a narrow screen needs it.
function fitHeight(holder, option, width) {
  var tall = Number(holder.dataset.tall = holder.dataset.tall || holder.clientHeight);
  if (width < NARROW && option.narrow) { tall = option.narrow.height; }
  var lines = legendOf(option, width).lines;
  holder.style.height = tall + (lines > 1 && lines <= MOST_LINES ? 21 * (lines - 1) : 0) + "px";
}

// An axis name that is longer than its axis and the margin beside it stands on two lines.
function fitName(chart, option, width) {
  var grid = option.xAxis && option.xAxis.name && chart.getModel().getComponent("grid");
  if (!grid) { return; }
  var area = grid.coordinateSystem.getRect(), name = option.xAxis.name;
  if (textWidth(name) * 1.05 < area.width + 2 * (width - area.x - area.width)) { return; }
  var middle = name.length / 2, spaces = [];
  name.replace(/ /g, function (_, at) { spaces.push(at); });
  spaces.sort(function (a, b) { return Math.abs(a - middle) - Math.abs(b - middle); });
  if (spaces.length) { chart.setOption({ xAxis: { name: name.slice(0, spaces[0]) + "\n" + name.slice(spaces[0] + 1), nameTextStyle: { lineHeight: 15 } } }); }
}

// The engine and what the plots show are unpacked once, when the first plot is drawn.
function engine() {
  if (!window.echarts) { run(unpacked(carried("plot-engine"))); }
  return window.echarts;
}

function optionOf(name) {
  figures = figures || JSON.parse(unpacked(carried("plot-data")));
  return figures[name];
}

function draw(holder) {
  if (holder.dataset.drawn) { return; }
  holder.dataset.drawn = "yes";
  var option = optionOf(holder.dataset.plot);
  option = resolved(option, null, option);
  holder.textContent = "";
  fitHeight(holder, option, holder.clientWidth);
  var canvas = holder.appendChild(make("div", { "class": "canvas" }));
  var size = { renderer: "svg", width: holder.clientWidth || 640, height: holder.clientHeight || 360 };
  var chart = engine().init(canvas, theme(), size);
  chart.setOption(completed(option, size.width));
  fitName(chart, option, size.width);
  charts.push({ chart: chart, holder: holder, option: option });
  saving(chart, holder);
  var act = profharness.actions[holder.dataset.plot.split("-", 1)[0]];
  if (act) { act(chart, holder); }
  // in the next frame: to change a height while sizes are reported would be an endless report
  function soon() { requestAnimationFrame(function () { fit(chart, holder, option); }); }
  if (window.ResizeObserver) { new ResizeObserver(soon).observe(holder); }
  root.dataset.plots = "drawn " + charts.length;
}

function fit(chart, holder, option) {
  var width = holder.clientWidth;
  if (width && width !== chart.getWidth() && !printing) { resize(chart, holder, option, width); }
}

function resize(chart, holder, option, width) {
  fitHeight(holder, option, width);
  chart.resize({ width: width, height: parseFloat(holder.style.height) });
  chart.setOption(completed(option, width), Boolean(option.narrow));
  fitName(chart, option, width);
}

// Paper is narrower than the screen, and no event says how wide it is: plots are drawn for a usual
// width, and scaled to what there is.
function toPaper() {
  profharness.drawAll();
  printing = true;
  charts.forEach(function (one) {
    resize(one.chart, one.holder, one.option, PRINTED);
    one.holder.querySelector("svg").setAttribute("viewBox", "0 0 " + PRINTED + " " + one.chart.getHeight());
  });
}

function fromPaper() {
  printing = false;
  charts.forEach(function (one) {
    one.holder.querySelector("svg").removeAttribute("viewBox");
    fit(one.chart, one.holder, one.option);
  });
}

function drawSafely(holder) {
  try { draw(holder); } catch (error) { failed(error); }
}

function near(holder) {
  var box = holder.getBoundingClientRect();
  return box.top < window.innerHeight + 400 && box.bottom > -400;
}

profharness.drawAll = function () { all(".plot").forEach(drawSafely); };

function plots() {
  var holders = all(".plot");
  root.dataset.plots = "drawn 0";
  if (!holders.length) { return; }
  window.addEventListener("beforeprint", toPaper);
  window.addEventListener("afterprint", fromPaper);
  if (!window.IntersectionObserver) { profharness.drawAll(); return; }
  var watch = new IntersectionObserver(function (seen) {
    seen.forEach(function (one) {
      if (one.isIntersecting) { watch.unobserve(one.target); drawSafely(one.target); }
    });
  }, { rootMargin: "400px 0px" });
  // what is in sight is drawn at once: a browser that takes one picture reports no intersections
  holders.forEach(function (holder) { if (near(holder)) { drawSafely(holder); } else { watch.observe(holder); } });
}
