package org.example.scene;

/** 0xBench's 3D, through a renderer in software: geometry and light here, triangles in a native library. */
public class Main {
    static final int FRAMES = 12;

    /** Draws so many frames of each scene, in films of 12 that are alike; the checksum of all of them. */
    public static long run(int frames) {
        Scene cube = new Cube();
        Scene blending = new Blending();
        Scene fog = new Fog();
        Scene teapot = new Teapot();
        long sum = 0L;
        for (int frame = 0; frame < frames; frame++) {
            sum = sum * 31L + shown(cube, frame);
            sum = sum * 31L + shown(blending, frame);
            sum = sum * 31L + shown(fog, frame);
            sum = sum * 31L + shown(teapot, frame);
        }
        return sum;
    }

    public static long cube(int frames) {
        return film(new Cube(), frames);
    }

    public static long blending(int frames) {
        return film(new Blending(), frames);
    }

    public static long fog(int frames) {
        return film(new Fog(), frames);
    }

    public static long teapot(int frames) {
        return film(new Teapot(), frames);
    }

    private static long film(Scene scene, int frames) {
        long sum = 0L;
        for (int frame = 0; frame < frames; frame++) {
            sum = sum * 31L + shown(scene, frame);
        }
        return sum;
    }

    private static int shown(Scene scene, int frame) {
        scene.draw(frame % FRAMES);
        return Screen.checksum();
    }
}
