import java.util.ArrayList;
import java.util.List;
import java.util.function.IntUnaryOperator;

/** Calls of all kinds, whose calling contexts do not depend on time. */
public class Contexts {
    interface Shape {
        int area();
    }

    static final class Square implements Shape {
        final int side;

        Square(int side) {
            this.side = checked(side);
        }

        public int area() {
            return product(side, side);
        }
    }

    static final class Circle implements Shape {
        public int area() {
            return product(3, 4);
        }
    }

    static class Lazy {
        static int value = initial();

        static int initial() {
            return fibonacci(4);
        }
    }

    static int checked(int side) {
        if (side < 0) {
            throw new IllegalArgumentException();
        }
        return side;
    }

    static int product(int a, int b) {
        return a * b;
    }

    static int fibonacci(int n) {
        return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
    }

    static boolean isEven(int n) {
        return n == 0 || isOdd(n - 1);
    }

    static boolean isOdd(int n) {
        return n != 0 && isEven(n - 1);
    }

    static int thrown(int depth) {
        if (depth == 0) {
            throw new IllegalStateException("bottom");
        }
        try {
            return thrown(depth - 1) + product(1, depth);
        } finally {
            product(2, depth);
        }
    }

    static int caught(int n) {
        int sum = 0;
        for (int i = 0; i < n; i++) {
            try {
                sum += i % 3 == 0 ? thrown(i) : new Square(i % 2 == 0 ? i : -i).area();
            } catch (IllegalStateException e) {
                sum += product(i, 1);
            } catch (IllegalArgumentException e) {
                sum -= product(i, 2);
            }
        }
        Object nothing = n < 0 ? "" : null;
        try {
            sum += nothing.hashCode();
        } catch (NullPointerException e) {
            sum += product(sum, 1);
        }
        int[] few = new int[2];
        try {
            few[n] = product(n, n);
        } catch (ArrayIndexOutOfBoundsException e) {
            sum += fibonacci(3);
        }
        return sum;
    }

    static int applied(IntUnaryOperator operator, int n) {
        int sum = 0;
        for (int i = 0; i < n; i++) {
            sum += operator.applyAsInt(i);
        }
        return sum;
    }

    static int shapes(int n) {
        List<Shape> shapes = new ArrayList<>();
        for (int i = 0; i < n; i++) {
            shapes.add(i % 3 == 0 ? new Circle() : new Square(i));
        }
        int[] sum = new int[1];
        shapes.forEach(shape -> sum[0] += shape.area());
        for (Shape shape : shapes) {
            sum[0] += shape.area();
        }
        return sum[0];
    }

    private static int shared;

    static synchronized void locked(int n) {
        shared += product(n, 1);
    }

    static void inThread(int n) {
        for (int i = 0; i < n; i++) {
            locked(i);
            synchronized (Contexts.class) {
                shared += fibonacci(i % 5);
            }
        }
    }

    static int switched(int n) {
        switch (n % 5) {
            case 0:
                return product(n, 2);
            case 1:
                return fibonacci(3);
            case 3:
                return isEven(n) ? 1 : 0;
            default:
                return Lazy.value;
        }
    }

    public static void main(String[] arguments) throws Exception {
        int n = Integer.parseInt(arguments[0]);
        long sum = fibonacci(10) + caught(n % 40 + 10) + shapes(n % 30 + 5);
        sum += isEven(21) ? 1 : 2;
        sum += applied(x -> product(x, 2), 10) + applied(Contexts::fibonacci, 6);
        for (int i = 0; i < n; i++) {
            sum += switched(i);
        }
        Thread[] threads = new Thread[3];
        for (int i = 0; i < threads.length; i++) {
            int length = 10 * (i + 1);
            threads[i] = new Thread(() -> inThread(length), "worker-" + i);
            threads[i].start();
        }
        for (Thread thread : threads) {
            thread.join();
        }
        Object made = Contexts.class.getDeclaredMethod("product", int.class, int.class).invoke(null, 6, 7);
        System.out.println(sum + shared + (Integer) made);
        if (arguments.length > 1) {
            System.out.println(ProcessHandle.current().pid());
            while (true) {
                sum += switched((int) sum & 1023);
            }
        }
    }
}
