//! The letters behind an event: whose code counts, how exact, how it is scheduled.

use crate::SamplerError;
use varid_model::perf::EventAttr;

/// What the letters ask for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Modifiers {
    /// User code does not count.
    pub exclude_user: bool,
    /// The kernel does not count.
    pub exclude_kernel: bool,
    /// A hypervisor counts.
    pub with_hypervisor: bool,
    /// Idle time does not count.
    pub exclude_idle: bool,
    /// The host of virtual machines does not count.
    pub exclude_host: bool,
    /// Guests do not count.
    pub exclude_guest: bool,
    /// `precise_ip`: how little the sampled address may skid, 0 to 3.
    pub precise: u8,
    /// It always has a counter, or counts nothing.
    pub pinned: bool,
    /// No other event counts on its PMU meanwhile.
    pub exclusive: bool,
    /// Members of its group are read with its samples.
    pub read_group: bool,
}

/// The letters and what they say.
const LETTERS: &str = "u (user), k (kernel), h (hypervisor), I (not idle), G (guests), H (host), p, pp, ppp, P \
    (precise), S (read the group with the leader's samples), D (pinned), e (exclusive)";

impl Modifiers {
    /// Reads the letters; `max_precise`: what the PMU can do, for 'P'.
    pub fn parse(event: &str, letters: &str, max_precise: u8) -> Result<Self, SamplerError> {
        let mut asked = Self::default();
        let has = |letter| letters.contains(letter);
        for letter in letters.chars() {
            match letter {
                'u' | 'k' | 'h' | 'H' | 'G' => {}
                'I' => asked.exclude_idle = true,
                'p' => asked.precise = asked.precise.saturating_add(1),
                'P' => asked.precise = max_precise,
                'S' => asked.read_group = true,
                'D' => asked.pinned = true,
                'e' => asked.exclusive = true,
                modifier => {
                    return Err(SamplerError::UnknownModifier {
                        event: event.to_owned(),
                        modifier,
                        known: LETTERS,
                    });
                }
            }
        }
        if asked.precise > 3 {
            return Err(SamplerError::EventSyntax {
                event: event.to_owned(),
                what: "more than three 'p'".to_owned(),
            });
        }
        if has('u') || has('k') || has('h') {
            asked.exclude_user = !has('u');
            asked.exclude_kernel = !has('k');
            asked.with_hypervisor = has('h');
        }
        if has('G') || has('H') {
            asked.exclude_host = !has('H');
            asked.exclude_guest = !has('G');
        }
        Ok(asked)
    }

    /// The letters of what is asked for beyond whose code counts, the user's or the kernel's.
    pub fn beyond_user_and_kernel(&self) -> String {
        let letters = [
            (self.with_hypervisor, 'h'),
            (self.exclude_idle, 'I'),
            (self.exclude_host, 'G'),
            (self.exclude_guest, 'H'),
            (self.precise > 0, 'p'),
            (self.pinned, 'D'),
            (self.exclusive, 'e'),
        ];
        let asked = letters.into_iter().filter(|(asked, _)| *asked);
        asked.map(|(_, letter)| letter).collect()
    }

    /// Sets what it asks of the kernel; precision is the PMU's matter.
    pub fn apply(&self, attr: &mut EventAttr) {
        attr.set_exclude_user(self.exclude_user);
        attr.set_exclude_kernel(self.exclude_kernel);
        attr.set_exclude_hv(!self.with_hypervisor);
        attr.set_exclude_idle(self.exclude_idle);
        attr.set_exclude_host(self.exclude_host);
        attr.set_exclude_guest(self.exclude_guest);
        attr.set_pinned(self.pinned);
        attr.set_exclusive(self.exclusive);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(letters: &str) -> Modifiers {
        Modifiers::parse("cycles", letters, 2).unwrap()
    }

    #[test]
    fn modifiers_exclude_the_other_half() {
        let user = parse("u");
        assert!(user.exclude_kernel && !user.exclude_user && !user.with_hypervisor);
        let both = parse("uk");
        assert!(!both.exclude_kernel && !both.exclude_user);
        let hypervisor = parse("h");
        assert!(hypervisor.exclude_kernel && hypervisor.exclude_user && hypervisor.with_hypervisor);
        assert_eq!(parse(""), Modifiers::default());
        let guest = parse("G");
        assert!(guest.exclude_host && !guest.exclude_guest);
    }

    #[test]
    fn precision_counts_its_letters_up_to_three_or_takes_what_there_is() {
        assert_eq!(
            ["p", "upp", "ppp", "P"].map(|p| parse(p).precise),
            [1, 2, 3, 2]
        );
        assert!(Modifiers::parse("cycles", "pppp", 2).is_err());
    }

    #[test]
    fn an_unknown_letter_is_named() {
        let error = Modifiers::parse("cycles", "ux", 0).unwrap_err();
        assert!(matches!(
            error,
            SamplerError::UnknownModifier { modifier: 'x', .. }
        ));
    }
}
