// Tables: each column sorts, long ones can be searched, and are drawn in parts.
var PART = 200;      // rows that "show more" adds
var SEARCHED = 15;   // rows from which on a table has a field to search in
var TIMES = { ns: 1e-9, "µs": 1e-6, us: 1e-6, ms: 1e-3, s: 1, min: 60, h: 3600 };
var SCALES = { n: 1e-9, "µ": 1e-6, m: 1e-3, k: 1e3, Ki: 1024, M: 1e6, Mi: 1048576, G: 1e9, Gi: 1073741824, T: 1e12, P: 1e15, E: 1e18 };

// The number that a cell shows, its unit's prefix counted in; NaN where it shows none.
function shownNumber(text) {
  var found = /^[★<>≤≥~≈\s]*([−+-]?\d[\d\s,]*(?:\.\d+)?(?:e[+-]?\d+)?)\s*([a-zA-Zµ]*)/.exec(text);
  if (!found) { return NaN; }
  var value = Number(found[1].replace(/[\s,]/g, "").replace("−", "-"));
  var unit = found[2];
  if (unit in TIMES) { return value * TIMES[unit]; }
  var prefix = /^(Ki|Mi|Gi|[nµmkMGTPE])(?=[A-Z]|$)/.exec(unit);
  return prefix ? value * SCALES[prefix[1]] : value;
}

function cellOf(row, column) { return row.cells[column]; }

function textOf(cell) {
  var name = cell.querySelector("summary, .bar b");
  return (name || cell).textContent.trim();
}

function sortKeys(rows, column) {
  var cells = rows.map(function (row) { return cellOf(row, column); });
  var texts = cells.map(textOf);
  var exact = cells.every(function (cell, at) { return cell.dataset.sort !== undefined || !texts[at] || texts[at] === "-"; });
  var numbers = cells.map(function (cell, at) { return exact ? Number(cell.dataset.sort) : shownNumber(texts[at]); });
  var filled = texts.filter(function (text) { return text && text !== "-"; }).length;
  var known = numbers.filter(function (value) { return !isNaN(value); }).length;
  var numeric = known > 0 && known >= 0.7 * filled;
  return { numeric: numeric, keys: numeric ? numbers : texts };
}

function compared(one, other, numeric) {
  var empty = numeric ? isNaN : function (text) { return !text || text === "-"; };
  if (empty(one) || empty(other)) { return null; }
  return numeric ? one - other : one.localeCompare(other, undefined, { numeric: true });
}

// Rows in the order of a column, what has no value last; `direction` is 1 or -1.
function sorted(rows, column, direction) {
  var by = sortKeys(rows, column);
  var places = rows.map(function (_, at) { return at; });
  function missing(at) { var key = by.keys[at]; return by.numeric ? isNaN(key) : !key || key === "-"; }
  places.sort(function (one, other) {
    if (missing(one) || missing(other)) { return missing(one) - missing(other) || one - other; }
    return direction * compared(by.keys[one], by.keys[other], by.numeric) || one - other;
  });
  return places.map(function (at) { return rows[at]; });
}

var packed = null;
function laterRows(name) {
  packed = packed || JSON.parse(carried("later-rows"));
  if (!packed[name]) { return []; }
  var holder = make("template");
  holder.innerHTML = "<table><tbody>" + unpacked(packed[name]) + "</tbody></table>";
  untitled(holder.content);
  return all("tr", holder.content);
}

// One table: its rows in their first order, how they are sorted and searched, how many are shown.
function Listing(table) {
  this.table = table;
  this.body = table.tBodies[0];
  this.rows = Array.prototype.slice.call(this.body.rows);
  this.first = this.shown = this.rows.length;
  var holder = table.closest(".long");
  this.note = holder && holder.querySelector(".later");
  this.kept = this.note ? Number(this.note.dataset.kept) : 0;
  this.whole = this.kept === 0;
  this.column = -1;
  this.direction = 0;
  this.wanted = "";
}

// As people type it: numbers and their units stand apart by a space of another kind.
function spaced(text) { return text.toLowerCase().replace(/[\u00a0\u202f]/g, " "); }

Listing.prototype.complete = function () {
  if (this.whole) { return; }
  this.rows = this.rows.concat(laterRows(this.note.dataset.later));
  this.whole = true;
};

Listing.prototype.show = function () {
  this.complete();
  var rows = this.direction ? sorted(this.rows, this.column, this.direction) : this.rows, wanted = this.wanted;
  if (wanted) { rows = rows.filter(function (row) { return spaced(row.textContent).indexOf(wanted) >= 0; }); }
  var shown = rows.slice(0, this.shown);
  this.body.replaceChildren.apply(this.body, shown);
  settle(this.table);
  this.tell(rows.length, shown.length);
};

Listing.prototype.tell = function (found, shown) {
  if (this.count) { this.count.textContent = (this.wanted ? found + " of " + (this.first + this.kept) + " rows match" : this.first + this.kept + " rows") + (shown < found ? ", " + shown + " shown" : ""); }
  if (this.more) {
    this.more.hidden = shown >= found;
    this.more.textContent = "Show " + Math.min(PART, found - shown) + " more";
  }
};

Listing.prototype.sortBy = function (column) {
  if (this.column !== column) { this.column = column; this.direction = 0; }
  var down = sortKeys(this.rows, column).numeric ? -1 : 1;
  this.direction = this.direction === 0 ? down : this.direction === down ? -down : 0;
  var direction = this.direction;
  all("th", this.table).forEach(function (head, at) {
    if (at === column && direction) { head.setAttribute("aria-sort", direction > 0 ? "ascending" : "descending"); }
    else { head.removeAttribute("aria-sort"); }
  });
  this.show();
};

// Each heading becomes a button; what explained it stays under the pointer.
Listing.prototype.sortable = function () {
  var self = this;
  all("th", this.table).forEach(function (head, column) {
    var button = make("button", { type: "button", "class": "sort", tabindex: "-1" }, head.textContent);
    var told = head.querySelector("[data-tip]");
    if (told) { button.dataset.tip = told.dataset.tip; }
    head.replaceChildren(button);
    button.addEventListener("click", function () { self.sortBy(column); });
  });
};

Listing.prototype.searchable = function () {
  var self = this;
  var caption = this.table.caption ? this.table.caption.textContent : "the table";
  var field = make("input", { type: "search", placeholder: "Search", "aria-label": "Search in " + caption, spellcheck: "false" });
  this.count = make("span", { role: "status" });
  var bar = make("div", { "class": "search" });
  bar.appendChild(field);
  bar.appendChild(this.count);
  var place = this.table.closest(".scroll") || this.table;
  place.parentNode.insertBefore(bar, place);
  field.addEventListener("input", function () {
    self.wanted = spaced(field.value.trim());
    self.shown = Math.max(self.first, self.wanted ? PART : 0);
    self.show();
  });
  this.tell(this.first + this.kept, this.first);
};

Listing.prototype.growing = function () {
  var self = this;
  this.more = make("button", { type: "button", "class": "more" });
  this.more.addEventListener("click", function () { self.shown += PART; self.show(); });
  this.note.parentNode.insertBefore(this.more, this.note);
  var said = this.note.querySelector("span");
  if (said) { said.remove(); }
  this.tell(this.first + this.kept, this.first);
};

// A table is one stop of the Tab key; arrow keys move between its headings and figures.
function stopsOf(table) { return all("[tabindex]", table); }

function settle(table) {
  var stops = stopsOf(table);
  var current = stops.indexOf(document.activeElement);
  stops.forEach(function (stop, index) { stop.tabIndex = index === Math.max(current, 0) ? 0 : -1; });
}

function roving(table) {
  table.addEventListener("keydown", function (event) {
    var steps = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 };
    if (!(event.key in steps)) { return; }
    var stops = stopsOf(table);
    var from = stops.indexOf(document.activeElement);
    var to = from < 0 ? null : stops[from + steps[event.key]];
    if (to) {
      stops[from].tabIndex = -1;
      to.tabIndex = 0;
      to.focus();
      event.preventDefault();
    }
  });
  settle(table);
}

function tables() {
  all("table").forEach(function (table) {
    var listing = new Listing(table);
    if (listing.rows.length + listing.kept > 1) { listing.sortable(); }
    if (listing.rows.length + listing.kept > SEARCHED) { listing.searchable(); }
    if (listing.kept) { listing.growing(); }
    roving(table);
  });
}
