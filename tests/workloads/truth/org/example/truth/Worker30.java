package org.example.truth;

/** Does 30 hundredths of the workers' work. */
final class Worker30 extends Worker {
    Worker30(int rounds) {
        super("worker-30", rounds);
    }

    int work(int x) {
        for (int n = 3000; n > 0; n--) {
            x ^= x << 13;
            x ^= x >>> 17;
            x ^= x << 5;
        }
        return x;
    }
}
