// Everything the shop remembers: one JSON document in the browser's local storage.

import { COUPONS, find } from "./catalogue.js";

const KEY = "shop";

const INITIAL = {
  cart: [],
  coupon: null,
  wishlist: [],
  orders: [
    { id: "1001", date: "2026-01-18", coupon: null, delivery: "standard", total: 3750,
      address: "Robin Hale, 7 Mill Road, Leeds, LS1 4AP",
      lines: [{ id: "dot-notebook", options: { Size: "A5" }, quantity: 1 },
              { id: "brass-pen", options: {}, quantity: 1 }] },
    { id: "1002", date: "2026-02-21", coupon: null, delivery: "standard", total: 10350,
      address: "Robin Hale, 7 Mill Road, Leeds, LS1 4AP",
      lines: [{ id: "stoneware-mug", options: { Colour: "Sand" }, quantity: 1 },
              { id: "studio-headphones", options: {}, quantity: 1 }] },
  ],
  address: { name: "Robin Hale", street: "7 Mill Road", city: "Leeds", postcode: "LS1 4AP" },
  newsletter: null,
  returns: [],
  messages: [],
};

export function load() {
  const stored = localStorage.getItem(KEY);
  if (stored === null) save(INITIAL);
  return stored === null ? structuredClone(INITIAL) : JSON.parse(stored);
}

export function save(state) {
  localStorage.setItem(KEY, JSON.stringify(state));
}

export function change(edit) {
  const state = load();
  edit(state);
  save(state);
}

export function addToCart(id, options, quantity) {
  change((state) => {
    const same = state.cart.find(
      (line) => line.id === id && JSON.stringify(line.options) === JSON.stringify(options));
    if (same) same.quantity += quantity;
    else state.cart.push({ id, options, quantity });
  });
}

export function totals(lines, coupon, delivery = "standard") {
  const goods = lines.reduce((sum, line) => sum + find(line.id).price * line.quantity, 0);
  const discount = Math.round((goods * (COUPONS[coupon] ?? 0)) / 100);
  const shipping = delivery === "express" ? 600 : 0;
  return { goods, discount, shipping, total: goods - discount + shipping };
}

export function placeOrder(address, delivery) {
  const state = load();
  const id = String(1001 + state.orders.length);
  const { total } = totals(state.cart, state.coupon, delivery);
  const date = new Date().toISOString().slice(0, 10);
  state.orders.push({ id, date, coupon: state.coupon, delivery, total, address, lines: state.cart });
  state.cart = [];
  state.coupon = null;
  save(state);
  return id;
}
