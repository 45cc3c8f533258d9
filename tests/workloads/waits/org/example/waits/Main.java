package org.example.waits;

/** Threads that wait: for a time, in a pipe, for a monitor. */
final class Main {
    static long run(int rounds) {
        return waits(rounds);
    }

    /** A round: 20 ms in nap20; 60 ms in nap60, with the monitor that the rival waits for; then the reader gets its byte. */
    public static long waits(int rounds) {
        Door door = new Door();
        Rival rival = new Rival(door, rounds);
        Reader reader = new Reader(rounds);
        rival.start();
        reader.start();
        long sum = 0L;
        for (int i = 0; i < rounds; i++) {
            sum = sum + Naps.nap20();
            sum = sum + door.nap60();
            Native.put();
        }
        return (sum * 31L + rival.result()) * 31L + reader.result();
    }
}
