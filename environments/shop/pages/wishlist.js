import { find, money } from "../catalogue.js";
import { el, table } from "../dom.js";
import { show } from "../layout.js";
import { change, load } from "../state.js";

function remove(id) {
  change((state) => { state.wishlist = state.wishlist.filter((other) => other !== id); });
  draw();
}

function draw() {
  const { wishlist } = load();
  show("Wish list", wishlist.length
    ? table("Wish list", ["Product", "Price", "Remove"], wishlist.map(find).map((product) => [
      el("a", { href: `product.html?id=${product.id}` }, product.name),
      money(product.price),
      el("button", { class: "plain", "aria-label": `Remove ${product.name}`,
        onclick: () => remove(product.id) }, "Remove"),
    ]))
    : el("p", {}, "Your wish list is empty."));
}

draw();
