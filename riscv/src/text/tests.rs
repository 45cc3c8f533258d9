//! Instructions are what binutils' disassembler says that they are. `tests/objdump.py` made the file.

use varid_model::Address;

use crate::{Length, Xlen, decode};

const OBJDUMP: &str = include_str!("../../tests/objdump.tsv");

/// What is wrong with the decoder in a line of the file. None: nothing.
fn difference(line: &str) -> Option<String> {
    let [xlen, code, address, text] = line.split('\t').collect::<Vec<_>>()[..] else {
        return Some("a line with other than four fields".to_owned());
    };
    let xlen = match xlen {
        "rv32" => Xlen::Rv32,
        _ => Xlen::Rv64,
    };
    let number = u32::from_str_radix(code, 16).unwrap();
    let address = Address::new(u64::from_str_radix(address, 16).unwrap());
    let (length, bytes) = match code.len() {
        4 => (Length::Two, number.to_le_bytes()[..2].to_vec()),
        _ => (Length::Four, number.to_le_bytes().to_vec()),
    };
    let decoded = decode(&bytes, xlen);
    let is_illegal = text.starts_with('.') || text == "unimp";
    let instruction = match decoded {
        Ok(_) if is_illegal => return Some("it is no instruction".to_owned()),
        Err(_) if is_illegal => return None,
        Err(error) => return Some(error.to_string()),
        Ok(instruction) => instruction,
    };
    if instruction.length != length {
        return Some("another length".to_owned());
    }
    // Compressed hints keep their prefix: they do nothing.
    if text.starts_with("c.") {
        return None;
    }
    let mut own = instruction.text(address).to_string().replace(", ", ",");
    if xlen == Xlen::Rv32 {
        // A target before address 0 is at the end of 32 bits.
        own = own.replace("0xffffffff", "0x");
    }
    (own != text).then_some(own)
}

#[test]
fn instructions_are_what_the_disassembler_says() {
    let lines: Vec<_> = OBJDUMP.lines().collect();
    assert!(lines.len() > 1000, "the file is cut");
    let wrong = lines.iter().filter_map(|line| {
        let own = difference(line)?;
        Some(format!("{line}: {own}"))
    });
    let wrong: Vec<_> = wrong.collect();
    let first = wrong.iter().take(20).cloned().collect::<Vec<_>>();
    assert!(
        wrong.is_empty(),
        "{} wrong:\n{}",
        wrong.len(),
        first.join("\n")
    );
}
