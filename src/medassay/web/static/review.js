"use strict";
// What pages do beyond forms: save drafts, keep what was typed until the server has it, keys, the running total.
(() => {
  const form = document.querySelector("[data-form]");
  const kept = (name) => { try { return JSON.parse(localStorage.getItem(name)); } catch { return null; } };
  const keep = (name, value) => { try { localStorage.setItem(name, JSON.stringify(value)); } catch { /* a full or closed store: the server has the draft */ } };
  const drop = (name) => { try { localStorage.removeItem(name); } catch { /* nothing to drop */ } };
  const forget = () => { for (const name of Object.keys(localStorage)) if (name.startsWith("medassay ")) drop(name); };
  document.querySelector("[data-signout]")?.addEventListener("submit", forget);
  if (new URLSearchParams(location.search).get("out")) forget();
  // On a slow connection somebody types before this script is there: their focus stays where it is.
  if (document.activeElement === document.body) document.querySelector("[data-focus]")?.focus();
  // Who decides to rewrite an item sees the fields at once.
  for (const verdict of document.querySelectorAll('input[name="verdict"]')) {
    verdict.addEventListener("change", () => {
      const fields = document.getElementById("rewrite");
      if (fields && verdict.value === "rewrite") fields.open = true;
    });
  }
  if (!form) return;

  const place = `medassay ${document.body.dataset.user} ${form.dataset.item}`;
  const status = form.querySelector("[data-save]");
  const version = form.elements.version;
  const hidden = ["csrf", "version", "do", "owner"];
  const fields = () => {
    const found = {};
    for (const [name, value] of new FormData(form)) if (!hidden.includes(name) && value !== "") found[name] = value;
    return found;
  };
  // Whether somebody changed a field since the server sent the page.
  const touched = (element) => {
    if (!element.name || hidden.includes(element.name)) return false;
    if (element.type === "radio" || element.type === "checkbox") return element.checked !== element.defaultChecked;
    if (element.options) return element.value !== ([...element.options].find((one) => one.defaultSelected)?.value ?? "");
    return "defaultValue" in element && element.value !== element.defaultValue;
  };
  const fill = (values) => {
    const typed = new Set([...form.elements].filter(touched).map((element) => element.name));
    for (const element of form.elements) {
      if (!element.name || hidden.includes(element.name) || element.type === "submit" || typed.has(element.name)) continue;
      if (element.type === "radio" || element.type === "checkbox") element.checked = values[element.name] === element.value;
      else element.value = values[element.name] ?? "";
    }
  };
  const show = (state, text, link) => {
    if (!status) return;
    status.dataset.save = state;
    status.textContent = text;
    if (link) {
      const a = document.createElement("a");
      a.href = link; a.textContent = " →"; a.setAttribute("aria-label", text);
      status.append(a);
    }
  };

  // What was typed and the server does not have: from a lost connection, an ended session, a closed window.
  const before = kept(place);
  const answered = document.querySelector('[role="alert"]'); // a page that shows what was posted: the server does not have it yet
  const early = [...form.elements].some(touched); // typed before this script was there
  if (before && !answered) {
    const submitted = Math.floor(before.version / 1e6) < Math.floor(Number(version.value) / 1e6);
    if (submitted || JSON.stringify(before.fields) === JSON.stringify(fields())) drop(place);
    else { version.value = before.version; fill(before.fields); if (status) queueMicrotask(changed); }
  }
  if ((answered || early) && status) queueMicrotask(changed);

  let timer = 0, running = false, again = false, pause = 1000;
  async function save() {
    if (running) { again = true; return; }
    running = true;
    show("saving", form.dataset.saving);
    const sent = fields();
    try {
      const reply = await fetch(form.dataset.draft, {
        method: "PUT", credentials: "same-origin", redirect: "error",
        headers: { "content-type": "application/json", "x-csrf-token": form.elements.csrf.value },
        body: JSON.stringify({ fields: sent, version: Number(version.value) }),
      });
      if (reply.ok) {
        const saved = await reply.json();
        version.value = saved.version;
        pause = 1000;
        if (JSON.stringify(fields()) === JSON.stringify(sent)) drop(place);
        else keep(place, { fields: fields(), version: saved.version });
        show("saved", form.dataset.saved.replace("{time}", new Date().toTimeString().slice(0, 5)));
      } else if (reply.status === 401) show("failed", form.dataset.ended, form.dataset.login);
      else if (reply.status >= 500 || reply.status === 429) throw new Error(String(reply.status));
      else { // it will be refused again: say why, and keep what was typed
        const said = (await reply.json().catch(() => ({}))).error ?? {};
        show("failed", said.theirs ? form.dataset.elsewhere : said.message || form.dataset.failed, reply.status === 403 ? location.href : "");
      }
    } catch {
      show("failed", form.dataset.failed);
      pause = Math.min(pause * 2, 30000);
      timer = setTimeout(save, pause);
    } finally {
      running = false;
      if (again) { again = false; changed(); }
    }
  }
  function changed() {
    if (!status) return;
    keep(place, { fields: fields(), version: Number(version.value) });
    clearTimeout(timer);
    timer = setTimeout(save, 1000);
    total();
  }
  function total() {
    const line = form.querySelector(".total output");
    if (!line) return;
    const aspects = [...form.querySelectorAll('[data-level="ordinal"]')];
    const scores = aspects.map((one) => Number(one.querySelector("input:checked")?.value ?? 0));
    line.textContent = "";
    if (scores.some((one) => !one)) return;
    const sum = scores.reduce((a, b) => a + b, 0), threshold = 3 * scores.length;
    line.textContent = form.dataset.total.replace("{total}", sum).replace("{most}", 5 * scores.length);
    if (sum < threshold) {
      const flag = document.createElement("span");
      flag.className = "flagged"; flag.textContent = ` · ${form.dataset.flagged.replace("{threshold}", threshold)}`;
      line.append(flag);
    }
  }
  form.addEventListener("input", changed);
  form.addEventListener("submit", (event) => {
    clearTimeout(timer);
    // A save on its way comes first: it changes the version that this page is based on.
    if (running) {
      event.preventDefault();
      again = false;
      const by = event.submitter;
      const wait = setInterval(() => { if (!running) { clearInterval(wait); clearTimeout(timer); form.requestSubmit(by); } }, 50);
      return;
    }
    // A browser that knows it is offline stays on the page; of all else the copy in it is what comes back.
    if (!navigator.onLine) { event.preventDefault(); show("failed", form.dataset.failed); timer = setTimeout(save, 1000); }
  });
  window.addEventListener("online", () => { if (status?.dataset.save === "failed") save(); });
  total();

  // Keys.
  const aspects = [...form.querySelectorAll("[data-aspect]")];
  let at = 0;
  const current = (step, focus = true) => {
    at = Math.max(0, Math.min(aspects.length, at + step)); // behind the last one no key scores
    aspects.forEach((one, index) => one.classList.toggle("current", index === at));
    if (focus && aspects[at]) {
      (aspects[at].querySelector("input:checked") ?? aspects[at].querySelector("input"))?.focus({ preventScroll: true });
      aspects[at].scrollIntoView({ block: "nearest" });
    } else if (focus) form.querySelector('button[value="submit"]')?.focus({ preventScroll: true });
  };
  aspects.forEach((one, index) => one.addEventListener("focusin", () => { at = index; current(0, false); }));
  const score = (key) => {
    const inputs = [...(aspects[at]?.querySelectorAll('input[type="radio"]') ?? [])];
    const plain = inputs.filter((one) => one.value !== "0");
    const chosen = key === "0" ? inputs.find((one) => one.value === "0") : plain[Number(key) - 1];
    if (!chosen || chosen.disabled || chosen.matches(":disabled")) return;
    chosen.checked = true;
    changed();
    if (key === "0") aspects[at].querySelector(".why input")?.focus();
    else current(1);
  };
  const press = (value) => form.querySelector(`button[name="do"][value="${value}"]`)?.click();
  const keys = {
    j: () => current(1), k: () => current(-1), s: () => press("skip"),
    n: () => { location.href = form.dataset.next; }, p: () => { location.href = form.dataset.previous; },
    c: () => form.elements.comment?.focus(),
    h: () => { const box = form.elements.harm; if (box && !box.matches(":disabled")) { box.checked = !box.checked; changed(); if (box.checked) form.elements.severity?.focus(); } },
    "?": () => document.getElementById("keys")?.showModal(),
  };
  document.addEventListener("keydown", (event) => {
    const typing = event.target.matches('textarea, select, input:not([type="radio"]):not([type="checkbox"])');
    if (document.querySelector("dialog[open]")) return;
    if ((event.ctrlKey || event.metaKey) && event.key === "Enter") { event.preventDefault(); press("submit"); return; }
    if (event.key === "Escape" && typing) { event.target.blur(); return; }
    if (typing || event.ctrlKey || event.metaKey || event.altKey || document.body.dataset.keys !== "on") return;
    if (/^[0-5]$/.test(event.key)) { event.preventDefault(); score(event.key); }
    else if (keys[event.key]) { event.preventDefault(); keys[event.key](); }
  });
  if (aspects.length) aspects[0].classList.add("current");
})();
