"use strict";
// Zooms into the frame that is clicked, and marks frames whose name matches. Names are read and shown as text only.
const root = document.getElementById("flamegraph");
const view = document.getElementById("frames");
const details = document.getElementById("details");
const matched = document.getElementById("matched");
const LETTER = 7.2, BESIDE = 10;
const frames = [...view.querySelectorAll("g")].map((group) => {
  const rect = group.querySelector("rect"), text = group.querySelector("text");
  const title = group.querySelector("title").textContent;
  const x = parseFloat(rect.getAttribute("x")), width = parseFloat(rect.getAttribute("width"));
  const { form0, form1, form2, form3 } = group.dataset;
  const name = title.split("\n")[0];
  // The name, then its shorter forms.
  const forms = [name, form0, form1, form2, form3].filter((form) => form !== undefined);
  return { group, rect, text, title, name, forms, x, end: x + width, y: +rect.getAttribute("y") };
});
const EPSILON = 0.0002;
let zoomed = frames[0];

function show() {
  const whole = zoomed.end - zoomed.x;
  const pixels = view.getBoundingClientRect().width;
  for (const frame of frames) {
    const inside = frame.y >= zoomed.y && frame.x >= zoomed.x - EPSILON && frame.end <= zoomed.end + EPSILON;
    const caller = frame.y < zoomed.y && frame.x <= zoomed.x + EPSILON && frame.end >= zoomed.end - EPSILON;
    frame.group.style.display = inside || caller ? "" : "none";
    frame.group.classList.toggle("caller", caller);
    if (!inside && !caller) continue;
    const x = caller ? 0 : (frame.x - zoomed.x) / whole * 100;
    const width = caller ? 100 : (frame.end - frame.x) / whole * 100;
    frame.rect.setAttribute("x", x + "%");
    frame.rect.setAttribute("width", width + "%");
    frame.text.setAttribute("x", x + "%");
    const letters = Math.floor((width / 100 * pixels - 6) / LETTER);
    const fits = frame.forms.find((form) => form.length <= letters);
    frame.text.textContent = fits ?? (letters < 3 ? "" : frame.forms.at(-1).slice(0, letters - 2) + "..");
  }
}

function zoom(frame) {
  zoomed = frame;
  show();
}

function search() {
  const pattern = window.prompt("Names that match (a regular expression):", "");
  if (pattern === null) return;
  let expression = null;
  try {
    expression = pattern === "" ? null : new RegExp(pattern);
  } catch (error) {
    matched.textContent = "not a regular expression";
    return;
  }
  const spans = [];
  for (const frame of frames) {
    const matches = expression !== null && frame !== frames[0] && expression.test(frame.name);
    frame.group.classList.toggle("match", matches);
    if (matches) spans.push(frame);
  }
  // A frame that is called by one that matches counts once.
  spans.sort((one, other) => one.x - other.x || other.end - one.end);
  let sum = 0, reached = 0;
  for (const span of spans) {
    if (span.end > reached) {
      sum += span.end - Math.max(span.x, reached);
      reached = span.end;
    }
  }
  matched.textContent = expression === null ? "" : "matched: " + sum.toFixed(2) + " %";
}

for (const frame of frames) {
  frame.group.addEventListener("click", () => zoom(frame));
  frame.group.addEventListener("mouseover", () => { details.textContent = frame.title.replace("\n", "  "); });
  frame.group.addEventListener("mouseout", () => { details.textContent = ""; });
}
function press(id, action) {
  const button = document.getElementById(id);
  button.addEventListener("click", action);
  button.addEventListener("keydown", (event) => { if (event.key === "Enter") action(); });
}
press("reset", () => zoom(frames[0]));
press("search", search);
window.addEventListener("keydown", (event) => {
  if (event.key === "Escape") zoom(frames[0]);
  if (event.key === "/" || ((event.ctrlKey || event.metaKey) && event.key === "f")) {
    event.preventDefault();
    search();
  }
});
function resize() {
  // A file of its own fills the window.
  if (window.self === window.top && root === document.documentElement) {
    root.setAttribute("width", "100%");
    view.setAttribute("width", Math.max(100, root.getBoundingClientRect().width - 2 * BESIDE));
  }
  show();
}
window.addEventListener("resize", resize);
resize();
