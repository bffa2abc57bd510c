(function () {
"use strict";
var known = {}, lost = 0, every = 1000, me = "", last = "";
var bytes = new Uint8Array(6);
crypto.getRandomValues(bytes);
bytes.forEach(function (one) { me += (one + 256).toString(16).slice(1); });
function say(text) {
  var place = document.getElementById("link");
  place.textContent = text;
  place.hidden = !text;
}
function take(told) {
  Object.keys(told.parts).forEach(function (name) {
    var place = document.getElementById(name);
    if (place) { place.innerHTML = told.parts[name].html; known[name] = told.parts[name].mark; }
  });
  if (told.title) { document.title = told.title; }
  last = new Date().toLocaleTimeString();
}
function look() {
  var marks = Object.keys(known).map(function (name) { return known[name]; }).join(".");
  var giveUp = new AbortController();
  var patience = setTimeout(function () { giveUp.abort(); }, 20000);
  fetch("state?c=" + me + "&k=" + marks, { cache: "no-store", signal: giveUp.signal }).then(function (answer) {
    if (!answer.ok) { throw new Error(String(answer.status)); }
    return answer.json();
  }).then(function (told) {
    clearTimeout(patience);
    lost = 0;
    take(told);
    if (told.ended) {
      document.documentElement.dataset.ended = "yes";
      say("The run has ended, and its server with it. This page keeps what it shows.");
      return;
    }
    say("");
    setTimeout(look, every);
  }).catch(function () {
    clearTimeout(patience);
    lost += 1;
    if (lost > 2) {
      say("The run does not answer: it has ended, or the way to it is broken." +
        (last ? " The page shows what it said last, at " + last + "." : ""));
    }
    setTimeout(look, Math.min(every * lost, 10000));
  });
}
look();
})();
