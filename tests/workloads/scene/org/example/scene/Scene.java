package org.example.scene;

/** Something that is drawn anew in each frame. */
abstract class Scene {
    final Camera camera;

    Scene() {
        camera = new Camera();
    }

    abstract void draw(int frame);

    static int units(int hundredths) {
        return hundredths * Fixed.ONE / 100;
    }
}
