// When was which frame on a thread's stack? The stack chart, and which time is selected in it.

class Chart extends Picture {
  constructor(state) {
    super(state, "chart");
    dragged(this.canvas, {
      moved: (from, to) => this.mark(from, to),
      done: (from, to) => state.selectTime(this.time(from), this.time(to)),
      click: (event) => this.choose(this.boxAt(event)),
    });
    byId("chart-whole").addEventListener("click", () => state.selectTime(0, Infinity));
  }

  // The selected thread; of several, or all, the one that weighs most.
  thread() {
    const { model, selection } = this.state;
    if (selection.thread >= 0) return selection.thread;
    return selection.group >= 0 ? model.groups[selection.group].threads[0] : 0;
  }

  span() {
    const { model, selection } = this.state;
    return [selection.from, Math.max(Math.min(selection.to, model.last), selection.from + 1)];
  }

  time(share) {
    const [from, to] = this.span();
    return from + share * (to - from);
  }

  // What would be selected.
  mark(from, to) {
    this.draw();
    const { clientWidth: width, clientHeight: height } = this.canvas;
    const context = this.canvas.getContext("2d");
    context.globalAlpha = 0.3;
    context.fillStyle = colours().focus;
    context.fillRect(from * width, 0, (to - from) * width, height);
    context.globalAlpha = 1;
  }

  layout(width) {
    const { model, selection: { layers } } = this.state;
    const thread = this.thread();
    // A time that is selected changes none of them.
    const { known } = this;
    const isKnown = known?.model === model && known.thread === thread && known.layers === layers;
    if (!isKnown) this.known = { model, thread, layers, spans: spansOf(model, layers, thread) };
    return layoutChart(model, this.known.spans, this.span(), Math.floor(width));
  }

  update() {
    super.update();
    const { model, selection } = this.state;
    const thread = model.header.threads[this.thread()];
    byId("chart-thread").textContent = thread ? threadName(thread) : "";
    byId("chart-whole").disabled = selection.from === 0 && selection.to === Infinity;
  }

  // A frame occurs many times: one of before is none of now.
  sameBox() {
    return null;
  }

  text(box) {
    const { model } = this.state;
    const [from, to] = this.span();
    const at = (column) => from + (column / this.whole) * (to - from);
    const [start, end] = [at(box.x), at(box.x + box.width)];
    return `${model.names[box.symbol]}: ${duration(start)} to ${duration(end)}, ${duration(end - start)}, ${LAYER_NAMES[model.layer[box.symbol]]}`;
  }

  ownKey({ key }) {
    if (key === "Escape") this.state.selectTime(0, Infinity);
    else if (key === "Enter" && this.selected) this.state.selectTime(this.time(this.selected.x / this.whole), this.time((this.selected.x + this.selected.width) / this.whole));
    else return false;
    return true;
  }
}
