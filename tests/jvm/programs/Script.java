package org.example.programs;

import org.python.util.PythonInterpreter;

/** Runs a Python program in Jython. Arguments: seconds. */
public final class Script {
    private static final String PROGRAM = String.join("\n",
            "import re",
            "def sieve(n):",
            "    found, composite = [], set()",
            "    for i in range(2, n):",
            "        if i not in composite:",
            "            found.append(i)",
            "            composite.update(range(i * i, n, i))",
            "    return found",
            "def count(text):",
            "    words = {}",
            "    for word in re.findall(r'[a-z]+', text):",
            "        words[word] = words.get(word, 0) + 1",
            "    return sorted(words.items(), key=lambda item: (-item[1], item[0]))",
            "def round():",
            "    return len(sieve(20000)), count('a rose is a rose is a rose ' * 500)[0]",
            "");

    private Script() {}

    public static void main(String[] arguments) throws Exception {
        try (PythonInterpreter python = new PythonInterpreter()) {
            python.exec(PROGRAM);
            Deadline.repeat(arguments, round -> python.exec("round()"));
        }
    }
}
