"use strict";
// The slider goes where it is let go, Shift with an arrow goes five steps; the page is complete
// without it.

const step = document.getElementById("step");

function go(to) {
  step.value = to;
  step.form.requestSubmit();
}

if (step) {
  const shown = document.getElementById("step-shown");
  step.form.querySelector("button").hidden = true;
  step.addEventListener("input", () => {
    shown.textContent = `${step.value} of ${step.max}`;
    step.setAttribute("aria-valuetext", `step ${step.value} of ${step.max}`);
  });
  step.addEventListener("change", () => step.form.requestSubmit());
  document.addEventListener(
    "keydown",
    (event) => {
      const by = { ArrowLeft: -5, ArrowRight: 5 }[event.key];
      if (!by || !event.shiftKey || writesText(event.target) || keysOff() || document.querySelector("dialog[open]")) return;
      event.preventDefault();
      event.stopPropagation();
      go(Number(step.defaultValue) + by);
    },
    true,
  );
  for (const current of document.querySelectorAll(".film [aria-current], .steps [aria-current]")) {
    const box = current.closest("ol");
    box.scrollLeft = current.parentElement.offsetLeft - box.offsetLeft - box.clientWidth / 2 + 62;
    box.scrollTop = current.parentElement.offsetTop - box.offsetTop - box.clientHeight / 2;
  }
}
