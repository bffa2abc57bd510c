// How pictures print values. An option names one as text: "ns", or "si:B/s" with what stands behind the colon.
(function () {
  "use strict";
  var formats = profharness.formats;
  var TIMES = [[1e9, "s"], [1e6, "ms"], [1e3, "µs"], [1, "ns"]];
  var PREFIXES = [[1e15, "P"], [1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"], [1, ""], [1e-3, "m"], [1e-6, "µ"]];

  function digits(value) { return String(Number(value.toPrecision(4))); }

  // Values of axes come alone, those of tooltips and labels within their parameters.
  function number(value) {
    if (value !== null && typeof value === "object") { value = value.value; }
    return Array.isArray(value) ? value[value.length - 1] : value;
  }

  formats.ns = function (value) {
    value = Number(number(value));
    if (!value) { return "0"; }
    for (var i = 0; i < TIMES.length; i++) {
      if (Math.abs(value) >= TIMES[i][0] || i === TIMES.length - 1) { return digits(value / TIMES[i][0]) + " " + TIMES[i][1]; }
    }
  };

  formats.si = function (value, unit) {
    value = Number(number(value));
    if (!value) { return ("0 " + (unit || "")).trim(); }
    for (var i = 0; i < PREFIXES.length; i++) {
      if (Math.abs(value) >= PREFIXES[i][0] || i === PREFIXES.length - 1) { return (digits(value / PREFIXES[i][0]) + " " + PREFIXES[i][1] + (unit || "")).trim(); }
    }
  };

  formats.percent = function (value) { return String(Number(Number(number(value)).toPrecision(3))) + " %"; };

  formats.strip = function (item) {
    var piece = item.value, long = piece[2] - piece[1];
    var share = piece.length > 3 ? " in " + digits(100 * (piece[4] - piece[3])) + " % of" : "";
    return item.seriesName + share + "\n" + formats.ns(long) + " from " + formats.ns(piece[1]);
  };

  // A text that was made beforehand stands last in the item's value.
  formats.told = function (item) {
    var value = item.data && item.data.told !== undefined ? item.data.told : item.value[item.value.length - 1];
    return String(value);
  };
}());
