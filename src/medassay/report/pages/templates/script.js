"use strict";
// Pages are complete without this: it adds sorting, filtering, and opening of linked sections.
(function () {
  var table = document.querySelector("table.ranking");
  var form = document.querySelector("form.filter");
  var query = new URLSearchParams(location.search);

  function remember() {
    var text = query.toString();
    try { history.replaceState(null, "", location.pathname + (text ? "?" + text : "") + location.hash); } catch (e) { /* file:// in some browsers */ }
  }
  function rows() { return Array.prototype.slice.call(table.tBodies[0].rows).filter(function (r) { return r.dataset.model; }); }

  function sort(key, down) {
    var numeric = key !== "model";
    rows().map(function (row, at) {
      return { row: row, at: at, value: numeric ? Number(row.dataset[key]) : row.dataset[key].toLowerCase() };
    }).sort(function (a, b) {
      var order = a.value < b.value ? -1 : a.value > b.value ? 1 : a.at - b.at;
      return down ? -order : order;
    }).forEach(function (entry) { table.tBodies[0].appendChild(entry.row); });
    table.querySelectorAll("th[data-sort]").forEach(function (head) {
      if (head.dataset.sort === key) head.setAttribute("aria-sort", down ? "descending" : "ascending");
      else head.removeAttribute("aria-sort");
    });
    query.set("sort", (down ? "-" : "") + key);
    remember();
  }

  function filter(text) {
    var wanted = text.trim().toLowerCase(), all = rows(), shown = 0;
    all.forEach(function (row) {
      row.hidden = wanted !== "" && (row.dataset.model + " " + row.dataset.setting).toLowerCase().indexOf(wanted) < 0;
      if (!row.hidden) shown += 1;
    });
    form.querySelector("output").textContent = wanted ? shown + " of " + all.length + " shown; ranks are those of the whole field" : "";
    document.querySelector("p.empty").hidden = shown > 0 || all.length === 0;
    if (wanted) query.set("q", text); else query.delete("q");
    remember();
  }

  if (table && form && table.tHead) {
    form.hidden = false;
    var input = form.querySelector("input");
    form.addEventListener("submit", function (event) { event.preventDefault(); });
    input.addEventListener("input", function () { filter(input.value); });
    form.addEventListener("reset", function () { input.value = ""; filter(""); });
    table.querySelectorAll("th[data-sort]").forEach(function (head) {
      var button = document.createElement("button");
      button.type = "button";
      button.textContent = head.textContent;
      head.setAttribute("data-label", head.textContent);
      head.textContent = "";
      head.appendChild(button);
      button.addEventListener("click", function () {
        var now = head.getAttribute("aria-sort");
        sort(head.dataset.sort, now ? now === "ascending" : head.dataset.sort === "score");
      });
    });
    if (query.get("sort")) sort(query.get("sort").replace(/^-/, ""), query.get("sort")[0] === "-");
    if (query.get("q")) { input.value = query.get("q"); filter(input.value); }
  }

  function open() {
    var target = location.hash.length > 1 && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    var details = target && target.closest("details");
    if (details) { details.open = true; target.scrollIntoView(); }
  }
  window.addEventListener("hashchange", open);
  window.addEventListener("beforeprint", function () {
    document.querySelectorAll("details").forEach(function (d) { d.open = true; });
  });
  open();

  // Over HTTP the status of this publication is asked for; where that fails the link remains.
  var status = document.querySelector("a[data-status]");
  if (status && location.protocol.indexOf("http") === 0) {
    fetch(status.dataset.status).then(function (reply) { return reply.json(); }).then(function (now) {
      (now.reruns || []).forEach(function (rerun) {
        var told = document.createElement("p");
        told.className = rerun.within ? "" : "flag";
        told.setAttribute("role", "status");
        told.textContent = "The models of this publication were asked again by the audit " + rerun.publication + ": " + rerun.differing + " of " + rerun.trials + (rerun.within ? " answers differ, all rows are within tolerance." : " answers differ, some rows are beyond tolerance.");
        document.getElementById("main").prepend(told);
      });
      (now.open_disputes || []).forEach(function (number) {
        var told = document.createElement("p");
        told.className = "flag";
        told.setAttribute("role", "status");
        told.textContent = "A number of this publication is disputed: ";
        var link = document.createElement("a");
        link.href = status.href.replace(/status\/[^/]*\/index\.html$/, "dispute/" + number + "/index.html");
        link.textContent = "dispute " + number;
        told.appendChild(link);
        document.getElementById("main").prepend(told);
      });
      if (now.status === "current") return;
      var banner = document.createElement("p");
      banner.className = "watermark";
      banner.setAttribute("role", "status");
      banner.textContent = "This publication is " + now.status + ": " + now.reason + " ";
      if (now.next) {
        var link = document.createElement("a");
        link.href = status.href.replace(/status\/[^/]*\/index\.html$/, "p/" + now.next + "/index.html");
        link.textContent = "Read instead: " + now.next;
        banner.appendChild(link);
      }
      document.getElementById("main").prepend(banner);
    }).catch(function () { /* the link remains */ });
  }
})();
