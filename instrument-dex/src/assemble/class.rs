//! What does a class have?

use varid_instrument::assemble::access;

use super::code::Code;

const OBJECT: &str = "Ljava/lang/Object;";

/// A class, by descriptors such as `Lorg/example/App;`.
#[derive(Debug)]
pub struct Class {
    pub(super) descriptor: String,
    pub(super) superclass: String,
    pub(super) interfaces: Vec<String>,
    pub(super) flags: u32,
    pub(super) fields: Vec<Field>,
    pub(super) methods: Vec<Method>,
}

/// A field, with its [access flags](access).
#[derive(Debug)]
pub(super) struct Field {
    pub(super) flags: u16,
    pub(super) name: String,
    pub(super) descriptor: String,
}

/// A method, with its [access flags](access).
#[derive(Debug)]
pub(super) struct Method {
    pub(super) flags: u16,
    pub(super) name: String,
    pub(super) descriptor: String,
    pub(super) code: Option<Code>,
}

impl Class {
    /// Starts a public class below `Object`.
    #[must_use]
    pub fn new(descriptor: &str) -> Self {
        Self {
            descriptor: descriptor.to_owned(),
            superclass: OBJECT.to_owned(),
            interfaces: Vec::new(),
            flags: access::PUBLIC.into(),
            fields: Vec::new(),
            methods: Vec::new(),
        }
    }

    /// Starts a public interface.
    #[must_use]
    pub fn interface(descriptor: &str) -> Self {
        const INTERFACE: u32 = 0x200;
        let mut class = Self::new(descriptor);
        class.flags |= INTERFACE | u32::from(access::ABSTRACT);
        class
    }

    /// The same below another class, which is added before.
    #[must_use]
    pub fn extends(mut self, superclass: &str) -> Self {
        superclass.clone_into(&mut self.superclass);
        self
    }

    /// The same with an interface, which is added before.
    #[must_use]
    pub fn implements(mut self, interface: &str) -> Self {
        self.interfaces.push(interface.to_owned());
        self
    }

    /// Adds a field with these [access flags](access).
    pub fn field(&mut self, flags: u16, name: &str, descriptor: &str) {
        self.fields.push(Field {
            flags,
            name: name.to_owned(),
            descriptor: descriptor.to_owned(),
        });
    }

    /// Adds a method with these [access flags](access). A native or an abstract one has no code.
    pub fn method(&mut self, flags: u16, name: &str, descriptor: &str, code: Option<Code>) {
        self.methods.push(Method {
            flags,
            name: name.to_owned(),
            descriptor: descriptor.to_owned(),
            code,
        });
    }
}
