// Two small buttons at each plot: its picture as SVG or as PNG, in the colours that the page has now.
function picture(chart) {
  var style = getComputedStyle(root);
  var text = chart.renderToSVGString().replace(/var\(--([\w-]+)\)/g, function (_, name) {
    return style.getPropertyValue("--" + name).trim();
  });
  return text.replace(/(<svg[^>]*>)/, '$1<rect width="100%" height="100%" fill="' + style.getPropertyValue("--card").trim() + '"/>');
}

function download(blob, name) {
  var address = URL.createObjectURL(blob);
  var link = make("a", { href: address, download: name });
  link.click();
  root.dataset.saved = name + " " + blob.size;
  setTimeout(function () { URL.revokeObjectURL(address); }, 10000);
}

function savePng(chart, name) {
  var address = URL.createObjectURL(new Blob([picture(chart)], { type: "image/svg+xml" }));
  var image = new Image();
  image.onload = function () {
    var canvas = make("canvas", { width: 2 * chart.getWidth(), height: 2 * chart.getHeight() });
    canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
    URL.revokeObjectURL(address);
    canvas.toBlob(function (blob) { download(blob, name + ".png"); }, "image/png");
  };
  image.onerror = function () { failed("the picture of " + name + " is none that this browser draws"); };
  image.src = address;
}

function saving(chart, holder) {
  var name = holder.dataset.plot;
  var said = holder.parentNode.querySelector("figcaption");
  var bar = make("div", { "class": "save" });
  function button(kind, act) {
    var one = make("button", { type: "button", "aria-label": "Save " + (said ? said.textContent : name) + " as " + kind }, kind);
    one.addEventListener("click", act);
    bar.appendChild(one);
  }
  button("SVG", function () { download(new Blob([picture(chart)], { type: "image/svg+xml" }), name + ".svg"); });
  button("PNG", function () { savePng(chart, name); });
  holder.parentNode.appendChild(bar);
}
