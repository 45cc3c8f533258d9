package org.example.alike;

final class Blue extends Made {
    Blue(int seed) {
        super(seed);
    }
}
