// What do methods call (top-down), and who calls them (bottom-up)? Rows are made when their caller is opened.

const CHILDREN = 100;

// A source of rows: root(), children(row), and leadsTo(row, matches). A row: symbol, own, total, key, hasChildren.
class DownRows {
  constructor({ model, measured }) {
    this.model = model;
    this.measured = measured;
  }

  row(node) {
    const { own, total } = this.measured;
    return { symbol: this.model.symbol[node], own: own[node], total: total[node], node, hasChildren: total[node] > own[node] };
  }

  between(node, end) {
    const rows = [];
    for (; node < end; node = this.model.end[node]) if (this.measured.total[node]) rows.push(this.row(node));
    return rows.sort((one, other) => other.total - one.total);
  }

  root() {
    return this.between(0, this.model.symbol.length);
  }

  children({ node }) {
    return this.between(node + 1, this.model.end[node]);
  }

  // Whether something that matches is below a row.
  leadsTo({ node }, matches) {
    const { symbol, end } = this.model;
    for (let below = node + 1; below < end[node]; below++) if (this.measured.total[below] && matches[symbol[below]]) return true;
    return false;
  }
}

class UpRows {
  constructor({ model, measured }) {
    this.model = model;
    this.measured = measured;
  }

  rows(nodes, leaves, isRoot) {
    const found = groups(this.model, nodes, leaves, this.measured.own);
    const row = (group) => ({
      symbol: group[0], own: isRoot ? group[3] : 0, total: group[3], group,
      hasChildren: group[1].some((node) => this.model.parent[node] >= 0),
    });
    return found.map(row).sort((one, other) => other.total - one.total);
  }

  root() {
    const leaves = leavesOf(this.measured);
    return this.rows(leaves, leaves, true);
  }

  children({ group }) {
    return this.rows(...callersOf(this.model, group), false);
  }

  leadsTo({ group: [, nodes] }, matches) {
    const { symbol, parent } = this.model;
    return nodes.some((node) => {
      for (let up = parent[node]; up >= 0; up = parent[up]) if (matches[symbol[up]]) return true;
      return false;
    });
  }
}

class Tree {
  constructor(state, id, Rows) {
    this.state = state;
    this.list = byId(id);
    this.panel = this.list.parentElement;
    this.Rows = Rows;
    this.list.addEventListener("keydown", (event) => this.key(event));
  }

  update() {
    if (this.panel.hidden) return;
    this.rows = new this.Rows(this.state);
    this.list.replaceChildren();
    this.insert(this.rows.root(), 1, null);
    // Down the heaviest callers, while one takes most of its caller.
    let item = this.list.firstElementChild;
    for (let depth = 0; item && depth < 40 && this.items.get(item).total >= this.state.measured.all / 2; depth++) {
      if (!this.items.get(item).hasChildren) break;
      this.expand(item);
      item = item.nextElementSibling;
    }
    this.list.firstElementChild?.setAttribute("tabindex", "0");
  }

  insert(rows, level, after) {
    this.items ??= new WeakMap();
    const made = rows.slice(0, CHILDREN).map((row) => this.item(row, level));
    if (rows.length > CHILDREN) {
      const rest = rows.slice(CHILDREN).reduce((sum, row) => sum + row.total, 0);
      const text = `${rows.length - CHILDREN} more: ${this.state.share(rest)} %`;
      const note = element("div", { class: "row quiet", role: "treeitem", "aria-level": level, tabindex: "-1" }, text);
      note.style.setProperty("--level", level);
      this.items.set(note, { total: rest, hasChildren: false });
      made.push(note);
    }
    if (after) after.after(...made);
    else this.list.append(...made);
  }

  item(row, level) {
    const { model, matches } = this.state;
    const layer = LAYER_NAMES[model.layer[row.symbol]];
    const name = named("span", { class: "symbol", dir: "ltr" }, model.names[row.symbol], model.forms[row.symbol]);
    if (matches?.[row.symbol]) name.classList.add("match");
    const bar = element("span", { class: `bar ${layer}` });
    bar.style.width = `${this.state.share(row.total)}%`;
    const item = element("div", { class: "row", role: "treeitem", "aria-level": level, tabindex: "-1" },
      element("span", { class: "share" }, bar, element("span", {}, this.state.share(row.total))),
      element("span", { class: "own" }, row.own ? this.state.share(row.own) : ""),
      element("span", { class: "twist", "aria-hidden": "true" }),
      element("span", { class: `dot ${layer}` }), name);
    item.style.setProperty("--level", level);
    if (row.hasChildren) item.setAttribute("aria-expanded", "false");
    item.addEventListener("click", () => this.toggle(item));
    item.addEventListener("dblclick", () => this.state.open(row.symbol));
    this.items.set(item, row);
    return item;
  }

  level(item) {
    return Number(item?.getAttribute("aria-level") ?? 0);
  }

  expand(item) {
    item.setAttribute("aria-expanded", "true");
    this.insert(this.rows.children(this.items.get(item)), this.level(item) + 1, item);
  }

  toggle(item) {
    this.focus(item);
    const state = item.getAttribute("aria-expanded");
    if (state === "true") {
      item.setAttribute("aria-expanded", "false");
      while (this.level(item.nextElementSibling) > this.level(item)) item.nextElementSibling.remove();
    } else if (state === "false") this.expand(item);
  }

  focus(item) {
    if (!item) return;
    for (const other of this.list.querySelectorAll('[tabindex="0"]')) other.setAttribute("tabindex", "-1");
    item.setAttribute("tabindex", "0");
    item.focus();
  }

  // The next or previous row that matches the search; rows that lead to one are opened.
  nextHit(step) {
    const { matches } = this.state;
    const open = (item) => {
      const leads = item?.getAttribute("aria-expanded") === "false" && this.rows.leadsTo(this.items.get(item), matches);
      if (leads) this.expand(item);
      return leads;
    };
    let item = this.list.querySelector(".hit");
    const start = item;
    for (let ends = 0; ends < 2; ends += item ? 0 : 1) {
      if (step > 0) {
        open(item);
        item = item ? item.nextElementSibling : this.list.firstElementChild;
      } else {
        const before = () => (item ? item.previousElementSibling : this.list.lastElementChild);
        while (open(before()));
        item = before();
      }
      if (!item || !matches[this.items.get(item).symbol]) continue;
      start?.classList.remove("hit");
      item.classList.add("hit");
      item.scrollIntoView({ block: "nearest" });
      return "";
    }
    return "none";
  }

  key(event) {
    const item = document.activeElement;
    if (item?.parentElement !== this.list) return;
    const state = item.getAttribute("aria-expanded");
    if (event.key === "ArrowDown") this.focus(item.nextElementSibling);
    else if (event.key === "ArrowUp") this.focus(item.previousElementSibling);
    else if (event.key === "ArrowRight") state === "false" ? this.toggle(item) : this.focus(item.nextElementSibling);
    else if (event.key === "ArrowLeft" && state === "true") this.toggle(item);
    else if (event.key === "ArrowLeft") {
      let up = item.previousElementSibling;
      while (up && this.level(up) >= this.level(item)) up = up.previousElementSibling;
      this.focus(up);
    } else if (event.key === "Enter" || event.key === "o") {
      const { symbol } = this.items.get(item);
      if (symbol !== undefined) this.state.open(symbol);
    } else return;
    event.preventDefault();
  }
}
