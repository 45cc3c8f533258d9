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

function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

const byId = (id) => document.getElementById(id);

// Shorter forms of a managed method's name: without package, without class.
function shorterNames(name, isManaged) {
  if (!isManaged) return [name];
  const end = name.indexOf("(");
  const parts = (end < 0 ? name : name.slice(0, end)).split(".");
  if (parts.length < 2) return [name];
  return [name, parts.slice(-2).join("."), parts[parts.length - 1]];
}

// As much of a name as fits into so many letters.
function fitted(name, isManaged, letters) {
  if (name.length <= letters) return name;
  const forms = shorterNames(name, isManaged);
  const fits = forms.find((form) => form.length <= letters);
  if (fits) return fits;
  return letters < 4 ? "" : `${forms[forms.length - 1].slice(0, letters - 1)}…`;
}
