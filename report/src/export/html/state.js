// What is selected, and who draws it?

class State {
  constructor(model) {
    this.model = model;
    this.selection = { from: 0, to: Infinity, thread: -1, layers: -1 };
    this.query = "";
    this.matches = null;
    this.views = [];
    this.opened = () => {};
    this.measured = model.measure(this.selection);
  }

  // A view has update(): all that it shows may be other than before. One that keeps numbers of threads, symbols or nodes has show(before), too:
  // they are those of another event's model from now on.
  add(view) {
    this.views.push(view);
  }

  select(change) {
    this.selection = { ...this.selection, ...change };
    if (!this.waiting) {
      this.waiting = true;
      requestAnimationFrame(() => {
        this.waiting = false;
        this.measured = this.model.measure(this.selection);
        this.update();
      });
    }
  }

  // Another event: the time, the layers and, where it has it, the thread stay selected.
  show(model) {
    const before = this.model;
    const thread = before.header.threads[this.selection.thread];
    const isSame = ([pid, tid]) => pid === thread?.[0] && tid === thread?.[1];
    this.model = model;
    this.selection = { ...this.selection, thread: model.header.threads.findIndex(isSame) };
    this.matches = model.search(this.query);
    this.measured = model.measure(this.selection);
    for (const view of this.views) view.show?.(before);
    this.update();
  }

  search(query) {
    this.query = query;
    this.matches = this.model.search(query);
    this.update();
  }

  open(symbol) {
    this.opened(symbol);
  }

  update() {
    for (const view of this.views) view.update();
  }

  share(value) {
    return percent(value, this.measured.all);
  }
}
