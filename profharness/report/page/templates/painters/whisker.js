// An interval of a figure, upright: [x, low, high] in the units of the axes.
profharness.painters.whisker = function (params, api) {
  var low = api.coord([api.value(0), api.value(1)]), high = api.coord([api.value(0), api.value(2)]);
  var look = { stroke: api.visual("color"), lineWidth: 1.3, fill: "none" };
  function line(x1, y1, x2, y2) { return { type: "line", shape: { x1: x1, y1: y1, x2: x2, y2: y2 }, style: look }; }
  return {
    type: "group",
    children: [
      line(low[0], low[1], high[0], high[1]),
      line(low[0] - 3, low[1], low[0] + 3, low[1]),
      line(high[0] - 3, high[1], high[0] + 3, high[1])
    ]
  };
};

// The same along x: [row, low, high, dot], where `dot` 1 draws the line alone.
profharness.painters.whisker_across = function (params, api) {
  var low = api.coord([api.value(1), api.value(0)]), high = api.coord([api.value(2), api.value(0)]);
  var look = { stroke: api.visual("color"), lineWidth: 1.3, fill: "none" };
  function line(x1, y1, x2, y2) { return { type: "line", shape: { x1: x1, y1: y1, x2: x2, y2: y2 }, style: look }; }
  var children = [line(low[0], low[1], high[0], high[1])];
  if (api.value(3) !== 1) {
    children.push(line(low[0], low[1] - 3, low[0], low[1] + 3), line(high[0], high[1] - 3, high[0], high[1] + 3));
  }
  return { type: "group", children: children };
};
