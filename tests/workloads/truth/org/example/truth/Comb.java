package org.example.truth;

/** Calls another implementation through the interface. */
final class Comb implements Shape {
    private Shape tooth;

    Comb() {
        tooth = new Square();
    }

    public int area(int side) {
        int sum = 0;
        for (int i = 0; i < 3; i++) {
            sum += tooth.area(side + i);
        }
        return sum;
    }
}
