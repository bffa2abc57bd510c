// A piece of a device's strip: [device, start, end] in ns fills the height, [..., low, high] a share of it.
// What is narrower than a pixel is as much paler, but for the first kind, which lies below the others:
// many short gaps do not hide the work between them.
profharness.painters.strip = function (params, api) {
  var box = params.coordSys, row = api.value(0);
  var left = api.coord([api.value(1), row]), right = api.coord([api.value(2), row])[0];
  var full = Math.min(api.size([0, 1])[1] * 0.78, 40), low = api.value(3), high = api.value(4);
  if (isNaN(low)) { low = 0; high = 1; }
  var x = Math.max(left[0], box.x), end = Math.min(right, box.x + box.width), wide = end - x;
  if (end < x || right < box.x) { return null; }
  if (wide > 1.4) { x = Math.round(x); end = Math.round(end); } else { end = x + Math.max(wide, 0.7); }
  return {
    type: "rect",
    shape: { x: x, y: left[1] + full * (0.5 - high), width: end - x, height: full * (high - low) },
    style: { fill: api.visual("color"), stroke: "none", opacity: params.seriesIndex && wide < 0.7 ? Math.max(wide / 0.7, 0.02) : 1 }
  };
};
