// Lines end neither between a number and its unit, nor in a number, nor in an option. The letters stay
// what they are, so that who searches for "82.9 %" finds it. A line may end before "± 0.1 ms".
var HELD = new RegExp(
  "--[a-z][a-z0-9-]*"
  + "|(?:± )?\\d(?:[^\\s(]|[\\u2009\\u202f](?=\\d))*(?: [kMG](?= [a-z]+/s))?"
  + " (?:%|°C|[nµum]?s|min|h|[kKMGTP]?i?B(?:/s)?|[kMGTP]?FLOP(?:/s|/B)?|[mkM]?[WJ]|[kMG]?Hz|cores?|times|[a-z]+/s)(?![\\w/])"
  + "|\\d+(?:[\\u2009\\u202f]\\d{3})+", "g");

function holdTogether(node) {
  var parts = [], from = 0, text = node.data;
  text.replace(HELD, function (found, at) {
    parts.push(text.slice(from, at), make("span", { "class": "held" }, found));
    from = at + found.length;
  });
  if (parts.length) { node.replaceWith.apply(node, parts.concat(text.slice(from))); }
}

function lines() {
  var nodes = [], walk = document.createTreeWalker(document.querySelector(".wrap"), NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) {
    if (!walk.currentNode.parentNode.closest("table, code, .plot, nav, h1")) { nodes.push(walk.currentNode); }
  }
  nodes.forEach(holdTogether);
}
