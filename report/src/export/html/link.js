// How is what is shown written behind the page's address, and read from there?

// Parts of a link that are not known, or make no sense, are left out: anybody may have written it.
function readLink(text) {
  const parts = new URLSearchParams(text.replace(/^#/, ""));
  const found = {};
  const take = (name, read) => {
    const value = parts.get(name);
    const known = value === null ? undefined : read(value);
    if (known !== undefined) found[name] = known;
  };
  const whole = (value) => (/^\d{1,15}$/.test(value) ? Number(value) : undefined);
  const numbers = (value) => {
    const list = value.split(".").map(whole);
    return list.includes(undefined) ? undefined : list;
  };
  for (const name of ["event", "from", "to", "layers", "method"]) take(name, whole);
  for (const name of ["tab", "search", "group"]) take(name, (value) => value);
  take("inverted", (value) => (value === "1" ? true : undefined));
  for (const name of ["thread", "zoom"]) take(name, numbers);
  take("frames", (value) => {
    const list = value.split(",").map((part) => {
      const [kind, symbol] = part.split(".");
      return { kind, symbol: whole(symbol ?? "") };
    });
    return list.some(({ kind, symbol }) => !TRANSFORMS.includes(kind) || symbol === undefined) ? undefined : list;
  });
  if (!(found.from < found.to)) delete found.from;
  if (found.from === undefined) delete found.to;
  return found;
}

// What readLink reads. What is as it is at first is left out.
function writeLink(shown) {
  const parts = new URLSearchParams();
  for (const [name, value] of Object.entries(shown)) {
    const isDefault = value === undefined || value === null || value === "" || value === false || (Array.isArray(value) && !value.length);
    if (isDefault) continue;
    const frame = ({ kind, symbol }) => `${kind}.${symbol}`;
    const text = name === "frames" ? value.map(frame).join(",") : Array.isArray(value) ? value.join(".") : value === true ? "1" : String(value);
    parts.set(name, text);
  }
  return parts.toString();
}

// The symbols from the root to a zoom, and back: of callers first a node, of leaves first a key (see layout.js); null: there is none.
function symbolsOf(model, zoom) {
  if (zoom === null) return [];
  if (typeof zoom !== "number") return pathOf(zoom).map(({ symbol }) => symbol);
  const path = [];
  for (let node = zoom; node >= 0; node = model.parent[node]) path.push(model.symbol[node]);
  return path.reverse();
}

function nodeAt({ symbol, end }, path) {
  let [found, next, last] = [null, 0, symbol.length];
  for (const wanted of path) {
    while (next < last && symbol[next] !== wanted) next = end[next];
    if (next >= last) return null;
    [found, last, next] = [next, end[next], next + 1];
  }
  return found;
}

function keyAt(path) {
  return path.reduce((up, symbol) => ({ symbol, up }), null);
}
