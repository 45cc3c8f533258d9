//! Describes a VM in a line of text.

use super::jvm::Jvm;
use super::unexported::Tested;
use std::fmt;

impl fmt::Display for Jvm {
    /// Writes its version, its collector, its class pointers, its code heaps, and what is not known of it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (version, flags) = (&self.version, &self.flags);
        write!(f, "{version} with {}", flags.collector)?;
        match self.class_pointers {
            Some(pointers) => write!(
                f,
                ", compressed class pointers ({} + (p << {}))",
                pointers.base, pointers.shift
            )?,
            None => f.write_str(", class pointers of 64 bits")?,
        }
        let heaps = self.code_heaps.len();
        match (flags.segmented_code_cache, heaps) {
            (true, _) => write!(f, ", a segmented code cache ({heaps} heaps)")?,
            (false, 1) => f.write_str(", one code heap")?,
            (false, _) => write!(f, ", {heaps} code heaps")?,
        }
        if self.unloaded_classes.is_none() {
            f.write_str("; it does not say whether it unloads classes")?;
        }
        match self.unexported.tested {
            Tested::Yes => Ok(()),
            Tested::No => {
                f.write_str("; untested: this version or machine is described by its tables alone")
            }
        }
    }
}
