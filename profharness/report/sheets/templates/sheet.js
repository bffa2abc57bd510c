var root = document.documentElement;
function failed(message) { root.dataset.errors = (root.dataset.errors ? root.dataset.errors + " | " : "") + message; }
window.addEventListener("error", function (event) { failed(event.message || "a resource failed to load"); }, true);
document.addEventListener("securitypolicyviolation", function (event) { failed(["blocked", event.violatedDirective, event.blockedURI, event.target.nodeName, event.sourceFile, event.lineNumber].join(" ")); });

function rowsOf(table) { return Array.prototype.slice.call(table.tBodies[0].rows); }

// A cell's number where it has one; rows without one come last either way.
function keyOf(row, column) {
  var cell = row.cells[column];
  var given = cell.dataset.sort;
  return given === undefined ? cell.textContent.trim().toLowerCase() : given === "" ? null : Number(given);
}

function sortable(table) {
  Array.prototype.forEach.call(table.tHead.rows[0].cells, function (head, column) {
    var button = head.querySelector("button");
    if (!button) { return; }
    button.addEventListener("click", function () {
      var falling = head.getAttribute("aria-sort") === "ascending";
      table.querySelectorAll("th[aria-sort]").forEach(function (one) { one.removeAttribute("aria-sort"); });
      head.setAttribute("aria-sort", falling ? "descending" : "ascending");
      var keyed = rowsOf(table).map(function (row, at) { return { row: row, key: keyOf(row, column), at: at }; });
      keyed.sort(function (a, b) {
        if (a.key === null || b.key === null) { return (a.key === null) - (b.key === null) || a.at - b.at; }
        var order = a.key < b.key ? -1 : a.key > b.key ? 1 : 0;
        return (falling ? -order : order) || a.at - b.at;
      });
      keyed.forEach(function (one) { table.tBodies[0].appendChild(one.row); });
    });
  });
}

function filtered(input) {
  var table = document.getElementById(input.dataset.filters);
  var count = document.getElementById(input.dataset.counts);
  var texts = rowsOf(table).map(function (row) { return { row: row, text: row.textContent.toLowerCase().replace(/\u00a0/g, " ") }; });
  function apply() {
    var words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
    var shown = 0;
    texts.forEach(function (one) {
      var fits = words.every(function (word) { return one.text.indexOf(word) >= 0; });
      one.row.hidden = !fits;
      shown += fits;
    });
    count.textContent = shown + " of " + texts.length;
  }
  input.addEventListener("input", apply);
  apply();
}

// Two ticked runs make the command that compares them, the one that was ticked first before the other.
function compared(table, command, button) {
  var ticked = [];
  function show() {
    var both = ticked.length === 2;
    command.textContent = both ? "profharness compare " + ticked.map(function (box) { return box.value; }).join(" ") : command.dataset.empty;
    button.disabled = !both;
  }
  table.addEventListener("change", function (event) {
    var box = event.target;
    if (box.type !== "checkbox") { return; }
    ticked = ticked.filter(function (one) { return one !== box; });
    if (box.checked) { ticked.push(box); }
    while (ticked.length > 2) { ticked.shift().checked = false; }
    show();
  });
  show();
}

function copies(button) {
  button.addEventListener("click", function () {
    var source = document.getElementById(button.dataset.copies);
    function chosen() {
      var range = document.createRange();
      range.selectNodeContents(source);
      var selection = window.getSelection();
      selection.removeAllRanges();
      selection.addRange(range);
      return document.execCommand("copy");
    }
    function said(done) { button.textContent = done ? "copied" : "press Ctrl-C"; }
    if (navigator.clipboard) {
      navigator.clipboard.writeText(source.textContent).then(function () { said(true); }, function () { said(chosen()); });
    } else { said(chosen()); }
  });
}

try {
  document.querySelectorAll("table.sortable").forEach(sortable);
  document.querySelectorAll("input[data-filters]").forEach(filtered);
  document.querySelectorAll("button[data-copies]").forEach(copies);
  var command = document.getElementById("compare");
  if (command) { compared(document.getElementById("runs"), command, document.querySelector("button[data-copies='compare']")); }
  lines();
  root.dataset.ready = "yes";
} catch (error) { failed(error); }
