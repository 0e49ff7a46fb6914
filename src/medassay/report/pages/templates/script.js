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

  var texts = ["model", "setting", "family", "licence", "weights", "location"];

  // What a row does not state comes last, whichever way it is sorted.
  function sort(key, down) {
    var numeric = texts.indexOf(key) < 0;
    rows().map(function (row) {
      var at = places.indexOf(row);
      var value = row.dataset[key];
      if (value === undefined || value === "") return { row: row, at: at, value: null };
      return { row: row, at: at, value: numeric ? Number(value) : value.toLowerCase() };
    }).sort(function (a, b) {
      if (a.value === null || b.value === null) return (a.value === null) - (b.value === null) || a.at - b.at;
      var order = a.value < b.value ? -1 : a.value > b.value ? 1 : 0;
      return (down ? -order : order) || a.at - b.at;
    }).forEach(function (entry) { table.tBodies[0].appendChild(entry.row); });
    table.querySelectorAll("th[data-sort]").forEach(function (head) {
      if (head.dataset.sort === key) head.setAttribute("aria-sort", down ? "descending" : "ascending");
      else head.removeAttribute("aria-sort");
    });
    form.querySelector("[data-sort-by]").value = key === "rank" ? "" : (down ? "-" : "") + key;
    query.set("sort", (down ? "-" : "") + key);
    remember();
  }

  function chosen(row, select) {
    var value = row.dataset[select.dataset.filter] || "";
    if (select.value === "none") return value === "";
    if (select.dataset.filter !== "size") return value === select.value;
    var ends = select.value.split("-");
    return value !== "" && Number(value) > Number(ends[0]) && (ends[1] === "" || Number(value) <= Number(ends[1]));
  }

  function filter() {
    var wanted = input.value.trim().toLowerCase(), all = rows(), shown = 0, models = {};
    var selects = Array.prototype.filter.call(form.querySelectorAll("[data-filter]"), function (select) { return select.value; });
    function matches(row) {
      return (row.dataset.model + " " + row.dataset.setting).toLowerCase().indexOf(wanted) >= 0
        && selects.every(function (select) { return chosen(row, select); });
    }
    document.querySelectorAll("table.ranking tr[data-model]").forEach(function (row) {
      row.hidden = !matches(row);
      if (!row.hidden) models[row.dataset.model] = true;
    });
    document.querySelectorAll("tr[data-matrix]").forEach(function (row) { row.hidden = !models[row.dataset.matrix]; });
    all.forEach(function (row) { if (!row.hidden) shown += 1; });
    form.querySelector("output").textContent = wanted || selects.length ? shown + " of " + all.length + " shown; ranks are those of the whole board" : "";
    document.querySelector("p.empty").hidden = shown > 0 || all.length === 0;
    if (wanted) query.set("q", input.value); else query.delete("q");
    form.querySelectorAll("[data-filter]").forEach(function (select) {
      if (select.value) query.set(select.dataset.filter, select.value); else query.delete(select.dataset.filter);
    });
    remember();
  }

  var places = []; // rows as the page has them: the order of equal ones
  var input = form && form.querySelector("input");
  if (table && form && table.tHead) {
    places = rows();
    var box = form.closest("details");
    box.hidden = false;
    // On a phone the ranking comes first, unless an address asks for a part of it.
    if (matchMedia("(max-width: 760px)").matches && !location.search) box.open = false;
    form.addEventListener("submit", function (event) { event.preventDefault(); });
    form.addEventListener("input", function (event) {
      if (!event.target.matches("[data-sort-by]")) filter();
      else sort(event.target.value.replace(/^-/, "") || "rank", event.target.value[0] === "-");
    });
    form.addEventListener("reset", function () {
      form.querySelectorAll("input, [data-filter]").forEach(function (field) { field.value = ""; });
      filter();
    });
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
    input.value = query.get("q") || "";
    form.querySelectorAll("[data-filter]").forEach(function (select) { select.value = query.get(select.dataset.filter) || ""; });
    if (location.search) filter();
  }

  // Each answer of a page can be cited: its hash and its address.
  function offerCitations() {
    var cite = document.querySelector("details.cite[data-reference]");
    if (!cite) return;
    var address = /^https?:/.test(cite.dataset.address) ? cite.dataset.address : location.href.split(/[?#]/)[0];
    document.querySelectorAll("article[data-sha256]").forEach(function (article) {
      if (article.querySelector("button.cite")) return;
      var proof = article.querySelector(".proof:last-of-type"), button = document.createElement("button");
      if (!proof) return;
      button.type = "button";
      button.className = "cite";
      button.textContent = "Cite this answer";
      button.addEventListener("click", function () {
        var told = article.querySelector("p.citation") || article.appendChild(document.createElement("p"));
        told.className = "citation";
        told.setAttribute("role", "status");
        told.textContent = cite.dataset.reference + ", " + article.dataset.answer + ", answer sha256 " + article.dataset.sha256 + ". " + address + location.search + "#" + article.id;
        getSelection().selectAllChildren(told);
        told.scrollIntoView({ block: "nearest" });
      });
      proof.append(" · ", button);
    });
  }
  document.addEventListener("answers", offerCitations);
  offerCitations();

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
      (now.open_disputes || []).forEach(function (open) {
        function linked(words) {
          var told = document.createElement("span"), link = document.createElement("a");
          told.className = "flag";
          told.textContent = words;
          link.href = status.href.replace(/status\/[^/]*\/index\.html$/, "dispute/" + open.number + "/index.html");
          link.textContent = "dispute " + open.number;
          told.appendChild(link);
          return told;
        }
        var told = document.createElement("p");
        told.setAttribute("role", "status");
        told.appendChild(linked("Disputed in this publication: " + open.about + ", "));
        document.getElementById("main").prepend(told);
        document.querySelectorAll("tr[data-model], tr[data-matrix], tr[data-changed]").forEach(function (row) {
          var model = row.dataset.model || row.dataset.matrix || row.dataset.changed;
          if (open.model && model === open.model) row.querySelector("th").append(" ", linked("disputed: "));
        });
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
