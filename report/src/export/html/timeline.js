// When did which layer run in each thread, and which time is selected?

const TRACK = 28;
const AXIS = 20;
const FEW = 6;

class Timeline {
  constructor(state) {
    this.state = state;
    this.canvas = byId("timeline");
    this.isOpen = false;
    this.isGrouped = false;
    const select = byId("thread");
    select.addEventListener("change", () => this.selectTrack(Number(select.value)));
    byId("whole").addEventListener("click", () => state.selectTime(0, Infinity));
    byId("grouped").addEventListener("click", () => {
      this.setGrouped(!this.isGrouped);
      this.selectTrack(-1);
    });
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
    const { groups, header: { threads } } = this.state.model;
    byId("grouped").hidden = groups.length === threads.length;
    this.isGrouped &&= groups.length < threads.length;
    this.build();
  }

  // The rows: threads, or groups of threads with alike names. name: of its button; title: whole.
  tracks() {
    const { groups, header: { threads } } = this.state.model;
    if (!this.isGrouped) return threads.map((thread) => ({ name: thread[2], title: threadName(thread) }));
    const title = ({ name, threads: { length } }) => (length > 1 ? `${name}: ${length} threads` : name);
    return groups.map((group) => ({ name: group.threads.length > 1 ? `${group.threads.length} × ${group.name}` : group.name, title: title(group) }));
  }

  get selected() {
    const { thread, group } = this.state.selection;
    return this.isGrouped ? group : thread;
  }

  selectTrack(track) {
    this.state.select(this.isGrouped ? { group: track, thread: -1 } : { thread: track, group: -1 });
  }

  setGrouped(isGrouped) {
    this.isGrouped = isGrouped;
    byId("grouped").setAttribute("aria-pressed", isGrouped);
    this.build();
  }

  // A group in a link has its tracks shown.
  restore({ group }) {
    if ((group !== undefined) !== this.isGrouped && !byId("grouped").hidden) this.setGrouped(group !== undefined);
  }

  shown(tracks) {
    return this.isOpen ? tracks.length : Math.min(tracks.length, FEW);
  }

  build() {
    const tracks = this.tracks();
    const all = element("option", { value: -1 }, tracks.length === 1 ? "the only one" : `all ${tracks.length}`);
    byId("thread").replaceChildren(all, ...tracks.map(({ title }, i) => element("option", { value: i }, title)));
    byId("threads").hidden = tracks.length <= FEW;
    byId("threads").textContent = this.isOpen ? "Fewer threads" : `Show all ${tracks.length} ${this.isGrouped ? "groups" : "threads"}`;
    byId("threads").setAttribute("aria-expanded", this.isOpen);
    const names = tracks.slice(0, this.shown(tracks)).map(({ name, title }, i) => {
      const button = element("button", { type: "button", title }, name);
      button.addEventListener("click", () => this.selectTrack(this.selected === i ? -1 : i));
      return button;
    });
    byId("names").replaceChildren(...names);
    this.bins = null;
    this.update();
  }

  listen() {
    const select = (from, to) => this.state.selectTime(from * this.duration, to * this.duration);
    dragged(this.canvas, { moved: select, done: select, click: () => this.state.selectTime(0, Infinity) });
    this.canvas.addEventListener("keydown", (event) => this.key(event));
  }

  key(event) {
    const step = this.duration / 50;
    let { from, to } = this.state.selection;
    to = Math.min(to, this.duration);
    const isWhole = from === 0 && to === this.duration;
    const direction = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (event.key === "Escape") this.state.selectTime(0, Infinity);
    else if (!direction) return;
    else if (isWhole) this.state.selectTime(0, direction > 0 ? this.duration / 10 : (this.duration * 9) / 10);
    else if (event.shiftKey) this.state.selectTime(from, Math.min(Math.max(to + direction * step, from + step), this.duration));
    else {
      const move = Math.max(-from, Math.min(direction * step, this.duration - to));
      this.state.selectTime(from + move, to + move);
    }
    event.preventDefault();
  }

  update() {
    const { from, to } = this.state.selection;
    byId("thread").value = this.selected;
    const isWhole = from === 0 && to === Infinity;
    byId("whole").hidden = isWhole;
    const end = Math.min(to, this.duration);
    byId("span").textContent = isWhole ? duration(this.duration) : `${duration(from)} to ${duration(end)}: ${duration(end - from)}`;
    Array.from(byId("names").children).forEach((button, i) => button.setAttribute("aria-pressed", i === this.selected));
    this.draw();
  }

  // What each layer weighs in each bin of each track.
  count(bins, tracks) {
    const { model } = this.state;
    if (this.bins?.bins === bins && this.bins.tracks === tracks && this.bins.model === model) return this.bins;
    const weights = new Float64Array(bins * tracks * LAYERS);
    model.forSamples(EVERYTHING, (i) => {
      const track = this.isGrouped ? model.groupOf[model.thread[i]] : model.thread[i];
      if (track >= tracks) return;
      const bin = Math.min(Math.floor((model.time[i] / this.duration) * bins), bins - 1);
      weights[(track * bins + bin) * LAYERS + model.leafLayer[i]] += model.period[i];
    });
    let most = 0;
    for (let at = 0; at < weights.length; at += LAYERS) {
      let sum = 0;
      for (let layer = 0; layer < LAYERS; layer++) sum += weights[at + layer];
      most = Math.max(most, sum);
    }
    this.bins = { model, bins, tracks, weights, most };
    return this.bins;
  }

  draw() {
    const { canvas } = this;
    const width = canvas.clientWidth;
    if (!width) return;
    const tracks = this.shown(this.tracks());
    const height = AXIS + tracks * TRACK;
    const context = sized(canvas, width, height);
    context.clearRect(0, 0, width, height);
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
      context.globalAlpha = [-1, track].includes(this.selected) ? 1 : 0.35;
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
