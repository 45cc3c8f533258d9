import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.function.IntBinaryOperator;
import java.util.function.Supplier;

/** Instructions that do not run to the end of their block, in contexts that do not depend on time. */
public class Steps {
    static int sink;

    static class Broken {
        static int value = one(1) / zero();

        static int zero() {
            return 0;
        }
    }

    static class Outer {
        final int a;

        Outer(int a) {
            this.a = a;
            if (a == 3) {
                throw new IllegalStateException("outer");
            }
        }
    }

    static class Inner extends Outer {
        int b = one(2);

        /** Its argument may throw before the other constructor is called, or branch there, or make objects. */
        Inner(int n) {
            super(n > 5 ? one(n) / (n - 6) : new Outer(n).a + new Outer(n == 2 ? one(4) : 5).a);
            b += a;
        }

        Inner(String text) {
            this(text.length());
        }
    }

    interface Shape {
        default int sides() {
            return one(4);
        }
    }

    record Point(int x, int y) implements Shape {
        Point {
            if (x > y) {
                throw new IllegalArgumentException("x");
            }
        }

        public int sides() {
            return x / y;
        }
    }

    enum Colour implements Shape {
        RED, GREEN {
            public int sides() {
                return one(5);
            }
        }
    }

    static class Closed implements AutoCloseable {
        final int n;

        Closed(int n) {
            this.n = n;
        }

        public void close() {
            if (n % 3 == 0) {
                throw new IllegalStateException("closed");
            }
        }
    }

    static synchronized void add(int n) {
        sink += n;
    }

    static int one(int n) {
        return n - n + 1;
    }

    /** Each of the exceptions that the VM itself throws, in the middle of a block. */
    static int implicit(int kind, Object object, int[] ints, int n) {
        int sum = n;
        try {
            switch (kind) {
                case 0:
                    sum += ints[n] + one(n);
                    break;
                case 1:
                    ints[n] = one(n);
                    break;
                case 2:
                    sum = n / (n - n) + one(n);
                    break;
                case 3:
                    sum = (int) (5L % (long) (n - n));
                    break;
                case 4:
                    sum += ((String) object).length();
                    break;
                case 5:
                    Object[] strings = new String[n + 2];
                    strings[one(n)] = object;
                    break;
                case 6:
                    sum += new int[-n - 1].length;
                    break;
                case 7:
                    sum += new int[2][-n - 1].length;
                    break;
                case 8:
                    synchronized ((Object) null) {
                        sum += 1;
                    }
                    break;
                case 9:
                    Outer nothing = null;
                    sum += nothing.a;
                    break;
                case 10:
                    throw (RuntimeException) null;
                case 11:
                    int[] none = null;
                    sum += none.length;
                    break;
                case 12:
                    sum += Broken.value;
                    break;
                case 13:
                    long[] longs = new long[2];
                    longs[n] += one(n);
                    break;
                default:
                    sum += 2;
            }
            sum += 100;
        } catch (ArrayIndexOutOfBoundsException e) {
            sum += one(1);
        } catch (ArithmeticException | ClassCastException | NegativeArraySizeException e) {
            sum += one(2);
        } catch (RuntimeException | LinkageError e) {
            sum += one(3);
        } finally {
            sum += 7;
        }
        return sum;
    }

    static int nested(int n) {
        int sum = 0;
        for (int i = 0; i < n; i++) {
            try {
                try {
                    if (i % 2 == 0) {
                        throw new IllegalStateException("inner");
                    }
                    sum += i;
                    if (i == 7) {
                        continue;
                    }
                } finally {
                    sum += one(i) / (i % 4);
                }
            } catch (ArithmeticException e) {
                if (i == 8) {
                    break;
                }
                sum += 3;
            } catch (IllegalStateException e) {
                sum += 5;
            }
        }
        return sum;
    }

    static int resources(int n) {
        int sum = 0;
        for (int i = 0; i < n; i++) {
            try (Closed first = new Closed(i); Closed second = new Closed(i + 1)) {
                sum += first.n + second.n / (i % 2);
            } catch (RuntimeException e) {
                sum += e.getSuppressed().length;
            }
        }
        return sum;
    }

    static synchronized int locked(int n) {
        return 10 / n;
    }

    static int lock(Object lock, int n) {
        synchronized (lock) {
            synchronized (Steps.class) {
                return one(n) + 10 / n;
            }
        }
    }

    static int locks(int n) {
        int sum = 0;
        for (int i = -n; i < n; i++) {
            try {
                sum += locked(i) + lock("" + n, i - 1);
            } catch (ArithmeticException e) {
                sum++;
            }
        }
        return sum;
    }

    static long arithmetic(int n) {
        long a = n;
        double d = n;
        for (int i = 1; i < n; i++) {
            a = (a << 3) ^ (a >>> 5) + i;
            d = d / i + (float) a;
            if (Double.compare(d, a) > 0 || d != d) {
                a += (byte) i;
            } else if (a > 0L && i < n - 2) {
                a -= (char) i;
            }
        }
        return a + (long) d;
    }

    static int texts(int n) {
        int sum = 0;
        for (String text : new String[] {"a", "BB", "Aa", "c" + n, "d"}) {
            switch (text) {
                case "a", "d" -> sum += one(1);
                case "BB" -> sum += 2;
                case "Aa" -> sum += 3;
                default -> sum += text.length();
            }
        }
        return sum;
    }

    static int sparse(int n) {
        switch (n) {
            case -1000000:
                return 1;
            case 5:
                return one(n);
            case 77777:
                return 3;
            default:
                return n == 6 ? sparse(5) : 4;
        }
    }

    static int shapes(int n) {
        Shape[] shapes = {Colour.RED, Colour.GREEN, new Point(1, 2), new Point(0, 0)};
        int sum = 0;
        for (int i = 0; i < n; i++) {
            try {
                sum += shapes[i % shapes.length].sides();
                if (shapes[i % shapes.length] instanceof Point point && point.x() == 0) {
                    sum += new Point(i, 3).x();
                }
            } catch (ArithmeticException | IllegalArgumentException e) {
                sum += one(i);
            }
        }
        return sum;
    }

    static int constructors(int n) {
        int sum = 0;
        for (int i = 0; i < n; i++) {
            try {
                sum += i % 2 == 0 ? new Inner(i).b : new Inner("x".repeat(i)).b;
            } catch (RuntimeException e) {
                sum += one(i);
            }
        }
        return sum;
    }

    static int deep(int n) {
        return n + deep(n + 1);
    }

    /** What follows is in the right contexts although some calls could not be recorded. */
    static void overflows() {
        for (int i = 0; i < 3; i++) {
            try {
                sink += deep(0);
            } catch (StackOverflowError e) {
                sink += one(9) + nested(i);
            }
        }
    }

    static int lambdas(int n) {
        int[] sum = new int[1];
        IntBinaryOperator divide = (a, b) -> a / (b % 3);
        Supplier<Object> make = () -> new Inner(n);
        List<Runnable> all = new ArrayList<>();
        for (int i = 0; i < n; i++) {
            int j = i;
            all.add(() -> sum[0] += divide.applyAsInt(j, j + 1));
        }
        for (Runnable each : all) {
            try {
                each.run();
            } catch (ArithmeticException e) {
                sum[0] += make.get().equals(e) ? 1 : 2;
            }
        }
        return sum[0];
    }

    static int reflected(int n) throws Exception {
        int sum = 0;
        Method method = Steps.class.getDeclaredMethod("locked", int.class);
        for (int i = 0; i < n; i++) {
            try {
                sum += (Integer) method.invoke(null, i);
            } catch (InvocationTargetException e) {
                sum += one(i);
            }
        }
        return sum;
    }

    static int sorted(int n) {
        Map<Point, Integer> map = new TreeMap<>((a, b) -> Integer.compare(a.x(), b.x()));
        for (int i = 0; i < n; i++) {
            map.merge(new Point(i % 4, 9), i, (a, b) -> a / (b - 50));
        }
        return map.size();
    }

    static void inThread(int n) {
        for (int i = 0; i < n; i++) {
            add(locked(1) + nested(i));
        }
    }

    public static void main(String[] arguments) throws Exception {
        int n = Integer.parseInt(arguments[0]);
        long sum = 0;
        for (int kind = 0; kind < 16; kind++) {
            for (int i = 0; i < 3; i++) {
                sum = sum * 31 + implicit(kind, i == 0 ? null : i == 1 ? "text" : (Object) 1, new int[1], i);
            }
        }
        sum = sum * 31 + nested(n);
        sum = sum * 31 + resources(n);
        sum = sum * 31 + locks(3);
        sum = sum * 31 + arithmetic(n);
        sum = sum * 31 + texts(n) + sparse(5) + sparse(6) + sparse(7);
        sum = sum * 31 + shapes(n);
        sum = sum * 31 + constructors(n);
        sum = sum * 31 + lambdas(n);
        sum = sum * 31 + reflected(n);
        sum = sum * 31 + sorted(n);
        Thread[] threads = new Thread[2];
        for (int i = 0; i < threads.length; i++) {
            int rounds = n - i;
            threads[i] = new Thread(() -> inThread(rounds), "worker-" + i);
            threads[i].start();
        }
        for (Thread thread : threads) {
            thread.join();
        }
        // Its stack is small, so that there are few contexts.
        Thread overflowing = new Thread(null, Steps::overflows, "worker-3", 200_000);
        overflowing.start();
        overflowing.join();
        Thread dying = new Thread(() -> inThread(one(0) / (rounds(n) - n)), "worker-2");
        dying.setUncaughtExceptionHandler((thread, why) -> sink += one(3));
        dying.start();
        dying.join();
        System.out.println(sum + sink);
    }

    static int rounds(int n) {
        return n;
    }
}
