import java.math.BigInteger;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.IntUnaryOperator;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

/**
 * Has methods that compilers inline into each other: small ones, lambdas, loops that are entered in the middle, exceptions, virtual
 * calls. Then the agent writes what the VM says of them, and it waits for the end of its input.
 *
 * usage: Inlines AGENT FILE ROUNDS
 */
public class Inlines {
    /** Writes all compiled code to a file, and what changes later to another one. */
    static native void write(String file);

    interface Shape {
        double area();
    }

    record Square(double side) implements Shape {
        public double area() {
            return side * side;
        }
    }

    record Circle(double radius) implements Shape {
        public double area() {
            return Math.PI * radius * radius;
        }
    }

    static int inner(int number) {
        return number * 31 + 7;
    }

    static int middle(int number) {
        return inner(number) ^ inner(number >>> 3);
    }

    static int outer(int number) {
        return middle(middle(number) + 1);
    }

    static synchronized int locked(int number) {
        return outer(number) + 1;
    }

    static int caught(int[] numbers, int index) {
        try {
            return numbers[index];
        } catch (ArrayIndexOutOfBoundsException outside) {
            return inner(index);
        }
    }

    static int applied(IntUnaryOperator operator, int rounds) {
        int sum = 0;
        for (int i = 0; i < rounds; i++) {
            sum += operator.applyAsInt(i) + (i % 3 == 0 ? locked(i) : outer(i));
        }
        return sum;
    }

    static double areas(List<Shape> shapes) {
        double sum = 0;
        for (Shape shape : shapes) {
            sum += shape.area();
        }
        return sum;
    }

    static int words(String text) {
        Map<String, Integer> counts = new HashMap<>();
        for (String word : Pattern.compile("[^a-z]+").split(text)) {
            counts.merge(word, 1, Integer::sum);
        }
        String joined = counts.entrySet().stream().filter(entry -> entry.getValue() > 1)
                .map(entry -> entry.getKey() + "=" + entry.getValue()).sorted().collect(Collectors.joining(","));
        return joined.hashCode();
    }

    static int copied(int[] numbers) {
        int[] copy = Arrays.copyOf(numbers, numbers.length);
        Arrays.sort(copy);
        System.arraycopy(copy, 0, numbers, 0, copy.length / 2);
        return Arrays.hashCode(copy) + IntStream.of(copy).map(Inlines::middle).sum();
    }

    static int round(int round, String text) {
        int[] numbers = IntStream.range(0, 500).map(i -> outer(i ^ round)).toArray();
        List<Shape> shapes = new ArrayList<>();
        for (int i = 0; i < 100; i++) {
            shapes.add(i % 2 == 0 ? new Square(i) : new Circle(i));
        }
        int sum = applied(number -> middle(number) + round, 2000) + words(text) + copied(numbers);
        sum += caught(numbers, round % 600) + (int) areas(shapes);
        sum += BigInteger.valueOf(round + 3).pow(40).mod(BigInteger.valueOf(1_000_003)).intValue();
        return sum + String.format("%d %s %.2f", round, "x", (double) round).length();
    }

    public static void main(String[] arguments) throws Exception {
        System.load(arguments[0]);
        String text = "the quick brown fox jumps over the lazy dog and the other fox ".repeat(20);
        int sum = 0;
        for (int i = 0; i < Integer.parseInt(arguments[2]); i++) {
            sum += round(i, text);
        }
        write(arguments[1]);
        System.out.println(sum + "\nready");
        System.out.flush();
        while (System.in.read() >= 0) {
        }
    }
}
