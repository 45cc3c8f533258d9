//! Writers of files that hold dex files, by this project's understanding of the formats. They are compared with other readers where these
//! exist.

fn word(value: usize) -> [u8; 4] {
    u32::try_from(value).unwrap().to_le_bytes()
}

fn put(bytes: &mut [u8], at: usize, value: usize) {
    bytes[at..at + 4].copy_from_slice(&word(value));
}

fn align(bytes: &mut Vec<u8>) {
    bytes.resize(bytes.len().next_multiple_of(4), 0);
}

/// A .vdex file of a version, with the shared data of compact dex files.
pub fn vdex(version: &str, dexes: &[&[u8]], shared: &[u8]) -> Vec<u8> {
    let mut section = Vec::new();
    for dex in dexes {
        align(&mut section);
        if matches!(version, "019" | "021") {
            section.extend(word(0));
        }
        section.extend(*dex);
    }
    align(&mut section);
    let checksums = [0xaa; 4].repeat(dexes.len());
    let deps = [0xbb; 12];
    let (count, size) = (word(dexes.len()), word(section.len()));
    let mut bytes = [b"vdex", version.as_bytes(), b"\0"].concat();
    match version {
        "006" | "010" => {
            bytes.extend([count, size, word(deps.len()), word(0)].concat());
            bytes.extend(checksums);
            bytes.extend(section);
        }
        "019" | "021" => {
            bytes.extend(b"002\0");
            bytes.extend([count, word(deps.len())].concat());
            if version == "021" {
                bytes.extend([0; 8]);
            }
            bytes.extend(checksums);
            bytes.extend([size, word(shared.len()), word(0)].concat());
            bytes.extend(section);
            bytes.extend(shared);
        }
        "027" => {
            let first = 12 + 4 * 12;
            let after = first + checksums.len();
            let end = after + section.len() + shared.len();
            bytes.extend(word(4));
            for (kind, start, size) in [
                (0, first, checksums.len()),
                (1, after, section.len() + shared.len()),
                (2, end, deps.len()),
                (3, end + deps.len(), 0),
            ] {
                bytes.extend([word(kind), word(start), word(size)].concat());
            }
            bytes.extend(checksums);
            bytes.extend(section);
            bytes.extend(shared);
        }
        other => panic!("no vdex version {other}"),
    }
    bytes.extend(deps);
    bytes
}

/// A standard dex file's bytes with the header of a compact one. `data` is the offset and size of its data.
pub fn compact(dex: &[u8], data: (usize, usize)) -> Vec<u8> {
    let mut bytes = dex.to_vec();
    bytes[..8].copy_from_slice(b"cdex001\0");
    put(&mut bytes, 0x68, data.1);
    put(&mut bytes, 0x6c, data.0);
    bytes
}

/// Wraps a dex file as Dalvik's optimizer does.
pub fn optimized(dex: &[u8]) -> Vec<u8> {
    let mut bytes = b"dey\n036\0".to_vec();
    let end = 40 + dex.len();
    for value in [40, dex.len(), end, 16, end + 16, 8, 0, 0] {
        bytes.extend(word(value));
    }
    bytes.extend(dex);
    bytes.extend([0xcc; 24]);
    bytes
}

/// A 64-bit oat file of a version.
pub fn oat(version: &str, dexes: &[(&str, &[u8])]) -> Vec<u8> {
    let per_class = matches!(version, "039" | "045" | "064");
    let words = if matches!(version, "039" | "045") {
        21
    } else {
        18
    };
    let store = b"dex2oat-cmdline\0--runtime-arg\0";
    let mut data = [b"oat\n", version.as_bytes(), b"\0"].concat();
    data.resize(words * 4, 0);
    put(&mut data, 20, dexes.len());
    put(&mut data, words * 4 - 4, store.len());
    data.extend(store);
    let mut offsets = Vec::new();
    for (location, dex) in dexes {
        data.extend(word(location.len()));
        data.extend(location.as_bytes());
        data.extend([0xdd; 4]);
        offsets.push(data.len());
        data.extend([0; 4]);
        let classes = u32::from_le_bytes(dex[0x60..0x64].try_into().unwrap()) as usize;
        data.extend(vec![0; if per_class { classes * 4 } else { 8 }]);
    }
    for (at, (_, dex)) in offsets.into_iter().zip(dexes) {
        align(&mut data);
        let start = data.len();
        put(&mut data, at, start);
        data.extend(*dex);
    }
    elf(&data)
}

/// A shared object with the symbol `oatdata` at `data`.
pub fn elf(data: &[u8]) -> Vec<u8> {
    let long = |value: usize| (value as u64).to_le_bytes();
    let half = |value: u16| value.to_le_bytes();
    let start = 0x1000;
    let dynsym = start + data.len().next_multiple_of(8);
    let names = b"\0oatdata\0";
    let dynstr = dynsym + 48;
    let sections = (dynstr + names.len()).next_multiple_of(8);
    let mut bytes = b"\x7fELF\x02\x01\x01".to_vec();
    bytes.resize(16, 0);
    bytes.extend([half(3), half(183)].concat());
    bytes.extend(word(1));
    bytes.extend([long(0), long(64), long(sections)].concat());
    bytes.extend(word(0));
    bytes.extend([half(64), half(56), half(1), half(64), half(3), half(2)].concat());
    // One segment, whose address differs from its file offset.
    bytes.extend([word(1), word(4)].concat());
    for value in [0, 0x10000, 0x10000, sections, sections, 0x1000] {
        bytes.extend(long(value));
    }
    bytes.resize(start, 0);
    bytes.extend(data);
    bytes.resize(dynsym + 24, 0);
    bytes.extend(word(1));
    bytes.extend([0x11, 0]);
    bytes.extend(half(1));
    bytes.extend([long(0x10000 + start), long(data.len())].concat());
    bytes.extend(names);
    bytes.resize(sections + 64, 0);
    for (kind, at, len, link, entry) in [(11, dynsym, 48, 2, 24), (3, dynstr, names.len(), 0, 0)] {
        bytes.extend([word(0), word(kind)].concat());
        bytes.extend([long(2), long(0x10000 + at), long(at), long(len)].concat());
        bytes.extend([word(link), word(1)].concat());
        bytes.extend([long(8), long(entry)].concat());
    }
    bytes
}
