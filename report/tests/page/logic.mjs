// Does a page's script compute what the page says? usage: node logic.mjs PAGE
//
// Runs the script of a page without a browser: all but what draws. What selections, transforms and pictures have to be is computed here from
// plain lists of names, one for each sample. PAGE is that of a recording with two threads called work-1 and work-2.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";

const page = readFileSync(process.argv[2], "utf8");
const script = page.split('<script type="module">')[1].split("</script>")[0].replace("start().catch(fail);", "");
const names = ["Model", "readData", "EVERYTHING", "OUT", "transformed", "layoutDown", "layoutUp", "spansOf", "layoutChart", "layoutHeat", "timeOfCells", "hitsOf", "readLink", "writeLink", "symbolsOf", "nodeAt", "keyAt", "OFFSETS", "countHead", "weight", "CacheTable"];
const varid = new Function(`${script}; return { ${names.join(", ")} };`)();
const { Model, EVERYTHING, transformed } = varid;

// A model of samples: { stack, time, thread, period }; a stack: names from the root to the leaf, or name:line.
function modelOf(samples, threads = [[1, 1, "main", "main"]], header = {}) {
  const strings = [""];
  const string = (text) => (strings.includes(text) ? strings.indexOf(text) : strings.push(text) - 1);
  const symbols = [];
  const frames = [];
  const rows = new Map();
  const paths = new Map();
  const place = (list, item) => (list.includes(item) ? list.indexOf(item) : list.push(item) - 1);
  for (const { stack } of samples)
    stack.forEach((frame, depth) => {
      place(symbols, frame.split(":")[0]);
      const row = stack.slice(0, depth + 1);
      const key = row.join(" ");
      if (!rows.has(key)) rows.set(key, { number: rows.size, up: depth ? rows.get(row.slice(0, -1).join(" ")).number : -1, frame: place(frames, frame), row });
      const path = row.map((one) => one.split(":")[0]);
      paths.set(path.join(" "), path);
    });
  const order = Array.from(paths.values()).sort((one, other) => (one.join("\0") < other.join("\0") ? -1 : 1));
  const node = (row) => order.findIndex((path) => path.join(" ") === row.map((frame) => frame.split(":")[0]).join(" "));
  let before = 0;
  const each = (read) => samples.map(read);
  const all = Array.from(rows.values());
  const columns = {
    "node.depth": order.map((path) => path.length - 1), "node.symbol": order.map((path) => symbols.indexOf(path.at(-1))),
    "stack.back": all.map(({ number, up }) => (up < 0 ? 0 : number - up)), "stack.frame": all.map(({ frame }) => frame), "stack.node": all.map(({ row }) => node(row)),
    "symbol.name": symbols.map(string), "symbol.image": symbols.map(() => 0), "symbol.layer": symbols.map((_, i) => i % 5), "symbol.marker": symbols.map(() => 0),
    "frame.line": frames.map((frame) => Number(frame.split(":")[1] ?? 0)), "frame.file": frames.map(() => string("F.java")), "frame.approximate": frames.map(() => 0),
    "sample.after": each(({ time }, i) => ((before = i ? samples[i - 1].time : 0), time - before)), "sample.thread": each(({ thread }) => thread ?? 0),
    "sample.stack": each(({ stack }) => (stack.length ? rows.get(stack.join(" ")).number + 1 : 0)), "sample.period": each(({ period }) => period ?? 1),
  };
  for (const form of [1, 2, 3, 4]) columns[`symbol.form${form}`] = columns["symbol.name"];
  for (const name of Object.keys(columns)) columns[name] = (/after|period/.test(name) ? Float64Array : Int32Array).from(columns[name]);
  return new Model({ header: { strings, threads, images: [["lib.so", null]], duration: 0, weigh: "period", timed: true, unit: "events", interval: 10, losses: [], ...header }, columns });
}

// The boxes of a thread's chart between two times.
function chartOf(model, columns, from = 0, to = model.last) {
  return varid.layoutChart(model, varid.spansOf(model, -1, 0), [from, to], columns);
}

const symbol = (model, name) => model.names.indexOf(name);
const nameOf = (frame) => frame.split(":")[0];

// The same by hand.
function byHand(stack, { kind, name }) {
  const at = stack.findIndex((frame) => nameOf(frame) === name);
  if (kind === "focus") return at < 0 ? null : stack.slice(at);
  if (kind === "hide") return stack.filter((frame) => nameOf(frame) !== name);
  return at < 0 ? stack : stack.slice(0, at + 1);
}

// Own and total weights by name, and by name and line.
function weights(samples) {
  const found = { all: 0, own: {}, total: {}, lines: {} };
  const add = (sums, key, weight) => (sums[key] = (sums[key] ?? 0) + weight);
  for (const { stack, period } of samples) {
    found.all += period;
    if (!stack.length) continue;
    add(found.own, nameOf(stack.at(-1)), period);
    for (const name of new Set(stack.map(nameOf))) add(found.total, name, period);
    for (const frame of new Set(stack)) (found.lines[frame] ??= { own: 0, total: 0 }).total += period;
    found.lines[stack.at(-1)].own += period;
  }
  return found;
}

function measured(model) {
  const { all, symbolOwn, symbolTotal } = model.measure(EVERYTHING);
  const found = { all, own: {}, total: {}, lines: {} };
  model.names.forEach((name, i) => {
    if (symbolOwn[i]) found.own[name] = symbolOwn[i];
    if (symbolTotal[i]) found.total[name] = symbolTotal[i];
    for (const { line, own, total } of model.lines(i, EVERYTHING)) found.lines[`${name}:${line}`] = { own, total };
  });
  return found;
}

// Numbers that look as if they were drawn, the same each time.
function numbers(seed) {
  let state = seed;
  return (below) => {
    state = (state * 1103515245 + 12345) % 2147483648;
    return Math.floor((state / 2147483648) * below);
  };
}

const tests = {
  "transforms weigh what stacks without these frames weigh"() {
    const next = numbers(7);
    for (let round = 0; round < 200; round++) {
      const frame = () => `${"abcde"[next(5)]}:${1 + next(2)}`;
      const samples = Array.from({ length: 30 }, (_, i) => ({ stack: Array.from({ length: next(7) }, frame), time: i, period: 1 + next(9) }));
      let model = modelOf(samples);
      let expected = samples;
      for (let step = next(4); step >= 0; step--) {
        const transform = { kind: ["focus", "collapse", "hide"][next(3)], name: "abcde"[next(5)] };
        if (symbol(model, transform.name) < 0) continue;
        model = transformed(model, { kind: transform.kind, symbol: symbol(model, transform.name) });
        expected = expected.map((sample) => ({ ...sample, stack: byHand(sample.stack, transform) })).filter(({ stack }) => stack);
        assert.deepEqual(measured(model), weights(expected), JSON.stringify({ round, transform }));
      }
      // A tree in preorder, siblings by name.
      model.symbol.forEach((_, node) => {
        const sibling = model.end[node];
        if (sibling < model.symbol.length && model.depth[sibling] === model.depth[node])
          assert(model.names[model.symbol[node]] < model.names[model.symbol[sibling]], "siblings are by name, each once");
      });
    }
  },
  "a transform leaves the model that it is made of"() {
    const model = modelOf([{ stack: ["a:1", "b:1"], time: 1, period: 5 }, { stack: ["a:1"], time: 2, period: 3 }]);
    const before = measured(model);
    transformed(model, { kind: "focus", symbol: symbol(model, "b") });
    assert.deepEqual(measured(model), before);
  },
  "threads whose names differ by numbers only are one group, and selected as one"() {
    const threads = [[1, 1, "main", "app"], [1, 2, "pool-1-thread-2", "app"], [1, 3, "pool-10-thread-3", "app"], [1, 4, "io-1", "app"]];
    const model = modelOf([0, 1, 2, 3, 2].map((thread, time) => ({ stack: ["a"], time, thread, period: 10 ** thread })), threads);
    assert.deepEqual(model.groups.map(({ name, threads: all }) => [name, all]), [["main", [0]], ["pool-#-thread-#", [1, 2]], ["io-1", [3]]]);
    assert.equal(model.measure({ ...EVERYTHING, group: 1 }).all, 210);
    assert.equal(model.measure({ ...EVERYTHING, thread: 2 }).all, 200);
  },
  "a chart has boxes by time, as wide as the samples' time, and gaps"() {
    // Every 10, but for a gap from 50 to 150.
    const stacks = [[10, "a b"], [20, "a b"], [30, "a c"], [40, "a c"], [50, "a b"], [150, "d"], [160, ""]];
    const model = modelOf(stacks.map(([time, stack]) => ({ stack: stack ? stack.split(" ") : [], time })));
    const { boxes, whole } = chartOf(model, 16);
    const seen = boxes.map((box) => [model.names[box.symbol], box.depth, box.x, box.width]).sort((one, other) => one[1] - other[1] || one[2] - other[2]);
    // The sample at 150 stands for the time from 110 on: four usual gaps.
    assert.deepEqual(seen, [["a", 0, 0, 5], ["d", 0, 11, 4], ["b", 1, 0, 2], ["c", 1, 2, 2], ["b", 1, 4, 1]]);
    assert.equal(whole, 16);
    const zoomed = chartOf(model, 4, 20, 40);
    assert.deepEqual(zoomed.boxes.map((box) => [model.names[box.symbol], box.x, box.width]), [["a", 0, 4], ["c", 0, 4]]);
  },
  "where an event counts nanoseconds a sample stands for its own"() {
    const model = modelOf([{ stack: ["wait"], time: 100, period: 30 }], undefined, { unit: "ns" });
    const { boxes } = chartOf(model, 10);
    assert.deepEqual(boxes.map(({ x, width }) => [x, width]), [[7, 3]]);
  },
  "where several samples share a column the one that covers most of it is drawn"() {
    const model = modelOf([[1, "a", 1], [9, "b", 8], [10, "c", 1]].map(([time, name, period]) => ({ stack: [name], time, period })), undefined, { unit: "ns" });
    const { boxes } = chartOf(model, 1);
    assert.deepEqual(boxes.map((box) => model.names[box.symbol]), ["b"]);
  },
  "a heat map has each sample in its second at its offset"() {
    const at = [0, 19_999_999, 20_000_000, 2_500_000_000, 2_999_999_999];
    const model = modelOf(at.map((time, i) => ({ stack: ["a"], time, period: 10 ** i })));
    const map = varid.layoutHeat(model, EVERYTHING, 100);
    const found = {};
    map.weights.forEach((weight, cell) => weight && (found[`${Math.floor(cell / varid.OFFSETS)} ${cell % varid.OFFSETS}`] = weight));
    assert.deepEqual(found, { "0 0": 11, "0 1": 100, "2 25": 1000, "2 49": 10000 });
    assert.deepEqual([map.columns, map.each, map.most], [3, 1, 10000]);
    const cells = [{ column: 2, row: 25 }, { column: 0, row: 1 }];
    assert.deepEqual(varid.timeOfCells(map, ...cells), { from: 20_000_000, to: 2_520_000_000 });
    assert.deepEqual(varid.timeOfCells(map, ...cells.reverse()), { from: 20_000_000, to: 2_520_000_000 });
    // Two columns of two seconds where there is room for two.
    const narrow = varid.layoutHeat(model, EVERYTHING, 2);
    assert.deepEqual([narrow.columns, narrow.each, narrow.weights.reduce((sum, weight) => sum + weight)], [2, 2, 11111]);
  },
  "hits are from left to right, callers first"() {
    const box = (x, depth, symbol) => ({ x, depth, symbol });
    const rows = [[box(0, 0, 1)], [box(0, 1, 2), box(5, 1, 1)], [box(0, 2, 1), box(5, 2, 1)]];
    assert.deepEqual(varid.hitsOf(rows, (one) => one.symbol === 1).map(({ x, depth }) => [x, depth]), [[0, 0], [0, 2], [5, 1], [5, 2]]);
  },
  "a link keeps what is shown"() {
    const shown = { event: 1, from: 5, to: 70, thread: [1, 2], group: "a & b=#", layers: 3, search: "/x|y/", tab: "chart", inverted: true, zoom: [3, 1], method: 4, frames: [{ kind: "focus", symbol: 3 }, { kind: "hide", symbol: 0 }] };
    assert.deepEqual(varid.readLink(`#${varid.writeLink(shown)}`), shown);
    assert.equal(varid.writeLink({ event: undefined, search: "", inverted: false, zoom: [], frames: [], thread: undefined }), "");
  },
  "a link that makes no sense says nothing"() {
    for (const bad of ["from=5", "to=5", "from=9&to=3", "from=-1&to=3", "from=NaN&to=1e9", "zoom=1.x", "zoom=", "frames=eval.1", "frames=focus.__proto__", "thread=a", "method=1.5", "event=99999999999999999999", "inverted=yes", "%", "__proto__=1"])
      assert.deepEqual(varid.readLink(`#${bad}`), {}, bad);
  },
  "a zoom is found again by its symbols, callers first and leaves first"() {
    const model = modelOf(["a b c", "a c", "b c", "a b b"].map((stack, time) => ({ stack: stack.split(" "), time })));
    model.symbol.forEach((_, node) => assert.equal(varid.nodeAt(model, varid.symbolsOf(model, node)), node));
    assert.equal(varid.nodeAt(model, [symbol(model, "c")]), null);
    assert.equal(varid.nodeAt(model, [99]), null);
    const path = ["c", "b", "a"].map((name) => symbol(model, name));
    assert.deepEqual(varid.symbolsOf(model, varid.keyAt(path)), path);
    const { whole } = varid.layoutUp(model, model.measure(EVERYTHING), varid.keyAt(path), () => 0);
    assert.equal(whole, 1);
  },
  "the hottest line is the one that takes most by itself"() {
    const model = modelOf([["a:1 b:5", 4], ["a:2 b:6", 5], ["a:1 b:6", 1], ["a:3", 2]].map(([stack, period], time) => ({ stack: stack.split(" "), time, period })));
    const { line, own } = model.hottestLine(symbol(model, "b"), EVERYTHING);
    assert.deepEqual([line, own], [6, 6]);
    assert.equal(model.hottestLine(symbol(model, "a"), EVERYTHING).line, 3);
  },
  "what was counted exactly has no times and is called as the measure"() {
    const samples = [{ stack: ["a", "b"], time: 0, period: 5 }, { stack: ["a"], time: 0, period: 3 }];
    const model = modelOf(samples, undefined, { timed: false, event: "toys", unit: "bricks" });
    assert.equal(model.measure({ ...EVERYTHING, from: 10, to: 20 }).all, 8);
    assert.equal(modelOf(samples).measure({ ...EVERYTHING, from: 10, to: 20 }).all, 0);
    assert.equal(varid.countHead("Self", model.header), "Self toys (bricks)");
    assert.equal(varid.countHead("Self", { ...model.header, unit: "toys" }), "Self toys");
    assert.equal(varid.countHead("Self", modelOf(samples).header), "Self");
    assert.equal(varid.weight(1234, model.header), "1,234 bricks");
  },
  async "a page's data is what the script reads"() {
    const block = page.split('id="data">')[1].split("</script>")[0];
    const data = await varid.readData(block);
    const model = new Model(data);
    const { finding } = data.header;
    assert.equal(model.measure(EVERYTHING).samples, 400);
    assert.match(finding.text, /^75 % is in org\.example\.Balls\.draw itself/);
    assert.equal(model.names[finding.symbol], "org.example.Balls.draw");
    assert.deepEqual(model.groups.map(({ name }) => name), ["work-#"]);
    const long = model.names.findIndex((name) => name.startsWith("JS:"));
    assert.deepEqual([...new Set(model.forms[long])].length, 4, String(model.forms[long]));
    const { symbolTotal } = transformed(model, { kind: "focus", symbol: long }).measure(EVERYTHING);
    assert.equal(symbolTotal.filter((total) => total).length, 1);
  },
};

for (const [name, test] of Object.entries(tests)) {
  try {
    await test();
  } catch (error) {
    console.error(`wrong: ${name}`);
    throw error;
  }
}
console.log(`${Object.keys(tests).length} checks`);

// Method caches: the least cost is at the bottom, and sizes have the same distance. A cache that was not compared has no place.
{
  const table = new varid.CacheTable([[1024, 4, 1100], [1024, 16, 1050], [2048, 16, 1000], [4096, 16, 1000]]);
  assert.deepEqual([table.sizes, table.blocks], [[1024, 2048, 4096], [4, 16]]);
  const [low, middle, high] = table.line(16);
  assert.equal(middle[0] - low[0], high[0] - middle[0]);
  assert.equal(middle[1], high[1]);
  assert.ok(low[1] < middle[1]);
  assert.equal(table.line(4).length, 1);
  assert.equal(middle[1] - table.line(4)[0][1], 2 * (middle[1] - low[1]));
  assert.deepEqual([table.more(1024, 4), table.more(4096, 16), table.more(2048, 4)], ["+10.00 %", "+0.00 %", ""]);
  const same = new varid.CacheTable([[1024, 4, 7]]);
  assert.ok(same.line(4)[0].every(Number.isFinite));
}
