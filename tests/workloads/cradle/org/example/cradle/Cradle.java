package org.example.cradle;

/** Five balls of equal mass that touch: in a collision they exchange their velocities. */
final class Cradle {
    static final int BALLS = 5;
    static final int TOP = 40;

    private final Ball[] balls;

    Cradle() {
        balls = new Ball[BALLS];
        for (int i = 0; i < BALLS; i++) {
            int pivot = Canvas.WIDTH / 2 + (i - BALLS / 2) * 2 * Ball.RADIUS;
            int angle = i < 2 ? -45000 : 0;
            balls[i] = new Ball(pivot, 0xb0b8c8 - i * 0x101810, angle);
        }
    }

    void step() {
        for (int i = 0; i < BALLS; i++) {
            balls[i].swing();
        }
        for (int pass = 1; pass < BALLS; pass++) {
            for (int i = 0; i + pass < BALLS; i++) {
                collide(balls[i], balls[i + 1]);
            }
        }
    }

    private static void collide(Ball left, Ball right) {
        if (left.angle >= right.angle && left.velocity > right.velocity) {
            int velocity = left.velocity;
            left.velocity = right.velocity;
            right.velocity = velocity;
        }
    }

    void draw() {
        Canvas.clear(0x203050, 0x8090a0);
        Canvas.drawLine(60 * 256, TOP * 256, 260 * 256, TOP * 256, 1536, 0x604020);
        Canvas.drawLine(66 * 256, (TOP - 10) * 256, 266 * 256, (TOP - 10) * 256, 1280, 0x503018);
        for (int i = 0; i < BALLS; i++) {
            balls[i].drawShadow();
        }
        for (int i = 0; i < BALLS; i++) {
            balls[i].drawStrings();
        }
        for (int i = 0; i < BALLS; i++) {
            balls[i].draw();
        }
    }
}
