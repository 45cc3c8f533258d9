// Which source lines and instructions does a method have, each with its samples?

// Shares of a method's own samples from which on a line is hot or warm.
const HOT = 20;
const WARM = 5;

// The block of code of an event, read when a method is opened first. Its numbers are those of the whole recording.
class Code {
  constructor(block) {
    this.block = block;
  }

  // The methods' annotations by their symbols.
  read() {
    const parse = (bytes) => new Map(JSON.parse(new TextDecoder().decode(bytes)));
    this.methods ??= unpacked(this.block.textContent).then(parse);
    return this.methods;
  }
}

// An annotation as elements: each line beside its instructions, in a narrow pane above them.
class CodeView {
  constructor(annotation) {
    this.annotation = annotation;
    const { files, method } = annotation;
    this.hasSource = files.some((file) => file.found);
    this.hasCode = method.code !== undefined;
    this.indent = this.indentation();
    this.rows = [];
    this.element = element("div", { class: `code${this.hasCode ? " beside" : ""}`, role: "group", "aria-label": "Lines and instructions. Arrow keys move between them." });
    this.element.append(this.head());
    for (const file of files) this.element.append(...this.file(file, files.length > 1));
    this.element.addEventListener("keydown", (event) => this.key(event));
    this.element.addEventListener("focusin", ({ target }) => this.rows.includes(target) && this.makeCurrent(target));
    if (this.rows.length) this.makeCurrent(this.hottest() ?? this.rows[0]);
  }

  static canShow({ files }) {
    return files.some((file) => file.found || file.lines.some((line) => line.instructions));
  }

  // Blanks that are left out of source lines: a method's first line, which has no instructions, is a step further left than its others.
  indentation() {
    const step = 4;
    const blanks = (text) => text.length - text.trimStart().length;
    const lines = this.annotation.files.flatMap((file) => file.lines);
    const texts = lines.filter((line) => "self" in line && line.source).map((line) => blanks(line.source));
    return texts.length ? Math.max(Math.min(...texts) - step, 0) : 0;
  }

  head() {
    const cells = (...names) => names.map((name) => element("span", {}, name));
    const kind = ["dex", "jvm"].includes(this.annotation.method.code) ? "bytecode" : "instruction";
    const head = element("div", { class: "pair titles", "aria-hidden": "true" },
      element("div", { class: "half" }, element("div", { class: "row source" }, ...cells("method %", "total %", "line", this.hasSource ? "source" : ""))));
    if (this.hasCode) head.append(element("div", { class: "half" }, element("div", { class: "row instruction" }, ...cells("method %", "total %", "pc", kind))));
    return head;
  }

  file({ name, lines }, isNamed) {
    const made = isNamed ? [element("div", { class: "file" }, name ?? "(without a line)")] : [];
    let expected = null;
    for (const line of lines) {
      if (expected !== null && line.line > expected) made.push(element("div", { class: "gap", "aria-hidden": "true" }));
      expected = line.line === undefined ? null : line.line + 1;
      made.push(this.pair(line));
    }
    return made;
  }

  pair(line) {
    const left = [];
    if (line.line !== undefined || hasSamplesOfNoInstruction(line)) left.push(this.line(line));
    for (const inlined of line.inlined ?? []) left.push(this.inlined(inlined));
    const pair = element("div", { class: "pair" }, element("div", { class: "half" }, ...left));
    if (this.hasCode) pair.append(element("div", { class: "half" }, ...(line.instructions ?? []).map((found) => this.instruction(found))));
    return pair;
  }

  line(line) {
    const source = line.source ?? "";
    const blanks = Math.min(source.length - source.trimStart().length, this.indent);
    const text = "self" in line ? "text" : "text quiet";
    const [number, shown] = line.line === undefined ? ["", "(no line)"] : [line.line, source.slice(blanks)];
    return this.row("source", line, `${mark(line)}${number}`, element("span", { class: text, dir: "ltr" }, shown));
  }

  inlined(found) {
    const file = found.file?.split("/").pop();
    const place = file ? ` ${file}:${found.line}` : "";
    const source = found.source ? `: ${found.source.trimStart()}` : "";
    return this.row("source inlined", found, "", element("span", { class: "text", dir: "ltr" }, `(inlined) ${found.function}${place}${source}`));
  }

  instruction(found) {
    const places = { dex: () => found.pc.toString(16).padStart(4, "0"), jvm: () => String(found.pc) };
    const place = places[this.annotation.method.code]?.() ?? found.address.slice(2);
    return this.row("instruction", found, `${mark(found)}${place}`, element("span", { class: "text", dir: "ltr" }, found.text));
  }

  row(kind, found, place, text) {
    const ofMethod = found.self ? found.method_percent : 0;
    const heat = ofMethod >= HOT ? " hot" : ofMethod >= WARM ? " warm" : "";
    const bar = element("span", { class: "bar heat" });
    bar.style.width = `${Math.min(ofMethod, 100)}%`;
    const row = element("div", { class: `row ${kind}${heat}`, tabindex: "-1" },
      element("span", { class: "share" }, bar, element("span", {}, found.self ? ofMethod.toFixed(2) : "")),
      element("span", {}, found.total ? found.total_percent.toFixed(2) : ""),
      element("span", { class: "place" }, place), text);
    row.heat = ofMethod;
    this.rows.push(row);
    return row;
  }

  // The row with the largest share of the method's own samples: of a line and its instruction the line.
  hottest() {
    const hot = this.rows.filter((row) => row.heat);
    return hot.reduce((most, row) => (most && most.heat >= row.heat ? most : row), null);
  }

  makeCurrent(row) {
    this.current?.setAttribute("tabindex", "-1");
    this.current?.closest(".pair").classList.remove("current");
    row.setAttribute("tabindex", "0");
    row.closest(".pair").classList.add("current");
    this.current = row;
  }

  // Up and down among lines or instructions, left and right between a line and its instructions; h: the next one with 5 % or more.
  key(event) {
    const at = this.current;
    if (!at || event.ctrlKey || event.metaKey || event.altKey) return;
    const isInstruction = at.classList.contains("instruction");
    const among = this.rows.filter((row) => row.classList.contains("instruction") === isInstruction);
    const place = among.indexOf(at);
    const beside = (kind) => at.closest(".pair").querySelector(`.row.${kind}`);
    let next;
    if (event.key === "ArrowDown") next = among[place + 1];
    else if (event.key === "ArrowUp") next = among[place - 1];
    else if (event.key === "ArrowRight" && !isInstruction) next = beside("instruction");
    else if (event.key === "ArrowLeft" && isInstruction) next = beside("source");
    else if (event.key === "h") next = [...among.slice(place + 1), ...among.slice(0, place)].find((row) => row.heat >= WARM);
    else return;
    event.preventDefault();
    next?.focus();
  }
}

// Whether it has own samples that none of its instructions has.
function hasSamplesOfNoInstruction({ self, instructions }) {
  return self > (instructions ?? []).reduce((sum, instruction) => sum + instruction.self, 0);
}

// What stands before a place that is known approximately.
function mark({ approximate }) {
  return approximate ? "~" : "";
}
