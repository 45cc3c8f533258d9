// What is selected, and who draws it?

// All samples.
const EVERYTHING = { from: 0, to: Infinity, thread: -1, group: -1, layers: -1 };
// Milliseconds until a change is in the page's address: browsers refuse to have it changed all the time.
const LINK = 300;

class State {
  constructor(model) {
    // Of the event; model has the stacks that the transforms have made of it.
    this.base = this.model = model;
    this.event = 0;
    this.transforms = [];
    this.selection = EVERYTHING;
    this.query = "";
    this.matches = null;
    this.views = [];
    this.opened = () => {};
    this.measured = model.measure(this.selection);
  }

  // A view has update(): all that it shows may be other than before. One that keeps numbers of threads, symbols or nodes has show(before), too:
  // they are those of another model from now on. What it adds to a link is in link(), and restore(link) takes it from there.
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

  // The end is exclusive, and the last sample is at the end.
  selectTime(from, to) {
    this.select({ from, to: to >= this.model.last ? Infinity : to });
  }

  // Another event: the time, the layers and, where it has them, the thread and the transforms' methods stay selected.
  show(model, event) {
    const before = this.base;
    const thread = before.header.threads[this.selection.thread];
    const group = before.groups[this.selection.group];
    const isSame = ([pid, tid]) => pid === thread?.[0] && tid === thread?.[1];
    const sameMethod = ({ kind, symbol }) => ({ kind, symbol: model.symbolLike(before, symbol) });
    this.base = model;
    this.event = event;
    this.selection = {
      ...this.selection,
      thread: model.header.threads.findIndex(isSame),
      group: model.groups.findIndex(({ name }) => name === group?.name),
    };
    this.matches = model.search(this.query);
    this.setTransforms(this.transforms.map(sameMethod).filter(({ symbol }) => symbol >= 0), before);
  }

  setTransforms(transforms, before = this.base) {
    this.transforms = transforms;
    this.model = transforms.reduce(transformed, this.base);
    this.measured = this.model.measure(this.selection);
    for (const view of this.views) view.show?.(before);
    this.update();
  }

  transform(kind, symbol) {
    this.setTransforms([...this.transforms, { kind, symbol }]);
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
    this.changed();
  }

  share(value) {
    return percent(value, this.measured.all);
  }

  // Something of what a link has is other than before.
  changed() {
    clearTimeout(this.linking);
    this.linking = setTimeout(() => {
      try {
        history.replaceState(null, "", `#${writeLink(this.link())}`);
      } catch {
        // A page in a frame, or of a kind of address that cannot be changed, has no link.
      }
    }, LINK);
  }

  link() {
    const { from, to, thread, group, layers } = this.selection;
    const { header: { threads }, groups, last } = this.model;
    const isWhole = from === 0 && to === Infinity;
    const link = {
      event: this.event || undefined,
      from: isWhole ? undefined : Math.round(from),
      to: isWhole ? undefined : Math.round(Math.min(to, last + 1)),
      thread: threads[thread]?.slice(0, 2),
      group: groups[group]?.name,
      layers: layers === -1 ? undefined : layers,
      search: this.query,
      frames: this.transforms,
    };
    return Object.assign(link, ...this.views.map((view) => view.link?.() ?? {}));
  }

  // Shows what a link says of this event's model.
  restore(link) {
    const { header: { threads }, groups, names, last } = this.base;
    const [pid, tid] = link.thread ?? [];
    this.selection = {
      from: link.from ?? 0,
      to: link.to === undefined || link.to > last ? Infinity : link.to,
      thread: threads.findIndex((thread) => thread[0] === pid && thread[1] === tid),
      group: groups.findIndex(({ name }) => name === link.group),
      layers: link.layers ? link.layers & EVERY_LAYER : -1,
    };
    this.query = link.search ?? "";
    this.matches = this.base.search(this.query);
    const isKnown = (symbol) => symbol < names.length;
    this.setTransforms((link.frames ?? []).filter(({ symbol }) => isKnown(symbol)));
    for (const view of this.views) view.restore?.(link);
    this.update();
  }
}
