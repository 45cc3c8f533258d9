package org.example.truth;

/** Counts on the counter of another thread. */
final class CountingWorker extends Thread {
    private final Counter counter;
    private final int rounds;

    CountingWorker(Counter counter, int rounds) {
        super("counting");
        this.counter = counter;
        this.rounds = rounds;
    }

    public void run() {
        for (int i = 0; i < rounds; i++) {
            counter.increments(1000);
        }
    }
}
