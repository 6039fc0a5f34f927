"use strict";
// The slider goes where it is let go, Shift with an arrow goes five steps; the page is complete
// without it.

const slider = () => document.getElementById("step");

function setUp() {
  const step = slider();
  if (!step) return;
  const shown = document.getElementById("step-shown");
  step.form.querySelector("button").hidden = true;
  step.addEventListener("input", () => {
    shown.textContent = `${step.value} of ${step.max}`;
    step.setAttribute("aria-valuetext", `step ${step.value} of ${step.max}`);
  });
  step.addEventListener("change", () => step.form.requestSubmit());
  for (const current of document.querySelectorAll(".film [aria-current], .steps [aria-current]")) {
    const box = current.closest("ol");
    box.scrollLeft = current.parentElement.offsetLeft - box.offsetLeft - box.clientWidth / 2 + 62;
    box.scrollTop = current.parentElement.offsetTop - box.offsetTop - box.clientHeight / 2;
  }
}

setUp();
document.addEventListener("trajudge:shown", setUp);
document.addEventListener(
  "keydown",
  (event) => {
    const by = { ArrowLeft: -5, ArrowRight: 5 }[event.key];
    const step = slider();
    if (!by || !step || !event.shiftKey || writesText(event.target) || keysOff() || document.querySelector("dialog[open]")) return;
    event.preventDefault();
    event.stopPropagation();
    step.value = Number(step.defaultValue) + by;
    step.form.requestSubmit();
  },
  true,
);
