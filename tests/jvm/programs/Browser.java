package org.example.programs;

import org.mozilla.javascript.Context;
import org.mozilla.javascript.Scriptable;

/** Runs a JavaScript program in Rhino, which compiles it to class files. Arguments: seconds. */
public final class Browser {
    private static final String PROGRAM = String.join("\n",
            "function Vector(x, y) { this.x = x; this.y = y; }",
            "Vector.prototype.plus = function (other) { return new Vector(this.x + other.x, this.y + other.y); };",
            "function sieve(n) {",
            "  var found = [], composite = {};",
            "  for (var i = 2; i < n; i++) {",
            "    if (composite[i]) continue;",
            "    found.push(i);",
            "    for (var j = i * i; j < n; j += i) composite[j] = true;",
            "  }",
            "  return found.length;",
            "}",
            "function words(text) {",
            "  var counts = {};",
            "  text.split(/[^a-z]+/).forEach(function (word) { counts[word] = (counts[word] || 0) + 1; });",
            "  return Object.keys(counts).sort(function (a, b) { return counts[b] - counts[a]; })[0];",
            "}",
            "function round() {",
            "  var sum = new Vector(0, 0), text = '';",
            "  for (var i = 0; i < 20000; i++) sum = sum.plus(new Vector(i % 7, i % 11));",
            "  for (i = 0; i < 500; i++) text += 'a rose is a rose is a rose ';",
            "  return words(text) + sieve(10000) + sum.x;",
            "}",
            "");

    private Browser() {}

    public static void main(String[] arguments) throws Exception {
        Context context = Context.enter();
        try {
            Scriptable scope = context.initStandardObjects();
            context.evaluateString(scope, PROGRAM, "program.js", 1, null);
            Deadline.repeat(arguments, round -> {
                Object result = context.evaluateString(scope, "round()", "round.js", 1, null);
                if (!"a122959997".equals(Context.toString(result))) {
                    throw new IllegalStateException(Context.toString(result));
                }
            });
        } finally {
            Context.exit();
        }
    }
}
