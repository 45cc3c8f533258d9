package org.example.truth;

/** A leaf. */
final class Square implements Shape {
    public int area(int side) {
        return side * side;
    }
}
