//! A class with one method, assembled from bytes.

use crate::class::{Constants, tag};

/// The constant of the method `A.f` in every assembled class.
pub(super) const CALLEE: u16 = 6;

/// A static method `m` of the class `A`, with its parts as bytes.
pub(super) struct Assembled {
    pub(super) major: u16,
    pub(super) descriptor: &'static str,
    pub(super) max_locals: u16,
    pub(super) code: Vec<u8>,
    /// Entries of the exception table.
    pub(super) handlers: Vec<[u16; 4]>,
    /// The contents of a `StackMapTable`.
    pub(super) frames: Option<Vec<u8>>,
}

impl Default for Assembled {
    fn default() -> Self {
        Self {
            major: 61,
            descriptor: "()V",
            max_locals: 0,
            code: vec![crate::class::opcode::RETURN],
            handlers: Vec::new(),
            frames: None,
        }
    }
}

impl Assembled {
    /// Returns the class file.
    pub(super) fn class(&self) -> Vec<u8> {
        let mut constants = Constants::empty();
        let callee = constants.add_member(tag::METHOD, "A", "f", "()V").unwrap();
        assert_eq!(callee, CALLEE);
        let this = constants.add_class(b"A").unwrap();
        let object = constants.add_class(b"java/lang/Object").unwrap();
        let name = constants.add_utf8(b"m").unwrap();
        let descriptor = constants.add_utf8(self.descriptor.as_bytes()).unwrap();
        let code = constants.add_utf8(b"Code").unwrap();
        let frames = constants.add_utf8(b"StackMapTable").unwrap();

        let mut attribute = Vec::new();
        attribute.extend(4_u16.to_be_bytes());
        attribute.extend(self.max_locals.to_be_bytes());
        attribute.extend(u32::try_from(self.code.len()).unwrap().to_be_bytes());
        attribute.extend(&self.code);
        attribute.extend(u16::try_from(self.handlers.len()).unwrap().to_be_bytes());
        attribute.extend(
            self.handlers
                .as_flattened()
                .iter()
                .flat_map(|it| it.to_be_bytes()),
        );
        attribute.extend(u16::from(self.frames.is_some()).to_be_bytes());
        if let Some(contents) = &self.frames {
            attribute.extend(frames.to_be_bytes());
            attribute.extend(u32::try_from(contents.len()).unwrap().to_be_bytes());
            attribute.extend(contents);
        }

        let mut class = vec![0xca, 0xfe, 0xba, 0xbe, 0, 0];
        class.extend(self.major.to_be_bytes());
        constants.write(&mut class);
        // Access flags, names, no interfaces, no fields, one static method with one attribute.
        for part in [0x21, this, object, 0, 0, 1, 0x09, name, descriptor, 1, code] {
            class.extend(part.to_be_bytes());
        }
        class.extend(u32::try_from(attribute.len()).unwrap().to_be_bytes());
        class.extend(attribute);
        class.extend([0; 2]);
        class
    }
}
