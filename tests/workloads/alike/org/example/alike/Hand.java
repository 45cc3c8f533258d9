package org.example.alike;

class Hand {
    int move(int x, int times) {
        return x + times;
    }
}
