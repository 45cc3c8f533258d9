// What would an estimate be with other method caches? A line over sizes for each number of blocks, and the numbers below.

// The picture and the margins of its axes, in pixels.
const PLOT = { width: 560, height: 220, left: 96, right: 80, top: 14, bottom: 30 };
// Between labels of lines that end at the same place.
const LABEL = 13;
// What tells the lines apart beside their labels.
const DASHES = ["none", "7 3", "2 3", "7 3 2 3", "12 4"];

// Makes a part of the picture, in the namespace of SVG as the page's own picture has it.
function shape(tag, attributes, ...children) {
  const made = document.createElementNS(byId("caches-plot").namespaceURI, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

const ascending = (values) => [...new Set(values)].sort((a, b) => a - b);

// The caches of an estimate. caches: [size, blocks, cost].
class CacheTable {
  constructor(caches) {
    this.sizes = ascending(caches.map(([size]) => size));
    this.blocks = ascending(caches.map(([, blocks]) => blocks));
    this.costs = new Map(caches.map(([size, blocks, cost]) => [`${size}/${blocks}`, cost]));
    this.least = Math.min(...this.costs.values());
    this.most = Math.max(...this.costs.values());
  }

  cost(size, blocks) {
    return this.costs.get(`${size}/${blocks}`);
  }

  // The places of the caches with so many blocks, as [x, y]. The least cost is at the bottom.
  line(blocks) {
    const { width, height, left, right, top, bottom } = PLOT;
    const step = (width - left - right) / Math.max(this.sizes.length - 1, 1);
    const scale = (height - top - bottom) / (this.most - this.least || 1);
    return this.sizes.flatMap((size, place) => {
      const cost = this.cost(size, blocks);
      return cost === undefined ? [] : [[left + place * step, height - bottom - (cost - this.least) * scale]];
    });
  }

  // By how much more than the best cache one takes, in percent.
  more(size, blocks) {
    const cost = this.cost(size, blocks);
    return cost === undefined ? "" : `+${percent(cost - this.least, this.least)} %`;
  }
}

class Caches {
  constructor(state) {
    this.state = state;
    this.show();
  }

  // An estimate is of all calls that were priced: nothing that is selected changes it.
  show() {
    const { base } = this.state;
    const { caches, event } = base.header;
    byId("caches").hidden = !caches.length;
    if (!caches.length || this.model === base) return;
    this.model = base;
    const table = new CacheTable(caches);
    byId("caches-title").textContent = `${event} with other method caches`;
    this.plot(table, event);
    this.rows(table);
  }

  plot(table, event) {
    const { width, height, left, right, top, bottom } = PLOT;
    const picture = byId("caches-plot");
    picture.replaceChildren();
    picture.setAttribute("viewBox", `0 0 ${width} ${height}`);
    picture.setAttribute("aria-label", `${event} by the size of the method cache, a line for each number of blocks`);
    const base = height - bottom;
    picture.append(shape("line", { class: "axis", x1: left, y1: base, x2: width - right, y2: base }));
    for (const [cost, y] of [[table.most, top], [table.least, base]]) picture.append(shape("text", { x: left - 6, y: y + 4, "text-anchor": "end" }, number.format(cost)));
    const [first] = table.blocks;
    table.line(first).forEach(([x], place) => picture.append(shape("text", { x, y: base + 16, "text-anchor": "middle" }, number.format(table.sizes[place]))));
    picture.append(shape("text", { x: left - 24, y: base + 16, "text-anchor": "end" }, "bytes"));
    const ends = table.blocks.map((blocks, i) => {
      const line = table.line(blocks);
      picture.append(shape("polyline", { points: line.map((place) => place.join()).join(" "), "stroke-dasharray": DASHES[i % DASHES.length] }));
      picture.append(...line.map(([cx, cy]) => shape("circle", { cx, cy, r: 2.5 })));
      return { blocks, y: line.at(-1)[1] };
    });
    // Labels begin at the bottom and are moved up where they would be on top of each other.
    let free = Infinity;
    for (const { blocks, y } of ends.sort((a, b) => b.y - a.y)) {
      free = Math.min(y, free - LABEL);
      picture.append(shape("text", { x: width - right + 6, y: free + 4 }, `${blocks} ${blocks === 1 ? "block" : "blocks"}`));
    }
  }

  rows(table) {
    const heads = table.blocks.map((blocks) => element("th", { scope: "col" }, number.format(blocks)));
    const head = element("thead", {}, element("tr", {}, element("th", { scope: "col" }, "bytes \\ blocks"), ...heads));
    const row = (size) => element("tr", {}, element("th", { scope: "row" }, number.format(size)), ...table.blocks.map((blocks) => element("td", {}, table.more(size, blocks))));
    byId("caches-rows").replaceChildren(head, element("tbody", {}, ...table.sizes.map(row)));
  }

  update() {}
}
