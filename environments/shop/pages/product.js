import { find, money } from "../catalogue.js";
import { el, field, form, radios, choice, say, status } from "../dom.js";
import { query, redrawHeader, show } from "../layout.js";
import { picture } from "../pictures.js";
import { addToCart, change, load } from "../state.js";

const product = find(query().get("id"));

function control([name, values]) {
  const options = values.map((value) => [value, value]);
  return name === "Colour"
    ? radios(name, name, options, values[0])
    : el("p", {}, field(name, choice(name, options, values[0])));
}

function buy({ quantity, ...options }) {
  addToCart(product.id, options, Number(quantity));
  say("note", `Added to your cart: ${quantity} × ${[product.name, ...Object.values(options)].join(", ")}`);
  redrawHeader();
}

function wish(event) {
  const listed = load().wishlist.includes(product.id);
  change((state) => {
    state.wishlist = listed
      ? state.wishlist.filter((id) => id !== product.id)
      : [...state.wishlist, product.id];
  });
  event.target.textContent = listed ? "Add to wish list" : "Remove from wish list";
  say("note", listed ? "Removed from your wish list." : "Saved to your wish list.");
  redrawHeader();
}

function page() {
  const listed = load().wishlist.includes(product.id);
  return el("div", { class: "detail" },
    picture(product),
    el("div", {},
      el("p", { class: "price" }, money(product.price)),
      el("p", {}, product.blurb),
      el("p", { class: "muted" }, `${product.rating} out of 5 (${product.reviews} reviews)`),
      el("p", { class: product.stock ? "muted" : "out" },
        product.stock ? `${product.stock} in stock` : "Out of stock"),
      form({ "aria-label": "Buy" }, buy,
        Object.entries(product.options).map(control),
        el("p", {}, field("Quantity", el("input",
          { type: "number", name: "quantity", value: 1, min: 1, max: 9, required: true }))),
        el("button", { disabled: !product.stock }, "Add to cart"), " ",
        el("button", { type: "button", class: "plain", onclick: wish },
          listed ? "Remove from wish list" : "Add to wish list")),
      status("note")));
}

if (product) show(product.name, page());
else show("No such product", el("p", {}, el("a", { href: "/" }, "Back to all products")));
