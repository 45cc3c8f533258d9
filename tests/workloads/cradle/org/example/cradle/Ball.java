package org.example.cradle;

/** A pendulum: its angle and angular velocity, in radians and radians a step times 65536. */
final class Ball {
    static final int RADIUS = 14;
    static final int LENGTH = 150;
    static final int GRAVITY = 11;

    private final int pivot;
    private final int color;
    int angle;
    int velocity;

    Ball(int pivot, int color, int angle) {
        this.pivot = pivot;
        this.color = color;
        this.angle = angle;
    }

    void swing() {
        velocity -= FixedPoint.mul(GRAVITY, FixedPoint.sin(angle));
        angle += velocity;
    }

    int x() {
        return pivot * 256 + FixedPoint.mul(LENGTH * 256, FixedPoint.sin(angle));
    }

    int y() {
        return (Cradle.TOP + LENGTH) * 256 - FixedPoint.mul(LENGTH * 256, FixedPoint.ONE - FixedPoint.cos(angle));
    }

    void drawStrings() {
        Canvas.drawLine(pivot * 256, Cradle.TOP * 256, x(), y(), 384, 0xd0d0d0);
        Canvas.drawLine((pivot + 6) * 256, (Cradle.TOP - 10) * 256, x(), y(), 256, 0x909090);
    }

    void drawShadow() {
        Canvas.drawCircle(x() + 5 * 256, y() + 7 * 256, RADIUS * 256, 0x303038);
    }

    void draw() {
        Canvas.drawCircle(x(), y(), RADIUS * 256, color);
    }
}
