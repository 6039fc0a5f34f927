import { el, field, form, say, status } from "../dom.js";
import { show } from "../layout.js";
import { change, load } from "../state.js";

const { address } = load();

function keep({ name, street, city, postcode }) {
  change((state) => { state.address = { name, street, city, postcode }; });
  say("saved", `Address saved: ${name}, ${street}, ${city}, ${postcode}`);
}

const text = (label, name) =>
  field(label, el("input", { name, value: address[name], required: true, autocomplete: "off" }));

show("Your account",
  el("h2", {}, "Delivery address"),
  form({ class: "stack", "aria-label": "Delivery address" }, keep,
    text("Name", "name"), text("Street", "street"), text("City", "city"), text("Postcode", "postcode"),
    el("button", {}, "Save address")),
  status("saved"),
  el("p", {}, el("a", { href: "orders.html" }, "See your orders")));
