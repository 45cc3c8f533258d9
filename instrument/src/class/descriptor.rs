//! How many words do a method's arguments take?

/// Returns the number of local variables that the arguments of a method with this descriptor take, without `this`. None: it is not a method's
/// descriptor.
pub(crate) fn argument_words(descriptor: &[u8]) -> Option<u16> {
    let mut rest = descriptor.strip_prefix(b"(")?;
    let mut words: u16 = 0;
    loop {
        let (first, after) = rest.split_first()?;
        rest = after;
        let size = match first {
            b')' => return Some(words),
            b'J' | b'D' => 2,
            b'B' | b'C' | b'F' | b'I' | b'S' | b'Z' => 1,
            b'L' => {
                rest = after_class_name(rest)?;
                1
            }
            b'[' => {
                while let Some(element) = rest.strip_prefix(b"[") {
                    rest = element;
                }
                let (element, after) = rest.split_first()?;
                rest = if *element == b'L' {
                    after_class_name(after)?
                } else {
                    after
                };
                1
            }
            _ => return None,
        };
        words = words.checked_add(size)?;
    }
}

fn after_class_name(bytes: &[u8]) -> Option<&[u8]> {
    let end = bytes.iter().position(|byte| *byte == b';')?;
    bytes.get(end.checked_add(1)?..)
}

#[cfg(test)]
mod tests {
    use super::argument_words;

    #[test]
    fn longs_and_doubles_take_two_words() {
        assert_eq!(argument_words(b"()V"), Some(0));
        assert_eq!(argument_words(b"(IJLjava/lang/String;[[D[La;D)V"), Some(8));
        assert_eq!(argument_words(b"(Lx"), None);
        assert_eq!(argument_words(b"I"), None);
    }
}
