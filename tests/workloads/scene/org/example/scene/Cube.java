package org.example.scene;

/** OpenGL Cube: twenty-seven boxes that turn as one. */
final class Cube extends Scene {
    private final Mesh mesh;

    Cube() {
        mesh = new Mesh(27 * 8, 27 * 6);
        for (int i = 0; i < 27; i++) {
            int x = units(66 * (i % 3 - 1));
            int y = units(66 * (i / 3 % 3 - 1));
            int z = units(66 * (i / 9 - 1));
            mesh.box(x, y, z, units(30), units(30), 0xd04030, 0xf0e0a0 - i * 0x020304, 0x3060c0 + i * 0x020200);
        }
    }

    void draw(int frame) {
        Screen.begin(0x101820, 0x405060);
        camera.draw(mesh, new Rotation(frame * 9 + 100, frame * 5 + 80), 0, 0, units(420));
    }
}
