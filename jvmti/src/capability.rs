//! What an agent may do.

/// A capability. The value is its bit in `jvmtiCapabilities`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Capability {
    /// `can_generate_all_class_hook_events`: the hook sees the classes of the boot loader.
    AllClassHookEvents = 26,
    /// `can_generate_native_method_bind_events`.
    NativeMethodBindEvents = 30,
    /// `can_generate_early_vmstart`: `VMStart` is sent before any bytecode runs.
    EarlyVmStart = 41,
    /// `can_generate_early_class_hook_events`: the hook sees the classes that are loaded before `VMStart`.
    EarlyClassHookEvents = 42,
    /// `can_support_virtual_threads`, from JDK 21 on.
    VirtualThreads = 44,
}

/// A set of capabilities, laid out as `jvmtiCapabilities`: 128 bits in words of 32.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(C)]
pub struct Capabilities([u32; 4]);

impl Capabilities {
    /// Returns the set with a capability added.
    #[must_use]
    pub fn with(mut self, capability: Capability) -> Self {
        let (word, bit) = Self::place(capability);
        if let Some(word) = self.0.get_mut(word) {
            *word |= bit;
        }
        self
    }

    /// Returns true if a capability is in the set.
    #[must_use]
    pub fn has(&self, capability: Capability) -> bool {
        let (word, bit) = Self::place(capability);
        self.0.get(word).is_some_and(|word| word & bit != 0)
    }

    const fn place(capability: Capability) -> (usize, u32) {
        let number = capability as u8;
        ((number / 32) as usize, 1 << (number % 32))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_capability_is_its_bit_of_the_structure() {
        let set = Capabilities::default()
            .with(Capability::AllClassHookEvents)
            .with(Capability::EarlyClassHookEvents);
        assert_eq!(set.0, [1 << 26, 1 << 10, 0, 0]);
        assert!(set.has(Capability::EarlyClassHookEvents) && !set.has(Capability::EarlyVmStart));
    }
}
