package org.example.faults;

/** A thread that reads through null. */
final class Faulter extends Thread {
    final int rounds;
    private long sum;

    Faulter(int rounds) {
        super("faulter");
        this.rounds = rounds;
    }

    public void run() {
        for (int i = 0; i < rounds; i++) {
            sum = sum + Faults.called(null) + Faults.element(null);
        }
    }

    long result() {
        try {
            join();
        } catch (InterruptedException never) {
            return 0L;
        }
        return sum;
    }
}
