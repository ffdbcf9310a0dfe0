// The colours are chosen before anything is drawn. "system" follows the machine.
(function () {
  "use strict";
  let theme = "system";
  try {
    theme = localStorage.getItem("gotycoon.theme") || theme;
  } catch {
    // storage may be forbidden: the system's colours then
  }
  document.documentElement.dataset.theme = theme;
})();
