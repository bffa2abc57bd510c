// How pictures print values; each makes the function that a chart calls.
var formats = profharness.formats;

// Values of axes come alone, those of labels within their parameters.
function number(value) {
  if (value !== null && typeof value === "object") { value = value.value; }
  return Number(Array.isArray(value) ? value[0] : value);
}

formats.ns = function () { return function (value) { return Number(value) ? duration(Number(value) / 1e6) : "0"; }; };
formats.share = function () {
  return function (value) {
    var share = number(value);
    return (Math.abs(share) < 0.95 ? significant(share, 2) : share.toFixed(1).replace(/^100\.0$/, "100")) + "\u00a0%";
  };
};

// A text that was made beforehand: `told` of the item.
formats.told = function () {
  return function (item) { return item.data && item.data.told ? plain(item.data.told) : ""; };
};

formats.named = function () { return function (item) { return plain(item.name); }; };

formats.strip = function () {
  return function (item) {
    var piece = item.value;
    var share = piece.length > 3 ? ": " + significant(100 * (piece[4] - piece[3]), 3) + "\u00a0% of" : "";
    return item.seriesName + share + "\n" + duration((piece[2] - piece[1]) / 1e6) + ", from " + (piece[1] ? duration(piece[1] / 1e6) : "0");
  };
};
