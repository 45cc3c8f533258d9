//! The errors of JVMTI.

use std::fmt;

/// The result of a function of JVMTI.
pub type Result<T> = std::result::Result<T, JvmtiError>;

/// The number of an error, as the specification lists them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JvmtiError(i32);

impl JvmtiError {
    /// Returns `Ok` for 0, which is no error.
    pub(crate) const fn check(code: i32) -> Result<()> {
        match code {
            0 => Ok(()),
            code => Err(Self(code)),
        }
    }
}

impl fmt::Display for JvmtiError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self.0 {
            98 => "NOT_AVAILABLE",
            99 => "MUST_POSSESS_CAPABILITY",
            110 => "OUT_OF_MEMORY",
            112 => "WRONG_PHASE",
            113 => "INTERNAL",
            116 => "INVALID_ENVIRONMENT",
            _ => "see the list in its specification",
        };
        write!(out, "JVMTI error {} ({name})", self.0)
    }
}

impl std::error::Error for JvmtiError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zero_is_no_error_and_others_have_their_number() {
        assert_eq!(JvmtiError::check(0), Ok(()));
        let error = JvmtiError::check(112).unwrap_err();
        assert_eq!(error.to_string(), "JVMTI error 112 (WRONG_PHASE)");
    }
}
