package org.example.corner;

/** One of those that are made. */
final class Broken extends Failure {
    Broken(int code) {
        super();
        this.code = Work.stir(20 + code % 8) + code;
        int sum = 0;
        for (int i = 0; i < 3; i++) {
            sum = sum * 31 + Work.stir(code % 16 + i);
            sum = sum ^ this.code + i;
        }
        again = sum;
    }
}
