//! Makes a process's target for the source, and has its JVM probed.

use crate::sampling::Sampling;
use std::os::fd::AsFd;
use varid_model::Stack;
use varid_sampler::SamplerError;
use varid_sampler::event::jvm::{LibjvmFile, LibjvmId};
use varid_shim::{Target, target_flags};
use varid_vm::{Jvm, ManagedProcess};

/// Returns the target of a process for the source. `managed`: the process, or None for all processes without a target of their own.
/// `stack`: how much of each stack is recorded.
pub fn target_of(managed: Option<&ManagedProcess>, stack: Stack) -> Target {
    let stack = match stack {
        // The frames of such a VM can only be found by unwinding the whole stack.
        Stack::Vertical if managed.is_some_and(ManagedProcess::is_marked) => {
            target_flags::FULL_STACK
        }
        Stack::Vertical => 0,
        Stack::Full => target_flags::FULL_STACK,
        Stack::None => target_flags::NO_STACK,
    };
    let namespaced = match managed.is_some_and(|managed| managed.process.status.namespaced) {
        true => target_flags::NAMESPACED,
        false => 0,
    };
    let flags = stack | namespaced | target_flags::FOLLOW;
    let vm = managed.and_then(|managed| Some((managed.vm()?, managed.space())));
    match vm {
        Some((vm, space)) => vm.target(flags, space),
        None => Target {
            flags,
            ..Target::default()
        },
    }
}

/// Has the libraries of HotSpot probed that a process has loaded, for the events that are sampled there.
pub fn probe_libjvm(managed: &ManagedProcess, sampling: &Sampling) -> Result<(), SamplerError> {
    let images = managed.process.elf_images();
    let libraries = images.filter(|image| Jvm::is_library(&image.path));
    let mut files = libraries.filter_map(|image| {
        let file = image.file()?;
        let found = file.metadata().ok()?;
        Some(LibjvmFile {
            name: &image.path,
            id: LibjvmId {
                device: found.dev(),
                inode: found.ino(),
            },
            bytes: file,
            size: found.len(),
            handle: file.as_fd(),
        })
    });
    files.try_for_each(|file| sampling.add_libjvm(file))
}

#[cfg(test)]
mod tests {
    use super::*;
    use varid_vm::VmKinds;

    #[test]
    fn every_process_is_followed_and_sampled_with_as_much_stack_as_is_recorded() {
        let flags = |stack| {
            target_of(
                Some(&ManagedProcess::new(
                    varid_model::Pid::new(1),
                    VmKinds::default(),
                )),
                stack,
            )
            .flags
        };
        let common = flags(Stack::Vertical);
        assert_ne!(common & target_flags::FOLLOW, 0);
        assert_eq!(flags(Stack::Full), common | target_flags::FULL_STACK);
        assert_eq!(flags(Stack::None), common | target_flags::NO_STACK);
        assert_eq!(
            target_of(None, Stack::None).flags,
            target_flags::FOLLOW | target_flags::NO_STACK
        );
    }
}
