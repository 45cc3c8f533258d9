package org.example.alike;

final class Green extends Made {
    Green(int seed) {
        super(seed);
    }
}
