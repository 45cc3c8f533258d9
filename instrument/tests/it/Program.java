import java.lang.reflect.InvocationTargetException;

/** Calls whose contexts and counts are known. */
public class Program {
    static int depth(int n) {
        return n == 0 ? 0 : 1 + depth(n - 1);
    }

    static int fails(int[] array, int index) {
        int before = array.length;
        int value = array[index];
        return before + value;
    }

    static int guarded(int index) {
        int[] array = {1, 2, 3};
        try {
            return fails(array, index);
        } catch (ArrayIndexOutOfBoundsException e) {
            return -1;
        }
    }

    /** An exception is thrown and caught in one method, in the middle of a block. */
    static int divide(int by) {
        int sum = 1;
        try {
            sum += 2;
            sum += 10 / by;
            sum += 4;
        } catch (ArithmeticException e) {
            sum = 0;
        }
        return sum;
    }

    static class Base {
        final int value;

        Base(int value) {
            if (value < 0) {
                throw new IllegalArgumentException();
            }
            this.value = value;
        }
    }

    static class Derived extends Base {
        Derived(int value) {
            super(value > 100 ? 100 : value);
        }

        int get() {
            return value;
        }
    }

    static class Initialised {
        static int value = start();

        static int start() {
            return 5;
        }
    }

    interface Shape {
        int area();
    }

    static class Square implements Shape {
        public int area() {
            return 4;
        }
    }

    static class Circle implements Shape {
        public int area() {
            return 3;
        }
    }

    static int polymorphic(Shape[] shapes) {
        int sum = 0;
        for (Shape shape : shapes) {
            sum += shape.area();
        }
        return sum;
    }

    static int choose(int n) {
        switch (n) {
            case 1:
                return 10;
            case 2:
                return 20;
            case 1000:
                return 30;
            default:
                return 0;
        }
    }

    static synchronized void reflected() {
        throw new IllegalStateException();
    }

    static void work() {
        for (int i = 0; i < 3; i++) {
            depth(i);
        }
    }

    static int hot() {
        int sum = 0;
        for (int i = 0; i < 300_000; i++) {
            sum += leaf(i);
        }
        return sum;
    }

    static int leaf(int i) {
        return i & 1;
    }

    public static void main(String[] arguments) throws Exception {
        depth(2);
        for (int i = 0; i < 5; i++) {
            guarded(i);
        }
        divide(0);
        divide(5);
        new Derived(7).get();
        try {
            new Derived(-1);
        } catch (IllegalArgumentException e) {
            depth(0);
        }
        int value = Initialised.value;
        polymorphic(new Shape[] {new Square(), new Circle(), new Square()});
        choose(1);
        choose(1000);
        choose(3);
        try {
            Program.class.getDeclaredMethod("reflected").invoke(null);
        } catch (InvocationTargetException e) {
            depth(0);
        }
        Thread thread = new Thread() {
            @Override
            public void run() {
                work();
            }
        };
        thread.start();
        thread.join();
        hot();
        Far.loop(2);
    }
}
