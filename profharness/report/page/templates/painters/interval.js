// Intervals as a line between their ends, with a cap at each: lines from one place to another, in pixels.
function lines(api, shapes, width) {
  var look = { stroke: api.visual("color"), lineWidth: width, fill: "none" };
  return {
    type: "group",
    children: shapes.map(function (one) {
      return { type: "line", shape: { x1: one[0], y1: one[1], x2: one[2], y2: one[3] }, style: look };
    })
  };
}

// Upright: [x, low, high] in the units of the axes; nothing where an end has no place.
profharness.painters.interval = function (params, api) {
  var low = api.coord([api.value(0), api.value(1)]), high = api.coord([api.value(0), api.value(2)]);
  if (!isFinite(low[1]) || !isFinite(high[1])) { return null; }
  return lines(api, [
    [low[0], low[1], high[0], high[1]],
    [low[0] - 3.5, low[1], low[0] + 3.5, low[1]],
    [high[0] - 3.5, high[1], high[0] + 3.5, high[1]]
  ], 1.2);
};

// Along x: [row, low, high, dot], where `dot` 1 draws the line alone.
profharness.painters.interval_across = function (params, api) {
  var low = api.coord([api.value(1), api.value(0)]), high = api.coord([api.value(2), api.value(0)]);
  var caps = [
    [low[0], low[1] - 3, low[0], low[1] + 3],
    [high[0], high[1] - 3, high[0], high[1] + 3]
  ];
  return lines(api, [[low[0], low[1], high[0], high[1]]].concat(api.value(3) === 1 ? [] : caps), 1.3);
};
