//! Which libart is started? Finds it, refuses builds that are not known, loads it with what it needs.

use std::ffi::{CStr, CString, c_int, c_void};
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use object::Object;

use crate::error::Error;

/// The libraries that libart asks for by name for its core library; built with artvm, beside it.
const CORE_LIBRARIES: [&str; 3] = ["libicu_jni.so", "libjavacore.so", "libopenjdk.so"];

/// Where a release's libart is, and which build it must be.
#[derive(Debug)]
pub struct Source {
    /// The folder of libart and its companions.
    pub folder: PathBuf,
    /// What libart uses and does not declare, each after what it needs itself.
    pub undeclared: &'static [&'static str],
    /// The build-id that is known for this architecture.
    pub build_id: &'static str,
    /// Debian's package with that build.
    pub package: &'static str,
    /// How to get the libraries: begins with a semicolon.
    pub hint: &'static str,
}

/// A libart whose build is known, loaded into this process.
#[derive(Debug)]
pub struct Libart {
    handle: *mut c_void,
}

impl Libart {
    /// Checks the build of libart (the given file, else the release's) and loads it and `beside`'s core libraries.
    ///
    /// Nothing is loaded unless the build-id in the file is the known one, or `any_build` is asked for.
    pub fn load(
        source: &Source,
        file: Option<&Path>,
        any_build: bool,
        beside: &Path,
    ) -> Result<Self, Error> {
        let folder = &source.folder;
        let path = file.map_or_else(|| folder.join("libart.so.0"), Path::to_path_buf);
        let found = build_id(&path, source.hint)?;
        if found != source.build_id && !any_build {
            return Err(Error::UnknownBuild {
                path,
                found,
                known: source.build_id,
                package: source.package,
            });
        }
        // A libart copied elsewhere brings its companions along, or uses the release's.
        let companions = [path.parent().unwrap_or(folder), folder];
        for name in source.undeclared {
            let place = companions
                .iter()
                .map(|folder| folder.join(name))
                .find(|path| path.exists());
            open(
                &place.unwrap_or_else(|| PathBuf::from(name)),
                libc::RTLD_LAZY | libc::RTLD_GLOBAL,
                source.hint,
            )?;
        }
        let handle = open(&path, libc::RTLD_NOW | libc::RTLD_GLOBAL, source.hint)?;
        for name in CORE_LIBRARIES {
            // libart then finds them loaded, by their sonames.
            open(&beside.join(name), libc::RTLD_NOW, BUILD)?;
        }
        Ok(Self { handle })
    }

    /// Loads the JIT from beside the release's boot class path; libart then finds it by its soname.
    pub fn load_compiler(&self, boot_class_path: &Path) -> Result<(), Error> {
        let path = boot_class_path.with_file_name(COMPILER);
        open(&path, libc::RTLD_NOW, BUILD_COMPILER).map(drop)
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

const BUILD: &str = "; build artvm: cargo build --release -p artvm";
const BUILD_COMPILER: &str = "; build ART's compiler with artvm's folder: tests/art11/build.sh FOLDER or tests/art14/compiler.sh FOLDER";

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
fn build_id(path: &Path, hint: &'static str) -> Result<String, Error> {
    let no_build_id = |reason: String| Error::NoBuildId {
        path: path.to_owned(),
        reason,
    };
    let file = File::open(path).map_err(|source| Error::File {
        path: path.to_owned(),
        source,
        hint,
    })?;
    let cache = object::ReadCache::new(file);
    let elf = object::File::parse(&cache).map_err(|error| no_build_id(error.to_string()))?;
    let id = elf
        .build_id()
        .map_err(|error| no_build_id(error.to_string()))?;
    let id = id.ok_or_else(|| no_build_id("the file has no build-id note".to_owned()))?;
    Ok(id.iter().map(|byte| format!("{byte:02x}")).collect())
}
