// What stands above all views: the sentence that the numbers bear, and the hottest line of the method that it names.

class Finding {
  constructor(state) {
    this.state = state;
    byId("finding-line").addEventListener("click", () => state.opened(this.symbol, true));
    this.show();
  }

  // The sentence is of the whole recording: nothing that is selected changes it.
  show() {
    const { base } = this.state;
    const { finding } = base.header;
    byId("finding").hidden = !finding;
    if (!finding || this.model === base) return;
    this.model = base;
    this.symbol = finding.symbol;
    byId("finding-text").textContent = finding.text;
    const line = finding.symbol === null ? null : base.hottestLine(finding.symbol, EVERYTHING);
    byId("finding-line").hidden = finding.symbol === null;
    byId("finding-line").textContent = "its callers and callees";
    if (!line) return;
    const place = `${line.file.split("/").pop()}:${line.approximate ? "~" : ""}${line.line}`;
    const share = percent(line.own, base.measure(EVERYTHING).all);
    byId("finding-line").textContent = `hottest line ${place}, ${share} %`;
    base.code?.read().then((methods) => this.showSource(base, methods.get(finding.symbol), line)).catch(fail);
  }

  // The line's text, where the page has it.
  showSource(model, annotation, { file, line }) {
    if (model !== this.model || !annotation) return;
    const ofFile = annotation.files.filter(({ name }) => name === file);
    const source = ofFile.flatMap(({ lines }) => lines).find((found) => found.line === line)?.source?.trim();
    if (source) byId("finding-line").append(": ", element("code", { dir: "ltr" }, source));
  }

  update() {}
}
