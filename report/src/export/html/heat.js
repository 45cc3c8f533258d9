// How is the heat map of seconds and offsets drawn, and which time is selected in it?

// In pixels.
const CELL = 7;
const WIDEST = 26;
const SCALE = 58;
const NARROW = 2;

class Heat {
  constructor(state) {
    this.state = state;
    this.canvas = byId("heat");
    this.first = this.last = null;
    this.listen();
    new ResizeObserver(() => this.update()).observe(this.canvas.parentElement);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.draw());
  }

  listen() {
    const { canvas } = this;
    let start = null;
    canvas.addEventListener("pointerdown", (event) => {
      start = this.cellAt(event);
      if (!start) return;
      canvas.setPointerCapture(event.pointerId);
      this.choose(start, start);
    });
    canvas.addEventListener("pointermove", (event) => {
      const cell = this.cellAt(event);
      if (start && cell) this.choose(start, cell);
      else this.describe(cell);
    });
    canvas.addEventListener("pointerup", () => (start = null));
    canvas.addEventListener("pointercancel", () => (start = null));
    canvas.addEventListener("pointerleave", () => this.describe(null));
    canvas.addEventListener("keydown", (event) => this.key(event));
  }

  show() {
    this.first = this.last = null;
  }

  choose(first, last) {
    [this.first, this.last] = [first, last];
    const { from, to } = timeOfCells(this.map, first, last);
    this.state.selectTime(from, to);
    this.describe(last);
  }

  key(event) {
    const [across, down] = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] }[event.key] ?? [];
    if (event.key === "Escape") {
      this.show();
      this.state.selectTime(0, Infinity);
    } else if (across === undefined || !this.map) return;
    else {
      const { column, row } = this.last ?? { column: 0, row: 0 };
      const within = (value, count) => Math.min(Math.max(value, 0), count - 1);
      const next = { column: within(column + across, this.map.columns), row: within(row + down, OFFSETS) };
      this.choose(event.shiftKey && this.first ? this.first : next, next);
    }
    event.preventDefault();
  }

  cellAt(event) {
    if (!this.map) return null;
    const bounds = this.canvas.getBoundingClientRect();
    const column = Math.floor((event.clientX - bounds.left - SCALE) / this.step);
    const row = OFFSETS - 1 - Math.floor((event.clientY - bounds.top) / CELL);
    return column >= 0 && column < this.map.columns && row >= 0 && row < OFFSETS ? { column, row } : null;
  }

  update() {
    const room = this.canvas.parentElement.clientWidth - SCALE;
    if (room <= 0) return;
    const { model, selection } = this.state;
    this.map = layoutHeat(model, selection, Math.floor(room / NARROW));
    this.step = Math.max(NARROW, Math.min(WIDEST, Math.floor(room / this.map.columns)));
    this.draw();
  }

  draw() {
    if (!this.map) return;
    const { columns, each, weights, most } = this.map;
    const width = SCALE + columns * this.step;
    const height = OFFSETS * CELL + 18;
    const context = sized(this.canvas, width, height);
    const paint = colours();
    context.clearRect(0, 0, width, height);
    context.font = "11px system-ui, sans-serif";
    context.textBaseline = "middle";
    context.fillStyle = paint.quiet;
    for (const share of [0, 0.25, 0.5, 0.75]) context.fillText(duration(share * SECOND), 0, (1 - share) * OFFSETS * CELL - CELL / 2);
    const apart = Math.max(1, Math.ceil(60 / this.step));
    for (let column = 0; column < columns; column += apart) context.fillText(`${column * each}${THIN}s`, SCALE + column * this.step, OFFSETS * CELL + 10);
    const { from, to } = this.state.selection;
    const isWhole = from === 0 && to === Infinity;
    context.fillStyle = paint.loss;
    weights.forEach((weight, at) => {
      const cell = { column: Math.floor(at / OFFSETS), row: at % OFFSETS };
      const time = timeOfCells({ each: 1 }, cell, cell);
      const isSelected = isWhole || each > 1 || (time.from < to && time.to > from);
      context.globalAlpha = (weight ? 0.12 + (0.88 * weight) / most : 0.03) * (isSelected ? 1 : 0.3);
      context.fillRect(SCALE + cell.column * this.step, (OFFSETS - 1 - cell.row) * CELL, Math.max(this.step - (this.step > 3 ? 1 : 0), 1), CELL - 1);
    });
    context.globalAlpha = 1;
  }

  describe(cell) {
    const details = byId("heat-details");
    if (!cell) {
      details.textContent = "";
      return;
    }
    const { from } = timeOfCells(this.map, cell, cell);
    const value = this.map.weights[cell.column * OFFSETS + cell.row];
    const several = this.map.each > 1 ? `, ${this.map.each} seconds over each other` : "";
    details.textContent = `second ${cell.column * this.map.each}, ${duration(from % SECOND)} in it${several}: ${weight(value, this.state.model.header)}`;
  }
}
