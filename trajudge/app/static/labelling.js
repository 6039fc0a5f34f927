"use strict";
// Autosave, the timer, and the keys of the form; the form is complete without them.

const form = document.getElementById("label-form");

if (form) {
  const saved = document.getElementById("saved");
  const problem = document.getElementById("problem");
  const seconds = form.elements.seconds;
  const SAVE_AFTER = 2000;
  let dirty = false;
  let timer = 0;
  let since = document.visibilityState === "visible" ? performance.now() : 0;
  let begun = "";
  let saving = Promise.resolve();

  // The time that the page is visible.
  const count = () => {
    if (since) {
      const now = performance.now();
      seconds.value = (Number(seconds.value) + (now - since) / 1000).toFixed(1);
      since = now;
    }
  };
  document.addEventListener("visibilitychange", () => {
    count();
    since = document.visibilityState === "visible" ? performance.now() : 0;
    if (!since && dirty) save();
  });

  // What the form holds goes to the server without a page load, so that it stays here if none answers.
  async function post(action) {
    count();
    const fields = new URLSearchParams(new FormData(form));
    fields.set("action", action);
    const sent = {
      method: "POST",
      body: fields,
      headers: { Accept: "application/json" },
      keepalive: fields.toString().length < 60000,
    };
    const answer = await fetch(location.pathname + location.search, sent).catch(() => null);
    if (!answer) throw new Error("Not saved: the server does not answer. What you wrote stays here: try again.");
    const told = await answer.json();
    if (!answer.ok) throw new Error(told.error);
    return told;
  }

  function failed(error) {
    dirty = true;
    saved.textContent = "Not saved";
    problem.setAttribute("role", "alert");
    problem.textContent = error.message;
  }

  async function send() {
    if (!dirty) return;
    dirty = false;
    try {
      form.elements.version.value = (await post("draft")).version;
      saved.textContent = "Draft saved";
      problem.textContent = "";
    } catch (error) {
      failed(error);
    }
  }

  let sending = false;
  async function finish(action) {
    if (sending) return;
    sending = true;
    clearTimeout(timer);
    try {
      await saving;
      const { next } = await post(action);
      dirty = false;
      if (next) location.assign(next);
      else saved.textContent = "Draft saved";
    } catch (error) {
      failed(error);
    } finally {
      sending = false;
    }
  }
  const save = () => (saving = saving.then(send));

  form.addEventListener("input", (event) => {
    if (event.target.name?.startsWith("mark_") || event.target.name === "skip_reason") return;
    dirty = true;
    saved.textContent = "";
    clearTimeout(timer);
    timer = setTimeout(save, SAVE_AFTER);
  });

  // Whatever leaves the page goes after the draft is saved.
  async function after(leave) {
    clearTimeout(timer);
    await save();
    if (!dirty) leave();
  }
  document.addEventListener("click", (event) => {
    const link = event.target.closest("a[href]");
    if (!link || !dirty || event.ctrlKey || event.metaKey || link.hash) return;
    event.preventDefault();
    after(() => (location.href = link.href));
  });
  document.addEventListener("submit", (event) => {
    clearTimeout(timer);
    count();
    if (event.target === form) {
      event.preventDefault();
      const action = event.submitter?.value || "draft";
      if (action === "draft") save();
      else finish(action);
    } else if (dirty) {
      event.preventDefault();
      after(() => event.target.submit());
    }
  });
  addEventListener("beforeunload", (event) => {
    if (dirty) event.preventDefault();
  });

  // Keys: y, n, u, s, f and 1 to 4 answer the question that has the focus, or the first open one.
  const questions = [...form.querySelectorAll("fieldset[data-question]")];
  const current = () =>
    questions.find((question) => question.contains(document.activeElement)) ||
    questions.find((question) => !question.querySelector(":checked"));

  function choose(question, key) {
    const option = question && question.querySelector(`[data-choice="${CSS.escape(key)}"]`);
    if (!option) return false;
    option.checked = true;
    option.dispatchEvent(new Event("input", { bubbles: true }));
    const following = questions.find((each) => !each.querySelector(":checked"));
    const target = key === "u" ? question.querySelector(".why input") : following && following.querySelector("input");
    (target || document.getElementById("submit")).focus();
    return true;
  }

  // One press answers all questions of a clear item; the answers are seen before they are sent.
  const clear = document.getElementById("clear");
  if (clear) clear.hidden = false;
  form.addEventListener("click", (event) => {
    const button = event.target.closest("[data-clear]");
    if (!button) return;
    const [success, effect, repetition, optimality] = button.dataset.clear.split(" ");
    const answers = { success, side_effect: effect, repetition, optimality };
    for (const question of questions) {
      const value = answers[question.dataset.question];
      question.querySelector(`[value="${CSS.escape(value)}"]`).checked = true;
    }
    questions[0].dispatchEvent(new Event("input", { bubbles: true }));
    document.getElementById("submit").focus();
  });

  function pressed(event) {
    if (document.querySelector("dialog[open]")) return false;
    if (event.ctrlKey && event.key === "Enter") {
      document.getElementById("submit").click();
      return true;
    }
    if (writesText(event.target) || keysOff()) return false;
    if (event.ctrlKey && event.key === "z") {
      document.querySelector("[form=reopen]").click();
      return true;
    }
    if (event.ctrlKey || event.altKey || event.metaKey) return false;
    const before = begun;
    begun = "";
    const typed = meant(event.key);
    if (before === "o") return choose(form.querySelector("[data-question=optimality]"), typed);
    if (typed === "o" && form.querySelector("[data-question=optimality]")) {
      begun = "o";
      return true;
    }
    const at = current();
    if (/^[1-4]$/.test(typed)) {
      return Boolean(at) && at.dataset.question === "optimality" && choose(at, typed);
    }
    if (typed === "s" || typed === "f") return choose(form.querySelector("[data-question=success]"), typed);
    const inSuccess = at && at.dataset.question === "success";
    const key = inSuccess ? { y: "s", n: "f" }[typed] || typed : typed;
    return /^[ynu]$/.test(typed) && choose(at, key);
  }

  addEventListener(
    "keydown",
    (event) => {
      if (!pressed(event)) return;
      event.preventDefault();
      event.stopPropagation();
    },
    true,
  );
  // The overlay's key begins a choice here.
  const overlay = document.getElementById("overlay");
  if (overlay) overlay.dataset.key = "m";
}
