// One interval as a line between its ends, with a cap at each: data are [x, low, high].
profharness.painters.interval = function (params, api) {
  var low = api.coord([api.value(0), api.value(1)]);
  var high = api.coord([api.value(0), api.value(2)]);
  var look = { stroke: api.visual("color"), lineWidth: 1.2, fill: "none" };
  function line(x1, y1, x2, y2) { return { type: "line", shape: { x1: x1, y1: y1, x2: x2, y2: y2 }, style: look }; }
  if (!isFinite(low[1]) || !isFinite(high[1])) { return null; }
  return {
    type: "group",
    children: [
      line(low[0], low[1], high[0], high[1]),
      line(low[0] - 3.5, low[1], low[0] + 3.5, low[1]),
      line(high[0] - 3.5, high[1], high[0] + 3.5, high[1])
    ]
  };
};
