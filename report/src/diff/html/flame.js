// How is the flame graph of a comparison drawn?

const ROW = 19;
// Of a context that is drawn, in percent of the picture.
const NARROWEST = 0.08;

const { layers, nodes: rows } = JSON.parse(document.getElementById("data").textContent);
const flame = document.getElementById("flame");

// Each context with its callee contexts; the root is all.
const root = { name: "all", totals: [100, 100], depth: -1, children: [], parent: null };
const path = [root];
for (const [depth, name, layer, a, b] of rows) {
  const parent = path[depth];
  const node = { name, layer, totals: [a, b], depth, children: [], parent };
  parent.children.push(node);
  path[depth + 1] = node;
}
// The largest change of a context, which has the strongest colour.
const largest = Math.max(0.01, ...rows.map(([, , , a, b]) => Math.abs(b - a)));

let zoom = root;
let side = 1;

function colour({ totals: [a, b] }) {
  const change = b - a;
  const strength = Math.sqrt(Math.min(1, Math.abs(change) / largest));
  if (Math.abs(change) < 0.05) return "hsl(220 8% 86%)";
  return `hsl(${change > 0 ? 8 : 215} ${Math.round(40 + 45 * strength)}% ${Math.round(90 - 32 * strength)}%)`;
}

function text({ name, layer, totals: [a, b] }) {
  const change = b - a;
  const sign = change < 0 ? "" : "+";
  const where = layer === undefined || layer === null ? "" : `, ${layers[layer]}`;
  return `${name}: A ${a.toFixed(2)} %, B ${b.toFixed(2)} %, ${sign}${change.toFixed(2)} points${where}`;
}

// Managed methods without their package, which their neighbours mostly share.
function short({ name, layer }) {
  return layer < 2 ? name.replace(/^(?:[a-z_][\w$]*\.)+(?=[A-Z])/, "") : name;
}

function add(node, left, width, top) {
  const box = document.createElement("div");
  box.textContent = width > 2 ? short(node) : "";
  box.title = text(node);
  Object.assign(box.style, { left: `${left}%`, width: `${width}%`, top: `${top * ROW}px`, background: colour(node) });
  box.addEventListener("click", () => {
    zoom = node;
    draw();
  });
  flame.append(box);
}

function draw() {
  flame.replaceChildren();
  const callers = [];
  for (let node = zoom.parent; node; node = node.parent) callers.unshift(node);
  callers.forEach((node, top) => add(node, 0, 100, top));
  let deepest = callers.length;
  const whole = zoom.totals[side];
  const waiting = [[zoom, 0, 100]];
  while (waiting.length) {
    const [node, left, width] = waiting.pop();
    const top = callers.length + node.depth - zoom.depth;
    deepest = Math.max(deepest, top);
    add(node, left, width, top);
    let at = left;
    for (const child of node.children) {
      const part = whole > 0 ? (child.totals[side] / whole) * 100 : 0;
      if (part >= NARROWEST) waiting.push([child, at, part]);
      at += part;
    }
  }
  flame.style.height = `${(deepest + 1) * ROW}px`;
  document.getElementById("reset").disabled = zoom === root;
  document.getElementById("details").textContent = text(zoom);
}

if (flame) {
  document.getElementById("reset").addEventListener("click", () => {
    zoom = root;
    draw();
  });
  document.getElementById("side").addEventListener("change", (event) => {
    side = Number(event.target.value);
    draw();
  });
  draw();
}
