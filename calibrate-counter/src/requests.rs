//! The requests of varid to a program of dex code: numbers of four bytes on standard input, and answers of eight on standard output.
//!
//! A program of class files does this in Java. A VM of dex files may have a library without streams.

use std::ffi::c_void;
use std::io::{self, Read, Write};
use std::sync::{Mutex, PoisonError};

/// The answers that have not been written.
static ANSWERS: Mutex<Vec<u8>> = Mutex::new(Vec::new());

/// Implements `static native int next()` of the class `varid.calibrate.Host`: the next number, or -1 if there are no more.
#[unsafe(no_mangle)]
pub extern "system" fn Java_varid_calibrate_Host_next(
    _environment: *mut c_void,
    _class: *mut c_void,
) -> i32 {
    let mut bytes = [0; 4];
    let read = io::stdin().lock().read_exact(&mut bytes);
    read.map_or(-1, |()| i32::from_be_bytes(bytes))
}

/// Implements `static native void answer(long)`: the answer is written with the next flush.
#[unsafe(no_mangle)]
pub extern "system" fn Java_varid_calibrate_Host_answer(
    _environment: *mut c_void,
    _class: *mut c_void,
    value: i64,
) {
    let mut answers = ANSWERS.lock().unwrap_or_else(PoisonError::into_inner);
    answers.extend(value.to_be_bytes());
}

/// Implements `static native void flush()`. An error is ignored: the reader of the answers has ended, and it sends no more requests.
#[unsafe(no_mangle)]
pub extern "system" fn Java_varid_calibrate_Host_flush(
    _environment: *mut c_void,
    _class: *mut c_void,
) {
    let mut answers = ANSWERS.lock().unwrap_or_else(PoisonError::into_inner);
    let mut output = io::stdout().lock();
    let _ = output.write_all(&answers).and_then(|()| output.flush());
    answers.clear();
}
