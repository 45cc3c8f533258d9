/** Virtual threads that compute, and wait in between with three frames below them. usage: Virtual SECONDS */
public final class Virtual {
    private static final int THREADS = 2;
    /** What they compute. */
    static volatile long computed;

    private static long compute() {
        long sum = 0;
        for (int i = 0; i < 200_000; i++) {
            sum += sum * 31 + i;
        }
        return sum;
    }

    private static void inner(long end) throws InterruptedException {
        while (System.nanoTime() < end) {
            computed += compute();
            Thread.sleep(1);
        }
    }

    private static void middle(long end) throws InterruptedException {
        inner(end);
    }

    private static void outer(long end) {
        try {
            middle(end);
        } catch (InterruptedException exception) {
            throw new IllegalStateException(exception);
        }
    }

    public static void main(String[] arguments) throws ReflectiveOperationException, InterruptedException {
        long end = System.nanoTime() + Long.parseLong(arguments[0]) * 1_000_000_000L;
        Thread[] threads = new Thread[THREADS];
        for (int i = 0; i < THREADS; i++) {
            Runnable body = () -> outer(end);
            // JDK 17 compiles this.
            threads[i] = (Thread) Thread.class.getMethod("startVirtualThread", Runnable.class).invoke(null, body);
        }
        for (Thread thread : threads) {
            thread.join();
        }
    }
}
