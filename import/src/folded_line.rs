//! Parses a line of folded stacks.

use varid_model::Layer;

/// Splits a line into the stack and its number. None if it is not a folded stack.
pub(crate) fn split(line: &str) -> Option<(&str, u64)> {
    let (stack, count) = line.trim_end().rsplit_once([' ', '\t'])?;
    // Some weights have a fraction.
    let whole = count.split('.').next()?;
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(whole) || !count.split('.').all(digits) || count.split('.').count() > 2 {
        return None;
    }
    Some((stack, whole.parse().unwrap_or(u64::MAX)))
}

/// Returns true if a line is a comment by its first character. A thread's name may begin with that character, too.
pub(crate) fn is_comment(line: &str) -> bool {
    let comment = line.strip_prefix('#');
    comment.is_some_and(|comment| {
        let stack = split(comment).filter(|_| !comment.starts_with([' ', '\t', '#']));
        stack.is_none_or(|(stack, _)| !stack.contains(';'))
    })
}

/// Returns the function and the layer of a frame. `caller` is the layer of its caller.
pub(crate) fn frame(text: &str, caller: Layer) -> (&str, Layer) {
    for (mark, layer) in [
        ("_[k]", Layer::Kernel),
        ("_[j]", Layer::App),
        // Marks of async-profiler: interpreted, compiled by C1.
        ("_[0]", Layer::App),
        ("_[1]", Layer::App),
        ("_[i]", caller),
    ] {
        if let Some(name) = text.strip_suffix(mark) {
            return (name, layer);
        }
    }
    (text, Layer::Native)
}

/// Returns true if an entry is marked as a frame.
pub(crate) fn is_marked(text: &str) -> bool {
    frame(text, Layer::Native).0.len() < text.len()
}

/// Returns true if a line looks like folded stacks, for sources without a format from the user. A line of a table, or of other text that
/// ends in a number, does not.
fn is_likely(line: &str) -> bool {
    let is_blank = |c: char| c == ' ' || c == '\t';
    let Some((stack, _)) = split(line) else {
        return false;
    };
    let has_columns = stack
        .chars()
        .zip(stack.chars().skip(1).chain([' ']))
        .any(|(one, next)| is_blank(one) && is_blank(next));
    !stack.starts_with(is_blank) && !has_columns && stack.contains(char::is_alphabetic)
}

/// Whether most lines of a text look like folded stacks.
pub(crate) fn are_likely(text: &str) -> bool {
    let lines = text.lines();
    let lines = lines.filter(|line| !line.trim().is_empty() && !is_comment(line));
    let (likely, others): (Vec<_>, Vec<_>) = lines.partition(|line| is_likely(line));
    // Without a caller in any line, sentences that end in a number would look like stacks.
    let has_stack = likely.iter().any(|line| line.contains(';'));
    let is_word = |line: &&str| split(line).is_some_and(|(stack, _)| !stack.contains(' '));
    let may_be_stacks = has_stack || likely.iter().all(is_word);
    may_be_stacks && likely.len() > others.len()
}

/// The image name for a layer.
pub(crate) const fn image(layer: Layer) -> &'static str {
    match layer {
        Layer::Kernel => "[kernel]",
        Layer::App | Layer::Framework => "[jit]",
        Layer::Vm | Layer::Native => "[native]",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_frames_and_a_number() {
        assert_eq!(split("a;b c;d 12"), Some(("a;b c;d", 12)));
        assert_eq!(split("a 1.5\n"), Some(("a", 1)));
        assert_eq!(split("a 99999999999999999999"), Some(("a", u64::MAX)));
        for line in ["a;b", "a;b x", "12", "", "a 1.2.3", "a -1", "a .5"] {
            assert_eq!(split(line), None, "{line}");
        }
    }

    #[test]
    fn a_stack_of_a_thread_with_a_number_sign_is_no_comment() {
        for (line, expected) in [
            ("#", true),
            ("# main;f 3", true),
            ("## a;b 3", true),
            ("#total 3", true),
            ("#1 worker;f 3", false),
            ("main;f 3", false),
        ] {
            assert_eq!(is_comment(line), expected, "{line}");
        }
    }

    #[test]
    fn tables_and_other_text_with_numbers_are_not_likely() {
        for line in ["a;b c;d 12", "main 1", "a;b 3 4", "[a tid=3];b_[j] 1"] {
            assert!(is_likely(line), "{line}");
        }
        for line in [
            "16 400",
            "+3 5",
            "MAIN  MAIN  0.0",
            "  indented 12",
            "a;b\t 3",
            "words",
        ] {
            assert!(!is_likely(line), "{line}");
        }
    }

    #[test]
    fn marks_tell_layers_and_are_no_part_of_the_name() {
        for (text, caller, expected) in [
            ("sys_read_[k]", Layer::Native, ("sys_read", Layer::Kernel)),
            (
                "java/lang/Thread.run_[j]",
                Layer::Native,
                ("java/lang/Thread.run", Layer::App),
            ),
            ("inlined_[i]", Layer::App, ("inlined", Layer::App)),
            ("main", Layer::App, ("main", Layer::Native)),
            ("odd_[x]", Layer::App, ("odd_[x]", Layer::Native)),
        ] {
            assert_eq!(frame(text, caller), expected);
        }
    }
}
