//! Compares a dex file with the output of `dexdump -d`, byte for byte.
//!
//! Each method's part is generated from what the symbolizer reads, and compared with the stream: name, prototype,
//! flags, sizes, every instruction with its bytes, try ranges with their handlers, every row of the line table, and the
//! parameters' names.

use std::fmt::Write as _;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};
use varid_symbolizer::dex::{CodeItem, DexFile, DexMethod, LineTable, MethodCode, type_name};

/// The numbers of compared elements, which were equal.
#[derive(Debug, Default)]
pub struct Compared {
    pub methods: usize,
    pub instructions: usize,
    pub rows: usize,
    pub tries: usize,
    pub parameters: usize,
    /// Rows of dexdump that are left out because they have no instruction.
    pub beyond: usize,
}

const FLAGS: [&str; 18] = [
    "PUBLIC",
    "PRIVATE",
    "PROTECTED",
    "STATIC",
    "FINAL",
    "SYNCHRONIZED",
    "BRIDGE",
    "VARARGS",
    "NATIVE",
    "?",
    "ABSTRACT",
    "STRICT",
    "SYNTHETIC",
    "?",
    "?",
    "MIRANDA",
    "CONSTRUCTOR",
    "DECLARED_SYNCHRONIZED",
];
const STATIC: u32 = 8;

/// The output of dexdump as a stream.
struct Printed<R> {
    from: R,
    line: Vec<u8>,
}

impl<R: BufRead> Printed<R> {
    /// Returns the next line, or an empty one at the end.
    fn line(&mut self) -> Result<&[u8]> {
        self.line.clear();
        self.from.read_until(b'\n', &mut self.line)?;
        Ok(&self.line)
    }

    /// Compares the stream with `text`, which may have several lines.
    fn expect(&mut self, text: &str) -> Result<()> {
        let ours = modified_utf8(text);
        self.line.resize(ours.len(), 0);
        let theirs = &mut self.line;
        self.from.read_exact(theirs)?;
        if *theirs != ours && !same_but_for_lone_surrogates(&ours, theirs) {
            let at = (0..ours.len())
                .find(|&at| ours[at] != theirs[at])
                .unwrap_or(0);
            let part = |bytes: &[u8]| {
                let end = bytes.len().min(at + 120);
                String::from_utf8_lossy(&bytes[at.saturating_sub(120)..end]).into_owned()
            };
            bail!("here\n{}\ndexdump\n{}", part(&ours), part(theirs));
        }
        Ok(())
    }
}

/// Encodes text as in dex files: surrogates separately, NUL in two bytes.
fn modified_utf8(text: &str) -> Vec<u8> {
    if !text.contains('\0') && text.chars().all(|letter| letter.len_utf16() == 1) {
        return text.as_bytes().to_vec();
    }
    let mut bytes = Vec::new();
    for unit in text.encode_utf16() {
        match unit {
            0x01..=0x7f => bytes.push(unit as u8),
            0 | 0x80..=0x7ff => {
                bytes.extend([0xc0 | (unit >> 6) as u8, 0x80 | (unit & 0x3f) as u8])
            }
            _ => bytes.extend([
                0xe0 | (unit >> 12) as u8,
                0x80 | (unit >> 6 & 0x3f) as u8,
                0x80 | (unit & 0x3f) as u8,
            ]),
        }
    }
    bytes
}

/// Returns true if texts are equal except for lone surrogates, which varid replaces by U+FFFD, with the same number of
/// bytes.
fn same_but_for_lone_surrogates(ours: &[u8], theirs: &[u8]) -> bool {
    let mut at = 0;
    while at < ours.len() {
        let surrogate = theirs[at] == 0xed && theirs.get(at + 1).is_some_and(|&byte| byte >= 0xa0);
        if surrogate && ours[at..].starts_with("\u{fffd}".as_bytes()) {
            at += 3;
        } else if ours[at] == theirs[at] {
            at += 1;
        } else {
            return false;
        }
    }
    true
}

/// Reverts the escapes that keep a string constant on one line.
fn unescaped(text: &str) -> String {
    let mut out = String::new();
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        if letter != '\\' {
            out.push(letter);
            continue;
        }
        out.push(match letters.next() {
            Some('n') => '\n',
            Some('r') => '\r',
            Some('t') => '\t',
            Some('u') => {
                let code: String = letters.by_ref().skip(1).take_while(|&l| l != '}').collect();
                u32::from_str_radix(&code, 16)
                    .ok()
                    .and_then(char::from_u32)
                    .unwrap_or('?')
            }
            other => other.unwrap_or('?'),
        });
    }
    out
}

/// Returns a method's part of `dexdump -d`, up to the rows of its line table.
fn text(dex: &DexFile<'_>, method: &DexMethod<'_>, compared: &mut Compared) -> Result<String> {
    let mut out = String::new();
    let id = &method.id;
    writeln!(out, "      name          : '{}'", id.name()?)?;
    writeln!(out, "      type          : '{}'", id.descriptor()?)?;
    let flags: Vec<&str> = (0..FLAGS.len())
        .filter(|bit| method.access_flags >> bit & 1 == 1)
        .map(|bit| FLAGS[bit])
        .collect();
    let flags = flags.join(" ");
    writeln!(
        out,
        "      access        : 0x{:04x} ({flags})",
        method.access_flags
    )?;
    let Some(code) = method.method_code() else {
        out.push_str("      code          : (none)\n");
        return Ok(out);
    };
    out.push_str("      code          -\n");
    let item = dex.code_item(&code)?;
    writeln!(out, "      registers     : {}", item.registers)?;
    writeln!(out, "      ins           : {}", item.ins)?;
    writeln!(out, "      outs          : {}", item.outs)?;
    let units = item.insns.len() / 2;
    writeln!(out, "      insns size    : {units} 16-bit code units")?;
    let start = item_offset(dex, &code);
    let signature = id.signature()?;
    let class = signature.split("->").next().unwrap_or_default();
    let (class, name) = (type_name(class), id.name()?);
    let space = " ".repeat(40);
    writeln!(
        out,
        "{start:06x}:{space}|[{start:06x}] {class}.{name}:{}",
        id.descriptor()?
    )?;
    instructions(&mut out, dex, &code, compared)?;
    catches(&mut out, dex, &code, &item, compared)?;
    out.push_str("      positions     : \n");
    Ok(out)
}

/// Returns the offset of a code_item as dexdump prints it. In a compact file, it is relative to the data section.
/// dexdump assumes 16 bytes from there to the first instruction, although a compact code_item has only four.
fn item_offset(dex: &DexFile<'_>, code: &MethodCode) -> u32 {
    match dex.is_compact() {
        true => {
            let section = dex.bytes()[0x6c..0x70].try_into().expect("four bytes");
            code.code.start - 4 - u32::from_le_bytes(section)
        }
        false => code.code.start - 16,
    }
}

fn instructions(
    out: &mut String,
    dex: &DexFile<'_>,
    code: &MethodCode,
    compared: &mut Compared,
) -> Result<()> {
    let start = item_offset(dex, code) + 16;
    for instruction in dex.disassemble(code) {
        let instruction = instruction?;
        let at = instruction.offset as usize;
        let pc = (instruction.offset - code.code.start) / 2;
        write!(out, "{:06x}:", start + 2 * pc)?;
        for unit in 0..8 {
            let place = at + 2 * unit;
            match (unit < instruction.units as usize, unit) {
                (true, 7) => out.push_str(" ... "),
                (true, _) => write!(
                    out,
                    " {:02x}{:02x}",
                    dex.bytes()[place],
                    dex.bytes()[place + 1]
                )?,
                (false, _) => out.push_str("     "),
            }
        }
        let text = instruction.to_string();
        match text.contains('\\') {
            true => writeln!(out, "|{pc:04x}: {}", unescaped(&text))?,
            false => writeln!(out, "|{pc:04x}: {text}")?,
        }
        compared.instructions += 1;
    }
    Ok(())
}

fn catches(
    out: &mut String,
    dex: &DexFile<'_>,
    code: &MethodCode,
    item: &CodeItem,
    compared: &mut Compared,
) -> Result<()> {
    if item.tries == 0 {
        out.push_str("      catches       : (none)\n");
        return Ok(());
    }
    writeln!(out, "      catches       : {}", item.tries)?;
    let pc = |offset: u32| (offset - code.code.start) / 2;
    for range in dex.tries(code)? {
        let range = range?;
        writeln!(
            out,
            "        0x{:04x} - 0x{:04x}",
            pc(range.code.start),
            pc(range.code.end)
        )?;
        for handler in &range.handlers {
            let class = match handler.exception {
                Some(class) => dex.type_descriptor(class)?,
                None => "<any>".to_owned(),
            };
            writeln!(out, "          {class} -> 0x{:04x}", pc(handler.offset))?;
        }
        compared.tries += 1;
    }
    Ok(())
}

/// Compares the rows of the line table, and the parameters' names among the locals.
fn lines(
    printed: &mut Printed<impl BufRead>,
    dex: &DexFile<'_>,
    method: &DexMethod<'_>,
    compared: &mut Compared,
) -> Result<()> {
    let code = method.method_code().context("it has no code")?;
    let item = dex.code_item(&code)?;
    let table = dex.lines(&code)?;
    for row in table.rows() {
        let pc = (row.offset - code.code.start) / 2;
        printed.expect(&format!("        0x{pc:04x} line={}\n", row.line))?;
        // Each row applies from its offset on. Of several rows with the same position, the first one may apply.
        let found = table.lookup(row.offset).context("a row is not found")?;
        ensure!(found.offset == row.offset, "another row is found");
        compared.rows += 1;
    }
    let rows = table.rows().len();
    loop {
        let line = String::from_utf8_lossy(printed.line()?).into_owned();
        if line.starts_with("      locals") {
            break;
        }
        let row = line
            .trim_start()
            .strip_prefix("0x")
            .and_then(|row| row.split_once(' '));
        let (pc, _) = row.with_context(|| format!("after {rows} rows dexdump has {line}"))?;
        let pc = usize::from_str_radix(pc, 16)?;
        ensure!(pc >= item.insns.len() / 2, "dexdump has a row more: {line}");
        compared.beyond += 1;
    }
    let mut locals = parameters(dex, method, &item, &table)?;
    loop {
        // The list ends with an empty line.
        let local = printed.line()?;
        if local.len() <= 1 {
            break;
        }
        let before = locals.len();
        locals.retain(|expected| {
            !local.starts_with(b"        0x0000 - ") || !contains(local, expected)
        });
        compared.parameters += before - locals.len();
    }
    if let Some(missing) = locals.first() {
        bail!(
            "dexdump has no parameter{}",
            String::from_utf8_lossy(missing)
        );
    }
    Ok(())
}

fn contains(text: &[u8], part: &[u8]) -> bool {
    text.windows(part.len()).any(|window| window == part)
}

/// Returns the entries of dexdump's list of locals for parameters with names.
fn parameters(
    dex: &DexFile<'_>,
    method: &DexMethod<'_>,
    item: &CodeItem,
    table: &LineTable,
) -> Result<Vec<Vec<u8>>> {
    let mut register = u32::from(item.registers) - u32::from(item.ins);
    register += u32::from(method.access_flags & STATIC == 0);
    let mut locals = Vec::new();
    let types = method.id.parameter_types()?;
    for (name, kind) in table.parameters().iter().zip(&types) {
        if let Some(name) = name {
            locals.push(modified_utf8(&format!(
                " reg={register} {} ",
                dex.string(*name)?
            )));
        }
        register += if kind == "long" || kind == "double" {
            2
        } else {
            1
        };
    }
    Ok(locals)
}

/// Compares a whole dex file.
pub fn compare(path: &Path) -> Result<Compared> {
    let bytes = std::fs::read(path)?;
    let dex = DexFile::parse(&bytes)?;
    // The verifier rejects some files that dexdump can print, and compact files without a map.
    let mut child = Command::new("dexdump")
        .args(["-d", "-i", "-j"])
        .arg(path)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .context("dexdump")?;
    let from = child.stdout.take().context("no output")?;
    let mut printed = Printed {
        from: BufReader::with_capacity(1 << 20, from),
        line: Vec::new(),
    };
    let mut compared = Compared::default();
    let mut methods = dex.methods();
    let mut in_methods = false;
    loop {
        let line = printed.line()?;
        if line.is_empty() {
            break;
        }
        if line.starts_with(b"  ") && line[2] != b' ' {
            // A part of the class. The lists of interfaces and fields have the same form as that of methods.
            in_methods = contains(line, b" methods ");
        } else if in_methods && line.starts_with(b"    #") {
            let method = methods.next().context("dexdump has a method more")??;
            let named = || format!("{}: {:?}", path.display(), method.id.signature());
            let text = text(&dex, &method, &mut compared).with_context(named)?;
            printed.expect(&text).with_context(named)?;
            if method.code.is_some() {
                lines(&mut printed, &dex, &method, &mut compared).with_context(named)?;
            }
            compared.methods += 1;
        }
    }
    ensure!(
        methods.next().is_none(),
        "{}: dexdump has fewer methods",
        path.display()
    );
    ensure!(
        child.wait()?.success(),
        "{}: dexdump refuses it",
        path.display()
    );
    Ok(compared)
}
