package org.example.scene;

/** OpenGL Fog: an alley of pillars that comes nearer. */
final class Fog extends Scene {
    static final int ROWS = 8;

    private final Mesh pillar;

    Fog() {
        pillar = new Mesh(8, 6);
        pillar.box(0, 0, 0, units(35), units(150), 0xa08060, 0xc0b0a0, 0x806040);
    }

    void draw(int frame) {
        Screen.begin(0x9098a0, 0xa0a8b0);
        Screen.fog(units(300), units(1700), 0x98a0a8);
        Rotation upright = new Rotation(frame * 4, 0);
        for (int row = ROWS - 1; row >= 0; row--) {
            int distance = units(300 + row * 200 - frame * 10);
            camera.draw(pillar, upright, -units(130), 0, distance);
            camera.draw(pillar, upright, units(130), 0, distance);
        }
    }
}
