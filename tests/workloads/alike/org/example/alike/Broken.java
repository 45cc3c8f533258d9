package org.example.alike;

final class Broken extends RuntimeException {
    Broken(String message) {
        super(message);
    }
}
