//! The method that an instruction invokes.

/// The method that an instruction references, and how the executed method is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Invoked {
    /// Index of the referenced method. The executed method has the same name and descriptor.
    pub index: u32,
    /// How the class of the executed method is found.
    pub dispatch: Dispatch,
}

/// How the class of the executed method is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dispatch {
    /// It is the referenced class if that declares the method, else one that it inherits from.
    Named,
    /// It depends on the class of the receiver.
    Receiver,
}
