// When did which layer run in each thread, and which time is selected?

const TRACK = 28;
const AXIS = 20;
const FEW = 6;

class Timeline {
  constructor(state) {
    this.state = state;
    this.canvas = byId("timeline");
    this.isOpen = false;
    const select = byId("thread");
    select.addEventListener("change", () => state.select({ thread: Number(select.value) }));
    byId("whole").addEventListener("click", () => state.select({ from: 0, to: Infinity }));
    byId("threads").addEventListener("click", () => {
      this.isOpen = !this.isOpen;
      this.build();
    });
    this.listen();
    new ResizeObserver(() => this.draw()).observe(this.canvas.parentElement);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.draw());
    this.show();
  }

  // The threads of an event.
  show() {
    this.duration = Math.max(this.state.model.last, 1);
    const { threads } = this.state.model.header;
    const all = element("option", { value: -1 }, threads.length === 1 ? "the only one" : `all ${threads.length}`);
    const each = threads.map((thread, i) => element("option", { value: i }, this.name(thread)));
    byId("thread").replaceChildren(all, ...each);
    byId("threads").hidden = threads.length <= FEW;
    this.build();
  }

  name([pid, tid, name, process]) {
    return pid === tid || name === process ? `${name} (${tid})` : `${name} (${tid}) of ${process}`;
  }

  shown() {
    const { threads } = this.state.model.header;
    return this.isOpen ? threads.length : Math.min(threads.length, FEW);
  }

  build() {
    const { threads } = this.state.model.header;
    byId("threads").textContent = this.isOpen ? "Fewer threads" : `Show all ${threads.length} threads`;
    byId("threads").setAttribute("aria-expanded", this.isOpen);
    const names = threads.slice(0, this.shown()).map((thread, i) => {
      const button = element("button", { type: "button", title: this.name(thread) }, thread[2]);
      button.addEventListener("click", () => {
        const isOn = this.state.selection.thread === i;
        this.state.select({ thread: isOn ? -1 : i });
      });
      return button;
    });
    byId("names").replaceChildren(...names);
    this.bins = null;
    this.update();
  }

  listen() {
    const { canvas } = this;
    const time = (event) => {
      const bounds = canvas.getBoundingClientRect();
      const share = (event.clientX - bounds.left) / bounds.width;
      return Math.min(Math.max(share, 0), 1) * this.duration;
    };
    let start = null;
    canvas.addEventListener("pointerdown", (event) => {
      start = time(event);
      canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener("pointermove", (event) => {
      if (start === null) return;
      const now = time(event);
      const pixel = this.duration / canvas.clientWidth;
      if (Math.abs(now - start) > 3 * pixel) this.select(Math.min(start, now), Math.max(start, now));
    });
    canvas.addEventListener("pointerup", (event) => {
      const pixel = this.duration / canvas.clientWidth;
      if (start !== null && Math.abs(time(event) - start) <= 3 * pixel) this.select(0, Infinity);
      start = null;
    });
    canvas.addEventListener("pointercancel", () => (start = null));
    canvas.addEventListener("keydown", (event) => this.key(event));
  }

  select(from, to) {
    // The end is exclusive, and the last sample is at the end.
    this.state.select({ from, to: to >= this.duration ? Infinity : to });
  }

  key(event) {
    const step = this.duration / 50;
    let { from, to } = this.state.selection;
    to = Math.min(to, this.duration);
    const isWhole = from === 0 && to === this.duration;
    const direction = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (event.key === "Escape") this.select(0, Infinity);
    else if (!direction) return;
    else if (isWhole) this.select(0, direction > 0 ? this.duration / 10 : (this.duration * 9) / 10);
    else if (event.shiftKey) this.select(from, Math.min(Math.max(to + direction * step, from + step), this.duration));
    else {
      const move = Math.max(-from, Math.min(direction * step, this.duration - to));
      this.select(from + move, to + move);
    }
    event.preventDefault();
  }

  update() {
    const { from, to, thread } = this.state.selection;
    byId("thread").value = thread;
    const isWhole = from === 0 && to === Infinity;
    byId("whole").hidden = isWhole;
    const end = Math.min(to, this.duration);
    byId("span").textContent = isWhole ? duration(this.duration) : `${duration(from)} to ${duration(end)}: ${duration(end - from)}`;
    Array.from(byId("names").children).forEach((button, i) => button.setAttribute("aria-pressed", i === thread));
    this.draw();
  }

  // What each layer weighs in each bin of each thread.
  count(bins, tracks) {
    if (this.bins?.bins === bins && this.bins.tracks === tracks) return this.bins;
    const { model } = this.state;
    const weights = new Float64Array(bins * tracks * LAYERS);
    for (let i = 0; i < model.time.length; i++) {
      const track = model.thread[i];
      if (track >= tracks) continue;
      const bin = Math.min(Math.floor((model.time[i] / this.duration) * bins), bins - 1);
      weights[(track * bins + bin) * LAYERS + model.leafLayer[i]] += model.period[i];
    }
    let most = 0;
    for (let at = 0; at < weights.length; at += LAYERS) {
      let sum = 0;
      for (let layer = 0; layer < LAYERS; layer++) sum += weights[at + layer];
      most = Math.max(most, sum);
    }
    this.bins = { bins, tracks, weights, most };
    return this.bins;
  }

  draw() {
    const { canvas } = this;
    const width = canvas.clientWidth;
    if (!width) return;
    const tracks = this.shown();
    const height = AXIS + tracks * TRACK;
    const ratio = devicePixelRatio || 1;
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    canvas.style.height = `${height}px`;
    const context = canvas.getContext("2d");
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    const paint = colours();
    const samples = this.state.model.time.length;
    // A bin has a few samples, so that its height says something.
    const bins = Math.max(20, Math.min(Math.floor(width / 2), Math.floor(samples / 6)));
    this.drawTracks(context, paint, { width, tracks, ...this.count(bins, tracks) });
    this.drawAxis(context, paint, width, height);
    this.drawSelection(context, paint, width, height);
  }

  drawTracks(context, paint, { width, tracks, bins, weights, most }) {
    const step = width / bins;
    for (let track = 0; track < tracks; track++) {
      const base = AXIS + (track + 1) * TRACK - 2;
      context.globalAlpha = [-1, track].includes(this.state.selection.thread) ? 1 : 0.35;
      for (let bin = 0; bin < bins; bin++) {
        let y = base;
        // The kernel below, the app on top, as they call each other.
        for (let layer = LAYERS - 1; layer >= 0; layer--) {
          const value = weights[(track * bins + bin) * LAYERS + layer];
          if (!value) continue;
          const height = (value / most) * (TRACK - 4);
          y -= height;
          context.fillStyle = paint[LAYER_NAMES[layer]][0];
          context.fillRect(bin * step, y, Math.max(step, 1) + 0.3, height);
        }
      }
      context.globalAlpha = 1;
      context.fillStyle = paint.line;
      context.fillRect(0, base + 1, width, 1);
    }
  }

  drawAxis(context, paint, width, height) {
    context.font = "11px system-ui, sans-serif";
    context.textBaseline = "middle";
    const wanted = this.duration / Math.max(width / 90, 1);
    const power = 10 ** Math.floor(Math.log10(wanted));
    const step = [1, 2, 5, 10].map((factor) => factor * power).find((step) => step >= wanted);
    for (let time = 0; time < this.duration; time += step) {
      const x = (time / this.duration) * width;
      context.fillStyle = paint.line;
      context.fillRect(x, 0, 1, height);
      context.fillStyle = paint.quiet;
      if (x < width - 40) context.fillText(time ? atScale(time, step) : "0", x + 4, AXIS / 2);
    }
    context.fillStyle = paint.loss;
    for (const [time] of this.state.model.header.losses) {
      const x = (time / this.duration) * width;
      context.fillRect(x - 1, 0, 2, AXIS - 4);
      context.beginPath();
      context.moveTo(x - 4, AXIS - 4);
      context.lineTo(x + 4, AXIS - 4);
      context.lineTo(x, AXIS);
      context.fill();
    }
  }

  drawSelection(context, paint, width, height) {
    const { from, to } = this.state.selection;
    if (from === 0 && to === Infinity) return;
    const left = (from / this.duration) * width;
    const right = (Math.min(to, this.duration) / this.duration) * width;
    context.globalAlpha = 0.65;
    context.fillStyle = paint.paper;
    context.fillRect(0, 0, left, height);
    context.fillRect(right, 0, width - right, height);
    context.globalAlpha = 1;
    context.fillStyle = paint.focus;
    context.fillRect(left - 1, 0, 2, height);
    context.fillRect(right - 1, 0, 2, height);
  }
}
