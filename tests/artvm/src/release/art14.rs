//! What does starting Android 14's ART take? Debian 13 has it, with two defects that are mended here, in memory.

use std::ffi::c_void;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

use super::{Build, Home, Release};
use crate::code::Function;
use crate::error::Error;
use crate::libart::Libart;

/// ART 14 as Debian 13 has it: it interprets with nterp.
pub const RELEASE: Release = Release {
    package: "android-libart 14.0.0+r15-4+b1",
    builds: &[
        Build {
            architecture: "x86_64",
            build_id: "61497c95b23887e92d3e2e8206345c91fb28d21d",
        },
        Build {
            architecture: "aarch64",
            build_id: "152e5eef3e17820cab5bf418ffbb7742e0023bcf",
        },
    ],
    home: Home::Beside("art14"),
    hint: "; tests/art14/build.sh FOLDER fetches ART 14 to FOLDER/art14, which belongs beside artvm",
    undeclared: &[
        "liblz4.so.1",
        "libz.so.1",
        "libtinyxml2.so.11",
        "7z.so",
        "libcpu_features.so.0",
        "libsigchain.so.0",
        "liblog.so.0",
        "libbase.so.0",
        "libnativebridge.so.0",
        "libnativeloader.so.0",
        "libziparchive.so.0",
        "libbacktrace.so.0",
        "libdexfile_support.so.0",
    ],
    // Else it asks for the compiler's library, which the package does not have.
    default_interpreter: &["-Xusejit:false"],
    repair,
};

/// `art::BitVector::BitVector(bool expandable, Allocator*, uint32_t storage_size, uint32_t* storage)`.
const BIT_VECTOR: &std::ffi::CStr = c"_ZN3art9BitVectorC1EbPNS_9AllocatorEjPj";

/// `vtable for art::BitVector`.
const BIT_VECTOR_TABLE: &std::ffi::CStr = c"_ZTVN3art9BitVectorE";

/// `art::ArtMethod::Invoke(Thread*, uint32_t* args, uint32_t args_size, JValue* result, const char* shorty)`.
const INVOKE: &std::ffi::CStr = c"_ZN3art9ArtMethod6InvokeEPNS_6ThreadEPjjPNS_6JValueEPKc";

/// Mends what Debian's compiler and C++ library make of ART's sources.
fn repair(libart: &Libart) -> Result<(), Error> {
    // SAFETY: the symbol is a table of C++: two words, then the functions.
    let functions = unsafe {
        libart
            .symbol(BIT_VECTOR_TABLE)?
            .cast::<*mut c_void>()
            .add(2)
    };
    BIT_VECTOR_FUNCTIONS.store(functions.cast(), Ordering::Relaxed);
    Function::of(libart, BIT_VECTOR)?.replace(new_bit_vector as *const c_void)?;
    let invoke = Function::of(libart, INVOKE)?;
    INVOKE_REST.store(invoke.after(&INVOKE_START)?, Ordering::Relaxed);
    invoke.replace(artvm_invoke_with_whole_words as *const c_void)
}

/// `art::BitVector`, of which only this constructor is written anew.
#[repr(C)]
struct BitVector {
    functions: *mut c_void,
    storage: *mut u32,
    storage_size: u32,
    allocator: *mut c_void,
    expandable: bool,
}

static BIT_VECTOR_FUNCTIONS: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());

/// The constructor over memory of the caller's, which it clears.
///
/// `AssignVTableIndexes` (class_linker.cc) passes it memory from alloca and assumes that all bits are clear. Android's
/// compiler clears that memory, Debian's does not.
unsafe extern "C" fn new_bit_vector(
    this: *mut BitVector,
    expandable: bool,
    allocator: *mut c_void,
    storage_size: u32,
    storage: *mut u32,
) {
    // SAFETY: C++ constructs an object in memory of this layout, over `storage_size` words.
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

/// Where `Invoke` goes on behind the instructions that the jump replaces.
#[unsafe(no_mangle)]
static INVOKE_REST: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());

unsafe extern "C" {
    /// `Invoke` with args_size rounded down to whole words: libstdc++'s std::array<uint32_t, 0> has a size of one
    /// byte and a null address, from which `Invoke` would copy that byte.
    fn artvm_invoke_with_whole_words();
}

#[cfg(target_arch = "x86_64")]
const INVOKE_START: [u8; 14] = [
    0xf3, 0x0f, 0x1e, 0xfa, 0x55, 0x48, 0x89, 0xe5, 0x41, 0x57, 0x41, 0x56, 0x41, 0x55,
];

#[cfg(target_arch = "x86_64")]
std::arch::global_asm!(
    "    .pushsection .text.artvm_invoke_with_whole_words, \"ax\", @progbits",
    "    .globl artvm_invoke_with_whole_words",
    "    .hidden artvm_invoke_with_whole_words",
    "    .type artvm_invoke_with_whole_words, @function",
    "artvm_invoke_with_whole_words:",
    "    .cfi_startproc",
    "    and ecx, -4",
    // INVOKE_START
    "    push rbp",
    "    .cfi_def_cfa_offset 16",
    "    .cfi_offset rbp, -16",
    "    mov rbp, rsp",
    "    .cfi_def_cfa_register rbp",
    "    push r15",
    "    .cfi_offset r15, -24",
    "    push r14",
    "    .cfi_offset r14, -32",
    "    push r13",
    "    .cfi_offset r13, -40",
    "    jmp qword ptr [rip + {rest}]",
    "    .cfi_endproc",
    "    .size artvm_invoke_with_whole_words, . - artvm_invoke_with_whole_words",
    "    .popsection",
    rest = sym INVOKE_REST,
);
