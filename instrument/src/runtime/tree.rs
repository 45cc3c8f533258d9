//! What does the runtime class do?

use super::builder::{Annotation, ClassBuilder, Member, access};
use super::memory::{Address, Code, MEMORY, UNSAFE, UNSAFE_TYPE};
use super::{
    ABORT, ABORT_TYPE, BEGIN, CELL_TYPE, CLASS, COUNT, COUNT_TYPE, CURRENT, CURRENT_TYPE, ENTER,
    ENTER_TYPE, FOLDED_SLOT, LEAF_SLOT, ROOT, SLOT, THREAD_CELL, TreeAddress,
};
use crate::assembler::Local;
use crate::class::opcode;
use crate::error::Result;
use crate::node::{self, abort, header};

const THREAD: &str = "java/lang/Thread";

/// Static fields: whether calls are recorded, and the cell of all threads until then.
const RECORDING: &str = "recording";
const COMMON: &str = "common";

/// A slot below this is one of [`FOLDED_SLOT`] or [`LEAF_SLOT`].
const NOTHING_BELOW: i64 = -(1 << 39);
/// A slot below this is one of [`LEAF_SLOT`].
const LEAF_BELOW: i64 = FOLDED_SLOT.midpoint(LEAF_SLOT);

/// Words of stack and local variables that are enough for each method.
const WORDS: u16 = 12;

/// Returns the class file of the runtime class of a tree.
///
/// The class does this, with `tree` as a constant:
///
/// ```java
/// public final class VaridTree {
///     @Stable static Unsafe memory;
///     @Stable static boolean recording;
///     static VaridTree common;
///     public long slot, root;
///
///     public static void begin() { if (!recording) { memory = Unsafe.getUnsafe(); memory.fullFence(); recording = true; } }
///
///     @ForceInline public static VaridTree current() {
///         if (!recording) return create(null);
///         Thread thread = Thread.currentThread();
///         VaridTree cell = thread.varid;
///         return cell != null ? cell : create(thread);
///     }
///     static VaridTree create(Thread thread) {
///         if (thread != null) return thread.varid = new VaridTree();
///         return common != null ? common : (common = new VaridTree());
///     }
///
///     @ForceInline public static long enter(VaridTree cell, long slot, int method, int below, int above) {
///         if (slot <= 0) return enterElsewhere(cell, slot, method, below, above);
///         long node = [slot];
///         if (node == 0 || [node] != method) {
///             node = find(slot, method, below, above);
///             if (node == 0) { add(tree + FOLDED); cell.slot = FOLDED_SLOT; return FOLDED_SLOT; }
///         }
///         [node + CALLS]++;
///         return cell.slot = node - 8;
///     }
///     static long enterElsewhere(VaridTree cell, long slot, int method, int below, int above) {
///         if (slot < LEAF_BELOW) return LEAF_SLOT;
///         if (slot < NOTHING_BELOW) { add(tree + FOLDED); return FOLDED_SLOT; }
///         if (!recording || cell == common) return 0;
///         slot = root(cell);
///         if (slot == 0) { add(tree + FOLDED); cell.slot = FOLDED_SLOT; return FOLDED_SLOT; }
///         return enter(cell, slot, method, below, above);
///     }
///     static long root(VaridTree cell) {
///         if (cell.root != 0) return cell.root;
///         long slot = allocate(40);
///         if (slot == 0) return 0;
///         do [slot + 8 + NEXT] = [tree + ROOTS]; while (!compareAndSet(tree + ROOTS, [slot + 8 + NEXT], slot + 8));
///         return cell.root = slot;
///     }
///     static long find(long slot, int method, int below, int above) {
///         long at = slot, node;
///         while ((node = [at]) != 0) { if ([node] == method) return node; at = node + NEXT; }
///         node = allocate(below + above);
///         if (node == 0) return 0;
///         node += below;
///         [node] = method;
///         [node + PARENT_SLOT] = slot;
///         volatile [at] = node;
///         return node;
///     }
///     static long allocate(int bytes) {
///         for (;;) {
///             long used = volatile [tree + ALLOCATED];
///             if (used + bytes > [tree + ARENA_LENGTH]) return 0;
///             if (compareAndSet(tree + ALLOCATED, used, used + bytes)) return tree + HEADER + used;
///         }
///     }
///     static void add(long at) { long value; do value = volatile [at]; while (!compareAndSet(at, value, value + 1)); }
///
///     @ForceInline public static void count(long here, int offset) { if (here > 0) [here + offset]++; }
///     public static void abort(long here, int bci) {
///         if (here <= 0) return;
///         long at = here + 8 + ABORTS, record;
///         while ((record = [at]) != 0) {
///             if ([record] == bci) { [record + COUNT]++; return; }
///             at = record + NEXT;
///         }
///         record = allocate(24);
///         if (record == 0) { add(tree + LOST_ABORTS); return; }
///         [record] = bci;
///         [record + COUNT] = 1;
///         volatile [at] = record;
///     }
/// }
/// ```
#[must_use]
pub fn runtime_class(tree: TreeAddress) -> Vec<u8> {
    let tree = Tree(i64::try_from(tree.0).unwrap_or(0));
    // The class has far fewer constants than fit.
    tree.assemble().unwrap_or_default()
}

/// The address of the header.
#[derive(Clone, Copy)]
struct Tree(i64);

impl Tree {
    fn word(self, offset: u64) -> i64 {
        self.0.wrapping_add(i64::try_from(offset).unwrap_or(0))
    }

    fn assemble(self) -> Result<Vec<u8>> {
        let mut class = ClassBuilder::new(CLASS);
        let mut field = |access, name, descriptor, annotation| {
            class.field(&Member {
                access,
                name,
                descriptor,
                annotation,
            })
        };
        let stable = Some(Annotation::Stable);
        field(access::STATIC, MEMORY, UNSAFE_TYPE, stable)?;
        field(access::STATIC, RECORDING, "Z", stable)?;
        field(access::STATIC, COMMON, CELL_TYPE, None)?;
        field(access::PUBLIC, SLOT, "J", None)?;
        field(access::PUBLIC, ROOT, "J", None)?;

        let constructor = Member {
            access: access::PRIVATE,
            name: "<init>",
            descriptor: "()V",
            annotation: None,
        };
        class.method(&constructor, WORDS, |code| {
            code.to.load_reference(Local(0));
            code.to
                .call(opcode::INVOKESPECIAL, "java/lang/Object", "<init>", "()V")?;
            code.to.op(opcode::RETURN);
            Ok(())
        })?;
        let inline = Some(Annotation::ForceInline);
        let public = access::PUBLIC | access::STATIC;
        let private = access::PRIVATE | access::STATIC;
        let mut method = |access, name, descriptor, annotation, write: Write| {
            let member = Member {
                access,
                name,
                descriptor,
                annotation,
            };
            class.method(&member, WORDS, |code| {
                write(self, &mut Code::new(code, argument_words(descriptor)))
            })
        };
        method(public, BEGIN, "()V", None, Self::begin)?;
        method(public, CURRENT, CURRENT_TYPE, inline, Self::current)?;
        method(public, ENTER, ENTER_TYPE, inline, Self::enter)?;
        method(public, COUNT, COUNT_TYPE, inline, Self::count)?;
        let outside = Some(Annotation::DontInline);
        method(public, ABORT, ABORT_TYPE, outside, Self::abort)?;
        method(private, CREATE, CREATE_TYPE, outside, Self::create)?;
        method(private, ELSEWHERE, ENTER_TYPE, outside, Self::elsewhere)?;
        method(private, ROOT, ROOT_TYPE, None, Self::root)?;
        method(private, FIND, FIND_TYPE, outside, Self::find)?;
        method(private, ALLOCATE, ALLOCATE_TYPE, None, Self::allocate)?;
        method(private, ADD, ADD_TYPE, None, Self::add)?;
        class.finish()
    }

    fn begin(self, code: &mut Code<'_, '_>) -> Result<()> {
        let begun = code.to.label();
        code.get_static(RECORDING, "Z")?;
        code.to.branch(opcode::IFNE, begun);
        let asm = &mut code.to.to;
        asm.call(
            opcode::INVOKESTATIC,
            UNSAFE,
            "getUnsafe",
            "()Ljdk/internal/misc/Unsafe;",
        )?;
        asm.field(opcode::PUTSTATIC, CLASS, MEMORY, UNSAFE_TYPE)?;
        asm.field(opcode::GETSTATIC, CLASS, MEMORY, UNSAFE_TYPE)?;
        asm.call(opcode::INVOKEVIRTUAL, UNSAFE, "fullFence", "()V")?;
        asm.int(1)?;
        asm.field(opcode::PUTSTATIC, CLASS, RECORDING, "Z")?;
        code.to.place(begun);
        code.op(opcode::RETURN);
        Ok(())
    }

    fn current(self, code: &mut Code<'_, '_>) -> Result<()> {
        let (thread, cell) = (Local(0), Local(1));
        let (idle, create) = (code.to.label(), code.to.label());
        code.get_static(RECORDING, "Z")?;
        code.to.branch(opcode::IFEQ, idle);
        code.to.to.call(
            opcode::INVOKESTATIC,
            THREAD,
            "currentThread",
            "()Ljava/lang/Thread;",
        )?;
        code.to.to.store_reference(thread);
        code.to.to.load_reference(thread);
        code.get_cell(THREAD, THREAD_CELL)?;
        code.to.to.store_reference(cell);
        code.to.to.load_reference(cell);
        code.to.branch(opcode::IFNULL, create);
        code.to.to.load_reference(cell);
        code.op(opcode::ARETURN);
        code.to.place(create);
        code.to.to.load_reference(thread);
        code.call(CREATE, CREATE_TYPE)?;
        code.op(opcode::ARETURN);
        code.to.place(idle);
        code.op(opcode::ACONST_NULL);
        code.call(CREATE, CREATE_TYPE)?;
        code.op(opcode::ARETURN);
        Ok(())
    }

    fn create(self, code: &mut Code<'_, '_>) -> Result<()> {
        let (thread, cell) = (Local(0), Local(1));
        let (common, exists) = (code.to.label(), code.to.label());
        code.to.to.load_reference(thread);
        code.to.branch(opcode::IFNULL, common);
        code.new_cell(cell)?;
        code.to.to.load_reference(thread);
        code.to.to.load_reference(cell);
        code.to
            .to
            .field(opcode::PUTFIELD, THREAD, THREAD_CELL, CELL_TYPE)?;
        code.to.to.load_reference(cell);
        code.op(opcode::ARETURN);
        code.to.place(common);
        code.get_static(COMMON, CELL_TYPE)?;
        code.to.branch(opcode::IFNONNULL, exists);
        code.new_cell(cell)?;
        code.to.to.load_reference(cell);
        code.to
            .to
            .field(opcode::PUTSTATIC, CLASS, COMMON, CELL_TYPE)?;
        code.to.place(exists);
        code.get_static(COMMON, CELL_TYPE)?;
        code.op(opcode::ARETURN);
        Ok(())
    }

    fn enter(self, code: &mut Code<'_, '_>) -> Result<()> {
        let (cell, slot, method) = (Local(0), Local(1), Local(3));
        let node = code.long();
        let (elsewhere, find, hit) = (code.to.label(), code.to.label(), code.to.label());
        code.to.to.load_long(slot);
        code.to.branch_by_sign(opcode::IFLE, elsewhere);
        code.read(slot, 0)?;
        code.to.to.store_long(node);
        code.to.to.load_long(node);
        code.to.branch_by_sign(opcode::IFEQ, find);
        code.read(node, node::METHOD)?;
        code.to.to.load_int(method);
        code.op(opcode::I2L);
        code.op(opcode::LCMP);
        code.to.branch(opcode::IFEQ, hit);
        code.to.place(find);
        code.to.to.load_long(slot);
        code.load_shape();
        code.call(FIND, FIND_TYPE)?;
        code.to.to.store_long(node);
        code.to.to.load_long(node);
        code.to.branch_by_sign(opcode::IFGT, hit);
        self.fold(code)?;
        code.to.place(hit);
        code.increment(node, node::CALLS)?;
        code.to.to.load_reference(cell);
        code.address(node, node::slot(0))?;
        code.to.to.field(opcode::PUTFIELD, CLASS, SLOT, "J")?;
        code.address(node, node::slot(0))?;
        code.op(opcode::LRETURN);
        code.to.place(elsewhere);
        code.to.to.load_reference(cell);
        code.to.to.load_long(slot);
        code.load_shape();
        code.call(ELSEWHERE, ENTER_TYPE)?;
        code.op(opcode::LRETURN);
        Ok(())
    }

    /// Counts a call for which there is no room, and returns from `enter` or `elsewhere`.
    fn fold(self, code: &mut Code<'_, '_>) -> Result<()> {
        code.to.to.long(self.word(header::FOLDED))?;
        code.call(ADD, ADD_TYPE)?;
        code.to.to.load_reference(Local(0));
        code.to.to.long(FOLDED_SLOT)?;
        code.to.to.field(opcode::PUTFIELD, CLASS, SLOT, "J")?;
        code.to.to.long(FOLDED_SLOT)?;
        code.op(opcode::LRETURN);
        Ok(())
    }

    fn elsewhere(self, code: &mut Code<'_, '_>) -> Result<()> {
        let (cell, slot) = (Local(0), Local(1));
        let (no_leaf, outside, idle, full) = (
            code.to.label(),
            code.to.label(),
            code.to.label(),
            code.to.label(),
        );
        code.to.to.load_long(slot);
        code.to.to.long(LEAF_BELOW)?;
        code.op(opcode::LCMP);
        code.to.branch(opcode::IFGE, no_leaf);
        code.to.to.long(LEAF_SLOT)?;
        code.op(opcode::LRETURN);
        code.to.place(no_leaf);
        code.to.to.load_long(slot);
        code.to.to.long(NOTHING_BELOW)?;
        code.op(opcode::LCMP);
        code.to.branch(opcode::IFGE, outside);
        self.fold(code)?;
        code.to.place(outside);
        code.get_static(RECORDING, "Z")?;
        code.to.branch(opcode::IFEQ, idle);
        code.to.to.load_reference(cell);
        code.get_static(COMMON, CELL_TYPE)?;
        code.to.branch(opcode::IF_ACMPEQ, idle);
        code.to.to.load_reference(cell);
        code.call(ROOT, ROOT_TYPE)?;
        code.to.to.store_long(slot);
        code.to.to.load_long(slot);
        code.to.branch_by_sign(opcode::IFEQ, full);
        code.to.to.load_reference(cell);
        code.to.to.load_long(slot);
        code.load_shape();
        code.call(ENTER, ENTER_TYPE)?;
        code.op(opcode::LRETURN);
        code.to.place(full);
        self.fold(code)?;
        code.to.place(idle);
        code.to.to.long(0)?;
        code.op(opcode::LRETURN);
        Ok(())
    }

    fn root(self, code: &mut Code<'_, '_>) -> Result<()> {
        let cell = Local(0);
        let (slot, last) = (code.long(), code.long());
        let (new, again, full) = (code.to.label(), code.to.label(), code.to.label());
        code.to.to.load_reference(cell);
        code.to.to.field(opcode::GETFIELD, CLASS, ROOT, "J")?;
        code.to.to.store_long(slot);
        code.to.to.load_long(slot);
        code.to.branch_by_sign(opcode::IFEQ, new);
        code.to.to.load_long(slot);
        code.op(opcode::LRETURN);
        code.to.place(new);
        code.to.to.int(ROOT_BYTES)?;
        code.call(ALLOCATE, ALLOCATE_TYPE)?;
        code.to.to.store_long(slot);
        code.to.to.load_long(slot);
        code.to.branch_by_sign(opcode::IFEQ, full);
        code.to.place(again);
        code.read_volatile(Address::Constant(self.word(header::ROOTS)))?;
        code.to.to.store_long(last);
        code.write(slot, node::NEXT.wrapping_sub(node::slot(0)), |code| {
            code.to.to.load_long(last);
            Ok(())
        })?;
        code.compare_and_set(Address::Constant(self.word(header::ROOTS)), last, |code| {
            code.address(slot, node::slot(0).wrapping_neg())
        })?;
        code.to.branch(opcode::IFEQ, again);
        code.to.to.load_reference(cell);
        code.to.to.load_long(slot);
        code.to.to.field(opcode::PUTFIELD, CLASS, ROOT, "J")?;
        code.to.place(full);
        code.to.to.load_long(slot);
        code.op(opcode::LRETURN);
        Ok(())
    }

    fn find(self, code: &mut Code<'_, '_>) -> Result<()> {
        let (slot, method, below, above) = (Local(0), Local(2), Local(3), Local(4));
        let (at, node) = (code.long(), code.long());
        let (next, new, found) = (code.to.label(), code.to.label(), code.to.label());
        code.to.to.load_long(slot);
        code.to.to.store_long(at);
        code.to.place(next);
        code.read(at, 0)?;
        code.to.to.store_long(node);
        code.to.to.load_long(node);
        code.to.branch_by_sign(opcode::IFEQ, new);
        code.read(node, node::METHOD)?;
        code.to.to.load_int(method);
        code.op(opcode::I2L);
        code.op(opcode::LCMP);
        code.to.branch(opcode::IFEQ, found);
        code.address(node, node::NEXT)?;
        code.to.to.store_long(at);
        code.to.branch(opcode::GOTO, next);
        code.to.place(new);
        code.to.to.load_int(below);
        code.to.to.load_int(above);
        code.op(opcode::IADD);
        code.call(ALLOCATE, ALLOCATE_TYPE)?;
        code.to.to.store_long(node);
        code.to.to.load_long(node);
        code.to.branch_by_sign(opcode::IFEQ, found);
        code.to.to.load_long(node);
        code.to.to.load_int(below);
        code.op(opcode::I2L);
        code.op(opcode::LADD);
        code.to.to.store_long(node);
        code.write(node, node::METHOD, |code| {
            code.to.to.load_int(method);
            code.op(opcode::I2L);
            Ok(())
        })?;
        code.write(node, node::PARENT_SLOT, |code| {
            code.to.to.load_long(slot);
            Ok(())
        })?;
        code.write_volatile(at, node)?;
        code.to.place(found);
        code.to.to.load_long(node);
        code.op(opcode::LRETURN);
        Ok(())
    }

    fn allocate(self, code: &mut Code<'_, '_>) -> Result<()> {
        let bytes = Local(0);
        let (used, end) = (code.long(), code.long());
        let (again, full) = (code.to.label(), code.to.label());
        let allocated = Address::Constant(self.word(header::ALLOCATED));
        code.to.place(again);
        code.read_volatile(allocated)?;
        code.to.to.store_long(used);
        code.to.to.load_long(used);
        code.to.to.load_int(bytes);
        code.op(opcode::I2L);
        code.op(opcode::LADD);
        code.to.to.store_long(end);
        code.to.to.load_long(end);
        code.read_volatile(Address::Constant(self.word(header::ARENA_LENGTH)))?;
        code.op(opcode::LCMP);
        code.to.branch(opcode::IFGT, full);
        code.compare_and_set(allocated, used, |code| {
            code.to.to.load_long(end);
            Ok(())
        })?;
        code.to.branch(opcode::IFEQ, again);
        code.to.to.long(self.word(node::HEADER))?;
        code.to.to.load_long(used);
        code.op(opcode::LADD);
        code.op(opcode::LRETURN);
        code.to.place(full);
        code.to.to.long(0)?;
        code.op(opcode::LRETURN);
        Ok(())
    }

    fn add(self, code: &mut Code<'_, '_>) -> Result<()> {
        let at = Local(0);
        let value = code.long();
        let again = code.to.label();
        code.to.place(again);
        code.read_volatile(Address::Variable(at))?;
        code.to.to.store_long(value);
        code.compare_and_set(Address::Variable(at), value, |code| code.address(value, 1))?;
        code.to.branch(opcode::IFEQ, again);
        code.op(opcode::RETURN);
        Ok(())
    }

    fn count(self, code: &mut Code<'_, '_>) -> Result<()> {
        let (here, offset) = (Local(0), Local(2));
        let at = code.long();
        let idle = code.to.label();
        code.to.to.load_long(here);
        code.to.branch_by_sign(opcode::IFLE, idle);
        code.to.to.load_long(here);
        code.to.to.load_int(offset);
        code.op(opcode::I2L);
        code.op(opcode::LADD);
        code.to.to.store_long(at);
        code.increment(at, 0)?;
        code.to.place(idle);
        code.op(opcode::RETURN);
        Ok(())
    }

    fn abort(self, code: &mut Code<'_, '_>) -> Result<()> {
        let (here, bci) = (Local(0), Local(2));
        let (at, record) = (code.long(), code.long());
        let (next, new, found, full, idle) = (
            code.to.label(),
            code.to.label(),
            code.to.label(),
            code.to.label(),
            code.to.label(),
        );
        code.to.to.load_long(here);
        code.to.branch_by_sign(opcode::IFLE, idle);
        code.address(here, node::ABORTS.wrapping_sub(node::slot(0)))?;
        code.to.to.store_long(at);
        code.to.place(next);
        code.read(at, 0)?;
        code.to.to.store_long(record);
        code.to.to.load_long(record);
        code.to.branch_by_sign(opcode::IFEQ, new);
        code.read(record, abort::BCI)?;
        code.to.to.load_int(bci);
        code.op(opcode::I2L);
        code.op(opcode::LCMP);
        code.to.branch(opcode::IFEQ, found);
        code.address(record, abort::NEXT)?;
        code.to.to.store_long(at);
        code.to.branch(opcode::GOTO, next);
        code.to.place(found);
        code.increment(record, abort::COUNT)?;
        code.op(opcode::RETURN);
        code.to.place(new);
        code.to
            .to
            .int(i32::try_from(abort::LENGTH).unwrap_or(i32::MAX))?;
        code.call(ALLOCATE, ALLOCATE_TYPE)?;
        code.to.to.store_long(record);
        code.to.to.load_long(record);
        code.to.branch_by_sign(opcode::IFEQ, full);
        code.write(record, abort::BCI, |code| {
            code.to.to.load_int(bci);
            code.op(opcode::I2L);
            Ok(())
        })?;
        code.write(record, abort::COUNT, |code| code.to.to.long(1))?;
        code.write_volatile(at, record)?;
        code.op(opcode::RETURN);
        code.to.place(full);
        code.to.to.long(self.word(header::LOST_ABORTS))?;
        code.call(ADD, ADD_TYPE)?;
        code.to.place(idle);
        code.op(opcode::RETURN);
        Ok(())
    }
}

const CREATE: &str = "create";
const CREATE_TYPE: &str = "(Ljava/lang/Thread;)Ljava/lang/VaridTree;";
const ELSEWHERE: &str = "enterElsewhere";
const ROOT_TYPE: &str = "(Ljava/lang/VaridTree;)J";
const FIND: &str = "find";
const FIND_TYPE: &str = "(JIII)J";
const ALLOCATE: &str = "allocate";
const ALLOCATE_TYPE: &str = "(I)J";
const ADD: &str = "add";
const ADD_TYPE: &str = "(J)V";
/// Slot 0 of a root and its words.
const ROOT_BYTES: i32 = 8 + 8 * node::WORDS as i32;

type Write = fn(Tree, &mut Code<'_, '_>) -> Result<()>;

fn argument_words(descriptor: &str) -> u16 {
    crate::class::argument_words(descriptor.as_bytes()).unwrap_or(0)
}
