// Product pictures: simple shapes drawn here.

const SHAPES = {
  mug: "M30 25h40v50a8 8 0 0 1-8 8H38a8 8 0 0 1-8-8zM70 35h8a12 12 0 0 1 0 30h-8v-7h7a5 5 0 0 0 0-16h-7z",
  bottle: "M40 15h20v10l5 8v48a5 5 0 0 1-5 5H40a5 5 0 0 1-5-5V33l5-8z",
  bowl: "M15 40h70a35 35 0 0 1-24 38v6H39v-6A35 35 0 0 1 15 40z",
  lamp: "M30 20l30-8 12 26-36 10zM46 44l6-2 6 40h14v6H36v-6h14z",
  lantern: "M50 12a34 36 0 1 1 0 76a34 36 0 1 1 0-76zM49 2h2v10h-2z",
  bag: "M25 38h50l6 48H19zM36 38a14 22 0 0 1 28 0h-5a9 16 0 0 0-18 0z",
  pack: "M32 28a18 16 0 0 1 36 0v54a6 6 0 0 1-6 6H38a6 6 0 0 1-6-6zM24 45h6v35h-6zM70 45h6v35h-6z",
  phones: "M20 60a30 34 0 0 1 60 0v22H68V58h4a22 25 0 0 0-44 0h4v24H20z",
  speaker: "M28 15h44v72H28zM50 48a14 14 0 1 0 0 28a14 14 0 1 0 0-28zM50 23a7 7 0 1 1 0 14a7 7 0 1 1 0-14z",
  book: "M25 14h48a4 4 0 0 1 4 4v66a4 4 0 0 1-4 4H25zM33 14h3v74h-3z",
  pen: "M72 12l12 12-48 48-18 8 6-20z",
};

const SVG = "http://www.w3.org/2000/svg";

export function picture(product) {
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("viewBox", "0 0 100 100");
  svg.setAttribute("role", "img");
  svg.setAttribute("aria-label", `Picture of ${product.name}`);
  svg.classList.add("tile");
  const path = document.createElementNS(SVG, "path");
  path.setAttribute("d", SHAPES[product.shape]);
  path.setAttribute("fill", product.tint);
  path.setAttribute("fill-rule", "evenodd");
  svg.append(path);
  return svg;
}
