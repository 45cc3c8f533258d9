// Which methods take most? A table with a filter and an order.

const PAGE = 100;

class Methods {
  constructor(state) {
    this.state = state;
    this.order = "own";
    this.isUp = false;
    this.limit = PAGE;
    this.heads = Array.from(document.querySelectorAll("[data-sort]"));
    for (const head of this.heads) head.addEventListener("click", () => this.sort(head.dataset.sort));
    byId("more").addEventListener("click", () => {
      this.limit += 5 * PAGE;
      this.update();
    });
  }

  sort(order) {
    this.isUp = order === this.order ? !this.isUp : order === "name" || order === "image";
    this.order = order;
    this.update();
  }

  update() {
    if (byId("methods-panel").hidden) return;
    const { model, measured, matches } = this.state;
    const rows = [];
    measured.symbolTotal.forEach((total, symbol) => {
      if (total && (!matches || matches[symbol])) rows.push(symbol);
    });
    const { ownCounts, totalCounts } = this.counts();
    const keys = {
      own: measured.symbolOwn, total: measured.symbolTotal, ownCounts, totalCounts,
      name: model.names, image: model.images.map(([name]) => name),
    };
    const key = keys[this.order];
    const sign = this.isUp ? 1 : -1;
    const name = (symbol) => model.names[symbol];
    rows.sort((one, other) =>
      key[one] < key[other] ? -sign : key[one] > key[other] ? sign
        : measured.symbolTotal[other] - measured.symbolTotal[one] || (name(one) < name(other) ? -1 : 1));
    byId("methods").replaceChildren(...rows.slice(0, this.limit).map((symbol) => this.row(symbol)));
    byId("methods-count").textContent = `${number.format(rows.length)} ${rows.length === 1 ? "method" : "methods"}`;
    byId("more").hidden = rows.length <= this.limit;
    for (const [id, name] of [["own-counts", "Self"], ["total-counts", "Total"]]) byId(id).textContent = countHead(name, model.header);
    for (const head of this.heads) {
      const isOrder = head.dataset.sort === this.order;
      head.parentElement.setAttribute("aria-sort", isOrder ? (this.isUp ? "ascending" : "descending") : "none");
    }
  }

  // By symbol, what stands beside the percentages: samples, or the values of an exact measure.
  counts() {
    const { model, measured } = this.state;
    return model.header.timed
      ? { ownCounts: measured.symbolOwnSamples, totalCounts: measured.symbolTotalSamples }
      : { ownCounts: measured.symbolOwn, totalCounts: measured.symbolTotal };
  }

  // All rows match a search: the next or previous one, and its place.
  nextHit(step) {
    const rows = Array.from(byId("methods").children);
    const at = rows.findIndex((row) => row.classList.contains("hit"));
    const next = at < 0 && step < 0 ? rows.length - 1 : (at + step + rows.length) % rows.length;
    if (!rows.length) return "none";
    rows[at]?.classList.remove("hit");
    rows[next].classList.add("hit");
    rows[next].scrollIntoView({ block: "nearest" });
    return `${number.format(next + 1)} of ${byId("methods-count").textContent}`;
  }

  row(symbol) {
    const { model, measured } = this.state;
    const { ownCounts, totalCounts } = this.counts();
    const [image, path] = model.images[symbol];
    const method = named("button", { type: "button", class: "link", dir: "ltr" }, model.names[symbol], model.forms[symbol]);
    method.addEventListener("click", () => this.state.open(symbol));
    const layer = LAYER_NAMES[model.layer[symbol]];
    const own = this.state.share(measured.symbolOwn[symbol]);
    const bar = element("span", { class: `bar ${layer}` });
    bar.style.width = `${own}%`;
    const cell = (value, isWide) => element("td", { class: isWide ? "number wide" : "number" }, value);
    return element("tr", {},
      element("td", { class: "number share" }, bar, element("span", {}, own)),
      cell(number.format(ownCounts[symbol]), true),
      cell(this.state.share(measured.symbolTotal[symbol])),
      cell(number.format(totalCounts[symbol]), true),
      element("td", { class: "name" }, element("span", { class: `dot ${layer}`, role: "img", "aria-label": layer, title: layer }), method),
      element("td", { class: "wide image", title: path ?? image }, image));
  }
}
