package org.example.waits;

/** Takes a byte a round. */
final class Reader extends Thread {
    private final int rounds;
    private int taken;

    Reader(int rounds) {
        super("reader");
        this.rounds = rounds;
    }

    public void run() {
        for (int i = 0; i < rounds; i++) {
            taken = taken + fetch();
        }
    }

    static int fetch() {
        return Native.take();
    }

    long result() {
        try {
            join();
        } catch (InterruptedException never) {
            return 0L;
        }
        return taken;
    }
}
