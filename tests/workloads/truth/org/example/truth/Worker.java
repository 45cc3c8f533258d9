package org.example.truth;

/** A thread with a share of the work. */
abstract class Worker extends Thread {
    protected final int rounds;
    protected int x;

    Worker(String name, int rounds) {
        super(name);
        this.rounds = rounds;
        x = 1;
    }

    public void run() {
        for (int i = 0; i < rounds; i++) {
            x = work(x);
        }
    }

    abstract int work(int x);

    final long result() {
        try {
            join();
        } catch (InterruptedException never) {
            return 0L;
        }
        return x;
    }
}
