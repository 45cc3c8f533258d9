//! The VM's events.

use std::{
    ffi::{CStr, c_char, c_void},
    fs, io,
    panic::catch_unwind,
    path::PathBuf,
    process,
};

use varid_instrument::Counted;
use varid_jvmti::{
    Callbacks, Capabilities, Capability, Event, Handle, JavaVm, Jni, Jvmti, RawJni, RawTable,
};

use crate::{
    agent::{Agent, Files, LoadedClass, guarded},
    hidden,
    mapping::Place,
    options::Options,
    order::Order,
    start,
    switch::map_switch,
    tables::Tables,
    tree_file::TreeFile,
};

/// Starts the agent: the VM calls it when it loads the library.
///
/// Returns 0: a program runs even if the agent cannot work, which is said.
///
/// # Safety
///
/// The VM passes itself, and zero-terminated options or null.
#[unsafe(no_mangle)]
pub unsafe extern "system" fn Agent_OnLoad(
    vm: RawTable,
    options: *const c_char,
    _: *mut c_void,
) -> i32 {
    let started = catch_unwind(|| {
        let options = match options.is_null() {
            true => "".into(),
            // SAFETY: the caller promises a zero-terminated text.
            false => unsafe { CStr::from_ptr(options) }.to_string_lossy(),
        };
        let options = Options::parse(&options).map_err(|error| error.to_string())?;
        // SAFETY: the VM passed itself.
        load(unsafe { JavaVm::new(vm) }, &options)
    });
    if let Ok(Err(error)) = started {
        eprintln!("varid: the VM cannot count calls: {error}");
    }
    0
}

/// Makes the files and enables the events.
fn load(vm: JavaVm, options: &Options) -> Result<(), String> {
    let jvmti = vm.jvmti().ok_or("it has no JVMTI of version 11")?;
    let files = files(options, &Place::Anywhere)
        .map_err(|error| format!("{}: {error}", options.folder.display()))?;
    if !Agent::install(jvmti, files, options) {
        return Err("the agent is loaded twice".to_owned());
    }
    enable(jvmti).map_err(|error| error.to_string())
}

fn enable(jvmti: Jvmti) -> varid_jvmti::Result<()> {
    let mut wanted = Capabilities::default()
        .with(Capability::AllClassHookEvents)
        .with(Capability::NativeMethodBindEvents)
        .with(Capability::EarlyVmStart)
        .with(Capability::EarlyClassHookEvents);
    let has_virtual = jvmti
        .potential_capabilities()?
        .has(Capability::VirtualThreads);
    if has_virtual {
        wanted = wanted.with(Capability::VirtualThreads);
    }
    jvmti.add_capabilities(&wanted)?;
    let mut callbacks = Callbacks::default();
    callbacks.vm_start = Some(vm_start);
    callbacks.vm_init = Some(vm_init);
    callbacks.class_file_load_hook = Some(class_file_load_hook);
    callbacks.native_method_bind = Some(native_method_bind);
    callbacks.thread_start = Some(thread_start);
    callbacks.thread_end = Some(thread_end);
    callbacks.virtual_thread_start = has_virtual.then_some(thread_start);
    jvmti.set_callbacks(&callbacks)?;
    for event in [
        Event::VmStart,
        Event::VmInit,
        Event::ClassFileLoadHook,
        Event::NativeMethodBind,
        Event::ThreadStart,
        Event::ThreadEnd,
    ] {
        jvmti.enable(event)?;
    }
    match has_virtual {
        true => jvmti.enable(Event::VirtualThreadStart),
        false => Ok(()),
    }
}

/// Makes the files of this process, and maps the tree at a place. After an exec it has others.
pub(crate) fn files(options: &Options, place: &Place) -> io::Result<Files> {
    let pid = process::id();
    let is_switched = options.is_switched.then_some(&options.folder);
    let switch = is_switched.map(|folder| map_switch(folder)).transpose()?;
    let mut number = 0_u32;
    loop {
        let path = |kind| -> PathBuf { options.folder.join(format!("{pid}.{number}.{kind}")) };
        match Tables::create(&path("tables")) {
            Ok(tables) => {
                let made = TreeFile::create(&path("tree"), options.bytes, place).and_then(|tree| {
                    let order = match options.counted {
                        Counted::Order => Some(Order::create(&path("order"), &tree)?),
                        Counted::Calls | Counted::Blocks => None,
                    };
                    Ok((tree, order))
                });
                if made.is_err() {
                    // The reader would look for the others.
                    let _ = fs::remove_file(path("tables"));
                }
                let (tree, order) = made?;
                return Ok(Files {
                    tree,
                    tables,
                    order,
                    switch,
                });
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                number = number.saturating_add(1);
            }
            Err(error) => return Err(error),
        }
    }
}

unsafe extern "system" fn vm_start(_: RawTable, jni: RawJni) {
    guarded(|agent| {
        // SAFETY: the VM passes the environment of this thread.
        if let Some(jni) = unsafe { Jni::new(jni) }
            && let Err(reason) = prepare(agent, jni)
        {
            agent.fail(reason);
        }
    });
}

/// Makes ready what rewritten classes and the start of counting need.
fn prepare(agent: &Agent, jni: Jni) -> Result<(), &'static str> {
    if !agent.define_runtime(jni) {
        return Err("the VM refuses the class that counts");
    }
    start::watch(agent.jvmti).map_err(|_| "the start of the program cannot be watched")
}

unsafe extern "system" fn vm_init(_: RawTable, jni: RawJni, _: *mut c_void) {
    guarded(|agent| {
        // SAFETY: the VM passes the environment of this thread.
        if let Some(jni) = unsafe { Jni::new(jni) }
            && let Err(reason) = agent.initialize(jni)
        {
            agent.fail(&reason);
        }
    });
}

unsafe extern "system" fn class_file_load_hook(
    _: RawTable,
    _: RawJni,
    _: *mut c_void,
    loader: *mut c_void,
    name: *const c_char,
    _: *mut c_void,
    length: i32,
    bytes: *const u8,
    new_length: *mut i32,
    new_bytes: *mut *mut u8,
) {
    guarded(|agent| {
        let Ok(length) = usize::try_from(length) else {
            return;
        };
        let name = match name.is_null() {
            true => None,
            // SAFETY: the VM passes a zero-terminated name.
            false => Some(unsafe { CStr::from_ptr(name) }.to_string_lossy()),
        };
        let class = LoadedClass {
            is_boot: loader.is_null(),
            name: name.as_deref(),
            // SAFETY: the VM passes `length` bytes, and does not change them during the event.
            bytes: unsafe { std::slice::from_raw_parts(bytes, length) },
        };
        let Some(rewritten) = agent.rewrite(&class) else {
            return;
        };
        let new = agent.jvmti.copy(&rewritten).ok();
        if let Some((new, length)) = new.zip(i32::try_from(rewritten.len()).ok()) {
            // SAFETY: the VM passes places for the result.
            unsafe {
                *new_bytes = new;
                *new_length = length;
            }
        }
    });
}

unsafe extern "system" fn native_method_bind(
    _: RawTable,
    _: RawJni,
    _: *mut c_void,
    method: *mut c_void,
    function: *const c_void,
    new_function: *mut *const c_void,
) {
    guarded(|agent| {
        // SAFETY: the method and the function are those of the event.
        if let Some(new) = unsafe { hidden::replacement(agent, method, function) } {
            // SAFETY: the VM passes a place for the result.
            unsafe { *new_function = new };
        }
    });
}

unsafe extern "system" fn thread_start(_: RawTable, jni: RawJni, thread: *mut c_void) {
    guarded(|agent| {
        // SAFETY: the VM passes the environment of this thread.
        let jni = unsafe { Jni::new(jni) };
        if let Some((jni, thread)) = jni.zip(Handle::new(thread))
            && agent.has_begun()
        {
            agent.count_thread(jni, thread);
        }
    });
}

unsafe extern "system" fn thread_end(_: RawTable, jni: RawJni, thread: *mut c_void) {
    guarded(|agent| {
        // SAFETY: the VM passes the environment of this thread.
        let jni = unsafe { Jni::new(jni) };
        if let Some((jni, thread)) = jni.zip(Handle::new(thread)) {
            agent.end_thread(jni, thread);
        }
    });
}
