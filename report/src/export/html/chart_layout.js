// Which frames were on a thread's stack at which time? Boxes in columns of the picture, from left to right by time.

// A sample without a duration of its own stands for the time since the thread's last one, at most for so many of its usual gaps.
const GAPS = 4;

// The time that each sample of a thread stands for: the time before it. Of events that count nanoseconds that is its own period.
function spansOf(model, layers, thread) {
  const spans = [];
  const hasLength = model.header.unit === "ns" && model.header.weigh !== "samples";
  model.forSamples({ ...EVERYTHING, layers, thread }, (i) => spans.push({ end: model.time[i], node: model.node[i], length: hasLength ? model.period[i] : 0 }));
  const gaps = spans.slice(1).map(({ end }, i) => end - spans[i].end).sort((one, other) => one - other);
  const reach = GAPS * (gaps[gaps.length >> 1] || model.header.interval);
  let before = 0;
  for (const span of spans) {
    span.start = Math.max(span.end - (span.length || reach), before);
    before = span.end;
  }
  return spans;
}

// In each column the node of the sample that covers most of it; OUT: no sample does.
function columnsOf(spans, from, to, columns) {
  const nodes = new Int32Array(columns).fill(OUT);
  const covered = new Float64Array(columns);
  const scale = columns / (to - from);
  for (const { start, end, node } of spans) {
    const left = Math.max((start - from) * scale, 0);
    const right = Math.min((end - from) * scale, columns);
    for (let column = Math.floor(left); column < right; column++) {
      const part = Math.min(right, column + 1) - Math.max(left, column);
      if (part <= covered[column]) continue;
      covered[column] = part;
      nodes[column] = node;
    }
  }
  return nodes;
}

// The boxes of a time, in so many columns.
function layoutChart(model, spans, [from, to], columns) {
  const boxes = [];
  let open = [];
  columnsOf(spans, from, to, columns).forEach((node, x) => {
    const path = [];
    for (let at = node; at >= 0; at = model.parent[at]) path.push(at);
    path.reverse();
    const same = path.findIndex((at, depth) => open[depth]?.key !== at);
    open = open.slice(0, same < 0 ? path.length : same);
    for (const box of open) box.width = x + 1 - box.x;
    for (let depth = open.length; depth < path.length; depth++) {
      const box = { x, width: 1, depth, symbol: model.symbol[path[depth]], key: path[depth], context: false };
      boxes.push(box);
      open.push(box);
    }
  });
  return { boxes, whole: columns };
}
