package org.example.alike;

final class Torn extends RuntimeException {
    Torn(String message) {
        super(message);
    }
}
