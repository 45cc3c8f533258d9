//! Which clocks are there?

use std::fmt;

/// A clock that a program on the VM reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Clock {
    /// `System.nanoTime`.
    Nano,
    /// `System.currentTimeMillis`.
    Millis,
    /// The processor's time stamp counter, by JNI. Its ticks have an unknown length.
    Counter,
}

impl Clock {
    /// Returns how long a tick is in nanoseconds. None: it has to be measured.
    #[must_use]
    pub const fn tick_ns(self) -> Option<f64> {
        match self {
            Self::Nano => Some(1.0),
            Self::Millis => Some(1e6),
            Self::Counter => None,
        }
    }

    /// Returns the clock that a measurement by this one is compared with.
    #[must_use]
    pub const fn other(self) -> Self {
        match self {
            Self::Nano | Self::Millis => Self::Counter,
            Self::Counter => Self::Nano,
        }
    }
}

impl fmt::Display for Clock {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(match self {
            Self::Nano => "nano",
            Self::Millis => "millis",
            Self::Counter => "counter",
        })
    }
}
