"use strict";
// What pages do beyond links: bring themselves up to date, and keys.
(() => {
  const stored = (name) => { try { return localStorage.getItem(name); } catch { return null; } };
  const store = (name, value) => { try { localStorage.setItem(name, value); } catch { /* a closed store: for this page only */ } };
  const off = document.getElementById("keys-off");
  if (off) {
    off.checked = stored("medassay keys") === "off";
    off.addEventListener("change", () => store("medassay keys", off.checked ? "off" : "on"));
  }

  // Parts that grow are fetched again and exchanged, but not under the reader's hands.
  const every = 2000;
  let paused = false, button = null;
  const parts = () => [...document.querySelectorAll("[data-live]")];
  const busy = (part) => part.contains(document.activeElement) || part.querySelector(".current") || String(getSelection()) !== "";
  async function update() {
    if (paused || document.hidden || !parts().length) return;
    try {
      const reply = await fetch(location.href, { credentials: "same-origin" });
      if (!reply.ok) return;
      const fresh = new DOMParser().parseFromString(await reply.text(), "text/html");
      for (const part of parts()) {
        const other = fresh.getElementById(part.id);
        if (!other) continue;
        if (other.innerHTML !== part.innerHTML && !busy(part)) part.replaceChildren(...other.childNodes);
        if (!("live" in other.dataset)) delete part.dataset.live;
      }
    } catch { /* the viewer was stopped: what is shown stays */ }
  }
  const pause = () => {
    paused = !paused;
    if (button) button.textContent = paused ? "Go on with updates" : "Stop updates";
  };
  if (parts().length) {
    button = document.createElement("button");
    button.className = "updates"; button.textContent = "Stop updates"; button.type = "button";
    button.addEventListener("click", pause);
    document.querySelector("header").append(button);
    setInterval(update, every);
  }

  // Keys.
  const rows = () => [...document.querySelectorAll("[data-row]")];
  const step = (by) => {
    const all = rows();
    if (!all.length) return;
    const at = all.findIndex((row) => row.classList.contains("current"));
    const next = Math.max(0, Math.min(all.length - 1, at < 0 ? (by > 0 ? 0 : all.length - 1) : at + by));
    all[at]?.classList.remove("current");
    all[next].classList.add("current");
    all[next].scrollIntoView({ block: "nearest" });
    all[next].querySelector("a")?.focus({ preventScroll: true });
  };
  const fold = () => {
    const all = [...document.querySelectorAll("main details")];
    const open = !all.some((one) => one.open);
    for (const one of all) one.open = open;
  };
  const follow = (selector) => document.querySelector(selector)?.click();
  const does = {
    j: () => step(1), k: () => step(-1), n: () => follow('a[rel="next"]'), p: () => follow('a[rel="prev"]'),
    "/": () => document.querySelector("[data-search]")?.focus(), u: pause, o: fold, "?": () => { location.href = "/keys"; },
  };
  document.addEventListener("keydown", (event) => {
    const field = event.target.closest?.("input:not([type=checkbox]), select, textarea");
    if (field) { if (event.key === "Escape") field.blur(); return; }
    if (event.ctrlKey || event.metaKey || event.altKey || stored("medassay keys") === "off") return;
    const act = does[event.key];
    if (act) { event.preventDefault(); act(); }
  });
})();
