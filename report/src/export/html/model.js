// What do symbols, calling contexts, lines and layers weigh in a selection?

const LAYERS = 5;
// Of samples without any frame, as reports have it.
const NATIVE = 3;

class Model {
  constructor({ header, columns }) {
    this.header = header;
    this.depth = columns["node.depth"];
    this.symbol = columns["node.symbol"];
    this.layer = columns["symbol.layer"];
    this.isMarker = columns["symbol.marker"];
    this.frameLine = columns["frame.line"];
    this.frameFile = columns["frame.file"];
    this.frameApproximate = columns["frame.approximate"];
    this.stackFrame = columns["stack.frame"];
    this.stackNode = columns["stack.node"];
    this.stackParent = columns["stack.back"].map((back, i) => (back ? i - back : -1));
    this.thread = columns["sample.thread"];
    this.period = columns["sample.period"];
    this.names = Array.from(columns["symbol.name"], (name) => header.strings[name]);
    // By symbol: what it is called where there is little room, longest first.
    const forms = [1, 2, 3].map((form) => columns[`symbol.form${form}`]);
    this.forms = this.names.map((_, symbol) => forms.map((form) => header.strings[form[symbol]]));
    this.lowerNames = null;
    this.images = Array.from(columns["symbol.image"], (image) => header.images[image]);
    this.setTree();
    this.setSamples(columns["sample.after"], columns["sample.stack"]);
  }

  // Parents, the end of what is below each node, and whether its symbol or layer is among its callers already.
  setTree() {
    const { depth, symbol, layer } = this;
    const count = depth.length;
    this.parent = new Int32Array(count);
    this.end = new Int32Array(count);
    this.isFirst = new Uint8Array(count);
    this.isFirstOfLayer = new Uint8Array(count);
    const symbols = new Int32Array(this.names.length);
    const layers = new Int32Array(LAYERS);
    const open = [];
    const close = (at) => {
      const node = open.pop();
      this.end[node] = at;
      symbols[symbol[node]]--;
      layers[layer[symbol[node]]]--;
    };
    for (let node = 0; node < count; node++) {
      while (open.length > depth[node]) close(node);
      this.parent[node] = open.length ? open[open.length - 1] : -1;
      this.isFirst[node] = symbols[symbol[node]]++ === 0 ? 1 : 0;
      this.isFirstOfLayer[node] = layers[layer[symbol[node]]]++ === 0 ? 1 : 0;
      open.push(node);
    }
    while (open.length) close(count);
  }

  setSamples(after, stack) {
    const count = after.length;
    this.time = after;
    this.stack = stack;
    this.node = new Int32Array(count);
    this.leafLayer = new Uint8Array(count);
    let time = 0;
    for (let i = 0; i < count; i++) {
      time += after[i];
      after[i] = time;
      const at = --stack[i];
      const node = at < 0 ? -1 : this.stackNode[at];
      this.node[i] = node;
      this.leafLayer[i] = node < 0 ? NATIVE : this.layer[this.symbol[node]];
    }
    this.last = Math.max(time, this.header.duration);
    if (this.header.weigh === "samples") this.period.fill(1);
  }

  // The first sample at this time or later.
  at(time) {
    let low = 0;
    let high = this.time.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.time[middle] < time) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  forSamples({ from, to, thread, layers }, visit) {
    const end = this.at(to);
    for (let i = this.at(from); i < end; i++) {
      if (thread >= 0 && this.thread[i] !== thread) continue;
      if (layers >> this.leafLayer[i] & 1) visit(i);
    }
  }

  measure(selection) {
    const { parent, symbol, layer, names } = this;
    const nodes = parent.length;
    const own = new Float64Array(nodes);
    const ownSamples = new Int32Array(nodes);
    const result = {
      selection, own, all: 0, samples: 0,
      layerOwn: new Float64Array(LAYERS), layerTotal: new Float64Array(LAYERS),
      symbolOwn: new Float64Array(names.length), symbolTotal: new Float64Array(names.length),
      symbolOwnSamples: new Int32Array(names.length), symbolTotalSamples: new Int32Array(names.length),
    };
    this.forSamples({ ...selection, layers: -1 }, (i) => {
      const weight = this.period[i];
      const of = this.leafLayer[i];
      result.layerOwn[of] += weight;
      if (!(selection.layers >> of & 1)) return;
      result.all += weight;
      result.samples++;
      const node = this.node[i];
      if (node < 0) return;
      own[node] += weight;
      ownSamples[node]++;
    });
    const total = own.slice();
    const samples = ownSamples.slice();
    for (let node = nodes - 1; node >= 0; node--) {
      const of = symbol[node];
      const up = parent[node];
      if (up >= 0) {
        total[up] += total[node];
        samples[up] += samples[node];
      }
      result.symbolOwn[of] += own[node];
      result.symbolOwnSamples[of] += ownSamples[node];
      if (this.isFirst[node]) {
        result.symbolTotal[of] += total[node];
        result.symbolTotalSamples[of] += samples[node];
      }
      if (this.isFirstOfLayer[node]) result.layerTotal[layer[of]] += total[node];
    }
    return { ...result, total, ownSamples, totalSamples: samples };
  }

  // Which symbols match: a part of the name in any case, or /a regular expression/.
  search(query) {
    if (!query) return null;
    const matches = new Uint8Array(this.names.length);
    const expression = /^\/(.+)\/$/.exec(query);
    if (expression) {
      let pattern;
      try {
        pattern = new RegExp(expression[1], "i");
      } catch {
        return matches;
      }
      this.names.forEach((name, i) => (matches[i] = pattern.test(name) ? 1 : 0));
      return matches;
    }
    this.lowerNames ??= this.names.map((name) => name.toLowerCase());
    const wanted = query.toLowerCase();
    this.lowerNames.forEach((name, i) => (matches[i] = name.includes(wanted) ? 1 : 0));
    return matches;
  }

  // What all samples weigh that have a matching symbol, each counted once.
  weightOf(matches, { total }) {
    let sum = 0;
    let node = 0;
    while (node < total.length) {
      if (matches[this.symbol[node]]) {
        sum += total[node];
        node = this.end[node];
      } else node++;
    }
    return sum;
  }

  // The lines of a symbol: file, line, whether approximate, own and total.
  lines(symbol, selection) {
    const count = this.stackParent.length;
    const own = new Float64Array(count);
    this.forSamples(selection, (i) => {
      if (this.stack[i] >= 0) own[this.stack[i]] += this.period[i];
    });
    const total = own.slice();
    const found = new Map();
    for (let i = count - 1; i >= 0; i--) {
      const up = this.stackParent[i];
      if (up >= 0) total[up] += total[i];
      if (this.symbol[this.stackNode[i]] !== symbol || !total[i]) continue;
      const frame = this.stackFrame[i];
      const line = found.get(frame) ?? { own: 0, total: 0 };
      line.own += own[i];
      let above = up;
      while (above >= 0 && this.stackFrame[above] !== frame) above = this.stackParent[above];
      if (above < 0) line.total += total[i];
      found.set(frame, line);
    }
    const line = ([frame, weights]) => ({
      ...weights,
      file: this.header.strings[this.frameFile[frame]],
      line: this.frameLine[frame],
      approximate: this.frameApproximate[frame] !== 0,
    });
    return Array.from(found, line).sort((one, other) => one.file < other.file ? -1 : one.file > other.file ? 1 : one.line - other.line);
  }

  // Who calls a symbol, or what it calls: symbols with what the samples weigh that have the call, each counted once.
  calls(symbol, { total }, ofCallers) {
    const sums = new Map();
    const name = (node) => (node < 0 ? -1 : this.symbol[node]);
    for (let node = 0; node < total.length; node++) {
      const up = this.parent[node];
      if (!total[node] || name(ofCallers ? node : up) !== symbol) continue;
      const other = name(ofCallers ? up : node);
      let above = up;
      while (above >= 0 && !(name(above) === name(node) && name(this.parent[above]) === name(up))) above = this.parent[above];
      if (above < 0 && other >= 0) sums.set(other, (sums.get(other) ?? 0) + total[node]);
    }
    return Array.from(sums).sort((one, other) => other[1] - one[1]);
  }
}
