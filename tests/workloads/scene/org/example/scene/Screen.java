package org.example.scene;

/** What libscene.so draws. Coordinates are pixels times 256, colours 0xRRGGBB. */
final class Screen {
    static final int WIDTH = 320;
    static final int HEIGHT = 240;

    /** An empty scene before a gradient from top to bottom; opaque, without fog. */
    static native void begin(int top, int bottom);

    /** What is drawn from now on fades into a color between two distances. */
    static native void fog(int near, int far, int color);

    /** What is drawn from now on covers so many parts of 256 of what is behind it. */
    static native void alpha(int alpha);

    /** A triangle that is seen if its corners go clockwise; each third number is 2^36 over the distance. */
    static native void triangle(int ax, int ay, int az, int bx, int by, int bz, int cx, int cy, int cz, int color);

    /** A checksum of the pixels. */
    static native int checksum();
}
