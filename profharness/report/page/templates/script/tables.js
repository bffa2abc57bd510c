// A table is one stop of the Tab key; arrow keys move between its figures.
function roving(table) {
  var stops = all("[tabindex]", table);
  stops.forEach(function (stop, index) { stop.tabIndex = index === 0 ? 0 : -1; });
  table.addEventListener("keydown", function (event) {
    var steps = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 };
    var from = stops.indexOf(document.activeElement);
    if (from < 0 || !(event.key in steps)) { return; }
    var to = stops[from + steps[event.key]];
    if (to) {
      stops[from].tabIndex = -1;
      to.tabIndex = 0;
      to.focus();
      event.preventDefault();
    }
  });
}

function tables() { all("table").forEach(roving); }
