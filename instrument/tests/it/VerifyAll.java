import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Collectors;

/** Links every class of a module, so that it is verified, and prints which are refused. */
public class VerifyAll {
    public static void main(String[] arguments) throws Exception {
        Path module = Path.of(arguments[0]);
        List<Path> files;
        try (var all = Files.walk(module)) {
            files = all.filter(it -> it.toString().endsWith(".class")).collect(Collectors.toList());
        }
        int verified = 0;
        int refused = 0;
        for (Path file : files) {
            String name = module.relativize(file).toString().replace('/', '.');
            name = name.substring(0, name.length() - ".class".length());
            try {
                Class.forName(name, false, null).getDeclaredMethods();
                verified++;
            } catch (LinkageError e) {
                System.out.println(name + ": " + e);
                refused++;
            }
        }
        System.out.println(verified + " verified, " + refused + " refused");
    }
}
