// A piece of a device's strip: [device, start, end] in ns fills the height, [..., low, high] a share of it.
profharness.painters.strip = function (params, api) {
  var box = params.coordSys, row = api.value(0);
  var left = api.coord([api.value(1), row]), right = api.coord([api.value(2), row])[0];
  var full = Math.min(api.size([0, 1])[1] * 0.78, 40), low = api.value(3), high = api.value(4);
  if (isNaN(low)) { low = 0; high = 1; }
  var x = Math.max(left[0], box.x), end = Math.min(Math.max(right, left[0] + 0.7), box.x + box.width);
  if (end <= x) { return null; }
  if (end - x > 1.4) { x = Math.round(x); end = Math.round(end); }
  return {
    type: "rect",
    shape: { x: x, y: left[1] + full * (0.5 - high), width: end - x, height: full * (high - low) },
    style: { fill: api.visual("color"), stroke: "none" }
  };
};
