package org.example.waits;

/** Wants the monitor a few times a round. */
final class Rival extends Thread {
    private final Door door;
    private final int rounds;

    Rival(Door door, int rounds) {
        super("rival");
        this.door = door;
        this.rounds = rounds;
    }

    public void run() {
        for (int i = 0; i < rounds; i++) {
            door.pass();
            Native.sleep(5);
        }
    }

    long result() {
        try {
            join();
        } catch (InterruptedException never) {
            return 0L;
        }
        return door.passed();
    }
}
