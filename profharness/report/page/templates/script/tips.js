// Provenance: the title attribute becomes a text that the keyboard reaches as well.
function untitled(within) {
  all("[title]", within).forEach(function (one) {
    one.dataset.tip = one.title;
    one.removeAttribute("title");
  });
}

function tips() {
  var box = make("div", { id: "tip", role: "tooltip" });
  document.body.appendChild(box);
  function show(target) {
    box.textContent = target.dataset.tip;
    box.style.display = "block";
    var at = target.getBoundingClientRect();
    var left = Math.min(at.left, root.clientWidth - box.offsetWidth - 12);
    var below = at.bottom + 7 + box.offsetHeight < window.innerHeight;
    box.style.left = Math.max(left, 8) + window.scrollX + "px";
    box.style.top = (below ? at.bottom + 7 : at.top - box.offsetHeight - 7) + window.scrollY + "px";
    target.setAttribute("aria-describedby", "tip");
  }
  function hide() { box.style.display = "none"; }
  function follow(event) {
    var one = event.target.closest ? event.target.closest("[data-tip]") : null;
    if (one) { show(one); } else { hide(); }
  }
  untitled(document);
  document.addEventListener("mouseover", follow);
  document.addEventListener("focusin", follow);
  document.addEventListener("focusout", hide);
  document.addEventListener("keydown", function (event) { if (event.key === "Escape") { hide(); } });
}
