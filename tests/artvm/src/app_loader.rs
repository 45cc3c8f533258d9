//! How is an app's dex file loaded outside the boot class path? By the system class loader, which gets a path list as Android's
//! has; libart then takes the code that dex2oat wrote beside the dex file.

use std::path::Path;
use std::ptr;

use jni_sys::{jobject, jvalue};

use crate::error::Error;
use crate::vm::Env;

/// A class loader, valid on the thread of the environment that it was made with.
#[derive(Debug, Clone, Copy)]
pub struct AppLoader(jobject);

impl AppLoader {
    /// Lets the system class loader find the classes of a dex file: from here on, [`Env::find_class`] finds them.
    pub fn open(env: Env, dex: &Path) -> Result<Self, Error> {
        let loader = env.call_static_object(
            "java/lang/ClassLoader",
            c"getSystemClassLoader",
            c"()Ljava/lang/ClassLoader;",
            &[],
        )?;
        let element_class = env.find_class("dalvik/system/DexPathList$Element")?;
        let name = env.new_string(&dex.to_string_lossy())?;
        // What the loader has already: nothing, but libart refuses compiled code if it cannot see that.
        let before = env.new_array(element_class, &[])?;
        let cookie = env.call_static_object(
            "dalvik/system/DexFile",
            c"openDexFileNative",
            c"(Ljava/lang/String;Ljava/lang/String;ILjava/lang/ClassLoader;[Ldalvik/system/DexPathList$Element;)Ljava/lang/Object;",
            &[
                jvalue { l: name },
                jvalue { l: ptr::null_mut() },
                jvalue { i: 0 },
                jvalue { l: loader },
                jvalue { l: before },
            ],
        )?;
        let file = env.allocate("dalvik/system/DexFile")?;
        env.set_object_field(file, c"mCookie", c"Ljava/lang/Object;", cookie)?;
        env.set_object_field(file, c"mFileName", c"Ljava/lang/String;", name)?;
        let element = env.allocate("dalvik/system/DexPathList$Element")?;
        env.set_object_field(element, c"dexFile", c"Ldalvik/system/DexFile;", file)?;
        let elements = env.new_array(element_class, &[element])?;
        let list = env.allocate("dalvik/system/DexPathList")?;
        env.set_object_field(
            list,
            c"dexElements",
            c"[Ldalvik/system/DexPathList$Element;",
            elements,
        )?;
        env.set_object_field(loader, c"pathList", c"Ldalvik/system/DexPathList;", list)?;
        Ok(Self(loader))
    }

    /// The class loader.
    pub fn object(self) -> jobject {
        self.0
    }
}
