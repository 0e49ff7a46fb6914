// Tables and outputs wider than the page scroll; what scrolls must be reached by keyboard.
function reachable() {
  for (const region of document.querySelectorAll(".md-typeset__scrollwrap, .output, .output > div")) {
    if (region.scrollWidth > region.clientWidth) region.tabIndex = 0;
  }
}
addEventListener("load", reachable);
addEventListener("resize", reachable);
