// Texts at points: data are [x, y, dx, dy, radius of the mark, whether a line leads to it].
profharness.painters.labels = function (params, api) {
  var at = api.coord([api.value(0), api.value(1)]);
  var dx = api.value(2), dy = api.value(3), away = api.value(4), leader = api.value(5);
  var area = params.coordSys;
  var text = {
    type: "text",
    x: at[0] + dx,
    y: at[1] + (leader ? dy : -4),
    style: {
      text: params.itemPayload.texts[params.dataIndex], fontSize: 11, fill: profharness.color(leader ? "ink" : "soft"),
      align: leader ? "center" : "right", verticalAlign: leader ? "middle" : "bottom"
    }
  };
  if (!leader) { return text; }
  if (text.x < area.x || text.x > area.x + area.width) { return null; }
  var length = Math.sqrt(dx * dx + dy * dy) || 1;
  var line = {
    type: "line",
    shape: { x1: at[0] + dx * away / length, y1: at[1] + dy * away / length, x2: text.x, y2: text.y },
    style: { stroke: profharness.color("line"), lineWidth: 0.8 }
  };
  return { type: "group", children: [line, text] };
};
