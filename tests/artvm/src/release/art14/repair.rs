//! Which defects of Debian 13's libart are mended before the VM is created? What its compiler and its C++ library make
//! of two places in ART's sources.

use std::arch::naked_asm;
use std::ffi::{CStr, c_void};
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

use crate::code::Function;
use crate::error::Error;
use crate::libart::Libart;

/// `art::BitVector::BitVector(bool expandable, Allocator*, uint32_t storage_size, uint32_t* storage)`.
const BIT_VECTOR: &CStr = c"_ZN3art9BitVectorC1EbPNS_9AllocatorEjPj";

/// `vtable for art::BitVector`.
const BIT_VECTOR_TABLE: &CStr = c"_ZTVN3art9BitVectorE";

/// `art::ArtMethod::Invoke(Thread*, uint32_t* args, uint32_t args_size, JValue* result, const char* shorty)`.
const INVOKE: &CStr = c"_ZN3art9ArtMethod6InvokeEPNS_6ThreadEPjjPNS_6JValueEPKc";

/// Replaces the two functions.
pub fn repair(libart: &Libart) -> Result<(), Error> {
    // A table of C++ has two words before its functions.
    let table = libart
        .symbol(BIT_VECTOR_TABLE)?
        .cast::<*mut c_void>()
        .wrapping_add(2);
    BIT_VECTOR_FUNCTIONS.store(table.cast(), Ordering::Relaxed);
    Function::of(libart, BIT_VECTOR)?.replace(new_bit_vector as *const c_void)?;
    let invoke = Function::of(libart, INVOKE)?;
    INVOKE_REST.store(invoke.after(&INVOKE_START)?, Ordering::Relaxed);
    invoke.replace(invoke_with_whole_words as *const c_void)
}

/// `art::BitVector` (libartbase/base/bit_vector.h).
#[repr(C)]
struct BitVector {
    functions: *mut c_void,
    storage: *mut u32,
    storage_size: u32,
    allocator: *mut c_void,
    expandable: bool,
}

/// The functions of `art::BitVector`, in its table.
static BIT_VECTOR_FUNCTIONS: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());

/// The constructor of a bit vector over memory of the caller's, which it clears.
///
/// `AssignVTableIndexes` (runtime/class_linker.cc) passes memory from alloca and assumes that all bits are clear.
/// Android's compiler clears such memory, Debian's does not.
///
/// # Safety
/// `this` is memory for a bit vector, `storage` is null or has `storage_size` words.
unsafe extern "C" fn new_bit_vector(
    this: *mut BitVector,
    expandable: bool,
    allocator: *mut c_void,
    storage_size: u32,
    storage: *mut u32,
) {
    // SAFETY: as promised by the caller; u32 fits into usize on the machines that have this code.
    unsafe {
        if !storage.is_null() {
            ptr::write_bytes(storage, 0, storage_size as usize);
        }
        this.write(BitVector {
            functions: BIT_VECTOR_FUNCTIONS.load(Ordering::Relaxed),
            storage,
            storage_size,
            allocator,
            expandable,
        });
    }
}

/// The address in `Invoke` behind the instructions that the jump replaces.
static INVOKE_REST: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());

/// The instructions that the jump replaces: [`invoke_with_whole_words`] executes them.
#[cfg(target_arch = "x86_64")]
const INVOKE_START: [u8; 14] = [
    0xf3, 0x0f, 0x1e, 0xfa, // endbr64
    0x55, // push rbp
    0x48, 0x89, 0xe5, // mov rbp, rsp
    0x41, 0x57, // push r15
    0x41, 0x56, // push r14
    0x41, 0x55, // push r13
];

/// `Invoke` with args_size rounded down to whole words.
///
/// A call without arguments passes a `std::array<uint32_t, 0>`: libstdc++'s has a size of one byte and a null address,
/// from which `Invoke` would copy that byte.
#[cfg(target_arch = "x86_64")]
#[unsafe(naked)]
extern "C" fn invoke_with_whole_words() {
    naked_asm!(
        ".cfi_startproc",
        "and ecx, -4",
        "push rbp",
        ".cfi_def_cfa_offset 16",
        ".cfi_offset rbp, -16",
        "mov rbp, rsp",
        ".cfi_def_cfa_register rbp",
        "push r15",
        ".cfi_offset r15, -24",
        "push r14",
        ".cfi_offset r14, -32",
        "push r13",
        ".cfi_offset r13, -40",
        "jmp qword ptr [rip + {rest}]",
        ".cfi_endproc",
        rest = sym INVOKE_REST,
    )
}

/// The instructions that the jump replaces: [`invoke_with_whole_words`] executes them.
#[cfg(target_arch = "aarch64")]
const INVOKE_START: [u8; 20] = [
    0x3f, 0x23, 0x03, 0xd5, // paciasp
    0xff, 0x43, 0x02, 0xd1, // sub sp, sp, #0x90
    0xfd, 0x7b, 0x05, 0xa9, // stp x29, x30, [sp, #80]
    0xf8, 0x5f, 0x06, 0xa9, // stp x24, x23, [sp, #96]
    0xf6, 0x57, 0x07, 0xa9, // stp x22, x21, [sp, #112]
];

/// `Invoke` with args_size rounded down to whole words.
///
/// A call without arguments passes a `std::array<uint32_t, 0>`: libstdc++'s has a size of one byte and a null address,
/// from which `Invoke` would copy that byte.
#[cfg(target_arch = "aarch64")]
#[unsafe(naked)]
extern "C" fn invoke_with_whole_words() {
    naked_asm!(
        ".cfi_startproc",
        "and w3, w3, #0xfffffffc",
        "hint #25", // paciasp
        ".cfi_negate_ra_state",
        "sub sp, sp, #0x90",
        ".cfi_def_cfa_offset 0x90",
        "stp x29, x30, [sp, #80]",
        ".cfi_offset x29, -64",
        ".cfi_offset x30, -56",
        "stp x24, x23, [sp, #96]",
        ".cfi_offset x24, -48",
        ".cfi_offset x23, -40",
        "stp x22, x21, [sp, #112]",
        ".cfi_offset x22, -32",
        ".cfi_offset x21, -24",
        "adrp x16, {rest}",
        "ldr x16, [x16, :lo12:{rest}]",
        // Not br, which may not go into the middle of a function where the processor guards branches.
        "ret x16",
        ".cfi_endproc",
        rest = sym INVOKE_REST,
    )
}
