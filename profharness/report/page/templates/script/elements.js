// Elements of the page, found and made.
function all(selector, within) { return Array.prototype.slice.call((within || document).querySelectorAll(selector)); }

function make(tag, attributes, text) {
  var made = document.createElement(tag);
  Object.keys(attributes || {}).forEach(function (name) { made.setAttribute(name, attributes[name]); });
  if (text !== undefined) { made.textContent = text; }
  return made;
}
