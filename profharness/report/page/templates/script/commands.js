// Commands that the page names: a button copies each. Where a browser gives a file no clipboard,
// the text is selected instead.
function select(code) {
  var range = document.createRange();
  range.selectNodeContents(code);
  var selection = window.getSelection();
  selection.removeAllRanges();
  selection.addRange(range);
}

function copy(code, button) {
  function copied() { button.textContent = "copied"; }
  function selected() {
    select(code);
    button.textContent = document.execCommand("copy") ? "copied" : "selected";
  }
  if (navigator.clipboard) { navigator.clipboard.writeText(code.textContent).then(copied, selected); } else { selected(); }
}

function commands() {
  all(".command").forEach(function (holder) {
    var code = holder.querySelector("code");
    var button = make("button", { type: "button", "aria-label": "Copy: " + code.textContent }, "copy");
    button.addEventListener("click", function () { copy(code, button); });
    holder.appendChild(button);
  });
}
