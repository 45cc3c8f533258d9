//! How are costs written as a target of estimates?

use crate::distribution::Agreement;
use crate::solve::{Cost, Costs, Origin};
use crate::vm_command::CodeFormat;
use std::fmt::{self, Write};

/// What a table says about where its costs come from.
#[derive(Debug, Clone, PartialEq)]
pub struct Provenance {
    /// The target's name.
    pub target: String,
    /// The format of the VM's code.
    pub format: CodeFormat,
    /// The command of the VM.
    pub vm: String,
    /// The machine's processor.
    pub machine: String,
    /// How the clock agrees with a second one.
    pub agreement: Option<Agreement>,
}

/// Writes a target in TOML.
#[must_use]
pub fn write_table(costs: &Costs, provenance: &Provenance) -> String {
    let mut to = String::new();
    // A String takes all.
    let _ = write_all(costs, provenance, &mut to);
    to
}

fn write_all(costs: &Costs, provenance: &Provenance, to: &mut String) -> fmt::Result {
    let Provenance {
        target,
        format,
        vm,
        machine,
        agreement,
    } = provenance;
    writeln!(
        to,
        "# What bytecodes cost on this machine: 'varid calibrate' has measured it."
    )?;
    writeln!(to, "target = {}", text(target))?;
    writeln!(to, "about = {}", text(&format!("{vm} on {machine}")))?;
    writeln!(to, "unit = \"ns\"")?;
    if *format == CodeFormat::Dex {
        writeln!(to, "bytecode = \"dex\"")?;
    }
    writeln!(to, "vm = {}", text(vm))?;
    writeln!(to, "machine = {}", text(machine))?;
    writeln!(to, "clock = \"{}\"", costs.clock)?;
    if let Some(agreement) = agreement {
        let Agreement { r, slope, keys, .. } = agreement;
        writeln!(
            to,
            "# A second clock: its correlation with the first one, and the line's slope, over so many instructions."
        )?;
        writeln!(to, "r = {r:.4}\nslope = {slope:.4}\ninstructions = {keys}")?;
    }
    writeln!(to, "\n[sources]")?;
    writeln!(to, "measured = \"measured, with a 95 % interval\"")?;
    writeln!(
        to,
        "shared = \"half of what two keys that always occur together cost\""
    )?;
    writeln!(to, "contained = \"in the cost of the invokes\"")?;
    writeln!(to, "\n[cost]\nsource = \"measured\"")?;
    for cost in &costs.costs {
        writeln!(to, "{} = {}", key(cost.key.as_str()), entry(cost))?;
    }
    Ok(())
}

fn entry(cost: &Cost) -> String {
    let Cost {
        value,
        low,
        high,
        measured,
        origin,
        ..
    } = cost;
    let source = match origin {
        Origin::Measured => "",
        Origin::Contained(_) => ", source = \"contained\"",
        Origin::Shared => ", source = \"shared\"",
    };
    // TOML knows infinity as inf, as Rust writes it.
    format!("{{ value = {value:.4}, low = {low:.4}, high = {high:.4}, n = {measured}{source} }}")
}

/// Returns a key of TOML, quoted if it is not a bare one.
fn key(text_of_key: &str) -> String {
    let is_bare = |letter: char| letter.is_ascii_alphanumeric() || "_-".contains(letter);
    match text_of_key.chars().all(is_bare) {
        true => text_of_key.to_owned(),
        false => text(text_of_key),
    }
}

/// Returns a basic string of TOML.
fn text(value: &str) -> String {
    let mut to = String::from("\"");
    for character in value.chars() {
        match character {
            '"' | '\\' => to.extend(['\\', character]),
            control if control.is_control() => to.push(' '),
            _ => to.push(character),
        }
    }
    to.push('"');
    to
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Clock;
    use crate::tally::CostKey;
    use toml::de::{DeTable, DeValue};

    #[test]
    fn a_table_is_toml_with_each_cost() {
        let cost = |key: &str, value, origin| Cost {
            key: CostKey::new(key),
            value,
            low: value / 2.0,
            high: value * 2.0,
            measured: 12,
            origin,
        };
        let costs = Costs {
            clock: Clock::Nano,
            costs: vec![
                cost("iadd", 0.75, Origin::Measured),
                cost("add-int/lit8", 0.5, Origin::Measured),
                cost("monitorexit", 7.5, Origin::Shared),
                cost("return", 0.0, Origin::Contained("the invokes")),
            ],
            units: 3,
            deviation: 0.0,
        };
        let provenance = Provenance {
            target: "a \"name\"".to_owned(),
            format: CodeFormat::Dex,
            vm: "C:\\java".to_owned(),
            machine: "m\n".to_owned(),
            agreement: Some(Agreement {
                r: 0.99,
                slope: 1.01,
                intercept: 0.0,
                keys: 3,
            }),
        };
        let text = write_table(&costs, &provenance);
        let table = DeTable::parse(&text).unwrap();
        let top = |key: &str| table.get_ref()[key].get_ref();
        assert_eq!(top("target").as_str(), Some("a \"name\""));
        assert_eq!(top("about").as_str(), Some("C:\\java on m "));
        assert_eq!(top("bytecode").as_str(), Some("dex"));
        let number = |value: &DeValue<'_>| value.as_float().unwrap().as_str().parse::<f64>();
        assert_eq!(number(top("slope")), Ok(1.01));
        let cost = |key: &str, field: &str| top("cost")[key].get_ref()[field].get_ref().clone();
        assert_eq!(number(&cost("iadd", "value")), Ok(0.75));
        assert_eq!(number(&cost("iadd", "high")), Ok(1.5));
        assert_eq!(number(&cost("add-int/lit8", "value")), Ok(0.5));
        assert_eq!(cost("iadd", "n").as_integer().unwrap().as_str(), "12");
        assert_eq!(cost("return", "source").as_str(), Some("contained"));
    }
}
