//! The header before a method's code: where the code ends, and where its CodeInfo is.
//!
//! Source: runtime/oat_quick_method_header.h of ART 11 and 14. The header is the same in the JIT's code cache and in oat files.

use super::code_format::CodeFormat;

/// Bit of the size: the frame has a flag that the code checks before it continues.
const SHOULD_DEOPTIMIZE: u32 = 0x8000_0000;
/// ART 14: bit of the only field. With it, the field is the distance of the CodeInfo; without it, the size of code that has no CodeInfo.
const IS_CODE_INFO: u32 = 0x4000_0000;
/// The value of the size before ART's stubs, which have no header.
const STUB: u32 = 0xffff_ffff;
/// The largest code of a method, in bytes: the JIT's code cache has at most 64 MB.
pub(super) const MAX_SIZE: u32 = 64 << 20;

/// Why a header is not valid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum MethodHeaderError {
    /// It is that of one of ART's stubs.
    #[error("a stub of ART, which is no method's code")]
    Stub,
    /// The code size is zero or too large.
    #[error("a method header of ART claims {0:#x} bytes of code")]
    Size(u32),
    /// The code has no CodeInfo.
    #[error("a method header of ART of code without a CodeInfo")]
    NoCodeInfo,
    /// The CodeInfo is not before the header.
    #[error("a method header of ART claims a CodeInfo {0:#x} bytes before the code")]
    CodeInfo(u32),
}

/// The header of a method's code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MethodHeader {
    /// Distance from the start of the CodeInfo to the start of the code, in bytes.
    pub(crate) code_info_distance: u32,
    /// Size of the code in bytes. None: the CodeInfo has it.
    pub(crate) code_size: Option<u32>,
}

impl MethodHeader {
    /// Size of the largest header in bytes. The code follows it.
    pub(crate) const SIZE: u32 = 8;

    /// Parses the bytes before the code.
    ///
    /// # Errors
    /// [`MethodHeaderError`] if they are not a header.
    pub(crate) fn parse(
        format: CodeFormat,
        bytes: [u8; Self::SIZE as usize],
    ) -> Result<Self, MethodHeaderError> {
        let [d0, d1, d2, d3, s0, s1, s2, s3] = bytes;
        let first = u32::from_le_bytes([d0, d1, d2, d3]);
        let last = u32::from_le_bytes([s0, s1, s2, s3]);
        if last == STUB {
            return Err(MethodHeaderError::Stub);
        }
        let last = last & !SHOULD_DEOPTIMIZE;
        let (code_info_distance, code_size, header) = match format {
            CodeFormat::Android11 if last == 0 || last > MAX_SIZE => {
                return Err(MethodHeaderError::Size(last));
            }
            CodeFormat::Android11 => (first, Some(last), 8),
            CodeFormat::Android14 if last & IS_CODE_INFO == 0 => {
                return Err(MethodHeaderError::NoCodeInfo);
            }
            CodeFormat::Android14 => (last & !IS_CODE_INFO, None, 4),
        };
        if code_info_distance <= header {
            return Err(MethodHeaderError::CodeInfo(code_info_distance));
        }
        Ok(Self {
            code_info_distance,
            code_size,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(distance: u32, size: u32) -> Result<MethodHeader, MethodHeaderError> {
        let mut bytes = [0; 8];
        bytes[..4].copy_from_slice(&distance.to_le_bytes());
        bytes[4..].copy_from_slice(&size.to_le_bytes());
        MethodHeader::parse(CodeFormat::Android11, bytes)
    }

    #[test]
    fn a_header_that_can_be_none_is_refused() {
        let header = MethodHeader {
            code_info_distance: 0x3010,
            code_size: Some(0x95),
        };
        assert_eq!(parse(0x3010, 0x95), Ok(header));
        assert_eq!(parse(0x3010, 0x8000_0095), Ok(header));
        assert_eq!(parse(0x3010, u32::MAX), Err(MethodHeaderError::Stub));
        assert_eq!(parse(0x3010, 0), Err(MethodHeaderError::Size(0)));
        assert_eq!(
            parse(0x3010, 0x0400_0001),
            Err(MethodHeaderError::Size(0x0400_0001))
        );
        assert_eq!(parse(8, 0x95), Err(MethodHeaderError::CodeInfo(8)));
    }

    #[test]
    fn a_header_of_one_number_has_no_size() {
        let parse = |word: u32| {
            let mut bytes = [0xcc; 8];
            bytes[4..].copy_from_slice(&word.to_le_bytes());
            MethodHeader::parse(CodeFormat::Android14, bytes)
        };
        let header = MethodHeader {
            code_info_distance: 0x3010,
            code_size: None,
        };
        assert_eq!(parse(0x4000_3010), Ok(header));
        assert_eq!(parse(0xc000_3010), Ok(header));
        assert_eq!(parse(u32::MAX), Err(MethodHeaderError::Stub));
        assert_eq!(parse(0x3010), Err(MethodHeaderError::NoCodeInfo));
        assert_eq!(parse(0x4000_0004), Err(MethodHeaderError::CodeInfo(4)));
    }
}
