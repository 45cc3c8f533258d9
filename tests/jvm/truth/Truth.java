package org.example.truth;

import java.util.AbstractList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.function.IntBinaryOperator;
import java.util.function.IntUnaryOperator;
import java.util.stream.IntStream;

/** Calls of all kinds, none of which the class files leave open. Two threads do the same rounds; prints their sum, which must not depend on time. */
public final class Truth {
    private Truth() {}

    public static void main(String[] arguments) throws InterruptedException {
        int rounds = Integer.parseInt(arguments[0]);
        Worker worker = new Worker(rounds);
        worker.start();
        long sum = 0;
        for (int round = 0; round < rounds; round++) {
            sum += round(round);
        }
        worker.join();
        System.out.println(sum + worker.sum);
    }

    static long round(int round) {
        long sum = Recursion.down(60 + round % 40, round);
        sum += Dispatch.areas(round);
        sum += Inlined.loop(round);
        sum += Lambdas.streams(round) + Lambdas.counts(round);
        sum += Exceptions.explicit(round) + Exceptions.implicit(round);
        sum += Locks.together(round);
        sum += Texts.built(round) + Texts.joined(round);
        sum += Copies.sorted(round) + Copies.moved(round);
        sum += Numbers.waves(round);
        sum += Garbage.list(round);
        sum += Loops.nested(round);
        sum += Overloads.all(round);
        sum += Callbacks.all(round);
        return sum;
    }
}

/** The second thread, whose outermost method is its own. */
final class Worker extends Thread {
    private final int rounds;
    long sum;

    Worker(int rounds) {
        super("worker");
        this.rounds = rounds;
    }

    @Override
    public void run() {
        for (int round = 0; round < rounds; round++) {
            sum += Truth.round(round);
        }
    }
}

/** Recursion of one method, and of two. */
final class Recursion {
    private Recursion() {}

    static long down(int depth, int seed) {
        if (depth == 0) {
            return even(40, seed);
        }
        return down(depth - 1, seed + depth) + mixed(seed);
    }

    static long even(int depth, int seed) {
        return depth == 0 ? seed : odd(depth - 1, seed + 1) + mixed(depth);
    }

    static long odd(int depth, int seed) {
        return depth == 0 ? -seed : even(depth - 1, seed - 1) ^ mixed(seed);
    }

    static int mixed(int number) {
        int mixed = number;
        for (int i = 0; i < 20; i++) {
            mixed = mixed * 31 + i;
        }
        return mixed;
    }
}

interface Shape {
    double area();

    default double doubled() {
        return 2 * area();
    }
}

abstract class Named implements Shape {
    abstract int name();

    double weighted() {
        return name() * area();
    }
}

final class Square extends Named {
    private final double side;

    Square(double side) {
        this.side = side;
    }

    @Override
    public double area() {
        return side * side;
    }

    @Override
    int name() {
        return 4;
    }
}

final class Circle extends Named {
    private final double radius;

    Circle(double radius) {
        this.radius = radius;
    }

    @Override
    public double area() {
        return radius * radius * Math.PI;
    }

    @Override
    int name() {
        return 1;
    }

    @Override
    public double doubled() {
        return area() + super.doubled() / 2;
    }
}

class Polygon extends Named {
    private final int corners;

    Polygon(int corners) {
        this.corners = corners;
    }

    @Override
    public double area() {
        double area = 0;
        for (int corner = 0; corner < corners; corner++) {
            area += triangle(corner);
        }
        return area;
    }

    double triangle(int corner) {
        return corner * 0.5;
    }

    @Override
    int name() {
        return corners;
    }
}

final class Star extends Polygon {
    Star(int corners) {
        super(corners);
    }

    @Override
    double triangle(int corner) {
        return super.triangle(corner) * 0.25;
    }
}

/** Virtual and interface calls with one receiver, two, and four. */
final class Dispatch {
    private static final Named[] NAMED = {new Square(2), new Circle(1), new Polygon(7), new Star(9)};

    private Dispatch() {}

    static long areas(int round) {
        double sum = 0;
        for (int i = 0; i < 800; i++) {
            sum += one(NAMED[0]) + two(NAMED[i & 1]) + many(NAMED[i & 3]);
            sum += NAMED[i + round & 3].weighted();
        }
        return (long) sum;
    }

    static double one(Shape shape) {
        return shape.area();
    }

    static double two(Shape shape) {
        return shape.doubled();
    }

    static double many(Shape shape) {
        return shape.area() + shape.doubled();
    }
}

/** Methods that a compiler inlines, one in another. */
final class Inlined {
    private int value;

    private Inlined() {}

    static long loop(int round) {
        Inlined inlined = new Inlined();
        long sum = 0;
        for (int i = 0; i < 5000; i++) {
            inlined.set(outer(i, round));
            sum += inlined.get();
        }
        return sum;
    }

    void set(int value) {
        this.value = value;
    }

    int get() {
        return value;
    }

    static int outer(int a, int b) {
        return middle(a, b) + inner(b);
    }

    static int middle(int a, int b) {
        return inner(a) - inner(a + b);
    }

    static int inner(int a) {
        return a % 17 * (a >> 3);
    }
}

/** Bodies of lambdas and method references, called by this workload and by the JDK. */
final class Lambdas {
    private Lambdas() {}

    static long streams(int round) {
        return IntStream.range(0, 300)
                .map(number -> weight(number, round))
                .filter(Lambdas::isOdd)
                .mapToLong(number -> (long) number * number)
                .sum();
    }

    static long counts(int round) {
        Map<String, Integer> counts = new HashMap<>();
        for (int i = 0; i < 300; i++) {
            counts.merge(KEYS[(i * 7 + round) % KEYS.length], i, (a, b) -> added(a, b));
            counts.computeIfAbsent(KEYS[i % KEYS.length], key -> length(key));
        }
        long[] sum = {apply(round, value -> value * 3), combined(Lambdas::added, round)};
        counts.forEach((key, count) -> sum[0] += count + length(key));
        return sum[0] + sum[1];
    }

    private static final String[] KEYS = keys();

    private static String[] keys() {
        String[] keys = new String[50];
        for (int i = 0; i < keys.length; i++) {
            keys[i] = "key" + i;
        }
        return keys;
    }

    static int weight(int number, int round) {
        return number * 13 ^ round;
    }

    static boolean isOdd(int number) {
        return (number & 1) != 0;
    }

    static int added(int a, int b) {
        return a + b;
    }

    static int length(String key) {
        int length = 0;
        for (int i = 0; i < key.length(); i++) {
            length += key.charAt(i) & 15;
        }
        return length;
    }

    static int apply(int value, IntUnaryOperator operator) {
        int result = value;
        for (int i = 0; i < 200; i++) {
            result = operator.applyAsInt(result) + i;
        }
        return result;
    }

    static int combined(IntBinaryOperator operator, int value) {
        int result = value;
        for (int i = 0; i < 200; i++) {
            result = operator.applyAsInt(result, i);
        }
        return result;
    }
}

final class Refused extends RuntimeException {
    private static final long serialVersionUID = 1;
    final int number;

    Refused(int number) {
        super("refused");
        this.number = number;
    }
}

/** Exceptions that methods throw, and that the VM throws for them. */
final class Exceptions {
    private Exceptions() {}

    static long explicit(int round) {
        long sum = 0;
        for (int i = 0; i < 30; i++) {
            try {
                sum += through(i, 8);
            } catch (Refused refused) {
                sum += caught(refused, round);
            }
        }
        return sum;
    }

    static int through(int number, int depth) {
        if (depth > 0) {
            try {
                return through(number, depth - 1) + 1;
            } finally {
                unwound(depth);
            }
        }
        return thrown(number);
    }

    static int thrown(int number) {
        if (number % 3 == 0) {
            throw new Refused(number);
        }
        return number;
    }

    static int unwound(int depth) {
        return depth * depth;
    }

    static int caught(Refused refused, int round) {
        return refused.number + round;
    }

    static long implicit(int round) {
        int[] numbers = new int[8];
        Object[] objects = {"text", null, 7};
        long sum = 0;
        for (int i = 0; i < 40; i++) {
            try {
                sum += element(numbers, i % 10) + quotient(i, i % 4) + text(objects[i % 3]);
            } catch (ArrayIndexOutOfBoundsException | ArithmeticException exception) {
                sum += 1;
            } catch (NullPointerException exception) {
                sum += 2;
            } catch (ClassCastException exception) {
                sum += round;
            }
        }
        return sum;
    }

    static int element(int[] numbers, int index) {
        return numbers[index] + 1;
    }

    static int quotient(int a, int b) {
        return a / b;
    }

    static int text(Object object) {
        return ((String) object).length();
    }
}

/** Methods and blocks that hold a lock, of one thread and of two. */
final class Locks {
    private static final Object SHARED = new Object();
    private static int shared;
    private int count;

    private Locks() {}

    static long together(int round) {
        Locks locks = new Locks();
        for (int i = 0; i < 300; i++) {
            locks.add(i);
            add();
            block(i);
        }
        return locks.count + round;
    }

    synchronized void add(int number) {
        count += changed(number);
    }

    static synchronized void add() {
        shared += changed(shared);
    }

    static void block(int number) {
        synchronized (SHARED) {
            shared ^= changed(number);
        }
    }

    static int changed(int number) {
        return number * 5 + 1;
    }
}

/** Strings. */
final class Texts {
    private Texts() {}

    static long built(int round) {
        StringBuilder builder = new StringBuilder();
        for (int i = 0; i < 200; i++) {
            append(builder, i + round);
        }
        return builder.length() + builder.toString().hashCode();
    }

    static void append(StringBuilder builder, int number) {
        builder.append("number ").append(number).append(' ').append(number * 0.5);
    }

    static long joined(int round) {
        long sum = 0;
        for (int i = 0; i < 100; i++) {
            sum += name(i, "round " + round + " of " + i).length();
        }
        return sum;
    }

    static String name(int number, String text) {
        return number + ": " + text;
    }
}

/** A comparator that the JDK calls. */
final class ByDigits implements Comparator<Integer> {
    @Override
    public int compare(Integer a, Integer b) {
        int difference = digits(a) - digits(b);
        return difference != 0 ? difference : Integer.compare(a, b);
    }

    static int digits(int number) {
        int sum = 0;
        for (int rest = number; rest > 0; rest /= 10) {
            sum += rest % 10;
        }
        return sum;
    }
}

/** Arrays that the JDK's intrinsic code copies. */
final class Copies {
    private static final Comparator<Integer> BY_DIGITS = new ByDigits();

    private Copies() {}

    static long sorted(int round) {
        Integer[] numbers = new Integer[200];
        for (int i = 0; i < numbers.length; i++) {
            numbers[i] = (i * 7919 + round) % 1000;
        }
        Arrays.sort(numbers, BY_DIGITS);
        return numbers[round % numbers.length];
    }

    static long moved(int round) {
        byte[] from = new byte[20_000];
        byte[] to = new byte[20_000];
        long sum = 0;
        for (int i = 0; i < 20; i++) {
            Arrays.fill(from, (byte) (i + round));
            System.arraycopy(from, i, to, 2 * i, 15_000);
            sum += part(to, i).length + to[i + 100];
        }
        return sum;
    }

    static byte[] part(byte[] bytes, int start) {
        byte[] copy = bytes.clone();
        return Arrays.copyOfRange(copy, start, copy.length);
    }
}

/** Native methods of the JDK, and its intrinsic functions. */
final class Numbers {
    private Numbers() {}

    static long waves(int round) {
        double sum = 0;
        for (int i = 1; i < 300; i++) {
            sum += wave(i * 0.01 + round) + Math.pow(i, 1.5);
            sum += (identity(i) & 1) * 0.0 + Math.floorMod(i, 7);
        }
        return (long) sum;
    }

    static double wave(double angle) {
        return Math.sin(angle) + Math.log(angle + 1) * StrictMath.cos(angle);
    }

    static int identity(int number) {
        return System.identityHashCode(new int[number & 7]) | Thread.currentThread().hashCode();
    }
}

/** Objects, most of which die young. */
final class Garbage {
    private final Garbage next;
    private final long[] content;

    private Garbage(Garbage next, int size) {
        this.next = next;
        this.content = filled(size);
    }

    static long list(int round) {
        Garbage list = null;
        for (int i = 0; i < 500; i++) {
            list = new Garbage(i % 50 == 0 ? null : list, 100 + i % 30);
        }
        return length(list) + round;
    }

    static long[] filled(int size) {
        long[] content = new long[size];
        content[size - 1] = size;
        return content;
    }

    static long length(Garbage list) {
        long length = 0;
        for (Garbage each = list; each != null; each = each.next) {
            length += each.content[each.content.length - 1];
        }
        return length;
    }
}

/** Loops that are compiled while they run. */
final class Loops {
    private Loops() {}

    static long nested(int round) {
        long sum = 0;
        for (int i = 0; i < 120; i++) {
            for (int j = 0; j < 120; j++) {
                sum += (i ^ j) * step(round, j);
            }
        }
        return sum;
    }

    static int step(int round, int j) {
        return (round & 3) + (j & 1);
    }
}

/** Methods of the same name. */
final class Overloads {
    private Overloads() {}

    static long all(int round) {
        long sum = 0;
        for (int i = 0; i < 300; i++) {
            sum += same(i) + same((long) i) + same(i, round) + same("text");
        }
        return sum;
    }

    static int same(int number) {
        return number + 1;
    }

    static long same(long number) {
        long sum = number;
        for (int i = 0; i < 10; i++) {
            sum = sum * 3 + same((int) sum);
        }
        return sum;
    }

    static int same(int a, int b) {
        return same(a) * same(b) + a;
    }

    static int same(String text) {
        return same(text.length(), text.hashCode()) - text.charAt(0);
    }
}

/** A list and its elements: what the JDK calls of them is declared in its own classes. */
final class Callbacks extends AbstractList<Callbacks.Key> {
    private final int size;

    private Callbacks(int size) {
        this.size = size;
    }

    static long all(int round) {
        Callbacks list = new Callbacks(40);
        Map<Key, Integer> map = new HashMap<>();
        long sum = list.indexOf(new Key(39)) + list.hashCode();
        for (Key key : list) {
            map.put(key, map.size());
        }
        sum += List.copyOf(map.values()).size() + text(map);
        for (Iterator<Integer> each = new Countdown(50); each.hasNext(); ) {
            sum += each.next();
        }
        return sum + round;
    }

    static int text(Map<Key, Integer> map) {
        return map.toString().length();
    }

    @Override
    public Key get(int index) {
        return new Key(index);
    }

    @Override
    public int size() {
        return size;
    }

    /** A key that is compared and printed. */
    static final class Key {
        private final int number;

        Key(int number) {
            this.number = number;
        }

        @Override
        public int hashCode() {
            return spread(number);
        }

        static int spread(int number) {
            return number * 31 & 7;
        }

        @Override
        public boolean equals(Object other) {
            return other instanceof Key && ((Key) other).number == number;
        }

        @Override
        public String toString() {
            return "key " + number;
        }
    }

    /** An iterator with a bridge method. */
    static final class Countdown implements Iterator<Integer> {
        private int left;

        Countdown(int left) {
            this.left = left;
        }

        @Override
        public boolean hasNext() {
            return left > 0;
        }

        @Override
        public Integer next() {
            left--;
            return left;
        }
    }
}
