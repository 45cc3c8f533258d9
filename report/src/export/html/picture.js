// How is a picture of frames drawn, and how does one move from frame to frame in it?

const ROW = 19;

// A canvas with rows of boxes (see layout.js). Who extends it has layout(), which gives boxes and what the width stands for, and text(box).
class Picture {
  constructor(state, id) {
    this.state = state;
    this.canvas = byId(id);
    this.scroll = byId(`${id}-scroll`);
    this.height = byId(`${id}-height`);
    this.details = byId(`${id}-details`);
    this.icicle = true;
    this.selected = null;
    this.hovered = null;
    this.listen();
  }

  listen() {
    const { canvas } = this;
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
    this.selected = this.hovered = null;
  }

  update() {
    if (!this.scroll.clientWidth) return;
    const { boxes, whole } = this.layout(this.scroll.clientWidth);
    this.whole = whole;
    this.rows = [];
    for (const box of boxes) (this.rows[box.depth] ??= []).push(box);
    for (const row of this.rows) row.sort((one, other) => one.x - other.x);
    this.selected = this.sameBox(boxes, this.selected);
    this.hovered = null;
    this.height.style.height = `${Math.max(1, this.rows.length) * ROW}px`;
    this.draw();
    this.describe();
  }

  // The box of now that is what one of before was.
  sameBox(boxes, before) {
    return (before && boxes.find((box) => sameKey(box.key, before.key))) ?? null;
  }

  // Where a row is in the whole picture.
  top(depth) {
    return this.icicle ? depth * ROW : (this.rows.length - 1 - depth) * ROW;
  }

  reveal(box) {
    if (!box) return;
    const top = this.top(box.depth);
    const { scrollTop, clientHeight } = this.scroll;
    if (top < scrollTop || top + ROW > scrollTop + clientHeight) this.scroll.scrollTop = top - clientHeight / 2;
  }

  choose(box) {
    this.selected = box;
    this.reveal(box);
    this.draw();
    this.describe();
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
    const context = sized(canvas, width, height);
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
    const { model } = this.state;
    const x = box.x * scale;
    const width = Math.min(box.width * scale, whole - x);
    const isMatch = this.isMatch(box);
    const layer = box.symbol < 0 ? "root" : LAYER_NAMES[model.layer[box.symbol]];
    const [fill, ink] = isMatch ? colours.match : box.symbol >= 0 && model.isMarker[box.symbol] ? colours.marker : colours[layer];
    const isDim = box.context || (this.state.matches && !isMatch);
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
    this.details.textContent = box ? this.text(box) : "";
  }

  isMatch(box) {
    return this.state.matches !== null && box.symbol >= 0 && this.state.matches[box.symbol] === 1;
  }

  // The next or previous box that matches the search, from left to right, callers first: its place among them.
  nextHit(step) {
    const hits = hitsOf(this.rows ?? [], (box) => this.isMatch(box));
    const at = hits.indexOf(this.selected);
    const next = at < 0 && step < 0 ? hits.length - 1 : (at + step + hits.length) % hits.length;
    if (!hits.length) return "none";
    this.choose(hits[next]);
    return `${number.format(next + 1)} of ${number.format(hits.length)}`;
  }

  // What the keys of one picture do; whether that was one of its keys.
  ownKey() {
    return false;
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || !this.rows) return;
    const box = this.selected ?? this.rows[0]?.[0];
    const towardsRoot = this.icicle ? "ArrowUp" : "ArrowDown";
    const away = this.icicle ? "ArrowDown" : "ArrowUp";
    const row = this.rows[box?.depth] ?? [];
    let next = null;
    if (this.ownKey(event)) event.preventDefault();
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
    if (next) this.choose(next);
  }
}
