//! How does `--lib` load a JNI library? By libart's own System.loadLibrary path, so that natives are found by their names.

use std::ffi::c_char;
use std::path::Path;
use std::ptr;

use jni_sys::{JNIEnv, jclass, jobject};

use crate::app_loader::AppLoader;
use crate::error::Error;
use crate::libart::Libart;
use crate::vm::Env;

/// `bool art::JavaVMExt::LoadNativeLibrary(JNIEnv*, const std::string& path, jobject class_loader, jclass caller_class,
/// std::string* error_msg)`, exported by every known build.
const LOAD_NATIVE_LIBRARY: &std::ffi::CStr = c"_ZN3art9JavaVMExt17LoadNativeLibraryEP7_JNIEnvRKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEEP8_jobjectP7_jclassPS8_";

type LoadNativeLibrary = unsafe extern "C" fn(
    vm: *mut jni_sys::JavaVM,
    env: *mut JNIEnv,
    path: *const CxxString,
    class_loader: jobject,
    caller_class: jclass,
    error: *mut CxxString,
) -> bool;

/// libstdc++'s std::string (its ABI of 2015, that of the mangled name): characters, length, and a union of the
/// capacity and of 16 bytes that hold short strings.
#[repr(C)]
struct CxxString {
    characters: *const c_char,
    length: usize,
    capacity_or_local: [usize; 16 / size_of::<usize>()],
}

impl CxxString {
    /// A string that borrows `text`, to be passed as const: never freed or grown by C++.
    fn borrowing(text: &std::ffi::CStr) -> Self {
        let mut capacity_or_local = [0; 16 / size_of::<usize>()];
        if let Some(capacity) = capacity_or_local.first_mut() {
            *capacity = text.count_bytes();
        }
        Self {
            characters: text.as_ptr(),
            length: text.count_bytes(),
            capacity_or_local,
        }
    }
}

/// Loads a JNI library for the classes of the app's loader, else of the boot class path, and calls its JNI_OnLoad.
pub fn load(
    libart: &Libart,
    env: Env,
    loader: Option<AppLoader>,
    path: &Path,
) -> Result<(), Error> {
    let missing = |source| Error::File {
        path: path.to_owned(),
        source,
        hint: "",
    };
    // By its absolute path: the dynamic linker searches for names without a slash.
    let absolute = path.canonicalize().map_err(missing)?;
    let c_path = crate::vm::c_string(&absolute.to_string_lossy())?;
    let path_string = CxxString::borrowing(&c_path);
    let mut message = CxxString {
        characters: ptr::null(),
        length: 0,
        capacity_or_local: [0; 16 / size_of::<usize>()],
    };
    message.characters = ptr::from_ref(&message.capacity_or_local).cast();
    let mut vm = ptr::null_mut();
    // SAFETY: the symbol is the function of this type in each known build; both strings have libstdc++'s layout and
    // outlive the call. An error's characters are owned by C++ and not freed: the process ends after one.
    let loaded = unsafe {
        let load: LoadNativeLibrary = std::mem::transmute(libart.symbol(LOAD_NATIVE_LIBRARY)?);
        ((**env.raw()).v1_6.GetJavaVM)(env.raw(), &mut vm);
        load(
            vm,
            env.raw(),
            &path_string,
            loader.map_or(ptr::null_mut(), AppLoader::object),
            ptr::null_mut(),
            &mut message,
        )
    };
    if !loaded {
        // SAFETY: libstdc++ keeps `length` readable bytes at `characters`.
        let bytes =
            unsafe { std::slice::from_raw_parts(message.characters.cast::<u8>(), message.length) };
        return Err(Error::Library {
            path: absolute,
            message: String::from_utf8_lossy(bytes).into_owned(),
        });
    }
    Ok(())
}
