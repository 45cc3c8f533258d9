package org.example.truth;

/** Does 50 hundredths of the workers' work. */
final class Worker50 extends Worker {
    Worker50(int rounds) {
        super("worker-50", rounds);
    }

    int work(int x) {
        for (int n = 5000; n > 0; n--) {
            x ^= x << 13;
            x ^= x >>> 17;
            x ^= x << 5;
        }
        return x;
    }
}
