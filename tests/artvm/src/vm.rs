//! How is the VM talked to? JNI, as far as artvm needs it.

use std::ffi::{CStr, CString, c_void};
use std::ptr;

use jni_sys::{
    JNI_OK, JNI_VERSION_1_6, JNIEnv, JavaVM, JavaVMInitArgs, JavaVMOption, jclass, jint, jlong,
    jmethodID, jobject, jstring, jvalue,
};

use crate::error::Error;
use crate::libart::Libart;

/// Calls a function of the JNI table: `jni!(env, FindClass, name)`.
macro_rules! jni {
    ($env:expr, $function:ident $(, $argument:expr)* $(,)?) => {
        ((**$env.0).v1_6.$function)($env.0 $(, $argument)*)
    };
}

/// How many causes are followed: a cycle of them must end.
const MAX_CAUSES: usize = 8;

/// The JNI environment of one attached thread, valid on that thread only.
#[derive(Debug, Clone, Copy)]
pub struct Env(*mut JNIEnv);

/// The VM of this process: there is at most one. Dropping it ends it.
#[derive(Debug)]
pub struct Vm {
    vm: *mut JavaVM,
    env: Env,
}

/// A native method to be registered.
pub struct Native {
    /// The method's name.
    pub name: &'static CStr,
    /// Its signature.
    pub signature: &'static CStr,
    /// The function: `extern "system" fn(*mut JNIEnv, jobject, ...)` with the signature's arguments.
    pub function: *mut c_void,
}

type CreateJavaVm =
    unsafe extern "C" fn(*mut *mut JavaVM, *mut *mut JNIEnv, *mut JavaVMInitArgs) -> jint;

impl Vm {
    /// Starts the VM with options as `dalvikvm` takes them; this thread becomes its main thread.
    pub fn boot(libart: &Libart, options: &[String]) -> Result<Self, Error> {
        let options = options
            .iter()
            .map(|option| c_string(option))
            .collect::<Result<Vec<_>, _>>()?;
        let mut raw: Vec<_> = options
            .iter()
            .map(|option| JavaVMOption {
                optionString: option.as_ptr().cast_mut(),
                extraInfo: ptr::null_mut(),
            })
            .collect();
        let mut arguments = JavaVMInitArgs {
            version: JNI_VERSION_1_6,
            nOptions: jint::try_from(raw.len()).unwrap_or(jint::MAX),
            options: raw.as_mut_ptr(),
            ignoreUnrecognized: false,
        };
        let (mut vm, mut env) = (ptr::null_mut(), ptr::null_mut());
        // SAFETY: the symbol is libart's function of this type; options and their strings outlive the call,
        // which writes both pointers when it returns JNI_OK.
        let status = unsafe {
            let create: CreateJavaVm = std::mem::transmute(libart.symbol(c"JNI_CreateJavaVM")?);
            create(&mut vm, &mut env, &mut arguments)
        };
        if status != JNI_OK {
            return Err(Error::CreateVm(status));
        }
        Ok(Self { vm, env: Env(env) })
    }

    /// The main thread's environment.
    pub fn env(&self) -> Env {
        self.env
    }
}

impl Drop for Vm {
    /// Waits for the threads that are not daemons, then ends the VM (a method trace is written now).
    fn drop(&mut self) {
        // SAFETY: the VM is alive until here.
        unsafe { ((**self.vm).v1_1.DestroyJavaVM)(self.vm) };
    }
}

impl Env {
    /// The environment that the VM passed to a native method.
    ///
    /// # Safety
    /// `env` is the argument of a native method that is still running, on its thread.
    pub unsafe fn of_native(env: *mut JNIEnv) -> Self {
        Self(env)
    }

    /// The raw pointer, for C++ functions of libart.
    pub fn raw(self) -> *mut JNIEnv {
        self.0
    }

    /// Looks a class up, by a name with dots or slashes.
    pub fn find_class(self, name: &str) -> Result<jclass, Error> {
        let path = c_string(&name.replace('.', "/"))?;
        // SAFETY: this thread's environment, a string ending in NUL.
        let class = unsafe { jni!(self, FindClass, path.as_ptr()) };
        if class.is_null() {
            Err(self.missing(format!("class {name}")))
        } else {
            Ok(class)
        }
    }

    /// Looks a static method up.
    pub fn static_method(
        self,
        class: jclass,
        name: &str,
        signature: &CStr,
    ) -> Result<jmethodID, Error> {
        let c_name = c_string(name)?;
        // SAFETY: this thread's environment, a class reference, strings ending in NUL.
        let method = unsafe {
            jni!(
                self,
                GetStaticMethodID,
                class,
                c_name.as_ptr(),
                signature.as_ptr()
            )
        };
        if method.is_null() {
            return Err(self.missing(format!(
                "method static {name}{}",
                signature.to_string_lossy()
            )));
        }
        Ok(method)
    }

    /// Calls `static long method(...)`; an exception is left pending.
    ///
    /// # Safety
    /// The method is of this class, returns a long, and takes these arguments.
    pub unsafe fn call_static_long(
        self,
        class: jclass,
        method: jmethodID,
        arguments: &[jvalue],
    ) -> jlong {
        // SAFETY: as promised by the caller.
        unsafe {
            jni!(
                self,
                CallStaticLongMethodA,
                class,
                method,
                arguments.as_ptr()
            )
        }
    }

    /// Calls `static void method(...)`; an exception is left pending.
    ///
    /// # Safety
    /// The method is of this class, returns nothing, and takes these arguments.
    pub unsafe fn call_static_void(self, class: jclass, method: jmethodID, arguments: &[jvalue]) {
        // SAFETY: as promised by the caller.
        unsafe {
            jni!(
                self,
                CallStaticVoidMethodA,
                class,
                method,
                arguments.as_ptr()
            )
        }
    }

    /// Calls `static Object method(...)` of a class, with arguments as the signature says; an exception is an error.
    pub fn call_static_object(
        self,
        class: &str,
        name: &CStr,
        signature: &CStr,
        arguments: &[jvalue],
    ) -> Result<jobject, Error> {
        let found = self.find_class(class)?;
        let what = name.to_string_lossy();
        let method = self.static_method(found, &what, signature)?;
        // SAFETY: the method was looked up in this class with this signature; the caller gives what that says.
        let result = unsafe {
            jni!(
                self,
                CallStaticObjectMethodA,
                found,
                method,
                arguments.as_ptr()
            )
        };
        if result.is_null() {
            return Err(self.missing(format!("a result of {class}.{what}")));
        }
        Ok(result)
    }

    /// An object whose constructor has not run: its fields are zero.
    pub fn allocate(self, class: &str) -> Result<jobject, Error> {
        let found = self.find_class(class)?;
        // SAFETY: this thread's environment, a class reference.
        let object = unsafe { jni!(self, AllocObject, found) };
        self.not_null(object, class)
    }

    /// A string object.
    pub fn new_string(self, text: &str) -> Result<jstring, Error> {
        let characters = c_string(text)?;
        // SAFETY: this thread's environment, a string ending in NUL.
        let string = unsafe { jni!(self, NewStringUTF, characters.as_ptr()) };
        self.not_null(string, "java/lang/String")
    }

    /// An array of objects.
    pub fn new_array(self, class: jclass, elements: &[jobject]) -> Result<jobject, Error> {
        let length = jint::try_from(elements.len()).unwrap_or(jint::MAX);
        // SAFETY: this thread's environment, a class reference; the indices are below the length.
        unsafe {
            let array = jni!(self, NewObjectArray, length, class, ptr::null_mut());
            let array = self.not_null(array, "an array")?;
            for (index, element) in (0..length).zip(elements) {
                jni!(self, SetObjectArrayElement, array, index, *element);
            }
            Ok(array)
        }
    }

    /// Sets an object's reference field.
    pub fn set_object_field(
        self,
        object: jobject,
        name: &CStr,
        signature: &CStr,
        value: jobject,
    ) -> Result<(), Error> {
        // SAFETY: live references; the field was looked up with the type of a reference.
        unsafe {
            let class = jni!(self, GetObjectClass, object);
            let field = jni!(self, GetFieldID, class, name.as_ptr(), signature.as_ptr());
            if field.is_null() {
                return Err(self.missing(format!("field {}", name.to_string_lossy())));
            }
            jni!(self, SetObjectField, object, field, value);
        }
        Ok(())
    }

    /// An object that was to be made; the error names it.
    fn not_null(self, object: jobject, what: &str) -> Result<jobject, Error> {
        if object.is_null() {
            return Err(self.missing(format!("an object of {what}")));
        }
        Ok(object)
    }

    /// Takes the pending exception, if there is one.
    pub fn take_exception(self) -> Option<jobject> {
        // SAFETY: both may be called with an exception pending.
        unsafe {
            let thrown = jni!(self, ExceptionOccurred);
            jni!(self, ExceptionClear);
            if thrown.is_null() { None } else { Some(thrown) }
        }
    }

    /// Calls an object's method without arguments that returns an object: null if it threw or is not there.
    pub fn call_object(self, object: jobject, name: &CStr, signature: &CStr) -> jobject {
        // SAFETY: a live reference; the signature (checked by the lookup) returns an object and takes nothing.
        unsafe {
            let class = jni!(self, GetObjectClass, object);
            let method = jni!(self, GetMethodID, class, name.as_ptr(), signature.as_ptr());
            if method.is_null() {
                self.take_exception();
                return ptr::null_mut();
            }
            let result = jni!(self, CallObjectMethodA, object, method, ptr::null());
            if self.take_exception().is_some() {
                ptr::null_mut()
            } else {
                result
            }
        }
    }

    /// An object's reference field: null if there is no such field.
    pub fn object_field(self, object: jobject, name: &CStr, signature: &CStr) -> jobject {
        // SAFETY: a live reference; the field was looked up with the type of a reference.
        unsafe {
            let class = jni!(self, GetObjectClass, object);
            let field = jni!(self, GetFieldID, class, name.as_ptr(), signature.as_ptr());
            if field.is_null() {
                self.take_exception();
                return ptr::null_mut();
            }
            jni!(self, GetObjectField, object, field)
        }
    }

    /// An object's int field: zero if there is no such field.
    pub fn int_field(self, object: jobject, name: &CStr) -> jint {
        // SAFETY: a live reference; the field was looked up as an int.
        unsafe {
            let class = jni!(self, GetObjectClass, object);
            let field = jni!(self, GetFieldID, class, name.as_ptr(), c"I".as_ptr());
            if field.is_null() {
                self.take_exception();
                return 0;
            }
            jni!(self, GetIntField, object, field)
        }
    }

    /// The elements of an array of objects.
    pub fn elements(self, array: jobject) -> Vec<jobject> {
        if array.is_null() {
            return Vec::new();
        }
        // SAFETY: a live reference to an array; the indices are below its length.
        unsafe {
            let length = jni!(self, GetArrayLength, array);
            (0..length)
                .map(|index| jni!(self, GetObjectArrayElement, array, index))
                .collect()
        }
    }

    /// A string's characters; None for null.
    pub fn string(self, string: jstring) -> Option<String> {
        if string.is_null() {
            return None;
        }
        // SAFETY: a live reference to a string; the characters are released after they were copied.
        unsafe {
            let characters = jni!(self, GetStringUTFChars, string, ptr::null_mut());
            if characters.is_null() {
                self.take_exception();
                return None;
            }
            let text = CStr::from_ptr(characters).to_string_lossy().into_owned();
            jni!(self, ReleaseStringUTFChars, string, characters);
            Some(text)
        }
    }

    /// Binds native methods of a class.
    pub fn register(self, class: &str, natives: &[Native]) -> Result<(), Error> {
        let found = self.find_class(class)?;
        let raw: Vec<_> = natives
            .iter()
            .map(|native| jni_sys::JNINativeMethod {
                name: native.name.as_ptr().cast_mut(),
                signature: native.signature.as_ptr().cast_mut(),
                fnPtr: native.function,
            })
            .collect();
        let count = jint::try_from(raw.len()).unwrap_or(jint::MAX);
        // SAFETY: the table and its static strings outlive the call.
        let status = unsafe { jni!(self, RegisterNatives, found, raw.as_ptr(), count) };
        if status == JNI_OK {
            Ok(())
        } else {
            Err(self.missing(format!("native methods of {class}")))
        }
    }

    /// A throwable as Java prints it: class, message, stack and causes, without a newline at the end.
    pub fn describe(self, thrown: jobject) -> String {
        let mut text = String::new();
        let mut next = thrown;
        for count in 0..MAX_CAUSES {
            if next.is_null() {
                break;
            }
            if count > 0 {
                text.push_str("\nCaused by: ");
            }
            self.describe_one(next, &mut text);
            next = self.object_field(next, c"cause", c"Ljava/lang/Throwable;");
        }
        text
    }

    /// A throwable without its causes.
    fn describe_one(self, thrown: jobject, text: &mut String) {
        let class = self.call_object(thrown, c"getClass", c"()Ljava/lang/Class;");
        let name = if class.is_null() {
            class
        } else {
            self.call_object(class, c"getName", c"()Ljava/lang/String;")
        };
        text.push_str(
            self.string(name)
                .as_deref()
                .unwrap_or("an exception whose class has no name"),
        );
        if let Some(message) =
            self.string(self.object_field(thrown, c"detailMessage", c"Ljava/lang/String;"))
        {
            text.push_str(": ");
            text.push_str(&message);
        }
        let stack = self.call_object(
            thrown,
            c"getStackTrace",
            c"()[Ljava/lang/StackTraceElement;",
        );
        for element in self.elements(stack) {
            let field = |name| self.string(self.object_field(element, name, c"Ljava/lang/String;"));
            let class = field(c"declaringClass").unwrap_or_default();
            let method = field(c"methodName").unwrap_or_default();
            let line = self.int_field(element, c"lineNumber");
            let place = match field(c"fileName") {
                Some(file) if line >= 0 => format!("{file}:{line}"),
                Some(file) => file,
                None => "Unknown Source".to_owned(),
            };
            text.push_str(&format!("\n\tat {class}.{method}({place})"));
        }
    }

    /// The error for something that a lookup did not find, with the exception that it threw.
    fn missing(self, what: String) -> Error {
        let thrown = self
            .take_exception()
            .map_or_else(String::new, |thrown| self.describe(thrown));
        Error::Missing { what, thrown }
    }
}

/// A Rust string as C's.
pub fn c_string(text: &str) -> Result<CString, Error> {
    CString::new(text).map_err(|_| Error::Nul(text.to_owned()))
}
