import { CATEGORIES, PRODUCTS, money } from "../catalogue.js";
import { choice, el, field } from "../dom.js";
import { query, show } from "../layout.js";
import { picture } from "../pictures.js";

const ORDERS = {
  featured: () => 0,
  "price-up": (a, b) => a.price - b.price,
  "price-down": (a, b) => b.price - a.price,
  rating: (a, b) => b.rating - a.rating,
};
const asked = query();
const words = (asked.get("q") ?? "").trim();
const limit = Number(asked.get("max")) || Infinity;

const shown = PRODUCTS
  .filter((product) => product.name.toLowerCase().includes(words.toLowerCase()))
  .filter((product) => !asked.get("category") || product.category === asked.get("category"))
  .filter((product) => product.price <= limit * 100)
  .filter((product) => !asked.has("stock") || product.stock > 0)
  .sort(ORDERS[asked.get("sort")] ?? ORDERS.featured);

const filters = el("form", { class: "filters", role: "search", action: "/" },
  field("Search", el("input", { type: "search", name: "q", value: words, autocomplete: "off" })),
  field("Category", choice("category",
    [["", "All"], ...CATEGORIES.map((name) => [name, name])], asked.get("category") ?? "")),
  field("Maximum price", el("input", { type: "number", name: "max", min: 0, value: asked.get("max") })),
  field("Sort by", choice("sort", [["featured", "Featured"], ["price-up", "Price, low to high"],
    ["price-down", "Price, high to low"], ["rating", "Rating"]], asked.get("sort"))),
  el("label", { class: "inline" },
    el("input", { type: "checkbox", name: "stock", checked: asked.has("stock") }), "In stock only"),
  el("button", {}, "Apply"));

const counted = (n) => ["No product matches.", "1 product"][n] ?? `${n} products`;

const card = (product) => el("li", {},
  picture(product),
  el("a", { href: `product.html?id=${product.id}` }, product.name),
  el("div", { class: "price" }, money(product.price)),
  el("div", { class: "muted" }, `${product.rating} out of 5 (${product.reviews} reviews)`),
  product.stock ? null : el("div", { class: "out" }, "Out of stock"));

show(words ? `Results for "${words}"` : "All products",
  filters,
  el("p", { class: "muted" }, counted(shown.length)),
  el("ul", { class: "grid", "aria-label": "Products" }, shown.map(card)));
