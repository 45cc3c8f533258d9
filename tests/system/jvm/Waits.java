/** Says that it runs, and waits for the end of its input. */
public class Waits {
    public static void main(String[] none) throws Exception {
        System.out.println("\nready");
        System.out.flush();
        while (System.in.read() >= 0) {
        }
    }
}
