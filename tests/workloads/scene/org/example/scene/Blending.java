package org.example.scene;

/** OpenGL Blending: a solid box in two of glass, each turning another way. */
final class Blending extends Scene {
    private final Mesh inner;
    private final Mesh middle;
    private final Mesh outer;

    Blending() {
        inner = new Mesh(8, 6);
        middle = new Mesh(8, 6);
        outer = new Mesh(8, 6);
        inner.box(0, 0, 0, units(40), units(40), 0xe0c040, 0xf0f0f0, 0xc06020);
        middle.box(0, 0, 0, units(75), units(75), 0x40c060, 0x60e0a0, 0x208050);
        outer.box(0, 0, 0, units(110), units(110), 0x5080e0, 0x80b0ff, 0x3050b0);
    }

    void draw(int frame) {
        Screen.begin(0x302838, 0x080810);
        camera.draw(inner, new Rotation(-frame * 12, frame * 7), 0, 0, units(420));
        Screen.alpha(128);
        camera.draw(middle, new Rotation(frame * 8 + 60, -frame * 6), 0, 0, units(420));
        Screen.alpha(80);
        camera.draw(outer, new Rotation(frame * 3 + 120, 90), 0, 0, units(420));
    }
}
