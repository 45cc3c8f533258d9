// Which frames does the flame graph show, and what do its buttons and keys do?

// In pixels.
const NARROWEST = 0.6;

class Flame extends Picture {
  constructor(state) {
    super(state, "flame");
    this.inverted = false;
    this.zoom = null;
    const toggle = (id, name) =>
      byId(id).addEventListener("click", () => {
        this.set(id, name, !this[name]);
        this.update();
        this.toRoot();
        state.changed();
      });
    toggle("invert", "inverted");
    toggle("icicle", "icicle");
    byId("reset").addEventListener("click", () => this.zoomTo(null));
    byId("open").addEventListener("click", () => this.state.open(this.selected.symbol));
    for (const kind of TRANSFORMS) byId(kind).addEventListener("click", () => state.transform(kind, this.selected.symbol));
    this.canvas.addEventListener("click", (event) => {
      const box = this.boxAt(event);
      if (!box) return;
      this.selected = box;
      this.zoomTo(box.key);
    });
  }

  set(id, name, value) {
    this[name] = value;
    byId(id).setAttribute("aria-pressed", value);
    if (name === "inverted") this.zoom = this.selected = null;
  }

  show() {
    super.show();
    this.zoom = null;
  }

  link() {
    return { inverted: this.inverted, zoom: symbolsOf(this.state.model, this.zoom) };
  }

  restore({ inverted, zoom }) {
    this.set("invert", "inverted", inverted === true);
    this.zoom = zoom ? (this.inverted ? keyAt(zoom) : nodeAt(this.state.model, zoom)) : null;
  }

  zoomTo(key) {
    this.zoom = key;
    this.update();
    this.reveal(this.selected);
    this.state.changed();
  }

  update() {
    super.update();
    byId("reset").disabled = this.zoom === null;
  }

  layout(width) {
    const { model, measured } = this.state;
    const narrowest = (whole) => (whole * NARROWEST) / width;
    const isGone = this.inverted ? !follow(model, measured, this.zoom) : this.zoom !== null && !measured.total[this.zoom];
    if (isGone) this.zoom = null;
    return (this.inverted ? layoutUp : layoutDown)(model, measured, this.zoom, narrowest);
  }

  toRoot() {
    this.scroll.scrollTop = this.icicle ? 0 : this.scroll.scrollHeight;
    this.draw();
  }

  describe() {
    for (const id of ["open", ...TRANSFORMS]) byId(id).disabled = !(this.selected?.symbol >= 0);
    super.describe();
  }

  text(box) {
    const { model, measured } = this.state;
    let value = box.width;
    if (box.context) value = box.symbol < 0 ? measured.all : this.inverted ? follow(model, measured, box.key).weight : measured.total[box.key];
    const share = `${this.state.share(value)} %, ${weight(value, model.header)}`;
    if (box.symbol < 0) return `all: ${share}`;
    return `${model.names[box.symbol]}: ${share}, ${LAYER_NAMES[model.layer[box.symbol]]}`;
  }

  ownKey({ key }) {
    const kind = { f: "focus", c: "collapse", x: "hide" }[key];
    if (key === "Escape" && this.zoom !== null) this.zoomTo(null);
    else if (key === "Enter" && this.selected) this.zoomTo(this.selected.key);
    else if (kind && this.selected?.symbol >= 0) this.state.transform(kind, this.selected.symbol);
    else return false;
    return true;
  }
}
