//! Which types does a descriptor have?

/// The types of a method.
pub(super) struct Prototype<'t> {
    pub(super) shorty: String,
    pub(super) returns: &'t str,
    pub(super) parameters: Vec<&'t str>,
    /// The registers of its arguments, without the instance.
    pub(super) registers: u16,
}

impl<'t> Prototype<'t> {
    pub(super) fn parse(descriptor: &'t str) -> Option<Self> {
        let (parameters, returns) = descriptor.strip_prefix('(')?.split_once(')')?;
        let mut prototype = Self {
            shorty: String::from(shorty(returns)?),
            returns,
            parameters: Vec::new(),
            registers: 0,
        };
        let mut rest = parameters;
        while !rest.is_empty() {
            let (one, others) = rest.split_at_checked(type_length(rest)?)?;
            let letter = shorty(one)?;
            prototype.shorty.push(letter);
            prototype.parameters.push(one);
            let registers = if matches!(letter, 'J' | 'D') { 2 } else { 1 };
            prototype.registers = prototype.registers.checked_add(registers)?;
            rest = others;
        }
        Some(prototype)
    }
}

/// Returns the letter of a type in a shorty.
fn shorty(descriptor: &str) -> Option<char> {
    match descriptor.chars().next()? {
        'L' | '[' => Some('L'),
        letter @ ('V' | 'Z' | 'B' | 'S' | 'C' | 'I' | 'J' | 'F' | 'D') => Some(letter),
        _ => None,
    }
}

/// Returns the length of the descriptor that a text begins with.
fn type_length(text: &str) -> Option<usize> {
    let dimensions = text.find(|letter| letter != '[')?;
    let element = text.get(dimensions..)?;
    let length = match element.starts_with('L') {
        true => element.find(';')?.checked_add(1)?,
        false => 1,
    };
    dimensions.checked_add(length)
}
