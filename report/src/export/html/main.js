// What happens when the page is opened?

const TABS = ["flame", "chart", "heat", "methods", "down", "up", "facts"];
// The views of samples by time.
const TIMED_TABS = ["chart", "heat"];

function showFacts({ header }) {
  byId("title").textContent = byId("title").title = header.target || header.title;
  document.title = `${header.title} - varid`;
  const facts = header.facts.flatMap(([label, text]) => [element("dt", {}, label), element("dd", { dir: "ltr" }, text)]);
  byId("facts").replaceChildren(...facts);
}

function subtitle(state) {
  const { header } = state.model;
  const samples = header.timed ? [`${number.format(state.measured.samples)} samples`] : [];
  const parts = [header.event, ...samples, weight(state.measured.all, header)];
  if (header.lost) parts.push(`${number.format(header.lost)} lost`);
  byId("subtitle").textContent = parts.join(" · ");
}

function matches(state) {
  const { model, measured } = state;
  for (const id of ["next", "previous"]) byId(id).disabled = !state.matches;
  if (!state.matches) {
    byId("matches").textContent = "";
    return;
  }
  const count = state.matches.reduce((sum, one, symbol) => sum + (one && measured.symbolTotal[symbol] ? 1 : 0), 0);
  byId("matches").textContent = `${number.format(count)} ${count === 1 ? "method" : "methods"}, ${state.share(model.weightOf(state.matches, measured))} %`;
}

// The view that is shown: a tab and its panel.
class Tabs {
  constructor(state) {
    this.state = state;
    for (const tab of TABS) {
      byId(`tab-${tab}`).addEventListener("click", () => this.goTo(tab));
      byId(`tab-${tab}`).addEventListener("keydown", (event) => {
        const move = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
        if (!move) return;
        const tabs = this.tabs();
        const next = tabs[(tabs.indexOf(tab) + move + tabs.length) % tabs.length];
        this.goTo(next);
        byId(`tab-${next}`).focus();
      });
    }
  }

  // Exact measures have no times.
  tabs() {
    return this.state.base.header.timed ? TABS : TABS.filter((tab) => !TIMED_TABS.includes(tab));
  }

  show() {
    byId("report").classList.toggle("untimed", !this.state.base.header.timed);
    if (!this.tabs().includes(this.name)) this.open(TABS[0]);
  }

  open(name) {
    this.name = name;
    for (const tab of TABS) {
      const button = byId(`tab-${tab}`);
      button.setAttribute("aria-selected", tab === name);
      button.tabIndex = tab === name ? 0 : -1;
      byId(`${tab}-panel`).hidden = tab !== name;
    }
    byId("hit").textContent = "";
  }

  goTo(name) {
    this.open(name);
    this.state.update();
  }

  update() {}

  link() {
    return { tab: this.name === TABS[0] ? undefined : this.name };
  }

  restore({ tab }) {
    this.open(this.tabs().includes(tab) ? tab : TABS[0]);
  }
}

// The search, and its hits in the view that is shown. views: by tab.
function setSearch(state, tabs, views) {
  const query = byId("query");
  const goTo = (step) => state.matches && (byId("hit").textContent = views[tabs.name]?.nextHit(step) ?? "");
  query.addEventListener("input", () => {
    byId("hit").textContent = "";
    state.search(query.value.trim());
  });
  query.addEventListener("keydown", (event) => event.key === "Enter" && goTo(event.shiftKey ? -1 : 1));
  byId("next").addEventListener("click", () => goTo(1));
  byId("previous").addEventListener("click", () => goTo(-1));
  document.addEventListener("keydown", (event) => {
    const isTyping = /^(INPUT|SELECT|TEXTAREA)$/.test(document.activeElement?.tagName ?? "");
    if (isTyping || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "n" || event.key === "N") goTo(event.key === "n" ? 1 : -1);
    if (event.key !== "/") return;
    event.preventDefault();
    query.focus();
    query.select();
  });
  state.add({ update: () => {}, restore: () => (query.value = state.query) });
}

// What was done to frames; a click undoes it.
function showTransforms(state) {
  const chips = state.transforms.map(({ kind, symbol }, i) => {
    const { names, forms } = state.base;
    const chip = named("button", { type: "button", class: "chip", dir: "ltr", "aria-label": `Undo ${kind} ${names[symbol]}` }, names[symbol], forms[symbol]);
    chip.prepend(element("b", {}, kind), " ");
    chip.append(" ×");
    chip.addEventListener("click", () => state.setTransforms(state.transforms.filter((_, other) => other !== i)));
    return chip;
  });
  byId("transforms").replaceChildren(...chips);
}

async function start() {
  const events = new Events();
  const model = await events.model(0);
  events.list(model.header);
  LAYER_NAMES = model.header.layers;
  showFacts(model);
  const state = new State(model);
  state.add({ update: () => {}, show: () => showFacts(state.base) });
  events.listen(state);
  state.add({ update: () => subtitle(state) });
  state.add({ update: () => matches(state) });
  state.add({ update: () => showTransforms(state) });
  const tabs = new Tabs(state);
  const views = {
    flame: new Flame(state), chart: new Chart(state), heat: new Heat(state), methods: new Methods(state),
    down: new Tree(state, "down", DownRows), up: new Tree(state, "up", UpRows),
  };
  // Which view is shown is known before it is drawn.
  for (const view of [tabs, new Finding(state), new Caches(state), new Layers(state), new Timeline(state), ...Object.values(views), new Method(state)]) state.add(view);
  setSearch(state, tabs, views);
  const follow = () => events.follow(state, readLink(location.hash));
  addEventListener("hashchange", follow);
  await follow();
  byId("report").removeAttribute("aria-busy");
}

function fail(error) {
  const failure = byId("failure");
  failure.textContent = `This report cannot be shown. ${error.message}`;
  failure.hidden = false;
  throw error;
}

start().catch(fail);
