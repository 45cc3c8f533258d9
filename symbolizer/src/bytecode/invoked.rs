//! Which method does an instruction invoke?

/// The method that an instruction names, and how the one is found that is executed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Invoked {
    /// Index of the method that is named. What is executed has its name and its descriptor.
    pub index: u32,
    /// How the class is found whose method is executed.
    pub dispatch: Dispatch,
}

/// How the class is found whose method is executed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dispatch {
    /// It is the class that is named, if that declares the method, else one that this inherits from.
    Named,
    /// It depends on the class of the object whose method is invoked.
    Receiver,
}
