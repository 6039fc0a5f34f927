// What every page shares: header, footer with the newsletter, and where the page's own part goes.

import { el, field, form, say, status } from "./dom.js";
import { find } from "./catalogue.js";
import { change, load } from "./state.js";

function header() {
  const { cart, wishlist } = load();
  const items = cart.reduce((sum, line) => sum + line.quantity, 0);
  return el("header", {},
    el("a", { href: "/", class: "brand" }, "Fern & Field"),
    el("nav", { "aria-label": "Main" },
      el("a", { href: "/" }, "Products"),
      el("a", { href: "wishlist.html" }, `Wish list (${wishlist.length})`),
      el("a", { href: "orders.html" }, "Orders"),
      el("a", { href: "account.html" }, "Account"),
      el("a", { href: "cart.html" }, `Cart (${items})`)));
}

function footer() {
  const subscribe = ({ email }) => {
    change((state) => { state.newsletter = email; });
    say("newsletter-status", `Subscribed: ${email}`);
  };
  return el("footer", {},
    form({ "aria-label": "Newsletter" }, subscribe,
      field("Email for our newsletter",
        el("input", { type: "email", name: "email", required: true, autocomplete: "off" })), " ",
      el("button", {}, "Subscribe"),
      status("newsletter-status")),
    el("p", {}, el("a", { href: "contact.html" }, "Contact us"), " · ",
      el("a", { href: "returns.html" }, "Returns")));
}

export function show(title, ...children) {
  document.title = `${title} | Fern & Field`;
  const main = document.getElementById("main");
  main.replaceChildren(el("h1", {}, title), ...children.flat().filter((child) => child != null));
  document.querySelectorAll("body > header, body > footer").forEach((part) => part.remove());
  main.before(header());
  main.after(footer());
}

export function redrawHeader() {
  document.querySelector("body > header").replaceWith(header());
}

export function describe(line) {
  const options = Object.values(line.options).join(", ");
  return find(line.id).name + (options ? ` (${options})` : "");
}

export const query = () => new URLSearchParams(location.search);
