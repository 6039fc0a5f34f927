import { money } from "../catalogue.js";
import { el, field, form, radios } from "../dom.js";
import { describe, show } from "../layout.js";
import { change, load, placeOrder, totals } from "../state.js";

const { cart, coupon, address } = load();

function order({ name, street, city, postcode, delivery, news }) {
  if (news) change((state) => { state.newsletter = "robin.hale@post.example"; });
  const id = placeOrder([name, street, city, postcode].join(", "), delivery);
  location.assign(`order.html?id=${id}&placed=1`);
}

const text = (label, name) =>
  field(label, el("input", { name, value: address[name], required: true, autocomplete: "off" }));

if (!cart.length) show("Checkout", el("p", {}, "Your cart is empty."));
else {
  show("Checkout",
    el("ul", { "aria-label": "Items" },
      cart.map((line) => el("li", {}, `${line.quantity} × ${describe(line)}`))),
    el("p", { class: "price" },
      `To pay: ${money(totals(cart, coupon).total)}${coupon ? ` with ${coupon}` : ""}`),
    form({ class: "stack", "aria-label": "Delivery" }, order,
      text("Name", "name"), text("Street", "street"), text("City", "city"), text("Postcode", "postcode"),
      radios("Delivery", "delivery",
        [["standard", "Standard, free"], ["express", "Express, $6.00"]], "standard"),
      el("label", { class: "inline" },
        el("input", { type: "checkbox", name: "news" }), "Send me the newsletter"),
      el("button", {}, "Place order")));
}
