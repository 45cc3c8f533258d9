package org.example.cradle;

/** Newton's cradle: little physics, much drawing in a native library. */
public class Main {
    static final int STEPS_PER_FRAME = 48;
    static final int FRAMES = 300;

    /** Draws so many frames, in films of 300 that are alike; the checksum of all of them. */
    public static long run(int frames) {
        Cradle cradle = null;
        long sum = 0L;
        for (int frame = 0; frame < frames; frame++) {
            if (frame % FRAMES == 0) {
                cradle = new Cradle();
            }
            for (int step = 0; step < STEPS_PER_FRAME; step++) {
                cradle.step();
            }
            cradle.draw();
            sum = sum * 31L + Canvas.checksum();
        }
        return sum;
    }
}
