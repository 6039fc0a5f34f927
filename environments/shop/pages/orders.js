import { money } from "../catalogue.js";
import { el, table } from "../dom.js";
import { describe, show } from "../layout.js";
import { load } from "../state.js";

show("Your orders",
  table("Orders", ["Order", "Date", "Items", "Total"], load().orders.toReversed().map((order) => [
    el("a", { href: `order.html?id=${order.id}` }, `Order ${order.id}`),
    order.date,
    order.lines.map(describe).join("; "),
    money(order.total),
  ])));
