import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.IntUnaryOperator;

/**
 * Loads copies of a class, each with a name and a loader of its own, executes them until they are compiled, and drops them. So the VM frees
 * compiled code all the time, and puts other methods in its place. The agent writes which code is where at which time, and which copy each
 * thread executes.
 *
 * usage: Churn AGENT LOG CLASSES SECONDS
 */
public final class Churn implements Runnable {
    private static final String TEMPLATE = "Hot00000";
    private static final int THREADS = 2;
    private static final long COPY_NANOS = 60_000_000;
    /** The numbers of copies after which the VM unloads classes, and of which one is redefined while it runs. */
    private static final int COLLECTED = 8;
    private static final int REDEFINED = 4;
    private static final AtomicInteger COPIES = new AtomicInteger();
    /** What the copies compute. */
    static volatile int computed;

    private final byte[] template;
    private final long end;

    private Churn(byte[] template, long end) {
        this.template = template;
        this.end = end;
    }

    /** Starts the log. */
    static native void open(String log);

    /** Writes which copy this thread executes from now on. 0: none. */
    static native void executes(int copy);

    /** Redefines a class. */
    static native void redefine(Class<?> type, byte[] bytes);

    /** Writes the end of the log. */
    static native void close();

    /** Returns the class file with another name of the same length. */
    private static byte[] renamed(byte[] template, String name) {
        byte[] copy = template.clone();
        byte[] from = TEMPLATE.getBytes();
        byte[] to = name.getBytes();
        for (int at = 0; at + from.length <= copy.length; at++) {
            int same = 0;
            while (same < from.length && copy[at + same] == from[same]) {
                same++;
            }
            if (same == from.length) {
                System.arraycopy(to, 0, copy, at, to.length);
            }
        }
        return copy;
    }

    private void execute(int number) throws ReflectiveOperationException {
        executes(number);
        String name = String.format("Hot%05d", number);
        byte[] bytes = renamed(template, name);
        Class<?> type = new Loader().define(name, bytes);
        var constructor = type.getDeclaredConstructor();
        constructor.setAccessible(true);
        IntUnaryOperator operator = (IntUnaryOperator) constructor.newInstance();
        long start = System.nanoTime();
        run(operator, start + COPY_NANOS / 2);
        if (number % REDEFINED == 0) {
            redefine(type, bytes);
        }
        run(operator, start + COPY_NANOS);
        executes(0);
    }

    private static void run(IntUnaryOperator operator, long end) {
        int sum = 0;
        while (System.nanoTime() < end) {
            sum += operator.applyAsInt(20);
        }
        computed += sum;
    }

    @Override
    public void run() {
        try {
            while (System.nanoTime() < end) {
                int number = COPIES.incrementAndGet();
                execute(number);
                if (number % COLLECTED == 0) {
                    System.gc();
                }
            }
        } catch (ReflectiveOperationException exception) {
            throw new IllegalStateException(exception);
        }
    }

    public static void main(String[] arguments) throws Exception {
        System.load(arguments[0]);
        open(arguments[1]);
        byte[] template = Files.readAllBytes(Path.of(arguments[2], TEMPLATE + ".class"));
        Churn churn = new Churn(template, System.nanoTime() + Long.parseLong(arguments[3]) * 1_000_000_000L);
        Thread[] threads = new Thread[THREADS];
        for (int i = 0; i < THREADS; i++) {
            threads[i] = new Thread(churn, "churn " + i);
            threads[i].start();
        }
        for (Thread thread : threads) {
            thread.join();
        }
        close();
        System.out.println(COPIES.get());
    }

    /** The loader of one copy. */
    private static final class Loader extends ClassLoader {
        Class<?> define(String name, byte[] bytes) {
            return defineClass(name, bytes, 0, bytes.length);
        }
    }
}

/** What is copied. Methods whose names start with `call` are compiled by themselves, others are inlined into them. */
final class Hot00000 implements IntUnaryOperator {
    private final int[] numbers = new int[200];
    private final Map<Integer, Integer> counts = new HashMap<>();

    @Override
    public int applyAsInt(int rounds) {
        int sum = 0;
        for (int i = 0; i < rounds; i++) {
            sum += callFilled(i) + callChain(i, 3) + callCounted(i) + callText(i) + callKinds(i) + callReversed(i);
        }
        return sum;
    }

    int callFilled(int seed) {
        for (int i = 0; i < numbers.length; i++) {
            numbers[i] = mixed(seed, i) ^ mixed(i, seed);
        }
        return callSum();
    }

    int callSum() {
        int sum = 0;
        for (int number : numbers) {
            sum += number % 31;
        }
        return sum;
    }

    static int mixed(int a, int b) {
        return rotated(a * 31 + b) - rotated(b);
    }

    static int rotated(int number) {
        return number << 7 | number >>> 25;
    }

    int callChain(int seed, int steps) {
        int sum = 0;
        for (int i = 0; i < steps; i++) {
            sum += callLink(seed + i);
        }
        return sum;
    }

    int callLink(int seed) {
        return callEnd(seed) + callEnd(mixed(seed, numbers.length));
    }

    int callEnd(int seed) {
        int sum = seed;
        for (int i = 0; i < 60; i++) {
            sum = mixed(sum, i) / 3;
        }
        return sum;
    }

    int callCounted(int seed) {
        counts.clear();
        for (int i = 0; i < 20; i++) {
            counts.merge(mixed(seed, i) & 7, i, (a, b) -> mixed(a, b));
        }
        return counts.size();
    }

    int callText(int seed) {
        StringBuilder text = new StringBuilder();
        for (int i = 0; i < 10; i++) {
            text.append(mixed(seed, i)).append(' ');
        }
        return text.toString().hashCode();
    }

    /** Calls a method that is compiled by itself so often that some samples are where it makes its frame. */
    int callReversed(int seed) {
        int sum = seed;
        for (int i = 0; i < 100; i++) {
            sum = Integer.reverse(sum) + i;
        }
        return sum;
    }

    int callKinds(int seed) {
        int sum = 0;
        for (int i = 0; i < 50; i++) {
            switch ((seed + i) % 6) {
                case 0:
                    sum += callSum() & 3;
                    break;
                case 1:
                    sum ^= seed * 7;
                    break;
                case 2:
                    sum -= rotated(seed);
                    break;
                case 3:
                    sum = Integer.reverse(sum) + i;
                    break;
                case 4:
                    sum += Math.floorMod(seed, i + 1);
                    break;
                default:
                    sum = Integer.bitCount(sum) + mixed(i, sum);
            }
        }
        return sum;
    }
}
