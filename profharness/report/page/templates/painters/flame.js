// A frame of a flame graph: [start, end] in ns, its depth, and the places of its name and kind in the payload.
var told = {}, sought = {};  // by the series' id: its names and colours, and what its reader looks for

profharness.painters.flame = function (params, api) {
  var box = params.coordSys, all = told[params.seriesId] = params.itemPayload;
  var from = api.coord([api.value(0), api.value(2)]), to = api.coord([api.value(1), api.value(2) + 1]);
  var left = Math.max(from[0], box.x), right = Math.min(to[0], box.x + box.width);
  if (right - left < 0.4) { return null; }
  var name = all.names[api.value(3)], term = sought[params.seriesId];
  var width = Math.max(right - left - 0.8, 0.4), height = to[1] - from[1] - 1;
  var text = { text: name, width: width - 6, overflow: "truncate", ellipsis: "…", fontSize: Math.min(11.5, height - 2), fill: "#fff" };
  return {
    type: "rect",
    shape: { x: left, y: from[1], width: width, height: height },
    style: { fill: all.colors[api.value(4)], opacity: !term || name.toLowerCase().indexOf(term) >= 0 ? 1 : 0.22 },
    textConfig: { position: "insideLeft", distance: 3 },
    textContent: width > 26 ? { type: "text", style: text } : undefined
  };
};

function percent(part, whole) { return (100 * part / whole).toFixed(1) + " %"; }

profharness.formats.flame = function () { return say; };

function say(item) {
  var all = told[item.seriesId], piece = item.value, name = all.names[piece[3]], lines = name.match(/.{1,90}/g) || [""];
  if (lines.length > 4) { lines = lines.slice(0, 4).concat("…"); }
  var time = duration((piece[1] - piece[0]) / 1e6) + ", " + percent(piece[1] - piece[0], all.total);
  return plain(lines.join("\n")) + "\n" + time + " (" + all.kinds[piece[4]] + ")";
}

// The time under frames whose name holds the term; a frame inside of another such one counts once.
function found(rows, names, term) {
  var sum = 0, until = -1;
  rows.filter(function (row) { return names[row[3]].toLowerCase().indexOf(term) >= 0; })
    .sort(function (a, b) { return a[0] - b[0] || b[1] - a[1]; })
    .forEach(function (row) { if (row[0] >= until) { sum += row[1] - row[0]; until = row[1]; } });
  return sum;
}

// A click on a frame shows it at full width; beside the picture stand a search and what shows all again.
profharness.actions.flame = function (chart, holder) {
  var series = chart.getOption().series[0], all = series.itemPayload;
  var bar = document.createElement("div"), input = document.createElement("input");
  var reset = document.createElement("button"), said = document.createElement("output");
  bar.className = "flamebar";
  input.type = "search";
  input.placeholder = "search frames";
  input.setAttribute("aria-label", "search frames of the flame graph");
  reset.type = "button";
  reset.textContent = "show all";
  [input, reset, said].forEach(function (one) { bar.appendChild(one); });
  holder.parentNode.insertBefore(bar, holder);
  function show(from, to) { chart.dispatchAction({ type: "dataZoom", startValue: from, endValue: to }); }
  chart.on("click", function (event) {
    if (event.componentType === "series") { show(event.value[0], event.value[1]); }
  });
  input.addEventListener("input", function () {
    var term = input.value.trim().toLowerCase();
    sought[series.id] = term;
    chart.setOption({ series: [{ id: series.id, data: series.data }] });
    said.textContent = term ? " " + percent(found(series.data, all.names, term), all.total) + " of the time" : "";
  });
  reset.addEventListener("click", function () {
    input.value = "";
    input.dispatchEvent(new Event("input"));
    show(0, all.total);
  });
};
