package org.example.scene;

/** Flying Teapot: a body from the lathe with a bent spout and a handle, in flight. */
final class Teapot extends Scene {
    static final int SIDES = 16;
    static final int AROUND = 8;
    static final int WHITE = 0xe8e4d8;
    static final int BLUE = 0x4868b0;

    private final Mesh mesh;

    Teapot() {
        mesh = new Mesh(512, 512);
        lathe(0, 0, 50, 0, 90, 0, 2, BLUE);
        lathe(90, 0, 150, 40, 120, 100, 5, WHITE);
        lathe(120, 100, 105, 130, 72, 134, 4, BLUE);
        lathe(72, 134, 50, 160, 10, 162, 4, WHITE);
        lathe(10, 162, 34, 182, 0, 188, 3, BLUE);
        tube(110, 40, 175, 35, 200, 140, 26, 12, 6);
        tube(-92, 112, -260, 120, -118, 34, 11, 11, 8);
    }

    /** A point of a curve from p to r that q draws towards itself: `at` of `steps`. */
    private static int curve(int p, int q, int r, int at, int steps) {
        int rest = steps - at;
        return units(p * rest * rest + 2 * q * at * rest + r * at * at) / (steps * steps);
    }

    /** A surface of revolution: radius and height go along a curve. */
    private void lathe(int r0, int y0, int r1, int y1, int r2, int y2, int steps, int rgb) {
        int first = mesh.points;
        for (int step = 0; step <= steps; step++) {
            int radius = curve(r0, r1, r2, step, steps);
            int height = curve(y0, y1, y2, step, steps) - units(90);
            for (int side = 0; side < SIDES; side++) {
                int angle = side * Fixed.TURN / SIDES;
                mesh.point(Fixed.mul(radius, Fixed.cos(angle)), height, Fixed.mul(radius, Fixed.sin(angle)));
            }
        }
        for (int step = 0; step < steps; step++) {
            for (int side = 0; side < SIDES; side++) {
                int here = first + step * SIDES + side;
                int beside = first + step * SIDES + (side + 1) % SIDES;
                mesh.face(here, here + SIDES, beside + SIDES, beside, rgb);
            }
        }
    }

    /** A tube along a curve in the plane of spout and handle. */
    private void tube(int x0, int y0, int x1, int y1, int x2, int y2, int thick, int thin, int steps) {
        int first = mesh.points;
        for (int step = 0; step <= steps; step++) {
            int x = curve(x0, x1, x2, step, steps);
            int y = curve(y0, y1, y2, step, steps) - units(90);
            long dx = (x1 - x0) * (steps - step) + (x2 - x1) * step;
            long dy = (y1 - y0) * (steps - step) + (y2 - y1) * step;
            int length = Fixed.root(dx * dx + dy * dy);
            int radius = units(thick * (steps - step) + thin * step) / steps;
            for (int side = 0; side < AROUND; side++) {
                int angle = side * Fixed.TURN / AROUND;
                int out = Fixed.mul(radius, Fixed.cos(angle));
                mesh.point(x - (int) (out * dy / length), y + (int) (out * dx / length), Fixed.mul(radius, Fixed.sin(angle)));
            }
        }
        for (int step = 0; step < steps; step++) {
            for (int side = 0; side < AROUND; side++) {
                int here = first + step * AROUND + side;
                int beside = first + step * AROUND + (side + 1) % AROUND;
                mesh.face(here, beside, beside + AROUND, here + AROUND, WHITE);
            }
        }
    }

    void draw(int frame) {
        Screen.begin(0x60a0e0, 0xd0e8f8);
        int x = Fixed.sin(frame * 11);
        int y = Fixed.sin(frame * 17 + 200) / 2;
        int z = units(560) + Fixed.cos(frame * 7);
        camera.draw(mesh, new Rotation(frame * 13 + 40, 940 - Fixed.sin(frame * 9) / 1024), x, y, z);
    }
}
