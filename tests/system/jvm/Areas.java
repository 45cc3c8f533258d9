/** The example of the paper on JP2 (Sarimbekov et al., figure 1), in a class file for each of its classes. */
public class Areas {
    interface Shape {
        float area();
    }

    static class Square implements Shape {
        final float side;

        Square(float side) {
            this.side = side;
        }

        public float area() {
            return side * side;
        }
    }

    static class Composite implements Shape {
        final Shape first, second;

        Composite(Shape first, Shape second) {
            this.first = first;
            this.second = second;
        }

        public float area() {
            float a = first.area();
            float b = second.area();
            return a + b;
        }
    }

    public static void main(String[] arguments) {
        Shape square = new Square(2);
        Shape composite = new Composite(square, square);
        sum(new Shape[] {square, composite, square});
    }

    static float sum(Shape[] shapes) {
        float sum = 0;
        int i = 0;
        while (true) {
            if (i >= shapes.length) {
                return sum;
            } else {
                sum += shapes[i++].area();
            }
        }
    }
}
