package org.example.cradle;

/** What libcradle.so draws. Coordinates and lengths are pixels times 256, colours 0xRRGGBB. */
final class Canvas {
    static final int WIDTH = 320;
    static final int HEIGHT = 240;

    /** Fills everything with a gradient from top to bottom. */
    static native void clear(int top, int bottom);

    /** A filled disc, lit from the upper left. */
    static native void drawCircle(int x, int y, int radius, int color);

    static native void drawLine(int x0, int y0, int x1, int y1, int width, int color);

    /** A checksum of the pixels. */
    static native int checksum();
}
