// Texts at points: data are [x, y, dx, dy, radius of the mark, whether a line leads to it]. They were
// placed for a wide page: on a narrow one a text that would cover an earlier one or a mark is left out.
function free(text, params, api) {
  var area = params.coordSys, taken = params.context.taken = params.context.taken || [];
  var wide = textWidth(text.style.text) * 11 / 12 + 2, middle = text.style.verticalAlign === "middle";
  var left = text.x - wide * { left: 0, center: 0.5, right: 1 }[text.style.align];
  var box = [left, text.y - (middle ? 7 : 13), left + wide, text.y + (middle ? 7 : 1)];
  if (box[0] < area.x || box[2] > area.x + area.width + 6) { return false; }
  if (taken.some(function (one) { return one[0] < box[2] && box[0] < one[2] && one[1] < box[3] && box[1] < one[3]; })) { return false; }
  if (area.width < 700 && marks(params, api).some(function (one) { return one[0] < box[2] && box[0] < one[2] && one[1] < box[3] && box[1] < one[3]; })) { return false; }
  taken.push(box);
  return true;
}

// The boxes of all marks that have a text: data are [x, y, radius].
function marks(params, api) {
  params.context.marks = params.context.marks || params.itemPayload.marks.map(function (one) {
    var at = api.coord([one[0], one[1]]), reach = 0.8 * one[2];  // of round marks
    return [at[0] - reach, at[1] - reach, at[0] + reach, at[1] + reach];
  });
  return params.context.marks;
}

profharness.painters.labels = function (params, api) {
  var at = api.coord([api.value(0), api.value(1)]);
  var dx = api.value(2), dy = api.value(3), away = api.value(4), leader = api.value(5);
  var beside = leader && dy === 0 ? (dx > 0 ? 1 : -1) : 0;  // begins or ends at its mark, however wide it is
  var text = {
    type: "text",
    x: at[0] + (beside ? beside * (away + 6) : dx),
    y: at[1] + (leader ? dy : -4),
    style: {
      text: params.itemPayload.texts[params.dataIndex], fontSize: 11, fill: profharness.color(leader ? "ink" : "soft"),
      align: beside ? (beside > 0 ? "left" : "right") : leader ? "center" : "right", verticalAlign: leader ? "middle" : "bottom",
      stroke: profharness.color("card"), lineWidth: 3
    }
  };
  if (!free(text, params, api)) {
    if (!beside) { return null; }
    text.x = at[0] - beside * (away + 6);  // a narrow plot may have room at the other side
    text.style.align = beside > 0 ? "right" : "left";
    if (!free(text, params, api)) { return null; }
  }
  if (!leader || beside) { return text; }
  var length = Math.sqrt(dx * dx + dy * dy) || 1;
  var line = {
    type: "line",
    shape: { x1: at[0] + dx * away / length, y1: at[1] + dy * away / length, x2: text.x, y2: text.y },
    style: { stroke: profharness.color("line"), lineWidth: 0.8 }
  };
  return { type: "group", children: [line, text] };
};
