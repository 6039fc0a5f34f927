import { el, field, form, say, status } from "../dom.js";
import { show } from "../layout.js";
import { change } from "../state.js";

function send({ name, email, message }) {
  change((state) => { state.messages.push({ name, email, message }); });
  say("sent", `Thank you, ${name}. We received: ${message}`);
}

show("Contact us",
  form({ class: "stack", "aria-label": "Contact" }, send,
    field("Your name", el("input", { name: "name", required: true, autocomplete: "off" })),
    field("Your email", el("input", { type: "email", name: "email", required: true, autocomplete: "off" })),
    field("Message", el("textarea", { name: "message", rows: 4, required: true })),
    el("button", {}, "Send message")),
  status("sent"));
