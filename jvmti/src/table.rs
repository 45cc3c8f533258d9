//! Calls functions of a table by their numbers.

use std::ffi::c_void;

/// An environment as the VM passes it: a pointer to a pointer to a table of functions.
pub type RawTable = *mut *const *const c_void;

/// Returns the function with a number of an environment's table.
///
/// # Safety
///
/// `environment` is valid, its table has an entry `number`, and that entry is a function of type `F`.
pub(crate) unsafe fn function<F: Copy>(environment: RawTable, number: usize) -> F {
    const { assert!(size_of::<F>() == size_of::<*const c_void>()) };
    // SAFETY: the caller promises that the table has this entry and that it is an `F`, which has the size of a pointer.
    unsafe { std::mem::transmute_copy::<*const c_void, F>(&*(*environment).add(number)) }
}
