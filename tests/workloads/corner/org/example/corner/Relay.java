package org.example.corner;

/** Runs what it inherits. */
final class Relay extends Sprinter {
    Relay(int size) {
        super(size);
    }
}
