//! Where a member is in a structure of the VM.

use varid_model::Address;

/// A distance from the start of a structure, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Offset(u32);

impl Offset {
    /// The offset of so many bytes.
    pub const fn new(bytes: u32) -> Self {
        Self(bytes)
    }

    /// Its number of bytes.
    pub const fn bytes(self) -> u32 {
        self.0
    }

    /// The address of the member of a structure.
    pub const fn from(self, structure: Address) -> Address {
        structure.wrapping_add(self.0 as u64)
    }
}

/// The size of a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Width {
    /// One byte.
    One,
    /// Two bytes.
    Two,
    /// Four bytes.
    Four,
    /// Eight bytes: a pointer.
    #[default]
    Eight,
}

impl Width {
    /// The width of so many bytes. None if there are no such numbers.
    pub const fn of(bytes: u64) -> Option<Self> {
        match bytes {
            1 => Some(Self::One),
            2 => Some(Self::Two),
            4 => Some(Self::Four),
            8 => Some(Self::Eight),
            _ => None,
        }
    }

    /// Its number of bytes.
    pub const fn bytes(self) -> u32 {
        match self {
            Self::One => 1,
            Self::Two => 2,
            Self::Four => 4,
            Self::Eight => 8,
        }
    }
}

/// A member that is a number or a pointer. The same member has other widths in other versions: a compile level has four bytes in
/// JDK 17, and one in JDK 21.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Member {
    /// Where it is.
    pub offset: Offset,
    /// How large it is.
    pub width: Width,
}
