// Which frames does speedscope's own import see in files? Prints the heaviest of each, by their own weight.
// usage: node speedscope.js RELEASE/speedscope-*.js FILE...
// The bundle is made for browsers: its import is reached by the name under which it exports it, its user interface is not started.
"use strict";
const fs = require("fs");
const [, , bundle, ...files] = process.argv;

let text = fs.readFileSync(bundle, "utf8");
const exported = /[\w$]+\(([\w$]+),\{[^}]*importProfileGroupFromText:/.exec(text)[1];
const quoted = exported.replace(/\$/g, "\\$&");
const initializer = new RegExp(`\\(\\(\\)=>\\(([\\w$]+)\\(\\),${quoted}\\)\\)`).exec(text)[1];
text = text.replace(`var ${exported}={};`, `var ${exported}={};globalThis.importer=()=>(${initializer}(),${exported});`);

// Anything that a page has, as far as the bundle's first lines ask for it.
const anything = () => new Proxy(function () {}, {
  get: (_, key) => (key === Symbol.toPrimitive ? () => "" : key === "then" ? undefined : key === "length" ? 0 : anything()),
  apply: anything,
  construct: anything,
  set: () => true,
});
Object.assign(globalThis, { window: globalThis, self: globalThis, document: anything(), addEventListener() {} });
globalThis.location = { hash: "", protocol: "file:" };
const print = console.log;
console.log = console.error;
try {
  (0, eval)(text);
} catch (error) {
  // The user interface does not start without a page.
}

(async () => {
  for (const file of files) {
    const group = await globalThis.importer().importProfileGroupFromText(file, fs.readFileSync(file, "utf8"));
    if (!group) throw new Error(`${file}: speedscope does not know the format`);
    const weights = new Map();
    for (const profile of group.profiles) {
      profile.forEachFrame((frame) => weights.set(frame.name, (weights.get(frame.name) || 0) + frame.getSelfWeight()));
    }
    print(`== ${file}`);
    for (const [name, weight] of [...weights].sort((one, other) => other[1] - one[1]).slice(0, 25)) print(weight, name);
  }
})().catch((error) => {
  console.error(error);
  process.exit(1);
});
