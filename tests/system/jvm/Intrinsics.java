import java.util.Arrays;
import java.util.Objects;

/** Calls methods that HotSpot's compilers replace, so often that they are compiled. */
public class Intrinsics {
    private static final int[] NUMBERS = {3, 1, 4, 1, 5, 9, 2, 6};
    private static int sum;

    private static int round(int i) {
        int[] numbers = Arrays.copyOf(NUMBERS, NUMBERS.length - (i & 1));
        String text = new StringBuilder().append("a").append(i & 7).toString();
        Integer boxed = Integer.valueOf(i & 63);
        int found = (text.equals("a3") ? 1 : 0) + text.compareTo("a5") + text.indexOf("5") + text.hashCode();
        int computed = Math.max(i, 7) + Math.abs(-i) + Integer.bitCount(i) + Math.addExact(i, 1);
        return numbers.length + found + computed + boxed.intValue() + Objects.checkIndex(i & 3, 4);
    }

    private static void rounds(int number) {
        for (int i = 0; i < number; i++) {
            sum += round(i);
        }
    }

    /** Its calls are compared: all classes are loaded. */
    private static void counted(int number) {
        rounds(number);
    }

    public static void main(String[] arguments) {
        rounds(10);
        counted(Integer.parseInt(arguments[0]));
        System.out.println(sum);
    }
}
