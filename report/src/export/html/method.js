// What is known of one method: its lines and instructions, its callers, what it calls?

class Method {
  constructor(state) {
    this.state = state;
    this.panel = byId("method");
    this.symbol = null;
    state.opened = (symbol, atHottest) => this.open(symbol, atHottest);
    byId("method-close").addEventListener("click", () => this.close());
    byId("method-hottest").addEventListener("click", () => this.code?.hottest()?.focus());
    const buttons = TRANSFORMS.map((kind) => {
      const button = element("button", { type: "button", title: TRANSFORM_TITLES[kind] }, kind);
      button.addEventListener("click", () => state.transform(kind, this.symbol));
      return button;
    });
    byId("method-frames").append(...buttons);
    this.panel.addEventListener("keydown", (event) => event.key === "Escape" && this.close());
  }

  // atHottest: the focus is on its hottest line as soon as it is there.
  open(symbol, atHottest = false) {
    this.atHottest = atHottest;
    if (this.panel.hidden) this.before = document.activeElement;
    this.panel.hidden = false;
    document.body.classList.add("has-method");
    this.setSymbol(symbol);
    this.update();
    byId("method-name").focus();
    byId("method-body").scrollTop = 0;
    this.state.changed();
  }

  link() {
    return { method: this.symbol ?? undefined };
  }

  restore({ method }) {
    if (method < this.state.model.names.length) this.open(method);
    else if (this.symbol !== null) this.close();
  }

  setSymbol(symbol) {
    this.symbol = symbol;
    this.setCode(undefined);
    const { code } = this.state.model;
    const show = (methods) => {
      if (this.symbol !== symbol || this.state.model.code !== code) return;
      this.setCode(methods && (methods.get(symbol) ?? null));
      this.update();
      if (this.atHottest) this.code?.hottest()?.focus();
      this.atHottest = false;
    };
    if (code) code.read().then(show).catch(fail);
  }

  // The annotation of the method; none: it is not in the page; undefined: the page has no code, or has not read it yet.
  setCode(annotation) {
    this.annotation = annotation;
    this.code = annotation && CodeView.canShow(annotation) ? new CodeView(annotation) : null;
    this.panel.classList.toggle("has-code", this.code !== null);
    byId("method-hottest").hidden = !this.code?.hottest();
  }

  close() {
    this.panel.hidden = true;
    document.body.classList.remove("has-method");
    this.symbol = null;
    this.before?.focus();
    this.state.changed();
  }

  // The same method among another event's symbols.
  show(before) {
    if (this.symbol === null) return;
    const found = this.state.model.symbolLike(before, this.symbol);
    if (found < 0) {
      this.close();
      return;
    }
    this.setSymbol(found);
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
    const samples = (count) => (model.header.timed ? `, ${number.format(count)} samples` : "");
    const facts = element("dl", { class: "facts" },
      ...fact("self", `${share(measured.symbolOwn[symbol])}${samples(measured.symbolOwnSamples[symbol])}`),
      ...fact("total", `${share(measured.symbolTotal[symbol])}${samples(measured.symbolTotalSamples[symbol])}`),
      ...fact("layer", layer), ...fact("image", path ?? image), ...this.places().flatMap(([label, text]) => fact(label, text)));
    const lines = this.code && this.isWhole() ? [] : this.lines(model.lines(symbol, state.selection));
    byId("method-body").replaceChildren(facts, ...this.annotated(layer), ...lines,
      ...this.calls("Callers", model.calls(symbol, measured, true)),
      ...this.calls("Callees", model.calls(symbol, measured, false)));
  }

  // Whether all samples are selected, of which the code has its numbers.
  isWhole() {
    const { from, to, thread, group, layers } = this.state.selection;
    return from === 0 && to === Infinity && thread < 0 && group < 0 && layers === -1 && !this.state.transforms.length;
  }

  // Where the code was read.
  places() {
    if (!this.code) return [];
    const { method, files } = this.annotation;
    const sources = files.filter((file) => file.found).map((file) => ["source", file.found]);
    const isElsewhere = method.code_file && method.code_file !== method.path;
    return isElsewhere ? [[method.code === "dex" ? "bytecode" : method.code, method.code_file], ...sources] : sources;
  }

  // The code, or why it is not here.
  annotated(layer) {
    const note = (text) => element("p", { class: "quiet note" }, text);
    if (this.annotation === undefined) return [];
    if (this.annotation === null) {
      return [note(layer === "kernel"
        ? "No instructions: the kernel changes its own code while it runs, so no file has it."
        : "This page has the code of the hottest methods only. 'varid annotate' shows that of each method.")];
    }
    const { method, notes } = this.annotation;
    const said = [...notes];
    if (this.code && !this.isWhole()) said.unshift("Samples here are those of the whole recording: what is selected or left out does not change them.");
    if (method.approximate) said.push(`${number.format(method.approximate)} samples are at places with ~: compiled code was between calls and checks that are at known instructions.`);
    const code = this.code ? [element("h3", {}, "Code"), this.code.element] : [];
    return [...code, ...said.map(note)];
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
      const button = named("button", { type: "button", class: "link", dir: "ltr" }, model.names[symbol], model.forms[symbol]);
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
