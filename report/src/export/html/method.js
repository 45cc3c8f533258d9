// What is known of one method: its lines, its callers, what it calls?

class Method {
  constructor(state) {
    this.state = state;
    this.panel = byId("method");
    this.symbol = null;
    state.opened = (symbol) => this.open(symbol);
    byId("method-close").addEventListener("click", () => this.close());
    this.panel.addEventListener("keydown", (event) => event.key === "Escape" && this.close());
  }

  open(symbol) {
    if (this.panel.hidden) this.before = document.activeElement;
    this.symbol = symbol;
    this.panel.hidden = false;
    document.body.classList.add("has-method");
    this.update();
    byId("method-name").focus();
    this.panel.scrollTop = 0;
  }

  close() {
    this.panel.hidden = true;
    document.body.classList.remove("has-method");
    this.symbol = null;
    this.before?.focus();
  }

  update() {
    const { symbol, state } = this;
    if (symbol === null) return;
    const { model, measured } = state;
    const layer = LAYER_NAMES[model.layer[symbol]];
    const [image, path] = model.images[symbol];
    byId("method-name").textContent = model.names[symbol];
    const fact = (label, text) => [element("dt", {}, label), element("dd", {}, text)];
    const share = (value) => `${state.share(value)} %, ${weight(value, model.header)}`;
    const facts = element("dl", { class: "facts" },
      ...fact("self", `${share(measured.symbolOwn[symbol])}, ${number.format(measured.symbolOwnSamples[symbol])} samples`),
      ...fact("total", `${share(measured.symbolTotal[symbol])}, ${number.format(measured.symbolTotalSamples[symbol])} samples`),
      ...fact("layer", layer), ...fact("image", path ?? image));
    byId("method-body").replaceChildren(facts,
      ...this.lines(model.lines(symbol, state.selection)),
      ...this.calls("Callers", model.calls(symbol, measured, true)),
      ...this.calls("Callees", model.calls(symbol, measured, false)));
  }

  lines(lines) {
    const known = lines.filter(({ line }) => line);
    const title = element("h3", {}, "Lines");
    if (!known.length) return [title, element("p", { class: "quiet" }, "No line of it is known.")];
    const rows = [];
    const most = Math.max(...known.map(({ own, total }) => Math.max(own, total)));
    let before = null;
    for (const line of known) {
      if (line.file !== before?.file) rows.push(element("tr", {}, element("th", { colspan: 3, scope: "rowgroup", class: "file" }, line.file)));
      else if (line.line > before.line + 1) rows.push(element("tr", { class: "gap", "aria-hidden": "true" }, element("td", { colspan: 3 })));
      const bar = element("span", { class: "bar plain" });
      bar.style.width = `${percent(line.total, most)}%`;
      const cell = (value) => element("td", { class: "number" }, value ? this.state.share(value) : "");
      rows.push(element("tr", {},
        element("th", { scope: "row", class: "number" }, `${line.approximate ? "~" : ""}${line.line}`),
        cell(line.own),
        element("td", { class: "number share" }, bar, element("span", {}, this.state.share(line.total)))));
      before = line;
    }
    return [title, this.table(["Line", "Self %", "Total %"], rows, "lines")];
  }

  calls(title, calls) {
    if (!calls.length) return [];
    const { model } = this.state;
    const rows = calls.slice(0, 30).map(([symbol, value]) => {
      const layer = LAYER_NAMES[model.layer[symbol]];
      const button = element("button", { type: "button", class: "link", dir: "ltr" }, model.names[symbol]);
      button.addEventListener("click", () => this.open(symbol));
      return element("tr", {},
        element("td", { class: "number" }, this.state.share(value)),
        element("td", { class: "name" }, element("span", { class: `dot ${layer}`, role: "img", "aria-label": layer }), button));
    });
    return [element("h3", {}, title), this.table(["%", "Method"], rows, "calls")];
  }

  table(heads, rows, kind) {
    const head = element("tr", {}, ...heads.map((text) => element("th", { scope: "col", class: text === "Method" ? "" : "number" }, text)));
    return element("table", { class: kind }, element("thead", {}, head), element("tbody", {}, ...rows));
  }
}
