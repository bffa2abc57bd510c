// Numbers as the report writes them, and the formats of axes and of texts under the pointer.
var PREFIXES = [[1e18, "E"], [1e15, "P"], [1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"], [1, ""], [1e-3, "m"], [1e-6, "µ"], [1e-9, "n"]];

function grouped(text) {
  var parts = text.split(".");
  parts[0] = parts[0].replace(/\B(?=(\d{3})+$)/g, "\u2009");
  return parts.join(".");
}

function significant(value, digits) {
  if (value === 0 || !isFinite(value)) { return String(value); }
  var size = Math.floor(Math.log10(Math.abs(value)));
  if (size < -4 || size > 14) { return String(Number(value.toPrecision(digits))); }
  var text = value.toFixed(Math.min(Math.max(digits - 1 - size, 0), 20));
  if (text.indexOf(".") >= 0) { text = text.replace(/\.?0+$/, ""); }
  return grouped(text);
}

function prefixed(value, unit) {
  var size = Math.abs(value);
  var scale = PREFIXES.filter(function (one) { return size >= one[0] * 0.9999999; })[0] || PREFIXES[PREFIXES.length - 1];
  if (value === 0 || (size < 1 && !unit)) { scale = [1, ""]; }  // half an item is no 500 m
  return significant(value / scale[0], 3) + (scale[1] || unit ? "\u00a0" : "") + scale[1] + (unit || "");
}

function duration(ms) {
  var ns = ms * 1e6;
  var scale = [[1e9, "s"], [1e6, "ms"], [1e3, "µs"], [1, "ns"]].filter(function (one) { return ns >= one[0]; })[0] || [1, "ns"];
  return significant(ns / scale[0], 4) + "\u00a0" + scale[1];
}

function written(value, how) {
  if (value === null || value === undefined || value === "") { return "-"; }
  if (typeof value !== "number") { return String(value); }
  if (how === "si") { return prefixed(value, ""); }
  if (how === "time") { return duration(value); }
  var decimals = /^\.(\d)f$/.exec(how || "");
  if (decimals) { return grouped(value.toFixed(Number(decimals[1]))); }
  return significant(value, Number(how) || 6);
}

// Rich text under the pointer knows `{style|text}`: in foreign names it is no such thing.
function plain(text) { return String(text).replace(/\{(?=\w+\|)/g, "{\u200b"); }

profharness.formats.number = function () { return function (value) { return significant(Number(value), 6); }; };
profharness.formats.level = function () { return function (value) { return String(Number(Number(value).toPrecision(6))); }; };
profharness.formats.si = function (unit) { return function (value) { return prefixed(Number(value), unit); }; };
profharness.formats.percent = function () { return function (value) { return significant(100 * value, 3) + "\u00a0%"; }; };
profharness.formats.ticks = function (_, axis) {
  var ticks = axis.axisLabel.customValues;
  return function (value) { var at = ticks.indexOf(value); return at < 0 ? "" : axis.names[at]; };
};

// "point:{x}: {y:4} jets/s{note}": of one point, whose data are [x, y, which of the series' words, a, b].
profharness.formats.point = function (template, series, option) {
  function named(axis, value) {
    axis = Array.isArray(axis) ? axis[0] : axis;
    return axis && axis.type === "category" && axis.data && typeof value === "number" ? axis.data[value] : value;
  }
  return function (params) {
    var value = params.value;
    var fields = {
      x: named(option.xAxis, value[0]), y: named(option.yAxis, value[1]), a: value[3], b: value[4], name: series.name,
      note: series.words ? series.words[value[2]] : ""
    };
    return plain(template.replace(/\{(x|y|a|b|name|note)(?::([^}]*))?\}/g, function (_, field, how) {
      return field === "note" || field === "name" ? fields[field] : written(fields[field], how);
    }));
  };
};

// "along:W": of all lines at one place, the largest first.
profharness.formats.along = function (unit) {
  var most = 12;
  return function (params) {
    var shown = params.filter(function (one) { return one.value && one.value[1] !== null && one.value[1] !== undefined; });
    shown.sort(function (one, other) { return other.value[1] - one.value[1]; });
    var lines = shown.slice(0, most).map(function (one) { return one.seriesName + ": " + written(one.value[1], 4) + " " + unit; });
    if (shown.length > most) { lines.push("and " + (shown.length - most) + " more"); }
    var at = shown.length ? [written(shown[0].value[0], ".1f") + " s"] : [];
    return plain(at.concat(lines).join("\n"));
  };
};
