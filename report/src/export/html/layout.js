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
    boxes.push({ x: 0, width: whole, depth: depth[node] + 1, symbol: symbol[node], key: node, context: node !== zoom, weight: total[node] });
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

// Leaves first. A key is the list of symbols from the leaf.
function layoutUp(model, measured, zoom, narrowest) {
  const leaves = leavesOf(measured);
  const boxes = [];
  let level = [leaves, leaves];
  let whole = measured.all;
  const path = zoom ?? [];
  for (const symbol of path) {
    const group = groups(model, ...level, measured.own).find(([found]) => found === symbol);
    if (!group) return layoutUp(model, measured, null, narrowest);
    whole = group[3];
    level = callersOf(model, group);
  }
  boxes.push({ ...rootBox(measured), width: whole, context: path.length > 0 });
  path.forEach((symbol, i) =>
    boxes.push({ x: 0, width: whole, depth: i + 1, symbol, key: path.slice(0, i + 1), context: i + 1 < path.length }));
  const waiting = [[level, 0, path]];
  while (waiting.length) {
    const [[nodes, of], start, above] = waiting.pop();
    let x = start;
    for (const group of groups(model, nodes, of, measured.own)) {
      const [symbol, , , width] = group;
      if (width >= narrowest(whole)) {
        const key = [...above, symbol];
        boxes.push({ x, width, depth: key.length, symbol, key, context: false });
        waiting.push([callersOf(model, group), x, key]);
      }
      x += width;
    }
  }
  return { boxes, whole };
}
