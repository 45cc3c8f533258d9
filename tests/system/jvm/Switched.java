import java.io.IOException;
import java.lang.reflect.Method;

/**
 * Works in phases between which counting is switched: by itself, or, with an argument, by whoever writes a line when it has printed its process.
 * Without a switch all of it is counted.
 */
public class Switched {
    static final int[] SINK = new int[1];

    static Method setCounting;

    static int leaf(int n) {
        return n % 3 == 0 ? n : n + SINK[0];
    }

    static void phase(int rounds) {
        for (int n = 0; n < rounds; n++) {
            SINK[0] = leaf(n);
        }
    }

    static void before() {
        phase(300);
    }

    static void counted() throws InterruptedException {
        phase(20_000);
        Thread worker = new Thread(() -> phase(500), "worker");
        worker.start();
        worker.join();
        try {
            failing(7);
        } catch (IllegalStateException expected) {
            phase(2);
        }
    }

    static int failing(int n) {
        int before = leaf(n);
        if (n > 0) {
            throw new IllegalStateException();
        }
        return before + leaf(n);
    }

    static void after() {
        phase(700);
    }

    /** Is called while nothing is counted, and so is what calls it. */
    static int inner(int n) {
        phase(n);
        return leaf(n);
    }

    static int outer(int n) throws Exception {
        int before = leaf(n);
        on();
        int result = inner(before);
        off();
        return leaf(result);
    }

    static void on() throws Exception {
        if (setCounting != null) {
            setCounting.invoke(null, true);
        }
    }

    static void off() throws Exception {
        if (setCounting != null) {
            setCounting.invoke(null, false);
        }
    }

    static void pause() throws IOException {
        System.out.println(ProcessHandle.current().pid());
        System.in.read();
    }

    public static void main(String[] arguments) throws Exception {
        before();
        if (arguments.length > 0) {
            pause();
            counted();
            pause();
            after();
            return;
        }
        try {
            setCounting = Class.forName("java.lang.VaridTree").getMethod("setCounting", boolean.class);
        } catch (ReflectiveOperationException notSwitched) {
            setCounting = null;
        }
        on();
        counted();
        off();
        after();
        outer(11);
        after();
        System.out.println(SINK[0]);
    }
}
