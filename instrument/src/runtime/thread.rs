//! What is added to `java.lang.Thread`?

use super::{CELL_TYPE, THREAD_CELL};
use crate::NotRewritten;
use crate::class::ClassFile;

/// Access flags of the field: transient, so that serialisation passes over it, and synthetic. Reflection shows it.
const ACCESS: u16 = 0x0080 | 0x1000;

/// Adds to the class file of `java/lang/Thread` the field for a thread's cell. The result has to be [rewritten](crate::rewrite) as other classes are.
///
/// # Errors
///
/// [`NotRewritten`] if it is not a class file of a supported version, or has no room for the field.
pub fn thread_class(class: &[u8]) -> Result<Vec<u8>, NotRewritten> {
    let mut file = ClassFile::read(class)?;
    let name = file.constants.add_utf8(THREAD_CELL.as_bytes())?;
    let descriptor = file.constants.add_utf8(CELL_TYPE.as_bytes())?;
    let fields = file
        .field_count
        .checked_add(1)
        .ok_or(NotRewritten::ConstantPoolFull)?;
    let mut bytes = Vec::with_capacity(class.len().saturating_add(64));
    file.write_head(&mut bytes);
    bytes.extend(fields.to_be_bytes());
    bytes.extend(file.fields);
    for part in [ACCESS, name, descriptor, 0] {
        bytes.extend(part.to_be_bytes());
    }
    bytes.extend(file.after_fields);
    Ok(bytes)
}
