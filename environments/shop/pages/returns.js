import { choice, el, field, form, say, status } from "../dom.js";
import { describe, query, show } from "../layout.js";
import { change, load } from "../state.js";

const { orders } = load();
const wanted = query().get("order");
const items = orders
  .filter(({ id }) => !wanted || id === wanted)
  .flatMap(({ id, lines }) => lines.map((line) => [`${id}/${line.id}`, `Order ${id}: ${describe(line)}`]));

function request({ item, reason, comment }) {
  const [order, product] = item.split("/");
  change((state) => { state.returns.push({ order, product, reason, comment }); });
  say("sent", `Return requested for order ${order}. Reason: ${reason}. ${comment}`);
}

show("Return an item",
  form({ class: "stack", "aria-label": "Return" }, request,
    field("Item", choice("item", items)),
    field("Reason", choice("reason", [["changed mind", "I changed my mind"],
      ["damaged", "It arrived damaged"], ["wrong item", "It is not what I ordered"]])),
    field("Comment", el("textarea", { name: "comment", rows: 3 })),
    el("button", {}, "Request return")),
  status("sent"));
