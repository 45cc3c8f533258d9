// How are numbers and names written? All text from a recording becomes text nodes.

const number = new Intl.NumberFormat("en");
// U+2009, a thin space.
const THIN = "\u2009";

function percent(part, all) {
  return (all ? (part * 100) / all : 0).toFixed(2);
}

function duration(ns) {
  const units = [[1e9, "s"], [1e6, "ms"], [1e3, "µs"], [1, "ns"]];
  const [scale, unit] = units.find(([scale]) => ns >= scale) ?? units[3];
  const value = ns / scale;
  return `${value.toFixed(unit === "ns" || value >= 100 ? 0 : value >= 10 ? 1 : 2)}${THIN}${unit}`;
}

// A time on an axis with a mark every `step`: marks of one axis have one unit and the digits that differ.
function atScale(time, step) {
  const [scale, unit] = [[1e9, "s"], [1e6, "ms"], [1e3, "µs"]].find(([scale]) => step >= scale / 20) ?? [1, "ns"];
  return `${(time / scale).toFixed(step >= scale ? 0 : step >= scale / 10 ? 1 : 2)}${THIN}${unit}`;
}

function weight(value, header) {
  if (header.weigh === "samples") return `${number.format(value)} samples`;
  return header.unit === "ns" ? duration(value) : `${number.format(value)} ${header.unit}`;
}

// The head of a column of samples, or of the values of an exact measure.
function countHead(name, { timed, event, unit }) {
  if (timed) return name;
  return event === unit ? `${name} ${event}` : `${name} ${event} (${unit})`;
}

function threadName([pid, tid, name, process]) {
  return pid === tid || name === process ? `${name} (${tid})` : `${name} (${tid}) of ${process}`;
}

function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

const byId = (id) => document.getElementById(id);

// As much of a name as fits into so many letters: the longest of its forms that does, else the begin of the shortest.
function fitted(name, forms, letters) {
  const fits = [name, ...forms].find((form) => form.length <= letters);
  if (fits !== undefined) return fits;
  return letters < 4 ? "" : `${(forms.at(-1) ?? name).slice(0, letters - 1)}…`;
}

// Letters of a name in a list: a longer one would lose its end, which is the function's own name.
const LISTED = 80;

// An element with a name in a list, whose title is the whole name.
function named(tag, attributes, name, forms) {
  const shown = fitted(name, forms, LISTED);
  return element(tag, shown === name ? attributes : { ...attributes, title: name }, shown);
}
