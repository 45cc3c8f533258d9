//! The array through which rewritten dex code accesses the tree, although the tree is outside of the VM's heap.
//!
//! A VM with references of 32 bits has its heap in the lowest 4 GB, and an index of an array of `long` reaches 16 GB. The array is a small
//! one among the VM's large objects, which are never moved, and its length is set to the largest one. The tree's file is mapped within
//! its reach. So the tree takes no room of the heap, and has no limit of the heap.
//!
//! What this assumes of the VM is checked before rewritten code runs. A heap dump would write all elements up to the new length: it ends
//! the program.

use std::{
    ffi::CStr,
    ops::Range,
    sync::atomic::{AtomicI32, AtomicU64, Ordering},
};

use varid_instrument::node::frame;
use varid_jvmti::{Handle, Jni};

/// Bytes of a page, at least. Large objects start with one.
const PAGE: u64 = 4096;
/// Length of the array when it is made: a large object, also with larger pages, that does not fill its last page.
const LENGTH: i32 = 16 << 10;
/// Bytes from the start of an array of `long` to its length, and to its elements.
const LENGTH_OFFSET: u64 = 8;
const ELEMENTS_OFFSET: u64 = 16;
/// Bytes of an element.
const ELEMENT: u64 = 8;

/// The field with the array.
const FIELD: &CStr = c"words";
const FIELD_TYPE: &CStr = c"[J";
/// The field with the thread that owns [`frame::LAST`].
const OWNER: &CStr = c"owner";
const OWNER_TYPE: &CStr = c"Ljava/lang/Thread;";

/// Index of an element.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Index(pub(crate) u32);

impl Index {
    /// Returns the index at a distance. None: it is negative.
    pub(crate) fn at(self, distance: i64) -> Option<Self> {
        let index = i64::from(self.0).checked_add(distance)?;
        u32::try_from(index).ok().map(Self)
    }

    /// Returns the distance of the element from the first one, in bytes.
    pub(crate) const fn bytes(self) -> u64 {
        (self.0 as u64).saturating_mul(ELEMENT)
    }

    /// Returns the index of the element at a distance from the first one, in bytes.
    pub(crate) fn at_bytes(bytes: u64) -> Option<Self> {
        let index = u32::try_from(bytes / ELEMENT).ok()?;
        (index <= i32::MAX.cast_unsigned()).then_some(Self(index))
    }
}

/// The address of an array's elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Elements(u64);

/// An array of `long` in this thread, and its elements.
#[derive(Debug)]
pub(crate) struct WordArray {
    handle: Handle,
    elements: Elements,
}

impl Elements {
    #[cfg(test)]
    pub(crate) const fn at(address: u64) -> Self {
        Self(address)
    }

    /// Returns the addresses that indices reach.
    pub(crate) fn reach(self) -> Range<u64> {
        let bytes = u64::from(i32::MAX.cast_unsigned()).saturating_mul(ELEMENT);
        self.0..self.0.saturating_add(bytes)
    }

    /// Returns the index of the element at an address.
    pub(crate) fn index(self, address: u64) -> Option<Index> {
        Index::at_bytes(address.checked_sub(self.0)?)
    }
}

impl WordArray {
    /// Makes an array that can be extended.
    ///
    /// # Errors
    ///
    /// The VM has its arrays elsewhere, or in another form.
    pub(crate) fn create(jni: Jni) -> Result<Self, &'static str> {
        // A small object starts with a page by chance only: not two that follow each other.
        let arrays = [Self::at_page(jni)?, Self::at_page(jni)?];
        let [array, _] = arrays;
        if array.length().load(Ordering::Relaxed) != LENGTH {
            return Err("the VM's arrays have another form");
        }
        Ok(array)
    }

    /// Makes an array that starts with a page.
    fn at_page(jni: Jni) -> Result<Self, &'static str> {
        let handle = jni.new_long_array(LENGTH).ok_or("the VM has no memory")?;
        // SAFETY: the handle is that of an array of `long`, and of this thread.
        let elements = unsafe { jni.elements_address(handle) };
        let elements = elements.ok_or("the VM copies arrays for native methods")?;
        let address = elements.as_ptr().addr() as u64;
        let start = address.wrapping_sub(ELEMENTS_OFFSET);
        if !start.is_multiple_of(PAGE) {
            return Err("the VM has no space for large objects");
        }
        Ok(Self {
            handle,
            elements: Elements(address),
        })
    }

    /// Returns the address of the elements.
    pub(crate) const fn elements(&self) -> Elements {
        self.elements
    }

    fn length(&self) -> &AtomicI32 {
        let offset = ELEMENTS_OFFSET.wrapping_sub(LENGTH_OFFSET);
        let address = self.elements.0.wrapping_sub(offset);
        let pointer = std::ptr::with_exposed_provenance::<AtomicI32>(address as usize);
        // SAFETY: the word is in front of the elements, in the same page: large objects are not moved, and the handle keeps this one.
        unsafe { &*pointer }
    }

    /// Returns the element [`frame::LAST`]. The array must be [published](Self::publish), and stays so.
    pub(crate) fn last(&self) -> &'static AtomicU64 {
        let distance = Index(frame::LAST.into()).bytes();
        let address = self.elements.0.wrapping_add(distance);
        let pointer = std::ptr::with_exposed_provenance::<AtomicU64>(address as usize);
        // SAFETY: the word is in the array's first page: large objects are not moved, and the class keeps this one.
        unsafe { &*pointer }
    }

    /// Lets indices reach all addresses of [`Elements::reach`]. `probe` is a word there, and its value.
    ///
    /// # Errors
    ///
    /// The VM does not find the word.
    pub(crate) fn extend(&self, jni: Jni, probe: (Index, u64)) -> Result<(), &'static str> {
        let index = i32::try_from(probe.0.0).ok();
        let index = index.ok_or("the tree is not within reach of an array")?;
        self.length().store(i32::MAX, Ordering::Release);
        // SAFETY: the handle is that of an array of `long`, and of this thread.
        let (length, value) = unsafe {
            (
                jni.array_length(self.handle),
                jni.long_element(self.handle, index),
            )
        };
        if length != i32::MAX || value.map(i64::cast_unsigned) != Some(probe.1) {
            self.length().store(LENGTH, Ordering::Release);
            return Err("the VM's arrays have another form");
        }
        Ok(())
    }

    /// Sets the field of the class that rewritten code uses.
    pub(crate) fn publish(&self, jni: Jni, class: Handle) -> Result<(), &'static str> {
        publish(jni, class, self.handle)
    }
}

/// Sets the field to an array of `length` elements behind which is no tree, so that rewritten code runs uncounted.
pub(crate) fn publish_placeholder(
    jni: Jni,
    class: Handle,
    length: i32,
) -> Result<(), &'static str> {
    let array = jni.new_long_array(length).ok_or("the VM has no memory")?;
    publish(jni, class, array)
}

fn publish(jni: Jni, class: Handle, array: Handle) -> Result<(), &'static str> {
    // SAFETY: both handles are of this thread, and the field's type is that of the array.
    let is_set = unsafe { jni.set_static_object(class, FIELD, FIELD_TYPE, array) };
    is_set
        .then_some(())
        .ok_or("the class that counts has no array")
}

/// Makes this thread the owner: its entries are counted by the rewritten code itself. False: the VM has no object of it.
pub(crate) fn publish_owner(jni: Jni, class: Handle) -> bool {
    let thread = jni.current_thread();
    // SAFETY: both handles are of this thread, and the field's type is that of threads.
    thread.is_some_and(|thread| unsafe { jni.set_static_object(class, OWNER, OWNER_TYPE, thread) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_have_an_index_within_reach() {
        let elements = Elements(0x1000_0010);
        assert_eq!(elements.index(0x1000_0008), None);
        let last = Index(i32::MAX.cast_unsigned());
        let end = elements.reach().end;
        assert_eq!(elements.index(end), Some(last));
        assert_eq!(elements.index(end + 8), None);
        assert_eq!(Index::at_bytes(last.bytes()), Some(last));
        assert_eq!(
            elements.reach(),
            0x1000_0010..0x1000_0010 + 8 * ((1 << 31) - 1)
        );
    }
}
