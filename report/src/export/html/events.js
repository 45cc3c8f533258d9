// Which events or measures does the page have, and which one do the views show?

class Events {
  constructor() {
    this.select = byId("event");
    this.models = new Map();
  }

  list({ events: names, measure }) {
    byId("event-choice").hidden = names.length < 2;
    byId("event-kind").textContent = measure ? "Measure" : "Event";
    this.select.append(...names.map((name, i) => element("option", { value: i }, name)));
  }

  // The element with an event's data or code.
  static block(kind, event) {
    return byId(event ? `${kind}-${event}` : kind);
  }

  // An event is read when it is chosen first.
  async model(event) {
    if (!this.models.has(event)) {
      const block = Events.block("data", event);
      const model = new Model(await readData(block.textContent));
      const code = Events.block("code", event);
      model.code = code && new Code(code);
      block.remove();
      this.models.set(event, model);
    }
    return this.models.get(event);
  }

  listen(state) {
    this.select.addEventListener("change", () => this.choose(state, Number(this.select.value)));
  }

  // Shows an event.
  async choose(state, event) {
    byId("report").setAttribute("aria-busy", "true");
    try {
      const model = await this.model(event);
      // Another event may have been chosen meanwhile.
      if (Number(this.select.value) === event) state.show(model, event);
    } catch (error) {
      fail(error);
    }
    byId("report").removeAttribute("aria-busy");
  }

  // Shows what a link says, if the page has its event.
  async follow(state, link) {
    const event = link.event ?? 0;
    if (event !== state.event && event < this.select.options.length) {
      this.select.value = event;
      await this.choose(state, event);
    }
    state.restore(link);
  }
}
