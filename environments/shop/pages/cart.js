import { COUPONS, find, money } from "../catalogue.js";
import { el, field, form, say, status, table } from "../dom.js";
import { describe, show } from "../layout.js";
import { change, load, totals } from "../state.js";

function edit(action) {
  change(action);
  draw();
}

function row(line, index) {
  const name = describe(line);
  const recount = (event) => edit((state) => {
    state.cart[index].quantity = Math.max(1, Number(event.target.value));
  });
  return [
    el("a", { href: `product.html?id=${line.id}` }, name),
    el("input", { type: "number", min: 1, max: 9, value: line.quantity, onchange: recount,
      "aria-label": `Quantity of ${name}` }),
    money(find(line.id).price * line.quantity),
    el("button", { class: "plain", "aria-label": `Remove ${name}`,
      onclick: () => edit((state) => { state.cart.splice(index, 1); }) }, "Remove"),
  ];
}

function redeem({ code }) {
  const coupon = code.trim().toUpperCase();
  if (!(coupon in COUPONS)) return say("coupon-status", `We do not know the code "${code}".`, true);
  edit((state) => { state.coupon = coupon; });
  return say("coupon-status", `${coupon}: ${COUPONS[coupon]} % off`);
}

function draw() {
  const { cart, coupon } = load();
  if (!cart.length) return show("Your cart", el("p", {}, "Your cart is empty."));
  const sum = totals(cart, coupon);
  return show("Your cart",
    table("Cart", ["Product", "Quantity", "Price", "Remove"], cart.map(row)),
    form({ "aria-label": "Coupon" }, redeem,
      field("Coupon code", el("input", { name: "code", required: true, autocomplete: "off" })), " ",
      el("button", { class: "plain" }, "Redeem"), status("coupon-status")),
    coupon ? el("p", {}, `Discount (${coupon}): −${money(sum.discount)}`) : null,
    el("p", { class: "price" }, `Total: ${money(sum.total)}`),
    el("p", {}, el("a", { href: "checkout.html" }, "Proceed to checkout")));
}

draw();
