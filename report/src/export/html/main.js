// What happens when the page is opened?

const TABS = ["flame", "methods", "down", "up", "facts"];

function showFacts({ header }) {
  byId("title").textContent = byId("title").title = header.target || header.title;
  document.title = `${header.title} - varid`;
  const facts = header.facts.flatMap(([label, text]) => [element("dt", {}, label), element("dd", { dir: "ltr" }, text)]);
  byId("facts").replaceChildren(...facts);
}

function subtitle(state) {
  const { header } = state.model;
  const parts = [header.event, `${number.format(state.measured.samples)} samples`, weight(state.measured.all, header)];
  if (header.lost) parts.push(`${number.format(header.lost)} lost`);
  byId("subtitle").textContent = parts.join(" · ");
}

function matches(state) {
  const { model, measured } = state;
  if (!state.matches) {
    byId("matches").textContent = "";
    return;
  }
  const count = state.matches.reduce((sum, one, symbol) => sum + (one && measured.symbolTotal[symbol] ? 1 : 0), 0);
  byId("matches").textContent = `${number.format(count)} ${count === 1 ? "method" : "methods"}, ${state.share(model.weightOf(state.matches, measured))} %`;
}

function setTabs(state) {
  const show = (name, isFocused) => {
    for (const tab of TABS) {
      const button = byId(`tab-${tab}`);
      button.setAttribute("aria-selected", tab === name);
      button.tabIndex = tab === name ? 0 : -1;
      byId(`${tab}-panel`).hidden = tab !== name;
    }
    if (isFocused) byId(`tab-${name}`).focus();
    state.update();
  };
  TABS.forEach((tab, i) => {
    byId(`tab-${tab}`).addEventListener("click", () => show(tab, false));
    byId(`tab-${tab}`).addEventListener("keydown", (event) => {
      const move = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (move) show(TABS[(i + move + TABS.length) % TABS.length], true);
    });
  });
  show("flame", false);
}

function setSearch(state) {
  const query = byId("query");
  query.addEventListener("input", () => state.search(query.value.trim()));
  document.addEventListener("keydown", (event) => {
    const isTyping = /^(INPUT|SELECT|TEXTAREA)$/.test(document.activeElement?.tagName ?? "");
    if (event.key !== "/" || isTyping || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    query.focus();
    query.select();
  });
}

async function start() {
  const events = new Events();
  const model = await events.model(0);
  events.list(model.header.events);
  LAYER_NAMES = model.header.layers;
  showFacts(model);
  const state = new State(model);
  state.add({ update: () => {}, show: () => showFacts(state.model) });
  events.listen(state);
  state.add({ update: () => subtitle(state) });
  state.add({ update: () => matches(state) });
  for (const view of [new Layers(state), new Timeline(state), new Flame(state), new Methods(state)]) state.add(view);
  state.add(new Tree(state, "down", DownRows));
  state.add(new Tree(state, "up", UpRows));
  state.add(new Method(state));
  setSearch(state);
  setTabs(state);
  byId("report").removeAttribute("aria-busy");
}

function fail(error) {
  const failure = byId("failure");
  failure.textContent = `This report cannot be shown. ${error.message}`;
  failure.hidden = false;
  throw error;
}

start().catch(fail);
