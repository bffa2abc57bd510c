// What the page's other scripts share. Painters draw custom series (`renderItem: "NAME"` is
// profharness.painters.NAME), formats make texts (`formatter: "NAME"` or `"NAME:argument"`).
// Actions make a plot answer: profharness.actions.NAME(chart, holder), for plots called NAME or NAME-MORE.
var root = document.documentElement;
var profharness = { painters: {}, formats: {}, actions: {} };
var failures = [];

function failed(message) {
  failures.push(String(message && message.stack ? message.stack : message));
  root.dataset.errors = failures.join(" | ");
}

window.addEventListener("error", function (event) { failed(event.message || "a resource failed to load"); }, true);
window.addEventListener("unhandledrejection", function (event) { failed(event.reason); });
document.addEventListener("securitypolicyviolation", function (event) { failed(["blocked", event.violatedDirective, event.blockedURI, event.target.nodeName, event.sourceFile, event.lineNumber].join(" ")); });

// Scripts of others are data until they are needed; the policy lets them run by their hashes.
function run(text) { document.head.appendChild(make("script", {}, text)); }

function carried(id) { return document.getElementById(id).textContent; }

// The text behind zlib's format in base64. At once, not as a promise: a browser that takes a picture
// or prints right after loading waits for none.
function unpacked(text) {
  if (!window.pako) { run(carried("unpacker")); }
  var letters = atob(text), bytes = new Uint8Array(letters.length);
  for (var at = 0; at < letters.length; at += 1) { bytes[at] = letters.charCodeAt(at); }
  return new TextDecoder().decode(window.pako.inflate(bytes));
}

// Colours of text, axes and grid: variables of the style sheet, which follow light, dark and print.
profharness.color = function (name) { return "var(--" + name + ")"; };
window.profharness = profharness;
