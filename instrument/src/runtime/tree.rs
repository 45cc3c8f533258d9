//! What does the runtime class do?

use super::memory::{Address, Code, MEMORY, UNSAFE, UNSAFE_TYPE};
use super::{
    ABORT, ABORT_TYPE, BEGIN, CELL_TYPE, CLASS, COUNT, COUNT_IN_ORDER, COUNT_IN_ORDER_TYPE,
    COUNT_TYPE, CURRENT, CURRENT_TYPE, ENTER, ENTER_TYPE, ENTER_WITHIN, ROOT, SET_COUNTING,
    SET_COUNTING_TYPE, SLOT, SwitchAddress, THREAD_CELL, TreeAddress,
    order::{self, APPEND, APPEND_TYPE},
};
use crate::assembler::Local;
use crate::class::opcode;
use crate::class_builder::{Annotation, ClassBuilder, ClassKind, Label, Limits, Member, access};
use crate::error::Result;
use crate::{Counted, Plan};

const THREAD: &str = "java/lang/Thread";

/// Static fields: whether calls are recorded, and the cell of all threads until then.
pub(super) const RECORDING: &str = "recording";
pub(super) const COMMON: &str = "common";

/// Words of stack and local variables that are enough for each method.
const LIMITS: Limits = Limits {
    stack: 12,
    locals: 12,
};

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
///
/// With [`Plan::within`], `enterElsewhere` returns 0 in place of its last five lines, which are those of a further method:
///
/// ```java
///     public static long enterWithin(VaridTree cell, long slot, int method, int below, int above) {
///         if (slot > 0 || slot < NOTHING_BELOW) return enter(cell, slot, method, below, above);
///         ...
///     }
/// ```
///
/// With [`Counted::Order`], `enter` calls `append(cell, node + CALLS)` before it increments that word, and there are these members, which
/// [`order`](super::order) explains:
///
/// ```java
///     public long next, end;
///     @ForceInline public static void countInOrder(VaridTree cell, long here, int offset) {
///         if (here > 0) { append(cell, here + offset); [here + offset]++; }
///     }
///     @ForceInline static void append(VaridTree cell, long word) {
///         if (cell.next >= cell.end) renew(cell);
///         (int) [cell.next] = (int) ((word - tree) >> 3);
///         cell.next += 4;
///     }
///     static void renew(VaridTree cell) {
///         long next = newChunk(cell.root + 8, cell.end);
///         cell.end = next + EVENTS_LENGTH;
///         cell.next = next;
///     }
///     static native long newChunk(long root, long end);
/// ```
///
/// and `begin` calls `newChunk(0, 0)` before it sets `recording`, so that the VM has found that method.
#[must_use]
pub fn runtime_class(tree: TreeAddress, plan: &Plan) -> Vec<u8> {
    // The class has far fewer constants than fit.
    Tree::new(tree, None, plan).assemble().unwrap_or_default()
}

/// Returns the class file of the runtime class of a tree whose counting is switched on and off by a word. Contexts are found and added whatever
/// the word is, so that those of frames which are being executed when it changes are whole.
///
/// It differs from [`runtime_class`] in that `enter`, `count` and `abort` increment nothing while the word is 0, and in this member:
///
/// ```java
///     public static void setCounting(boolean on) { if (recording) volatile [switch] = on ? 1 : 0; }
/// ```
#[must_use]
pub fn switched_runtime_class(tree: TreeAddress, switch: SwitchAddress, plan: &Plan) -> Vec<u8> {
    let tree = Tree::new(tree, Some(switch), plan);
    tree.assemble().unwrap_or_default()
}

/// A tree.
#[derive(Clone, Copy)]
pub(super) struct Tree {
    /// The address of the header.
    pub(super) address: i64,
    counted: Counted,
    /// Recording is restricted to the extent of a method.
    pub(super) is_restricted: bool,
    /// The address of the word that switches counting. None: it is always on.
    switch: Option<i64>,
}

impl Tree {
    fn new(tree: TreeAddress, switch: Option<SwitchAddress>, plan: &Plan) -> Self {
        Self {
            address: i64::try_from(tree.0).unwrap_or(0),
            counted: plan.counted,
            is_restricted: plan.within.is_some(),
            switch: switch.and_then(|switch| i64::try_from(switch.0).ok()),
        }
    }

    /// Branches if counting is off.
    pub(super) fn branch_if_off(self, code: &mut Code<'_, '_>, off: Label) -> Result<()> {
        if let Some(switch) = self.switch {
            code.read_volatile(Address::Constant(switch))?;
            code.to.branch_by_sign(opcode::IFEQ, off);
        }
        Ok(())
    }

    /// Returns the address of a word of the header.
    pub(super) fn word(self, offset: u64) -> i64 {
        self.address
            .wrapping_add(i64::try_from(offset).unwrap_or(0))
    }

    pub(super) const fn has_order(self) -> bool {
        matches!(self.counted, Counted::Order)
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
        if self.has_order() {
            field(access::PUBLIC, order::NEXT, "J", None)?;
            field(access::PUBLIC, order::END, "J", None)?;
        }

        let constructor = Member {
            access: access::PRIVATE,
            name: "<init>",
            descriptor: "()V",
            annotation: None,
        };
        class.method(&constructor, LIMITS, |code| {
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
            class.method(&member, LIMITS, |code| {
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
        if self.is_restricted {
            method(public, ENTER_WITHIN, ENTER_TYPE, outside, Self::within)?;
        }
        if self.switch.is_some() {
            let set = Self::set_counting;
            method(public, SET_COUNTING, SET_COUNTING_TYPE, outside, set)?;
        }
        if self.has_order() {
            let count = Self::count_in_order;
            method(public, COUNT_IN_ORDER, COUNT_IN_ORDER_TYPE, inline, count)?;
            method(private, APPEND, APPEND_TYPE, inline, Self::append)?;
            method(private, RENEW, RENEW_TYPE, outside, Self::renew)?;
            class.method_without_code(&Member {
                access: private | access::NATIVE,
                name: order::NEW_CHUNK,
                descriptor: order::NEW_CHUNK_TYPE,
                annotation: None,
            })?;
        }
        class.finish(ClassKind::Final(&[]))
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
        if self.has_order() {
            for _ in 0..2 {
                asm.long(0)?;
            }
            asm.call(
                opcode::INVOKESTATIC,
                CLASS,
                order::NEW_CHUNK,
                order::NEW_CHUNK_TYPE,
            )?;
            asm.op(opcode::POP2);
        }
        asm.int(1)?;
        asm.field(opcode::PUTSTATIC, CLASS, RECORDING, "Z")?;
        code.to.place(begun);
        code.op(opcode::RETURN);
        Ok(())
    }

    fn set_counting(self, code: &mut Code<'_, '_>) -> Result<()> {
        let is_on = Local(0);
        let (at, value) = (code.long(), code.long());
        let idle = code.to.label();
        code.get_static(RECORDING, "Z")?;
        code.to.branch(opcode::IFEQ, idle);
        code.constant(self.switch.unwrap_or(0))?;
        code.store_long(at);
        code.load_int_as_long(is_on);
        code.store_long(value);
        code.write_volatile(at, value)?;
        code.to.place(idle);
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
        code.store_reference(thread);
        code.load_reference(thread);
        code.get_cell(THREAD, THREAD_CELL)?;
        code.store_reference(cell);
        code.load_reference(cell);
        code.to.branch(opcode::IFNULL, create);
        code.load_reference(cell);
        code.op(opcode::ARETURN);
        code.to.place(create);
        code.load_reference(thread);
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
        code.load_reference(thread);
        code.to.branch(opcode::IFNULL, common);
        code.new_cell(cell)?;
        code.load_reference(thread);
        code.load_reference(cell);
        code.field(opcode::PUTFIELD, THREAD, THREAD_CELL, CELL_TYPE)?;
        code.load_reference(cell);
        code.op(opcode::ARETURN);
        code.to.place(common);
        code.get_static(COMMON, CELL_TYPE)?;
        code.to.branch(opcode::IFNONNULL, exists);
        code.new_cell(cell)?;
        code.load_reference(cell);
        code.field(opcode::PUTSTATIC, CLASS, COMMON, CELL_TYPE)?;
        code.to.place(exists);
        code.get_static(COMMON, CELL_TYPE)?;
        code.op(opcode::ARETURN);
        Ok(())
    }
}

const CREATE: &str = "create";
const CREATE_TYPE: &str = "(Ljava/lang/Thread;)Ljava/lang/VaridTree;";
pub(super) const ELSEWHERE: &str = "enterElsewhere";
pub(super) const ROOT_TYPE: &str = "(Ljava/lang/VaridTree;)J";
pub(super) const FIND: &str = "find";
pub(super) const FIND_TYPE: &str = "(JIII)J";
pub(super) const ALLOCATE: &str = "allocate";
pub(super) const ALLOCATE_TYPE: &str = "(I)J";
pub(super) const ADD: &str = "add";
pub(super) const ADD_TYPE: &str = "(J)V";
pub(super) const RENEW: &str = "renew";
pub(super) const RENEW_TYPE: &str = "(Ljava/lang/VaridTree;)V";

type Write = fn(Tree, &mut Code<'_, '_>) -> Result<()>;

fn argument_words(descriptor: &str) -> u16 {
    crate::class::argument_words(descriptor.as_bytes()).unwrap_or(0)
}
