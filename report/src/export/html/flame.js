// How is the flame graph drawn, and what do pointer and keys do in it?

const ROW = 19;
// In pixels.
const NARROWEST = 0.6;

class Flame {
  constructor(state) {
    this.state = state;
    this.canvas = byId("flame");
    this.scroll = byId("flame-scroll");
    this.inverted = false;
    this.icicle = true;
    this.zoom = null;
    this.selected = null;
    this.hovered = null;
    this.listen();
  }

  listen() {
    const { canvas } = this;
    const toggle = (id, name) =>
      byId(id).addEventListener("click", (event) => {
        this[name] = !this[name];
        event.currentTarget.setAttribute("aria-pressed", this[name]);
        if (name === "inverted") this.zoom = this.selected = null;
        this.update();
        this.toRoot();
      });
    toggle("invert", "inverted");
    toggle("icicle", "icicle");
    byId("reset").addEventListener("click", () => this.zoomTo(null));
    byId("open").addEventListener("click", () => this.state.open(this.selected.symbol));
    canvas.addEventListener("click", (event) => {
      const box = this.boxAt(event);
      if (!box) return;
      this.selected = box;
      this.zoomTo(box.key);
    });
    canvas.addEventListener("dblclick", () => this.selected?.symbol >= 0 && this.state.open(this.selected.symbol));
    canvas.addEventListener("pointermove", (event) => {
      if (event.pointerType === "touch") return;
      const box = this.boxAt(event);
      if (box === this.hovered) return;
      this.hovered = box;
      canvas.style.cursor = box ? "pointer" : "default";
      this.draw();
      this.describe();
    });
    canvas.addEventListener("pointerleave", () => {
      this.hovered = null;
      this.draw();
      this.describe();
    });
    canvas.addEventListener("keydown", (event) => this.key(event));
    canvas.addEventListener("focus", () => this.draw());
    canvas.addEventListener("blur", () => this.draw());
    this.scroll.addEventListener("scroll", () => this.draw());
    new ResizeObserver(() => this.update()).observe(this.scroll);
    for (const query of ["(prefers-color-scheme: dark)", "(prefers-contrast: more)"])
      matchMedia(query).addEventListener("change", () => this.draw());
  }

  show() {
    this.zoom = this.selected = this.hovered = null;
  }

  zoomTo(key) {
    this.zoom = key;
    this.update();
    this.reveal(this.selected);
  }

  update() {
    if (!this.scroll.clientWidth) return;
    const { model, measured } = this.state;
    const width = this.scroll.clientWidth;
    const narrowest = (whole) => (whole * NARROWEST) / width;
    if (!this.inverted && this.zoom !== null && !measured.total[this.zoom]) this.zoom = null;
    const layout = this.inverted ? layoutUp : layoutDown;
    const { boxes, whole } = layout(model, measured, this.zoom, narrowest);
    this.whole = whole;
    this.rows = [];
    for (const box of boxes) (this.rows[box.depth] ??= []).push(box);
    for (const row of this.rows) row.sort((one, other) => one.x - other.x);
    const find = (wanted) => wanted && boxes.find((box) => sameKey(box.key, wanted.key));
    this.selected = find(this.selected) ?? null;
    this.hovered = null;
    const height = Math.max(1, this.rows.length) * ROW;
    byId("flame-height").style.height = `${height}px`;
    byId("reset").disabled = this.zoom === null;
    this.draw();
    this.describe();
  }

  // Where a row is in the whole picture.
  top(depth) {
    return this.icicle ? depth * ROW : (this.rows.length - 1 - depth) * ROW;
  }

  toRoot() {
    this.scroll.scrollTop = this.icicle ? 0 : this.scroll.scrollHeight;
    this.draw();
  }

  reveal(box) {
    if (!box) return;
    const top = this.top(box.depth);
    const { scrollTop, clientHeight } = this.scroll;
    if (top < scrollTop || top + ROW > scrollTop + clientHeight) this.scroll.scrollTop = top - clientHeight / 2;
  }

  boxAt(event) {
    const bounds = this.canvas.getBoundingClientRect();
    const x = ((event.clientX - bounds.left) / bounds.width) * this.whole;
    const row = Math.floor((event.clientY - bounds.top + this.scroll.scrollTop) / ROW);
    const depth = this.icicle ? row : this.rows.length - 1 - row;
    return this.rows[depth]?.find((box) => x >= box.x && x < box.x + box.width) ?? null;
  }

  draw() {
    if (!this.rows) return;
    const { canvas, scroll } = this;
    const width = scroll.clientWidth;
    const height = Math.min(scroll.clientHeight, this.rows.length * ROW);
    const ratio = devicePixelRatio || 1;
    if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
      canvas.width = Math.round(width * ratio);
      canvas.height = Math.round(height * ratio);
      canvas.style.width = `${width}px`;
      canvas.style.height = `${height}px`;
    }
    const context = canvas.getContext("2d");
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, width, height);
    context.font = "12px ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace";
    context.textBaseline = "middle";
    const paint = { context, colours: colours(), letter: context.measureText("m").width, scale: width / (this.whole || 1), width };
    this.rows.forEach((row, depth) => {
      const y = this.top(depth) - scroll.scrollTop;
      if (y > -ROW && y < height) for (const box of row) this.drawBox(paint, box, y);
    });
  }

  drawBox({ context, colours, letter, scale, width: whole }, box, y) {
    const { model, matches } = this.state;
    const x = box.x * scale;
    const width = Math.min(box.width * scale, whole - x);
    const isMatch = matches && box.symbol >= 0 && matches[box.symbol];
    const layer = box.symbol < 0 ? "root" : LAYER_NAMES[model.layer[box.symbol]];
    const [fill, ink] = isMatch ? colours.match : box.symbol >= 0 && model.isMarker[box.symbol] ? colours.marker : colours[layer];
    const isDim = box.context || (matches && !isMatch);
    context.globalAlpha = isDim ? 0.45 : 1;
    context.fillStyle = fill;
    context.fillRect(x, y, Math.max(width - (width > 2 ? 1 : 0.2), 0.4), ROW - 1);
    context.globalAlpha = 1;
    if (width > 3 * letter) {
      const name = box.symbol < 0 ? "all" : model.names[box.symbol];
      const forms = box.symbol < 0 ? [] : model.forms[box.symbol];
      context.fillStyle = isDim ? colours.text : ink;
      context.fillText(fitted(name, forms, Math.floor((width - 7) / letter)), x + 4, y + ROW / 2);
    }
    const isSelected = box === this.selected;
    if (box === this.hovered || isSelected) {
      const focused = isSelected && document.activeElement === this.canvas;
      context.strokeStyle = focused ? colours.focus : colours.text;
      context.lineWidth = focused ? 2 : 1;
      context.strokeRect(x + 0.5, y + 0.5, Math.max(width - 2, 1), ROW - 2);
    }
  }

  describe() {
    const box = this.hovered ?? this.selected;
    byId("open").disabled = !(this.selected?.symbol >= 0);
    byId("details").textContent = box ? this.text(box) : "";
  }

  text(box) {
    const { model, measured } = this.state;
    let value = box.width;
    if (box.context) value = box.symbol < 0 ? measured.all : this.inverted ? follow(model, measured, box.key).weight : measured.total[box.key];
    const share = `${this.state.share(value)} %, ${weight(value, model.header)}`;
    if (box.symbol < 0) return `all: ${share}`;
    return `${model.names[box.symbol]}: ${share}, ${LAYER_NAMES[model.layer[box.symbol]]}`;
  }

  key(event) {
    const box = this.selected ?? this.rows[0]?.[0];
    const towardsRoot = this.icicle ? "ArrowUp" : "ArrowDown";
    const away = this.icicle ? "ArrowDown" : "ArrowUp";
    const row = this.rows[box?.depth] ?? [];
    let next = null;
    if (event.key === "Escape" && this.zoom !== null) this.zoomTo(null);
    else if (event.key === "Enter" && this.selected) this.zoomTo(this.selected.key);
    else if (event.key === "o" && this.selected?.symbol >= 0) this.state.open(this.selected.symbol);
    else if (!this.selected && event.key.startsWith("Arrow")) next = box;
    else if (event.key === "ArrowLeft") next = row[row.indexOf(box) - 1];
    else if (event.key === "ArrowRight") next = row[row.indexOf(box) + 1];
    else if (event.key === towardsRoot) next = this.rows[box.depth - 1]?.findLast((up) => up.x <= box.x);
    else if (event.key === away) {
      const inside = (down) => down.x >= box.x && down.x < box.x + box.width;
      const below = (this.rows[box.depth + 1] ?? []).filter(inside);
      next = below.reduce((widest, down) => (widest && widest.width >= down.width ? widest : down), null);
    } else return;
    event.preventDefault();
    if (!next) return;
    this.selected = next;
    this.reveal(next);
    this.draw();
    this.describe();
  }
}
