// The text can be read at once: what answers and what is drawn comes right after the load event.
function begin() {
  tips();
  tables();
  commands();
  plots();
}

profharness.ready = new Promise(function (resolve) {
  function soon() { setTimeout(resolve); }
  if (document.readyState === "complete") { soon(); } else { window.addEventListener("load", soon); }
}).then(begin).catch(failed);
