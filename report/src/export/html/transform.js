// Which frames do stacks have after some are focused on, collapsed or hidden?

// focus: only samples with the method, whose stacks begin at its outermost frame. collapse: what it calls counts as the method itself.
// hide: its frames are left out, and what they took by themselves counts as their callers'.
const TRANSFORMS = ["focus", "collapse", "hide"];
const TRANSFORM_TITLES = {
  focus: "Only samples with this method, from its outermost frame on",
  collapse: "What this method calls counts as the method itself",
  hide: "Leave this method's frames out: what they took counts as their callers'",
};

// A model with other stacks. All else is the model's own: names, threads, times, weights.
function transformed(model, { kind, symbol }) {
  const count = model.stackParent.length;
  // What each row has become: a row, NO_FRAME or OUT.
  const became = new Int32Array(count).fill(OUT);
  const parent = new Int32Array(count).fill(NO_FRAME);
  const isInside = new Uint8Array(count);
  for (let row = 0; row < count; row++) {
    // A row that is left out already has no samples, nor is it the caller of a row that has.
    if (model.stackNode[row] < 0) continue;
    const up = model.stackParent[row];
    const caller = up < 0 ? NO_FRAME : became[up];
    const isIt = model.stackSymbol[row] === symbol;
    const isBelow = up >= 0 && isInside[up] === 1;
    isInside[row] = isIt || isBelow ? 1 : 0;
    parent[row] = caller === OUT ? NO_FRAME : caller;
    if (kind === "hide") became[row] = isIt ? caller : row;
    else if (kind === "collapse") became[row] = isBelow ? caller : row;
    else became[row] = isIt || isBelow ? row : OUT;
  }
  const next = Object.create(model);
  next.stackParent = parent;
  Object.assign(next, treeOf(model, became, parent));
  next.setTree();
  next.stack = model.stack.map((row) => (row < 0 ? row : became[row]));
  // A focus has no use for samples without frames.
  if (kind === "focus") next.stack = next.stack.map((row) => (row === NO_FRAME ? OUT : row));
  next.setSamples();
  return next;
}

// The tree of symbols of the rows that are left, in preorder, siblings by name: depth and symbol of each node, and the node of each row.
function treeOf(model, became, parent) {
  const { names, stackSymbol } = model;
  const merged = [];
  const symbols = [];
  const ids = new Map();
  const nodeOf = became.map((at, row) => {
    if (at !== row) return NO_FRAME;
    const up = parent[row] < 0 ? NO_FRAME : merged[parent[row]];
    const key = (up + 1) * names.length + stackSymbol[row];
    if (!ids.has(key)) {
      ids.set(key, symbols.length);
      symbols.push({ symbol: stackSymbol[row], up });
    }
    return (merged[row] = ids.get(key));
  });
  const ranks = model.ranks();
  const order = symbols.map((_, id) => id).sort((one, other) => ranks[symbols[other].symbol] - ranks[symbols[one].symbol]);
  // Lists of children, filled from the last by name on.
  const first = new Int32Array(symbols.length).fill(NO_FRAME);
  const after = new Int32Array(symbols.length).fill(NO_FRAME);
  let root = NO_FRAME;
  for (const id of order) {
    const { up } = symbols[id];
    after[id] = up < 0 ? root : first[up];
    if (up < 0) root = id;
    else first[up] = id;
  }
  const depth = new Int32Array(symbols.length);
  const symbol = new Int32Array(symbols.length);
  const place = new Int32Array(symbols.length);
  const waiting = [[root, 0]];
  let node = 0;
  while (waiting.length) {
    const [id, at] = waiting.pop();
    if (id < 0) continue;
    place[id] = node;
    depth[node] = at;
    symbol[node++] = symbols[id].symbol;
    waiting.push([after[id], at], [first[id], at + 1]);
  }
  return { depth, symbol, stackNode: nodeOf.map((id) => (id < 0 ? id : place[id])) };
}
