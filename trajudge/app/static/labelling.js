"use strict";
// Autosave, the timer, the keys of the form, and the next page in place of this one; the form is
// complete without them.

// Ends what listens for the page that is shown, and what has to be done before it is left.
let shownPage = new AbortController();
let beforeLeaving = (leave) => leave();
let shownAddress = location.pathname + location.search;

// Show another page of the queue in place of this one. Rejects where the server does not answer.
async function visit(address, sent, push = true) {
  const answer = await fetch(address, { ...sent, headers: { Accept: "text/html" } });
  const loaded = new DOMParser().parseFromString(await answer.text(), "text/html");
  const main = loaded.getElementById("main");
  if (!main) return location.assign(answer.url);
  shownPage.abort();
  beforeLeaving = (leave) => leave();
  document.title = loaded.title;
  document.getElementById("main").replaceWith(main);
  if (push) history.pushState(null, "", answer.url);
  const [before, now] = [shownAddress, location.pathname];
  shownAddress = now + location.search;
  if (before.split("?")[0] !== now) scrollTo(0, 0);
  main.focus({ preventScroll: true });
  document.getElementById("live").textContent = loaded.title;
  document.dispatchEvent(new Event("trajudge:shown"));
}

document.addEventListener("click", (event) => {
  const link = event.target.closest("a[href]");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey || link.hash || link.origin !== location.origin) return;
  event.preventDefault();
  const load = () => location.assign(link.href);
  const inPlace = /^\/queue\/(next$|item\/|verdicts\/)/.test(link.pathname);
  beforeLeaving(() => (inPlace ? visit(link.href).catch(load) : load()));
});
document.addEventListener("submit", (event) => {
  const form = event.target;
  if (form.id === "label-form" || !form.closest("main")) return;
  event.preventDefault();
  const fields = new URLSearchParams(new FormData(form, event.submitter));
  // A button is named "action", so that form.action is the button.
  const address = new URL(form.getAttribute("action") || "", location.href);
  const gets = form.method === "get";
  if (gets) address.search = fields;
  beforeLeaving(() => visit(address, gets ? {} : { method: "POST", body: fields }).catch(() => form.submit()));
});
addEventListener("popstate", () => {
  if (location.pathname + location.search === shownAddress) return;
  beforeLeaving(() => visit(location.href, {}, false).catch(() => location.reload()));
});

function begin() {
  const form = document.getElementById("label-form");
  if (!form) return;
  const { signal } = (shownPage = new AbortController());
  const address = shownAddress;
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
  }, { signal });

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
    const answer = await fetch(address, sent).catch(() => null);
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
      if (next) await visit(next).catch(() => location.assign(next));
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
  beforeLeaving = async (leave) => {
    clearTimeout(timer);
    await save();
    if (!dirty) leave();
  };
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    clearTimeout(timer);
    const action = event.submitter?.value || "draft";
    if (action === "draft") save();
    else finish(action);
  });
  addEventListener("beforeunload", (event) => {
    if (dirty) event.preventDefault();
  }, { signal });

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
    { capture: true, signal },
  );
  // The overlay's key begins a choice here.
  const overlay = document.getElementById("overlay");
  if (overlay) overlay.dataset.key = "m";
}

begin();
document.addEventListener("trajudge:shown", begin);
