package org.example.programs;

import java.io.PrintWriter;
import java.io.StringWriter;
import org.eclipse.jdt.core.compiler.batch.BatchCompiler;

/** Compiles a tree of sources by the compiler of Eclipse, and keeps no class. Arguments: seconds, the tree. */
public final class CompileTree {
    private CompileTree() {}

    public static void main(String[] arguments) throws Exception {
        String[] options = {
            "-17", "-nowarn", "-proc:none", "-proceedOnError", "-cp", arguments[1], "-d", "none", arguments[1]
        };
        Deadline.repeat(arguments, round -> {
            StringWriter said = new StringWriter();
            PrintWriter writer = new PrintWriter(said);
            BatchCompiler.compile(options, writer, writer, null);
            // Since JDK 21 lists have methods that some of the sources contradict. That is not what is looked for.
            if (said.toString().contains("cannot be resolved")) {
                throw new IllegalStateException(said.toString());
            }
        });
    }
}
