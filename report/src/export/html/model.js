// What do symbols, calling contexts, lines and layers weigh in a selection?
//
// An exact measure has sums instead of samples, each as a sample without a time.

const LAYERS = 5;
const EVERY_LAYER = (1 << LAYERS) - 1;
// Of samples without any frame, as reports have it.
const NATIVE = 3;
// Instead of the row or node of a stack: no frame is known or left, or the sample does not count (see transform.js).
const NO_FRAME = -1;
const OUT = -2;

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
    this.stackSymbol = this.stackNode.map((node) => this.symbol[node]);
    this.stackParent = columns["stack.back"].map((back, i) => (back ? i - back : NO_FRAME));
    this.thread = columns["sample.thread"];
    this.period = columns["sample.period"];
    this.names = Array.from(columns["symbol.name"], (name) => header.strings[name]);
    // By symbol: what it is called where there is little room, longest first.
    const forms = [1, 2, 3, 4].map((form) => columns[`symbol.form${form}`]);
    this.forms = this.names.map((_, symbol) => forms.map((form) => header.strings[form[symbol]]));
    this.lowerNames = null;
    this.images = Array.from(columns["symbol.image"], (image) => header.images[image]);
    this.setTree();
    this.setGroups();
    this.setTimes(columns["sample.after"]);
    this.stack = columns["sample.stack"].map((stack) => stack - 1);
    this.setSamples();
  }

  // Threads whose names differ by numbers only, as those of pools do, are a group.
  setGroups() {
    const groups = new Map();
    this.groupOf = Int32Array.from(this.header.threads, ([, , name], thread) => {
      const key = name.replace(/\d+/g, "#");
      if (!groups.has(key)) groups.set(key, { number: groups.size, name: key, threads: [] });
      const group = groups.get(key);
      group.threads.push(thread);
      return group.number;
    });
    this.groups = Array.from(groups.values());
    for (const group of this.groups) if (group.threads.length === 1) group.name = this.header.threads[group.threads[0]][2];
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

  setTimes(after) {
    let time = 0;
    this.time = after.map((gap) => (time += gap));
    this.last = Math.max(time, this.header.duration);
    if (this.header.weigh === "samples") this.period.fill(1);
  }

  // What each sample's stack leads to.
  setSamples() {
    this.node = this.stack.map((at) => (at < 0 ? at : this.stackNode[at]));
    this.leafLayer = Uint8Array.from(this.node, (node) => (node < 0 ? NATIVE : this.layer[this.symbol[node]]));
  }

  // The symbol that has the name and image of another model's; -1: there is none.
  symbolLike(other, symbol) {
    if (other.names === this.names) return symbol;
    const [image] = other.images[symbol];
    return this.names.findIndex((name, i) => name === other.names[symbol] && this.images[i][0] === image);
  }

  // By symbol: its place by name.
  ranks() {
    if (!this.rankOf) {
      const { names } = this;
      this.rankOf = new Int32Array(names.length);
      const order = names.map((_, symbol) => symbol).sort((one, other) => (names[one] < names[other] ? -1 : names[one] > names[other] ? 1 : one - other));
      order.forEach((symbol, rank) => (this.rankOf[symbol] = rank));
    }
    return this.rankOf;
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

  forSamples({ from, to, thread, group, layers }, visit) {
    const { timed } = this.header;
    const end = timed ? this.at(to) : this.time.length;
    for (let i = timed ? this.at(from) : 0; i < end; i++) {
      if (this.node[i] === OUT || (thread >= 0 && this.thread[i] !== thread)) continue;
      if (group >= 0 && this.groupOf[this.thread[i]] !== group) continue;
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
      if (this.stackSymbol[i] !== symbol || !total[i]) continue;
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

  // The line of a symbol that takes most by itself; none: no line of it is known, or none takes anything.
  hottestLine(symbol, selection) {
    const lines = this.lines(symbol, selection).filter(({ line, own }) => line && own);
    return lines.reduce((most, line) => (most && most.own >= line.own ? most : line), null);
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
