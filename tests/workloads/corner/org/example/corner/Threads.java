package org.example.corner;

/** Threads of three classes, each for a moment, beside the main one's own work. */
final class Threads {
    static int round(int i) {
        Runner sprinter = new Sprinter(200 + i % 5 * 40);
        Runner relay = new Relay(160 + i % 3 * 60);
        Runner stacker = new Stacker(24 + i % 7);
        sprinter.start();
        relay.start();
        stacker.start();
        int sum = Work.stir(3000);
        return sum + sprinter.result() + relay.result() * 3 + stacker.result() * 5;
    }
}
