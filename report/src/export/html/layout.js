// Where are the frames of a flame graph? Boxes in units of weight, row by row from the root; what is too narrow has none.

// A box: x, width, depth, symbol (-1: all), key: how to zoom to it, context: whether it is above what is zoomed to.
function rootBox(measured) {
  return { x: 0, width: measured.all, depth: 0, symbol: -1, key: null, context: false };
}

// Callers first. A key is a node.
function layoutDown(model, measured, zoom, narrowest) {
  const { parent, depth, symbol, end } = model;
  const { total, all } = measured;
  const whole = zoom === null ? all : total[zoom];
  const boxes = [];
  const path = [];
  for (let node = zoom ?? -1; node >= 0; node = parent[node]) path.push(node);
  boxes.push({ ...rootBox(measured), width: whole, context: zoom !== null });
  for (const node of path.reverse())
    boxes.push({ x: 0, width: whole, depth: depth[node] + 1, symbol: symbol[node], key: node, context: node !== zoom });
  const first = zoom === null ? 0 : depth[zoom] + 1;
  const cursor = [];
  cursor[first] = 0;
  let node = zoom === null ? 0 : zoom + 1;
  const last = zoom === null ? depth.length : end[zoom];
  while (node < last) {
    const at = depth[node];
    const x = cursor[at];
    const width = total[node];
    cursor[at] = x + width;
    if (width < narrowest(whole) || width <= 0) {
      node = end[node];
      continue;
    }
    boxes.push({ x, width, depth: at + 1, symbol: symbol[node], key: node, context: false });
    cursor[at + 1] = x;
    node++;
  }
  return { boxes, whole };
}

// Groups nodes, each with the leaf that it leads to, by symbol: [symbol, nodes, leaves, weight], by name.
function groups(model, nodes, leaves, own) {
  const found = new Map();
  for (let i = 0; i < nodes.length; i++) {
    const symbol = model.symbol[nodes[i]];
    let group = found.get(symbol);
    if (!group) found.set(symbol, (group = [symbol, [], [], 0]));
    group[1].push(nodes[i]);
    group[2].push(leaves[i]);
    group[3] += own[leaves[i]];
  }
  const name = ([symbol]) => model.names[symbol];
  return Array.from(found.values()).sort((one, other) => (name(one) < name(other) ? -1 : 1));
}

// The callers of a group's nodes.
function callersOf(model, [, nodes, leaves]) {
  const up = [];
  const kept = [];
  for (let i = 0; i < nodes.length; i++) {
    const parent = model.parent[nodes[i]];
    if (parent < 0) continue;
    up.push(parent);
    kept.push(leaves[i]);
  }
  return [up, kept];
}

function leavesOf(measured) {
  const leaves = [];
  measured.own.forEach((weight, node) => weight > 0 && leaves.push(node));
  return leaves;
}

// The symbols of a key, from the leaf; and what leads there.
function pathOf(key) {
  const path = [];
  for (let at = key; at; at = at.up) path.push(at);
  return path.reverse();
}

function sameKey(one, other) {
  if (typeof one === "number" || typeof other === "number") return one === other;
  while (one && other && one !== other && one.symbol === other.symbol) [one, other] = [one.up, other.up];
  return one === other;
}

// The nodes and leaves that call along a key, and their weight; none if there is no such path.
function follow(model, measured, key) {
  const leaves = leavesOf(measured);
  let level = [leaves, leaves];
  let weight = measured.all;
  for (const { symbol } of pathOf(key)) {
    const group = groups(model, ...level, measured.own).find(([found]) => found === symbol);
    if (!group) return null;
    weight = group[3];
    level = callersOf(model, group);
  }
  return { level, weight };
}

// Leaves first. A key is a symbol and the key of what it calls, `up`; null for leaves.
function layoutUp(model, measured, zoom, narrowest) {
  const followed = follow(model, measured, zoom);
  if (!followed) return layoutUp(model, measured, null, narrowest);
  const { level, weight: whole } = followed;
  const path = pathOf(zoom);
  const boxes = [{ ...rootBox(measured), width: whole, context: path.length > 0 }];
  path.forEach((key, i) => boxes.push({ x: 0, width: whole, depth: i + 1, symbol: key.symbol, key, context: key !== zoom }));
  const waiting = [[level, 0, zoom, path.length + 1]];
  while (waiting.length) {
    const [[nodes, leaves], start, up, depth] = waiting.pop();
    let x = start;
    for (const group of groups(model, nodes, leaves, measured.own)) {
      const [symbol, , , width] = group;
      if (width >= narrowest(whole)) {
        const key = { symbol, up };
        boxes.push({ x, width, depth, symbol, key, context: false });
        waiting.push([callersOf(model, group), x, key, depth + 1]);
      }
      x += width;
    }
  }
  return { boxes, whole };
}

// The boxes that match, from left to right, callers first.
function hitsOf(rows, isMatch) {
  const hits = rows.flat().filter(isMatch);
  return hits.sort((one, other) => one.x - other.x || one.depth - other.depth);
}
