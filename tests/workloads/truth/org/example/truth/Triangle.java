package org.example.truth;

/** Calls a static method. */
final class Triangle implements Shape {
    public int area(int side) {
        return half(side * side);
    }

    static int half(int area) {
        return area / 2;
    }
}
