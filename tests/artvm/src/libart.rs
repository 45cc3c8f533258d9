//! Which libart is started? Finds it, refuses builds that are not known, loads it with what it needs.

use std::ffi::{CStr, CString, c_int, c_void};
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use object::Object;

use crate::error::Error;

/// The builds of Debian's android-libart 11.0.0+r48-5: architecture, folder, build-id.
const KNOWN_BUILDS: [(&str, &str, &str); 3] = [
    (
        "x86_64",
        "/usr/lib/x86_64-linux-gnu/android",
        "d3ba281c20e725780467fb41f50e669082ccac64",
    ),
    (
        "aarch64",
        "/usr/lib/aarch64-linux-gnu/android",
        "2de21a0d4ca9b5446222c70a4e814a342758d2e2",
    ),
    (
        "arm",
        "/usr/lib/arm-linux-gnueabihf/android",
        "e383dc2a23c443c345f83ebd57c2274d8cdc6324",
    ),
];

/// What libart uses and does not declare, each after what it needs itself. They must be in the global scope
/// before it. libdexfile_external is missing on purpose: it needs libart, which does not need it.
const UNDECLARED: [&str; 10] = [
    "liblz4.so.1",
    "libz.so.1",
    "libsigchain.so.0",
    "liblog.so.0",
    "libbase.so.0",
    "libnativebridge.so.0",
    "libnativeloader.so.0",
    "libziparchive.so.0",
    "libbacktrace.so.0",
    "libdexfile_support.so.0",
];

/// The libraries that libart asks for by name for its core library; built with artvm, beside it.
const CORE_LIBRARIES: [&str; 3] = ["libicu_jni.so", "libjavacore.so", "libopenjdk.so"];

/// A libart whose build is known, loaded into this process.
#[derive(Debug)]
pub struct Libart {
    handle: *mut c_void,
}

impl Libart {
    /// Checks the build of libart (the given file, else Debian's) and loads it and `beside`'s core libraries.
    ///
    /// Nothing is loaded unless the build-id in the file is the known one, or `any_build` is asked for.
    pub fn load(file: Option<&Path>, any_build: bool, beside: &Path) -> Result<Self, Error> {
        let (_, folder, known) = KNOWN_BUILDS
            .into_iter()
            .find(|(arch, ..)| *arch == std::env::consts::ARCH)
            .unwrap_or(("unknown", "/usr/lib/android", "none for this architecture"));
        let path = file.map_or_else(|| Path::new(folder).join("libart.so.0"), Path::to_path_buf);
        let found = build_id(&path)?;
        if found != known && !any_build {
            return Err(Error::UnknownBuild { path, found, known });
        }
        // A libart copied elsewhere brings its companions along, or uses the installed ones.
        let companions = [
            path.parent().unwrap_or(Path::new(folder)),
            Path::new(folder),
        ];
        for name in UNDECLARED {
            let place = companions
                .iter()
                .map(|folder| folder.join(name))
                .find(|path| path.exists());
            open(
                &place.unwrap_or_else(|| PathBuf::from(name)),
                libc::RTLD_LAZY | libc::RTLD_GLOBAL,
                INSTALL,
            )?;
        }
        let handle = open(&path, libc::RTLD_NOW | libc::RTLD_GLOBAL, INSTALL)?;
        for name in CORE_LIBRARIES {
            // libart then finds them loaded, by their sonames.
            open(&beside.join(name), libc::RTLD_NOW, BUILD)?;
        }
        Ok(Self { handle })
    }

    /// Loads the JIT, which libart then finds by its soname: `beside`'s libart-compiler.so.
    pub fn load_compiler(&self, beside: &Path) -> Result<(), Error> {
        open(&beside.join(COMPILER), libc::RTLD_NOW, BUILD_COMPILER).map(drop)
    }

    /// The address of an exported function of libart.
    pub fn symbol(&self, name: &CStr) -> Result<*mut c_void, Error> {
        // SAFETY: the handle is of a library that is never unloaded, the name ends in NUL.
        let address = unsafe { libc::dlsym(self.handle, name.as_ptr()) };
        if address.is_null() {
            return Err(Error::Link {
                what: name.to_string_lossy().into_owned(),
                message: dl_error(),
                hint: "",
            });
        }
        Ok(address)
    }
}

/// The library that libart asks for by name for its JIT.
const COMPILER: &str = "libart-compiler.so";

const INSTALL: &str = "; install android-libart";
const BUILD: &str = "; build artvm: cargo build --release -p artvm";
const BUILD_COMPILER: &str =
    "; build ART's compiler: tests/art11/build.sh FOLDER, with artvm's folder";

/// Opens a library for good.
fn open(path: &Path, flags: c_int, hint: &'static str) -> Result<*mut c_void, Error> {
    let what = path.display().to_string();
    let c_path = CString::new(path.as_os_str().as_bytes()).map_err(|_| Error::Nul(what.clone()))?;
    // SAFETY: the path ends in NUL; the libraries' initialisers are those of libart's own dependencies.
    let handle = unsafe { libc::dlopen(c_path.as_ptr(), flags) };
    if handle.is_null() {
        return Err(Error::Link {
            what,
            message: dl_error(),
            hint,
        });
    }
    Ok(handle)
}

/// The dynamic linker's last error.
fn dl_error() -> String {
    // SAFETY: dlerror returns null or a string that lives until the next call on this thread.
    unsafe {
        let message = libc::dlerror();
        if message.is_null() {
            return "not found".to_owned();
        }
        CStr::from_ptr(message).to_string_lossy().into_owned()
    }
}

/// The build-id in an ELF file's notes, in hexadecimal.
fn build_id(path: &Path) -> Result<String, Error> {
    let no_build_id = |reason: String| Error::NoBuildId {
        path: path.to_owned(),
        reason,
    };
    let file = File::open(path).map_err(|source| Error::File {
        path: path.to_owned(),
        source,
        hint: INSTALL,
    })?;
    let cache = object::ReadCache::new(file);
    let elf = object::File::parse(&cache).map_err(|error| no_build_id(error.to_string()))?;
    let id = elf
        .build_id()
        .map_err(|error| no_build_id(error.to_string()))?;
    let id = id.ok_or_else(|| no_build_id("the file has no build-id note".to_owned()))?;
    Ok(id.iter().map(|byte| format!("{byte:02x}")).collect())
}
