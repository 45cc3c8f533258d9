//! The modifiers of an event (`:ukp`): which code is counted, how precise the sampled address is, and how the event is scheduled.

use crate::SamplerError;
use varid_model::perf::EventAttr;

/// The modifiers of an event.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Modifiers {
    /// User code is not counted.
    pub exclude_user: bool,
    /// The kernel is not counted.
    pub exclude_kernel: bool,
    /// A hypervisor is counted.
    pub with_hypervisor: bool,
    /// Idle time is not counted.
    pub exclude_idle: bool,
    /// The host of virtual machines is not counted.
    pub exclude_host: bool,
    /// Guests are not counted.
    pub exclude_guest: bool,
    /// `precise_ip`: how little the sampled address may skid, 0 to 3.
    pub precise: u8,
    /// The event always has a counter. If none is free, it is in an error state and counts nothing.
    pub pinned: bool,
    /// No other event uses the PMU while its group is scheduled.
    pub exclusive: bool,
    /// The counts of the group's members are read with its samples.
    pub read_group: bool,
}

/// The letters with their meanings, for messages.
const LETTERS: &str = "u (user), k (kernel), h (hypervisor), I (not idle), G (guests), H (host), p, pp, ppp, P \
    (precise), S (read the group with the leader's samples), D (pinned), e (exclusive)";

impl Modifiers {
    /// Parses the letters. `max_precise` is the PMU's largest `precise_ip`, which 'P' means.
    pub fn parse(event: &str, letters: &str, max_precise: u8) -> Result<Self, SamplerError> {
        let mut modifiers = Self::default();
        let has = |letter| letters.contains(letter);
        for letter in letters.chars() {
            match letter {
                'u' | 'k' | 'h' | 'H' | 'G' => {}
                'I' => modifiers.exclude_idle = true,
                'p' => modifiers.precise = modifiers.precise.saturating_add(1),
                'P' => modifiers.precise = max_precise,
                'S' => modifiers.read_group = true,
                'D' => modifiers.pinned = true,
                'e' => modifiers.exclusive = true,
                modifier => {
                    return Err(SamplerError::UnknownModifier {
                        event: event.to_owned(),
                        modifier,
                        known: LETTERS,
                    });
                }
            }
        }
        if modifiers.precise > 3 {
            return Err(SamplerError::EventSyntax {
                event: event.to_owned(),
                what: "more than three 'p'".to_owned(),
            });
        }
        if has('u') || has('k') || has('h') {
            modifiers.exclude_user = !has('u');
            modifiers.exclude_kernel = !has('k');
            modifiers.with_hypervisor = has('h');
        }
        if has('G') || has('H') {
            modifiers.exclude_host = !has('H');
            modifiers.exclude_guest = !has('G');
        }
        Ok(modifiers)
    }

    /// Returns true if each letter is a modifier.
    pub fn are_known(letters: &str) -> bool {
        letters.chars().all(|letter| "ukhIGHpPSDe".contains(letter))
    }

    /// Returns the letters of all modifiers except 'u' and 'k'.
    pub fn other_than_user_and_kernel(&self) -> String {
        let letters = [
            (self.with_hypervisor, 'h'),
            (self.exclude_idle, 'I'),
            (self.exclude_host, 'G'),
            (self.exclude_guest, 'H'),
            (self.precise > 0, 'p'),
            (self.pinned, 'D'),
            (self.exclusive, 'e'),
        ];
        let set = letters.into_iter().filter(|(is_set, _)| *is_set);
        set.map(|(_, letter)| letter).collect()
    }

    /// Sets the fields of an attribute, except `precise_ip`, which depends on the PMU.
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
    fn user_code_or_the_kernel_is_excluded_where_the_other_is_named() {
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
    fn precise_ip_is_the_number_of_p_up_to_three_or_the_largest_for_capital_p() {
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
