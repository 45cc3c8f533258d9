import static jdk.internal.org.objectweb.asm.Opcodes.*;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.function.Consumer;
import jdk.internal.org.objectweb.asm.ClassWriter;
import jdk.internal.org.objectweb.asm.Handle;
import jdk.internal.org.objectweb.asm.Label;
import jdk.internal.org.objectweb.asm.MethodVisitor;
import jdk.internal.org.objectweb.asm.Type;

/**
 * Writes classes that are valid, but that no compiler makes: a class Ugly with a main method, and classes UglyNAME, each of which has a method
 * run(int) that it calls. Arguments: the folder, and the major version of the newest classes.
 */
public class Ugly {
    static Path folder;
    static MethodVisitor main;

    /** Writes a class with `run`, and makes `main` call it with -1, 0, 1, 2 and 7. Errors are counted. */
    static void write(String name, int version, Consumer<ClassWriter> methods) throws Exception {
        name = "Ugly" + name;
        // Frames are given by the methods themselves up to version 1.6, and are computed above that.
        boolean computed = (version & 0xffff) >= V1_7;
        ClassWriter writer = new ClassWriter(computed ? ClassWriter.COMPUTE_FRAMES : ClassWriter.COMPUTE_MAXS) {
            protected String getCommonSuperClass(String a, String b) {
                return a.equals(b) ? a : "java/lang/Object";
            }
        };
        writer.visit((version & 0xffff) > V17 ? V17 : version, ACC_PUBLIC | ACC_SUPER, name, null, "java/lang/Object", null);
        methods.accept(writer);
        writer.visitEnd();
        save(name, version, writer);
        for (int argument : new int[] {-1, 0, 1, 2, 7}) {
            Label start = new Label(), end = new Label(), caught = new Label(), after = new Label();
            main.visitTryCatchBlock(start, end, caught, "java/lang/Exception");
            main.visitLabel(start);
            main.visitVarInsn(ILOAD, 1);
            main.visitIntInsn(BIPUSH, argument);
            main.visitMethodInsn(INVOKESTATIC, name, "run", "(I)I", false);
            main.visitInsn(IADD);
            main.visitVarInsn(ISTORE, 1);
            main.visitLabel(end);
            main.visitJumpInsn(GOTO, after);
            main.visitLabel(caught);
            main.visitInsn(POP);
            main.visitIincInsn(1, 1000);
            main.visitLabel(after);
        }
    }

    static void save(String name, int version, ClassWriter writer) throws Exception {
        byte[] bytes = writer.toByteArray();
        bytes[4] = (byte) (version >> 24);
        bytes[5] = (byte) (version >> 16);
        bytes[6] = (byte) ((version & 0xffff) >> 8);
        bytes[7] = (byte) version;
        Files.write(folder.resolve(name + ".class"), bytes);
    }

    static MethodVisitor run(ClassWriter writer) {
        MethodVisitor code = writer.visitMethod(ACC_PUBLIC | ACC_STATIC, "run", "(I)I", null, null);
        code.visitCode();
        return code;
    }

    static void end(MethodVisitor code) {
        code.visitMaxs(0, 0);
        code.visitEnd();
    }

    static void empty(ClassWriter writer, String name, String descriptor) {
        MethodVisitor code = writer.visitMethod(ACC_STATIC, name, descriptor, null, null);
        code.visitCode();
        code.visitInsn(RETURN);
        end(code);
    }

    /** Handlers that overlap, that cover themselves, and that begin within another one's range. */
    static void handlers(ClassWriter writer) {
        MethodVisitor code = run(writer);
        Label a = new Label(), b = new Label(), c = new Label(), d = new Label();
        Label first = new Label(), second = new Label(), end = new Label();
        code.visitTryCatchBlock(a, c, first, "java/lang/ArithmeticException");
        code.visitTryCatchBlock(b, d, second, null);
        // It covers itself: the division in it fails once more with 1.
        code.visitTryCatchBlock(first, end, second, "java/lang/ArithmeticException");
        code.visitTryCatchBlock(second, end, second, "java/lang/NullPointerException");
        code.visitInsn(ICONST_0);
        code.visitVarInsn(ISTORE, 1);
        code.visitLabel(a);
        code.visitIincInsn(1, 1);
        code.visitInsn(ICONST_5);
        code.visitVarInsn(ILOAD, 0);
        code.visitInsn(IDIV);
        code.visitInsn(POP);
        code.visitLabel(b);
        code.visitInsn(ICONST_5);
        code.visitVarInsn(ILOAD, 0);
        code.visitInsn(ICONST_1);
        code.visitInsn(ISUB);
        code.visitInsn(IDIV);
        code.visitInsn(POP);
        code.visitLabel(c);
        code.visitInsn(ICONST_5);
        code.visitVarInsn(ILOAD, 0);
        code.visitInsn(ICONST_2);
        code.visitInsn(ISUB);
        code.visitInsn(IDIV);
        code.visitVarInsn(ILOAD, 1);
        code.visitInsn(IADD);
        code.visitInsn(IRETURN);
        code.visitLabel(d);
        code.visitLabel(first);
        code.visitInsn(POP);
        code.visitIincInsn(1, 10);
        code.visitInsn(ICONST_5);
        code.visitVarInsn(ILOAD, 0);
        code.visitInsn(IDIV);
        code.visitVarInsn(ILOAD, 1);
        code.visitInsn(IADD);
        code.visitInsn(IRETURN);
        code.visitLabel(second);
        code.visitInsn(POP);
        code.visitIincInsn(1, 100);
        code.visitVarInsn(ILOAD, 1);
        code.visitIntInsn(SIPUSH, 300);
        Label done = new Label();
        code.visitJumpInsn(IF_ICMPGT, done);
        code.visitInsn(ACONST_NULL);
        code.visitInsn(ATHROW);
        code.visitLabel(done);
        code.visitVarInsn(ILOAD, 1);
        code.visitInsn(IRETURN);
        code.visitLabel(end);
        end(code);
    }

    /** The first instruction is a loop's header, with its handler there, too. */
    static void loop(ClassWriter writer) {
        MethodVisitor code = run(writer);
        Label top = new Label(), end = new Label(), throwing = new Label(), caught = new Label();
        code.visitTryCatchBlock(throwing, caught, caught, null);
        code.visitLabel(top);
        code.visitIincInsn(0, 3);
        code.visitVarInsn(ILOAD, 0);
        code.visitIntInsn(BIPUSH, 20);
        code.visitJumpInsn(IF_ICMPLT, top);
        code.visitLabel(throwing);
        code.visitInsn(ACONST_NULL);
        code.visitInsn(ATHROW);
        code.visitLabel(caught);
        code.visitInsn(POP);
        code.visitVarInsn(ILOAD, 0);
        code.visitIntInsn(BIPUSH, 40);
        code.visitJumpInsn(IF_ICMPLT, top);
        code.visitVarInsn(ILOAD, 0);
        code.visitInsn(IRETURN);
        code.visitLabel(end);
        end(code);
    }

    /** A handler that code falls into, with the same exception on the stack. */
    static void fallsIntoHandler(ClassWriter writer) {
        MethodVisitor code = run(writer);
        Label start = new Label(), end = new Label(), caught = new Label();
        code.visitTryCatchBlock(start, end, caught, "java/lang/ArithmeticException");
        code.visitLabel(start);
        code.visitInsn(ICONST_1);
        code.visitVarInsn(ILOAD, 0);
        code.visitInsn(IDIV);
        code.visitInsn(POP);
        code.visitLabel(end);
        code.visitTypeInsn(NEW, "java/lang/ArithmeticException");
        code.visitInsn(DUP);
        code.visitMethodInsn(INVOKESPECIAL, "java/lang/ArithmeticException", "<init>", "()V", false);
        code.visitLabel(caught);
        code.visitMethodInsn(INVOKEVIRTUAL, "java/lang/Object", "getClass", "()Ljava/lang/Class;", false);
        code.visitMethodInsn(INVOKEVIRTUAL, "java/lang/Class", "getName", "()Ljava/lang/String;", false);
        code.visitMethodInsn(INVOKEVIRTUAL, "java/lang/String", "length", "()I", false);
        code.visitInsn(IRETURN);
        end(code);
    }

    /** Branches, loops and objects that are left uninitialised before another constructor is called. */
    static void constructor(ClassWriter writer) {
        MethodVisitor code = run(writer);
        code.visitTypeInsn(NEW, "UglyConstructor");
        code.visitInsn(DUP);
        code.visitVarInsn(ILOAD, 0);
        code.visitMethodInsn(INVOKESPECIAL, "UglyConstructor", "<init>", "(I)V", false);
        code.visitInsn(POP);
        code.visitInsn(ICONST_3);
        code.visitInsn(IRETURN);
        end(code);
        code = writer.visitMethod(ACC_PUBLIC, "<init>", "(I)V", null, null);
        code.visitCode();
        Label other = new Label(), again = new Label(), both = new Label();
        // This object is never initialised.
        code.visitTypeInsn(NEW, "java/lang/StringBuilder");
        code.visitInsn(POP);
        code.visitLabel(again);
        code.visitIincInsn(1, 1);
        code.visitVarInsn(ILOAD, 1);
        code.visitInsn(ICONST_3);
        code.visitJumpInsn(IF_ICMPLT, again);
        code.visitVarInsn(ILOAD, 1);
        code.visitIntInsn(BIPUSH, 8);
        code.visitJumpInsn(IF_ICMPEQ, other);
        code.visitTypeInsn(NEW, "java/lang/Integer");
        code.visitInsn(POP);
        code.visitVarInsn(ALOAD, 0);
        code.visitMethodInsn(INVOKESPECIAL, "java/lang/Object", "<init>", "()V", false);
        code.visitJumpInsn(GOTO, both);
        code.visitLabel(other);
        code.visitVarInsn(ALOAD, 0);
        code.visitInsn(ICONST_0);
        code.visitMethodInsn(INVOKESPECIAL, "UglyConstructor", "<init>", "(I)V", false);
        code.visitLabel(both);
        code.visitInsn(ICONST_1);
        code.visitVarInsn(ILOAD, 1);
        code.visitIntInsn(BIPUSH, 8);
        code.visitInsn(ISUB);
        code.visitInsn(IDIV);
        code.visitInsn(POP);
        code.visitInsn(RETURN);
        end(code);
    }

    /** An object of `new` that is left uninitialised on the stack, beside another, and straight on to `super()`. */
    static void leftUninitialised(ClassWriter writer) {
        MethodVisitor code = run(writer);
        code.visitTypeInsn(NEW, "UglyLeft");
        code.visitInsn(DUP);
        code.visitVarInsn(ILOAD, 0);
        code.visitMethodInsn(INVOKESPECIAL, "UglyLeft", "<init>", "(I)V", false);
        code.visitInsn(POP);
        code.visitInsn(ICONST_4);
        code.visitInsn(IRETURN);
        end(code);
        code = writer.visitMethod(ACC_PUBLIC, "<init>", "(I)V", null, null);
        code.visitCode();
        code.visitTypeInsn(NEW, "java/lang/StringBuilder");
        code.visitInsn(POP);
        code.visitVarInsn(ALOAD, 0);
        code.visitMethodInsn(INVOKESPECIAL, "java/lang/Object", "<init>", "()V", false);
        code.visitInsn(ICONST_1);
        code.visitVarInsn(ILOAD, 1);
        code.visitInsn(IDIV);
        code.visitInsn(POP);
        code.visitInsn(RETURN);
        end(code);
    }

    /** Each slot of an uninitialised object is another one: a copy is initialised, the other copies with it. */
    static void swapped(ClassWriter writer) {
        MethodVisitor code = run(writer);
        Label start = new Label(), end = new Label(), caught = new Label();
        code.visitTryCatchBlock(start, end, caught, null);
        code.visitLabel(start);
        code.visitTypeInsn(NEW, "java/lang/IllegalStateException");
        code.visitInsn(DUP);
        code.visitVarInsn(ASTORE, 5);
        code.visitTypeInsn(NEW, "java/lang/Object");
        code.visitInsn(DUP_X1);
        code.visitInsn(SWAP);
        code.visitMethodInsn(INVOKESPECIAL, "java/lang/IllegalStateException", "<init>", "()V", false);
        code.visitMethodInsn(INVOKESPECIAL, "java/lang/Object", "<init>", "()V", false);
        code.visitVarInsn(ALOAD, 5);
        code.visitInsn(ATHROW);
        code.visitLabel(end);
        code.visitLabel(caught);
        code.visitMethodInsn(INVOKEVIRTUAL, "java/lang/Object", "getClass", "()Ljava/lang/Class;", false);
        code.visitMethodInsn(INVOKEVIRTUAL, "java/lang/Class", "getName", "()Ljava/lang/String;", false);
        code.visitMethodInsn(INVOKEVIRTUAL, "java/lang/String", "length", "()I", false);
        code.visitInsn(IRETURN);
        end(code);
    }

    /** Subroutines, one in another, one with two returns, and one that is left by a branch. */
    static void subroutines(ClassWriter writer) {
        empty(writer, "nothing", "()V");
        MethodVisitor code = run(writer);
        Label outer = new Label(), inner = new Label(), start = new Label(), end = new Label(), caught = new Label();
        Label out = new Label(), leave = new Label();
        code.visitTryCatchBlock(start, end, caught, null);
        code.visitInsn(ICONST_0);
        code.visitVarInsn(ISTORE, 1);
        code.visitLabel(start);
        code.visitJumpInsn(JSR, outer);
        code.visitInsn(ICONST_3);
        code.visitVarInsn(ILOAD, 0);
        code.visitInsn(IDIV);
        code.visitInsn(POP);
        code.visitJumpInsn(JSR, outer);
        code.visitVarInsn(ILOAD, 1);
        code.visitInsn(IRETURN);
        code.visitLabel(end);
        code.visitLabel(caught);
        code.visitVarInsn(ASTORE, 4);
        code.visitJumpInsn(JSR, outer);
        code.visitVarInsn(ALOAD, 4);
        code.visitInsn(ATHROW);
        code.visitLabel(outer);
        code.visitVarInsn(ASTORE, 2);
        code.visitIincInsn(1, 1);
        code.visitJumpInsn(JSR, inner);
        code.visitVarInsn(ILOAD, 0);
        code.visitIntInsn(BIPUSH, 7);
        code.visitJumpInsn(IF_ICMPEQ, leave);
        code.visitVarInsn(RET, 2);
        code.visitLabel(leave);
        code.visitVarInsn(ILOAD, 1);
        code.visitInsn(IRETURN);
        code.visitLabel(inner);
        code.visitVarInsn(ASTORE, 300);
        code.visitMethodInsn(INVOKESTATIC, "UglySubroutines", "nothing", "()V", false);
        code.visitIincInsn(1, 10);
        code.visitVarInsn(RET, 300);
        end(code);
    }

    /** Code that is not reached, in a class that is verified by inference: it may be what it likes. */
    static void unreached(ClassWriter writer) {
        MethodVisitor code = run(writer);
        Label end = new Label(), start = new Label(), after = new Label();
        code.visitJumpInsn(GOTO, end);
        code.visitLabel(start);
        code.visitInsn(IADD);
        code.visitInsn(ATHROW);
        code.visitLabel(after);
        code.visitInsn(NOP);
        code.visitLabel(end);
        code.visitVarInsn(ILOAD, 0);
        code.visitInsn(IRETURN);
        code.visitInsn(NOP);
        code.visitInsn(ATHROW);
        end(code);
    }

    /** A method with this number of bytes. It calls another one if it can be rewritten. */
    static void large(ClassWriter writer, int bytes) {
        empty(writer, "nothing", "()V");
        MethodVisitor code = run(writer);
        Label top = new Label();
        int length = 0;
        code.visitLabel(top);
        // Each: 3 + 1 + 3 bytes, with a branch over a call.
        for (; length + 7 + 14 <= bytes; length += 7) {
            Label over = new Label();
            code.visitVarInsn(ILOAD, 0);
            code.visitJumpInsn(IFLE, over);
            if (bytes < 20000) {
                code.visitMethodInsn(INVOKESTATIC, "UglyLarge" + bytes, "nothing", "()V", false);
            } else {
                code.visitIincInsn(0, 1);
            }
            code.visitLabel(over);
        }
        for (; length + 2 < bytes; length++) {
            code.visitInsn(NOP);
        }
        code.visitVarInsn(ILOAD, 0);
        code.visitInsn(IRETURN);
        end(code);
    }

    /** Conditional branches over 32 KB minus a few bytes. */
    static void far(ClassWriter writer) {
        MethodVisitor code = run(writer);
        Label end = new Label(), middle = new Label(), back = new Label();
        code.visitLabel(back);
        code.visitVarInsn(ILOAD, 0);
        code.visitJumpInsn(IFEQ, end);
        code.visitVarInsn(ILOAD, 0);
        code.visitIntInsn(BIPUSH, 7);
        code.visitJumpInsn(IF_ICMPEQ, end);
        code.visitJumpInsn(GOTO, middle);
        for (int i = 0; i < 16300; i++) {
            code.visitInsn(NOP);
        }
        code.visitLabel(middle);
        code.visitIincInsn(0, 2);
        code.visitVarInsn(ILOAD, 0);
        code.visitIntInsn(BIPUSH, 20);
        code.visitJumpInsn(IF_ICMPLT, back);
        for (int i = 0; i < 16300; i++) {
            code.visitInsn(NOP);
        }
        code.visitLabel(end);
        code.visitVarInsn(ILOAD, 0);
        code.visitInsn(IRETURN);
        end(code);
    }

    /** All arguments that a method may have, of the last of which the number is beyond a byte. */
    static void arguments(ClassWriter writer) {
        String descriptor = "(" + "J".repeat(127) + "I)I";
        MethodVisitor code = writer.visitMethod(ACC_PUBLIC | ACC_STATIC, "most", descriptor, null, null);
        code.visitCode();
        code.visitVarInsn(LLOAD, 252);
        code.visitInsn(L2I);
        code.visitVarInsn(ILOAD, 254);
        code.visitInsn(IDIV);
        code.visitIincInsn(254, 1000);
        code.visitVarInsn(ISTORE, 300);
        code.visitVarInsn(ILOAD, 300);
        code.visitVarInsn(ILOAD, 254);
        code.visitInsn(IADD);
        code.visitInsn(IRETURN);
        end(code);
        code = run(writer);
        for (int i = 0; i < 127; i++) {
            code.visitLdcInsn((long) i);
        }
        code.visitVarInsn(ILOAD, 0);
        code.visitMethodInsn(INVOKESTATIC, "UglyArguments", "most", descriptor, false);
        code.visitInsn(IRETURN);
        end(code);
    }

    /** More local variables than can be added to. */
    static void locals(ClassWriter writer) {
        MethodVisitor code = run(writer);
        code.visitVarInsn(ILOAD, 0);
        code.visitVarInsn(ISTORE, 65534);
        code.visitVarInsn(ILOAD, 65534);
        code.visitInsn(IRETURN);
        end(code);
    }

    /** Switches at each alignment, with targets before them and at themselves' neighbours. */
    static void switches(ClassWriter writer) {
        MethodVisitor code = run(writer);
        Label end = new Label();
        code.visitInsn(ICONST_0);
        code.visitVarInsn(ISTORE, 1);
        for (int i = 0; i < 5; i++) {
            Label before = new Label(), after = new Label(), third = new Label();
            code.visitInsn(NOP);
            code.visitLabel(before);
            code.visitIincInsn(1, 1);
            code.visitVarInsn(ILOAD, 1);
            if (i % 2 == 0) {
                code.visitTableSwitchInsn(-1, 2, after, before, third, before, after);
            } else {
                code.visitLookupSwitchInsn(after, new int[] {Integer.MIN_VALUE, 4, Integer.MAX_VALUE}, new Label[] {third, before, after});
            }
            code.visitLabel(third);
            code.visitIincInsn(1, 5);
            code.visitLabel(after);
        }
        code.visitVarInsn(ILOAD, 1);
        code.visitVarInsn(ILOAD, 0);
        code.visitInsn(IDIV);
        code.visitInsn(IRETURN);
        end(code);
    }

    /** A monitor that is entered twice and left by an exception that a handler over the exit catches, as javac does it. */
    static void monitors(ClassWriter writer) {
        MethodVisitor code = run(writer);
        Label start = new Label(), end = new Label(), caught = new Label(), all = new Label();
        code.visitTryCatchBlock(start, end, caught, null);
        code.visitTryCatchBlock(caught, all, caught, null);
        code.visitLdcInsn(Type.getObjectType("UglyMonitors"));
        code.visitInsn(DUP);
        code.visitVarInsn(ASTORE, 1);
        code.visitInsn(MONITORENTER);
        code.visitLabel(start);
        code.visitVarInsn(ALOAD, 1);
        code.visitInsn(MONITORENTER);
        code.visitInsn(ICONST_2);
        code.visitVarInsn(ILOAD, 0);
        code.visitVarInsn(ALOAD, 1);
        code.visitInsn(MONITOREXIT);
        code.visitInsn(IDIV);
        code.visitVarInsn(ALOAD, 1);
        code.visitInsn(MONITOREXIT);
        code.visitLabel(end);
        code.visitInsn(IRETURN);
        code.visitLabel(caught);
        code.visitVarInsn(ASTORE, 2);
        code.visitVarInsn(ALOAD, 1);
        code.visitInsn(MONITOREXIT);
        code.visitLabel(all);
        code.visitVarInsn(ALOAD, 2);
        code.visitInsn(ATHROW);
        end(code);
    }

    /** A constant that a method computes, which throws once. */
    static void dynamic(ClassWriter writer) {
        String descriptor = "(Ljava/lang/invoke/MethodHandles$Lookup;Ljava/lang/String;Ljava/lang/Class;)I";
        MethodVisitor code = writer.visitMethod(ACC_PUBLIC | ACC_STATIC, "compute", descriptor, null, null);
        code.visitCode();
        code.visitIntInsn(BIPUSH, 42);
        code.visitInsn(IRETURN);
        end(code);
        code = run(writer);
        Handle handle = new Handle(H_INVOKESTATIC, "UglyDynamic", "compute", descriptor, false);
        code.visitLdcInsn(new jdk.internal.org.objectweb.asm.ConstantDynamic("value", "I", handle));
        code.visitVarInsn(ILOAD, 0);
        code.visitInsn(IDIV);
        code.visitInsn(IRETURN);
        end(code);
    }

    /** A division, in classes of all versions. */
    static void divide(ClassWriter writer) {
        MethodVisitor code = run(writer);
        code.visitIntInsn(BIPUSH, 9);
        code.visitVarInsn(ILOAD, 0);
        code.visitInsn(IDIV);
        code.visitInsn(IRETURN);
        end(code);
    }

    public static void main(String[] arguments) throws Exception {
        folder = Path.of(arguments[0]);
        int newest = Integer.parseInt(arguments[1]);
        ClassWriter writer = new ClassWriter(ClassWriter.COMPUTE_FRAMES);
        writer.visit(V11, ACC_PUBLIC | ACC_SUPER, "Ugly", null, "java/lang/Object", null);
        main = writer.visitMethod(ACC_PUBLIC | ACC_STATIC, "main", "([Ljava/lang/String;)V", null, null);
        main.visitCode();
        main.visitInsn(ICONST_0);
        main.visitVarInsn(ISTORE, 1);
        write("Handlers", V1_4, Ugly::handlers);
        write("NewHandlers", newest, Ugly::handlers);
        write("Loop", V1_4, Ugly::loop);
        write("NewLoop", newest, Ugly::loop);
        write("Falls", V1_4, Ugly::fallsIntoHandler);
        write("NewFalls", newest, Ugly::fallsIntoHandler);
        write("Constructor", newest, Ugly::constructor);
        write("Left", newest, Ugly::leftUninitialised);
        write("Swapped", newest, Ugly::swapped);
        write("Subroutines", V1_4, Ugly::subroutines);
        write("Unreached", V1_4, Ugly::unreached);
        for (int bytes : new int[] {8000, 65535}) {
            write("Large" + bytes, newest, to -> large(to, bytes));
        }
        write("Far", V1_4, Ugly::far);
        write("NewFar", newest, Ugly::far);
        write("Arguments", newest, Ugly::arguments);
        write("Locals", newest, Ugly::locals);
        write("Switches", V1_4, Ugly::switches);
        write("NewSwitches", newest, Ugly::switches);
        write("Monitors", newest, Ugly::monitors);
        write("Dynamic", newest, Ugly::dynamic);
        for (int version = 45; version <= newest; version++) {
            // Version 45.0 has another format of code.
            write("Version" + version, version == 45 ? V1_1 : version, Ugly::divide);
        }
        main.visitFieldInsn(GETSTATIC, "java/lang/System", "out", "Ljava/io/PrintStream;");
        main.visitVarInsn(ILOAD, 1);
        main.visitMethodInsn(INVOKEVIRTUAL, "java/io/PrintStream", "println", "(I)V", false);
        main.visitInsn(RETURN);
        end(main);
        save("Ugly", V11, writer);
    }
}
