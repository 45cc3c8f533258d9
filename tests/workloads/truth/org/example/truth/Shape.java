package org.example.truth;

/** What is called through an interface. */
interface Shape {
    int area(int side);
}
