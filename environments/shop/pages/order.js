import { find, money } from "../catalogue.js";
import { el, table } from "../dom.js";
import { describe, query, show } from "../layout.js";
import { load } from "../state.js";

const order = load().orders.find(({ id }) => id === query().get("id"));

if (!order) show("No such order", el("p", {}, el("a", { href: "orders.html" }, "Your orders")));
else {
  show(query().has("placed") ? "Thank you for your order" : `Order ${order.id}`,
    el("p", {}, `Order ${order.id}, placed on ${order.date}, ${order.delivery} delivery`),
    table("Items", ["Product", "Quantity", "Price"], order.lines.map((line) =>
      [describe(line), String(line.quantity), money(find(line.id).price * line.quantity)])),
    order.coupon ? el("p", {}, `Coupon: ${order.coupon}`) : null,
    el("p", { class: "price" }, `Total: ${money(order.total)}`),
    el("p", {}, `Delivered to: ${order.address}`),
    el("p", {}, el("a", { href: `returns.html?order=${order.id}` }, "Return an item of this order")));
}
