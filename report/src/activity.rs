//! What a Java virtual machine does: it executes its program, collects garbage, compiles methods, loads classes.
//!
//! Threads of HotSpot do one of these and are known by their names. On other threads, the functions of its library count, from
//! the innermost one on, up to the Java method that called them.

use varid_model::Layer;

use crate::{
    frames::ProfileSymbol,
    profile::Profile,
    stacks::StackId,
    tasks::{Task, TaskId},
};

/// HotSpot's library.
const LIBRARY: &str = "libjvm.so";

/// What the threads of a process do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Activity {
    /// Executing the program, with the native code and the kernel below it. All of a process that has no JVM.
    Program,
    /// Collecting garbage.
    GarbageCollection,
    /// Compiling methods.
    Compilation,
    /// Finding, parsing, verifying and linking classes.
    ClassLoading,
    /// Other work of the JVM that no Java method called: starting, stopping threads for an operation.
    OtherVm,
}

/// Starts of the names of threads, which the kernel truncates to 15 bytes, with what they do.
const THREADS: [(&str, Activity); 17] = [
    ("GC Thread#", Activity::GarbageCollection),
    ("G1 Conc#", Activity::GarbageCollection),
    ("G1 Main Marker", Activity::GarbageCollection),
    ("G1 Refine#", Activity::GarbageCollection),
    ("G1 Service", Activity::GarbageCollection),
    ("ParGC Thread#", Activity::GarbageCollection),
    ("Shenandoah ", Activity::GarbageCollection),
    ("ZWorker", Activity::GarbageCollection),
    ("ZDriver", Activity::GarbageCollection),
    ("ZDirector", Activity::GarbageCollection),
    ("ZPageAllocator", Activity::GarbageCollection),
    ("ZUncommitter", Activity::GarbageCollection),
    ("ZUnmapper", Activity::GarbageCollection),
    ("C1 CompilerThre", Activity::Compilation),
    ("C2 CompilerThre", Activity::Compilation),
    ("JVMCI CompilerT", Activity::Compilation),
    ("Sweeper thread", Activity::Compilation),
];

/// Starts of the names of functions, with what they do. Collections are operations of the thread `VM Thread`.
const FUNCTIONS: [(&str, Activity); 21] = [
    ("VM_G1", Activity::GarbageCollection),
    ("VM_GenCollect", Activity::GarbageCollection),
    ("VM_GenFullCollect", Activity::GarbageCollection),
    ("VM_SerialCollect", Activity::GarbageCollection),
    ("VM_SerialGC", Activity::GarbageCollection),
    ("VM_Parallel", Activity::GarbageCollection),
    ("VM_CollectForMetadata", Activity::GarbageCollection),
    ("VM_Shenandoah", Activity::GarbageCollection),
    ("VM_Z", Activity::GarbageCollection),
    ("CompileBroker::", Activity::Compilation),
    ("ClassFileParser::", Activity::ClassLoading),
    ("ClassLoader::", Activity::ClassLoading),
    ("ClassVerifier::", Activity::ClassLoading),
    ("InstanceKlass::link_class", Activity::ClassLoading),
    ("JVM_DefineClass", Activity::ClassLoading),
    ("JVM_FindClass", Activity::ClassLoading),
    ("JVM_LookupDefineClass", Activity::ClassLoading),
    ("KlassFactory::", Activity::ClassLoading),
    ("Rewriter::", Activity::ClassLoading),
    ("SystemDictionary::", Activity::ClassLoading),
    ("Verifier::", Activity::ClassLoading),
];

impl Activity {
    /// Returns the name in tables and in JSON.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Program => "program",
            Self::GarbageCollection => "garbage collection",
            Self::Compilation => "JIT compilation",
            Self::ClassLoading => "class loading",
            Self::OtherVm => "other VM",
        }
    }

    /// Returns what a thread with this name does. None if it may do anything.
    fn of_thread(name: &str) -> Option<Self> {
        start_of(name, &THREADS)
    }

    /// Returns what a function of the library is for. None if it may be called for anything.
    fn of_function(name: &str) -> Option<Self> {
        start_of(name, &FUNCTIONS)
    }
}

fn start_of(name: &str, starts: &[(&str, Activity)]) -> Option<Activity> {
    let mut starts = starts.iter();
    let found = starts.find(|(start, _)| name.starts_with(start))?;
    Some(found.1)
}

/// The activities of a profile's threads.
#[derive(Debug)]
pub(crate) struct Activities {
    /// By task: what the thread does anyway.
    tasks: Vec<Option<Activity>>,
    /// By stack.
    stacks: Vec<Activity>,
}

impl Activities {
    pub fn new(profile: &Profile) -> Self {
        let images = profile.frames.images();
        if !images.iter().any(|image| is_library(&image.name)) {
            return Self {
                tasks: Vec::new(),
                stacks: Vec::new(),
            };
        }
        let of_task = |task: &Task| Activity::of_thread(&task.name);
        let tasks = profile.tasks.tasks.iter().map(of_task);
        let mut stacks: Vec<Activity> = Vec::with_capacity(profile.stacks.len());
        // Parents precede their children.
        for stack in profile.stacks.ids() {
            let frame = profile.stacks.frame(stack);
            let symbol = frame.and_then(|frame| profile.frames.symbol_of(frame));
            let parent = profile.stacks.parent(stack);
            let parent = parent.and_then(|parent| stacks.get(parent.index()).copied());
            stacks.push(match symbol {
                Some(symbol) => of_frame(profile, symbol, parent),
                None => parent.unwrap_or(Activity::Program),
            });
        }
        Self {
            tasks: tasks.collect(),
            stacks,
        }
    }

    /// Returns what a thread did with this stack.
    pub fn of(&self, task: TaskId, stack: Option<StackId>) -> Activity {
        let task = self.tasks.get(task.index()).copied().flatten();
        let stack = || self.stacks.get(stack?.index()).copied();
        task.or_else(stack).unwrap_or(Activity::Program)
    }
}

/// Returns what a stack is for whose leaf is this function. `caller`: what the stack without the leaf is for.
fn of_frame(profile: &Profile, symbol: &ProfileSymbol, caller: Option<Activity>) -> Activity {
    if matches!(symbol.layer, Layer::App | Layer::Framework) && symbol.marker.is_none() {
        return Activity::Program;
    }
    let image = profile.frames.image(symbol.image);
    let is_of_library = image.is_some_and(|image| is_library(&image.name));
    let of_function = Activity::of_function(&symbol.name).filter(|_| is_of_library);
    match (of_function, caller) {
        (Some(activity), _) => activity,
        // What a thread's first function calls is the JVM's until it calls a method.
        (None, None) if is_of_library => Activity::OtherVm,
        (None, Some(caller)) => caller,
        (None, None) => Activity::Program,
    }
}

/// Returns true if an image is HotSpot's library.
fn is_library(image: &str) -> bool {
    image.starts_with(LIBRARY)
}

#[cfg(test)]
mod tests {
    use super::Activity;

    #[test]
    fn threads_of_hotspot_are_known_by_the_names_that_the_kernel_has() {
        for (name, expected) in [
            ("GC Thread#0", Some(Activity::GarbageCollection)),
            ("G1 Main Marker", Some(Activity::GarbageCollection)),
            ("C2 CompilerThre", Some(Activity::Compilation)),
            ("C1 CompilerThre", Some(Activity::Compilation)),
            // They do the work of others, or that of the program.
            ("VM Thread", None),
            ("main", None),
            ("GC-monitor", None),
        ] {
            assert_eq!(Activity::of_thread(name), expected, "{name}");
        }
    }

    #[test]
    fn functions_of_the_library_say_what_they_are_for() {
        for (name, expected) in [
            (
                "ClassFileParser::parse_methods(ClassFileStream const*, bool, AccessFlags*, bool*, bool*, Thread*)",
                Some(Activity::ClassLoading),
            ),
            (
                "VM_G1CollectForAllocation::doit()",
                Some(Activity::GarbageCollection),
            ),
            (
                "CompileBroker::compiler_thread_loop()",
                Some(Activity::Compilation),
            ),
            ("JavaCalls::call_helper(JavaValue*)", None),
            ("VM_Operation::evaluate()", None),
        ] {
            assert_eq!(Activity::of_function(name), expected, "{name}");
        }
    }
}
