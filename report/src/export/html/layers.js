// What does each layer take, and which layers count?

let LAYER_NAMES = [];

// The colours of the style sheet, for canvases: what is filled, and text on it.
function colours() {
  const style = getComputedStyle(document.documentElement);
  const value = (name) => style.getPropertyValue(`--${name}`).trim();
  const found = {};
  for (const name of [...LAYER_NAMES, "root", "marker", "match"]) found[name] = [value(name), value(`on-${name}`)];
  for (const name of ["text", "quiet", "line", "paper", "focus", "loss"]) found[name] = value(name);
  return found;
}

class Layers {
  constructor(state) {
    this.state = state;
    this.parts = LAYER_NAMES.map((name) => element("div", { class: `part ${name}` }));
    byId("breakdown").append(...this.parts);
    this.buttons = LAYER_NAMES.map((name, layer) => {
      const button = element("button", { type: "button", class: `key ${name}`, "aria-pressed": "true" });
      button.addEventListener("click", () => this.toggle(layer));
      return button;
    });
    byId("legend").append(...this.buttons);
    this.update();
  }

  toggle(layer) {
    const now = this.state.selection.layers & EVERY_LAYER;
    // From all of them the first choice is one alone.
    const next = now === EVERY_LAYER ? 1 << layer : now ^ (1 << layer);
    this.state.select({ layers: next === 0 || next === EVERY_LAYER ? -1 : next });
  }

  update() {
    const { layerOwn, selection } = this.state.measured;
    const all = layerOwn.reduce((sum, value) => sum + value, 0);
    LAYER_NAMES.forEach((name, layer) => {
      const share = percent(layerOwn[layer], all);
      const isOn = (selection.layers >> layer & 1) === 1;
      this.parts[layer].style.flexGrow = layerOwn[layer] / (all || 1);
      this.parts[layer].classList.toggle("off", !isOn);
      this.parts[layer].textContent = share > 0 ? `${name} ${Number(share).toFixed(1)} %` : "";
      this.buttons[layer].setAttribute("aria-pressed", isOn);
      this.buttons[layer].replaceChildren(element("span", { class: "dot" }), name, element("b", {}, `${share} %`));
    });
    for (const part of this.parts) if (part.scrollWidth > part.clientWidth) part.textContent = "";
    const label = LAYER_NAMES.map((name, layer) => `${name} ${percent(layerOwn[layer], all)} %`);
    byId("breakdown").setAttribute("aria-label", `Share of each layer: ${label.join(", ")}`);
  }
}
