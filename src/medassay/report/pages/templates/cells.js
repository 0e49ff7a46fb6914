"use strict";
// Shows one cell of a compact publication. What models wrote becomes text, never mark-up.
(function () {
  var place = document.getElementById("cell-answers");
  if (!place) return;
  var query = new URLSearchParams(location.search), file = query.get("file");
  var state = document.getElementById("cell-state");
  if (!file || !/^[a-z0-9.-]+\.jsonl$/.test(file)) return;
  document.getElementById("cell-title").textContent = query.get("model") + " in " + query.get("domain");
  if (location.protocol.indexOf("http") !== 0) {
    state.textContent = "Open over HTTP for the answers; here they are in the file " + file + ".";
    return;
  }
  state.textContent = "Reading the answers …";

  function add(parent, name, text, more) {
    var made = document.createElement(name);
    // Control and direction marks are spelled out, as on every page.
    if (text !== undefined && text !== null) made.textContent = String(text).replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff]/g, function (c) {
      return "U+" + ("000" + c.charCodeAt(0).toString(16).toUpperCase()).slice(-4);
    });
    Object.keys(more || {}).forEach(function (key) { made.setAttribute(key, more[key]); });
    parent.appendChild(made);
    return made;
  }
  // The letters of options, as core/records/target/closed.py has them; a list of HTML has others after Z.
  var LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZΓΔΘΛΞΠΣΦΨΩБДЖЗ";
  function shuffleText(order) {
    var shown = order.map(function (_, at) { return LETTERS[at]; });
    var banked = order.map(function (place) { return LETTERS[place]; });
    return "options shown as " + shown.join(", ") + " were " + banked.join(", ") + " of the bank";
  }
  function lines(address) {
    return fetch(address).then(function (reply) {
      if (!reply.ok) throw new Error(reply.status);
      return reply.text();
    }).then(function (text) {
      return text.split("\n").filter(Boolean).map(function (line) { return JSON.parse(line); });
    });
  }
  function show(answer, item) {
    var trial = answer.trial, name = trial.item + (trial.repeat ? "-r" + trial.repeat : "");
    var article = add(place, "article", null, { id: name, "data-answer": trial.item, "data-sha256": answer.sha256 });
    var score = answer.score === null ? "null" : answer.score;
    add(article, "h2", trial.item + " · " + score + " · " + answer.because);
    if (item.tombstone) {
      add(article, "p", "Deleted by law; of question and reply their hashes are left: " + item.tombstone + ", " + trial.tombstone);
    } else if (item.commitment) {
      add(article, "p", "Synthetic item, withheld; commitment sha256 " + item.commitment);
      add(article, "p", "Reply withheld (" + trial.outcome + "); commitment sha256 " + trial.commitment);
    } else {
      [item.context, item.question].filter(Boolean).forEach(function (text) { add(article, "p", text, { dir: "auto", lang: item.language || "en" }); });
      if (item.options) {
        var list = add(article, "ol", null, { "class": "options", type: "A" });
        item.options.forEach(function (option, at) {
          var key = LETTERS[at] === item.expected;
          var shown = trial.order && trial.order.indexOf(at) >= 0 ? " · shown as " + LETTERS[trial.order.indexOf(at)] : "";
          var row = add(list, "li", option + (key ? " (key)" : "") + shown, key ? { "class": "key", dir: "auto" } : { dir: "auto" });
          if (at > 25) row.setAttribute("data-letter", LETTERS[at]);
        });
      } else {
        add(article, "p", "Target: " + (item.expected || item.regex || (item.range && item.range.lo + " to " + item.range.hi) || (item.facts && item.facts.map(function (f) { return f.text || f; }).join("; ")) || item.reference || (item.document && JSON.stringify(item.document)) || "given with the score"), { dir: "auto" });
      }
      if (trial.likelihoods) {
        add(article, "p", "Log-probabilities in nats" + (trial.order ? ", options as they were shown" : "") + ": " + trial.likelihoods.map(function (one) { return one.total === null ? "−∞" : one.total.toFixed(2); }).join(", "));
      } else if (trial.drawn) {
        trial.drawn.kept.forEach(function (one, at) {
          add(article, "p", "Completion " + (at + 1) + ": " + one.n_tokens + " tokens, " + (one.logprob === null ? "−∞" : one.logprob.toFixed(2)) + " nats", { "class": "label" });
          add(article, "pre", one.text, { dir: "auto" });
        });
      } else {
        add(article, "p", "Reply", { "class": "label" });
        add(article, "pre", trial.text, { dir: "auto" });
      }
      add(article, "p", "Read as " + (trial.value === null ? "nothing" : trial.value) + " by " + trial.reason + " · " + trial.outcome + (trial.order ? " · " + shuffleText(trial.order) : ""));
    }
    (answer.verdicts || []).forEach(function (verdict) {
      var line = add(article, "p", verdict.judge + ": " + (verdict.score === null ? "no score" : verdict.score));
      ((verdict.body || {}).facts || []).forEach(function (said) {
        add(line, "span", " " + said.id + " " + said.verdict, { "data-judge": verdict.judge, "data-verdict": said.verdict });
      });
    });
    add(article, "p", "sha256 " + answer.sha256, { "class": "proof" });
  }

  Promise.all([lines(file), lines(place.dataset.items)]).then(function (found) {
    var items = {}, wanted = ["domain", "setting", "mode"];
    found[1].forEach(function (item) { items[item.domain + "\u001f" + item.id] = item; });
    var answers = found[0].filter(function (answer) {
      return answer.trial.model === query.get("model") && wanted.every(function (key) { return answer.trial[key] === query.get(key); });
    });
    answers.forEach(function (answer) { show(answer, items[answer.trial.domain + "\u001f" + answer.trial.item] || {}); });
    state.textContent = answers.length + " answers; " + query.get("setting") + ", " + query.get("mode") + ".";
    place.hidden = false;
    document.dispatchEvent(new Event("answers"));
    if (location.hash.length > 1) {
      var target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
      if (target) target.scrollIntoView();
    }
  }).catch(function () { state.textContent = "The answers could not be read; they are in the file " + file + "."; });
})();
