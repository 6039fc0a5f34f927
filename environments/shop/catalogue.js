// What the shop sells. Prices in cents.

export const PRODUCTS = [
  { id: "stoneware-mug", name: "Stoneware Mug", category: "Kitchen", price: 1450, rating: 4.6,
    reviews: 212, stock: 40, shape: "mug", tint: "#4a7ba6", options: { Colour: ["Blue", "Green", "Sand"] },
    blurb: "Hand-glazed, 350 ml, safe in the dishwasher." },
  { id: "enamel-mug", name: "Enamel Camping Mug", category: "Kitchen", price: 1100, rating: 4.2,
    reviews: 87, stock: 25, shape: "mug", tint: "#b5533c", options: { Colour: ["Blue", "Red"] },
    blurb: "Light steel with a rolled rim, 300 ml." },
  { id: "travel-mug", name: "Travel Mug", category: "Kitchen", price: 2300, rating: 4.4,
    reviews: 140, stock: 12, shape: "bottle", tint: "#5d6d7e", options: { Size: ["350 ml", "500 ml"] },
    blurb: "Double wall, keeps tea hot for four hours." },
  { id: "serving-bowl", name: "Olive Wood Bowl", category: "Kitchen", price: 3600, rating: 4.8,
    reviews: 51, stock: 7, shape: "bowl", tint: "#8a6a3f", options: {},
    blurb: "Turned from one piece, 25 cm across." },
  { id: "clip-lamp", name: "Clip Desk Lamp", category: "Lighting", price: 2400, rating: 3.9,
    reviews: 64, stock: 0, shape: "lamp", tint: "#777777", options: {},
    blurb: "Clamps to any table edge. 4 W." },
  { id: "arc-lamp", name: "Arc Desk Lamp", category: "Lighting", price: 2950, rating: 4.3,
    reviews: 98, stock: 15, shape: "lamp", tint: "#c79a2b", options: { Colour: ["Brass", "Black"] },
    blurb: "Bends to where the light is needed. 6 W, dimmable." },
  { id: "beam-lamp", name: "Beam Desk Lamp", category: "Lighting", price: 4200, rating: 4.7,
    reviews: 176, stock: 9, shape: "lamp", tint: "#35506b", options: {},
    blurb: "Wide even light for drawing. 9 W." },
  { id: "paper-lantern", name: "Paper Lantern", category: "Lighting", price: 1800, rating: 4.1,
    reviews: 45, stock: 30, shape: "lantern", tint: "#d8c9a4", options: {},
    blurb: "Rice paper, 40 cm, folds flat." },
  { id: "linen-tote", name: "Linen Tote Bag", category: "Bags", price: 3200, rating: 4.5,
    reviews: 133, stock: 22, shape: "bag", tint: "#b8a888", options: { Colour: ["Natural", "Navy"] },
    blurb: "Heavy linen with an inner pocket." },
  { id: "day-backpack", name: "Day Backpack", category: "Bags", price: 6900, rating: 4.4,
    reviews: 301, stock: 18, shape: "pack", tint: "#56704a", options: { Colour: ["Moss", "Black"] },
    blurb: "18 litres, padded for a laptop." },
  { id: "ridge-backpack", name: "Ridge Backpack", category: "Bags", price: 7800, rating: 4.7,
    reviews: 188, stock: 11, shape: "pack", tint: "#7a4b3a", options: {},
    blurb: "24 litres, rain cover included." },
  { id: "summit-backpack", name: "Summit Backpack", category: "Bags", price: 12900, rating: 4.9,
    reviews: 240, stock: 6, shape: "pack", tint: "#2f4858", options: {},
    blurb: "40 litres with a ventilated frame." },
  { id: "studio-headphones", name: "Studio Headphones", category: "Audio", price: 8900, rating: 4.5,
    reviews: 410, stock: 14, shape: "phones", tint: "#333333", options: {},
    blurb: "Closed back, with a two metre cable." },
  { id: "pocket-speaker", name: "Pocket Speaker", category: "Audio", price: 3900, rating: 4.0,
    reviews: 155, stock: 20, shape: "speaker", tint: "#a04668", options: { Colour: ["Plum", "Grey"] },
    blurb: "Eight hours of play, splash proof." },
  { id: "dot-notebook", name: "Dotted Notebook", category: "Stationery", price: 950, rating: 4.6,
    reviews: 520, stock: 80, shape: "book", tint: "#3f6f6b", options: { Size: ["A5", "A6"] },
    blurb: "160 pages of 100 g paper, lies flat." },
  { id: "brass-pen", name: "Brass Pen", category: "Stationery", price: 2700, rating: 4.3,
    reviews: 73, stock: 16, shape: "pen", tint: "#b08d3c", options: {},
    blurb: "Takes standard refills, ages well." },
];

export const CATEGORIES = [...new Set(PRODUCTS.map((product) => product.category))];

export const COUPONS = { SPRING10: 10, WELCOME5: 5 }; // per cent off

export const find = (id) => PRODUCTS.find((product) => product.id === id);

export const money = (cents) => `$${(cents / 100).toFixed(2)}`;
