use super::super::image::ProcessImage;
use super::super::mapping_id::MappingId;
use super::super::reader::ForeignFile;
use super::super::space::ProcessMapping;
use super::*;
use std::io::Write;
use varid_model::Mode;

/// A process that is this one, with a perf map of these lines.
fn with_map(folder: &Path, lines: &str) -> JitCode {
    let jit = JitCode {
        files: NameFiles::of_folder(folder, Pid::new(4711)),
        ..JitCode::default()
    };
    let path = folder.join("perf-4711.map");
    let mut map = std::fs::OpenOptions::new()
        .append(true)
        .create(true)
        .open(path)
        .unwrap();
    map.write_all(lines.as_bytes()).unwrap();
    jit
}

fn sample(jit: &mut JitCode, address: u64, time: u64) {
    jit.add_sample(Address::new(address), MonotonicNs::new(time));
}

fn refresh(jit: &mut JitCode, space: &AddressSpace, now: u64) -> Vec<Range<u64>> {
    let now = MonotonicNs::new(now);
    jit.refresh(Pid::new(1), space, now, &ReadBudget::ALL);
    jit.replaced_until(now)
}

/// Reads a perf map. Whether it has anything new.
fn read_map(files: &mut NameFiles, now: u64, budget: &ReadBudget) -> bool {
    let update = files.read_map(MonotonicNs::new(now), budget);
    update.is_some_and(|update| update.changed)
}

fn names(jit: &JitCode) -> Vec<(u64, u64, String)> {
    let (slots, _) = jit.changes(true).expect("nothing has changed");
    let shown = |slot: Slot| (slot.offset, slot.size, slot.name);
    slots.into_iter().map(shown).collect()
}

#[test]
fn sampled_code_gets_a_name_that_is_published_later() {
    let folder = tempfile::tempdir().unwrap();
    let mut jit = with_map(folder.path(), "");
    let mapped = 0x10_0000..0x20_0000;
    let (range, offset) = jit.area(0x10_0040, &mapped).unwrap();
    assert_eq!((range, offset), (mapped.clone(), FIRST_AREA));
    sample(&mut jit, 0x10_0040, 5);
    sample(&mut jit, 0x10_0044, 6);
    sample(&mut jit, 0x10_0100, 7);
    assert_eq!(names(&jit), []);
    let _ = with_map(folder.path(), "100030 20 f\n100200 10 not sampled\n");
    assert!(refresh(&mut jit, &AddressSpace::default(), 10).is_empty());
    assert_eq!(names(&jit), [(FIRST_AREA + 0x30, 0x20, "f".to_owned())]);
}

#[test]
fn code_that_replaces_other_code_has_its_own_name() {
    let folder = tempfile::tempdir().unwrap();
    let mut jit = with_map(folder.path(), "1000 100 old\n1100 100 neighbour\n");
    let mapped = 0x1000..0x3000;
    let space = AddressSpace::default();
    assert_eq!(jit.area(0x1000, &mapped).unwrap(), (mapped.clone(), 0x1000));
    sample(&mut jit, 0x1050, 5);
    sample(&mut jit, 0x1150, 5);
    refresh(&mut jit, &space, 10);
    let _ = with_map(folder.path(), "1040 80 new\n");
    assert_eq!(
        refresh(&mut jit, &space, 20),
        std::slice::from_ref(&(0x1040..0x10c0))
    );
    // Around it everything is where it was.
    assert_eq!(jit.area(0x1000, &mapped).unwrap(), (0x1000..0x1040, 0x1000));
    assert_eq!(jit.area(0x10c0, &mapped).unwrap(), (0x10c0..0x3000, 0x10c0));
    assert_eq!(jit.area(0x1050, &mapped).unwrap(), (0x1040..0x10c0, 0x3000));
    sample(&mut jit, 0x1050, 25);
    sample(&mut jit, 0x1150, 25);
    let expected = [
        (0x1000, 0x100, "old"),
        (0x1100, 0x100, "neighbour"),
        (0x3000, 0x80, "new"),
    ];
    assert_eq!(
        names(&jit),
        expected.map(|(at, size, name)| (at, size, name.to_owned()))
    );
    jit.written(Duration::ZERO, false);
    assert!(jit.changes(true).is_none(), "nothing is new");
    sample(&mut jit, 0x1051, 25);
    assert!(jit.changes(false).is_some());
    jit.written(Duration::from_secs(3600), false);
    sample(&mut jit, 0x1052, 25);
    assert!(jit.changes(false).is_none() && jit.changes(true).is_some());
}

#[test]
fn an_address_that_was_sampled_in_two_functions_has_the_name_of_neither() {
    let folder = tempfile::tempdir().unwrap();
    let mut jit = with_map(folder.path(), "1000 100 old\n");
    let space = AddressSpace::default();
    jit.area(0x1000, &(0x1000..0x3000)).unwrap();
    sample(&mut jit, 0x1010, 5);
    sample(&mut jit, 0x1050, 5);
    refresh(&mut jit, &space, 10);
    // The new code is published late: its samples are in the old area.
    sample(&mut jit, 0x1050, 30);
    sample(&mut jit, 0x1060, 30);
    let _ = with_map(folder.path(), "1040 80 new\n");
    refresh(&mut jit, &space, 20);
    let expected = [(0x1000, 0x50, "old"), (0x1051, 0x6f, "new")];
    assert_eq!(
        names(&jit),
        expected.map(|(at, size, name)| (at, size, name.to_owned()))
    );
}

#[test]
fn code_without_a_name_has_a_reason() {
    let folder = tempfile::tempdir().unwrap();
    let mut jit = with_map(folder.path(), "");
    let mut space = AddressSpace::default();
    let mode = Mode {
        execute: true,
        ..Mode::default()
    };
    space.insert(ProcessMapping {
        start: 0x1000,
        end: 0x3000,
        pgoff: 0,
        image: ProcessImage::Other(Path::new("//anon").into()),
        mode: Some(mode),
        id: MappingId::default(),
    });
    assert_eq!(jit.missing_names(&space), None);
    jit.area(0x1000, &(0x1000..0x3000)).unwrap();
    sample(&mut jit, 0x1050, 5);
    refresh(&mut jit, &space, 10);
    assert_eq!(jit.missing_names(&space), Some(MissingNames::Absent));
    let _ = with_map(folder.path(), "1000 100 old\n");
    refresh(&mut jit, &space, 20);
    assert_eq!(jit.missing_names(&space), None);
    sample(&mut jit, 0x1050, 30);
    let _ = with_map(folder.path(), "1040 80 new\n");
    refresh(&mut jit, &space, 30);
    assert_eq!(jit.missing_names(&space), Some(MissingNames::Ambiguous));
}

#[test]
fn a_map_that_is_not_the_processs_own_is_not_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("perf-4711.map");
    let look = |files: &mut NameFiles| read_map(files, 5, &ReadBudget::ALL);
    std::fs::write(folder.path().join("elsewhere"), "1000 10 f\n").unwrap();
    std::os::unix::fs::symlink("elsewhere", &path).unwrap();
    assert!(!look(&mut NameFiles::of_folder(
        folder.path(),
        Pid::new(4711)
    )));
    std::fs::remove_file(&path).unwrap();
    nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRWXU).unwrap();
    assert!(!look(&mut NameFiles::of_folder(
        folder.path(),
        Pid::new(4711)
    )));
    std::fs::remove_file(&path).unwrap();
    std::fs::write(&path, "1000 10 f\n").unwrap();
    let old = std::fs::File::options().write(true).open(&path).unwrap();
    old.set_modified(std::time::UNIX_EPOCH).unwrap();
    assert!(
        !look(&mut NameFiles::of_folder(folder.path(), Pid::new(4711))),
        "older than the process"
    );
    old.set_modified(std::time::SystemTime::now()).unwrap();
    assert!(look(&mut NameFiles::of_folder(
        folder.path(),
        Pid::new(4711)
    )));
}

#[test]
fn a_map_that_was_replaced_is_read_from_its_start() {
    let folder = tempfile::tempdir().unwrap();
    let mut jit = with_map(folder.path(), "1000 100 old\n2000 100 stays\n");
    let space = AddressSpace::default();
    jit.area(0x1000, &(0x1000..0x3000)).unwrap();
    refresh(&mut jit, &space, 10);
    std::fs::write(folder.path().join("perf-4711.map"), "1000 100 new\n").unwrap();
    assert_eq!(
        refresh(&mut jit, &space, 20),
        std::slice::from_ref(&(0x1000..0x1100))
    );
    let (range, _) = jit.area(0x1000, &(0x1000..0x3000)).unwrap();
    assert_eq!(range, 0x1000..0x1100);
    sample(&mut jit, 0x1000, 25);
    assert_eq!(names(&jit)[0].2, "new");
}

/// As `jcmd PID Compiler.perfmap` writes it the second time: in place, as a whole, and no shorter than before.
#[test]
fn a_map_that_was_written_anew_in_place_is_read_from_its_start() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("perf-4711.map");
    let neighbours = "3000 100 a neighbour with a name\n".repeat(200);
    let mut jit = with_map(
        folder.path(),
        &format!("1000 100 stays\n2000 100 old\n{neighbours}"),
    );
    let space = AddressSpace::default();
    let mapped = 0x1000..0x9000;
    jit.area(0x1000, &mapped).unwrap();
    sample(&mut jit, 0x1000, 5);
    sample(&mut jit, 0x2000, 5);
    refresh(&mut jit, &space, 10);
    let anew = format!("4000 100 new\n2000 100 other\n1000 100 stays\n{neighbours}");
    std::fs::write(&path, &anew).unwrap();
    assert_eq!(
        refresh(&mut jit, &space, 20),
        std::slice::from_ref(&(0x2000..0x2100))
    );
    for address in [0x1000, 0x2000, 0x4000] {
        jit.area(address, &mapped).unwrap();
        sample(&mut jit, address, 25);
    }
    let named: Vec<String> = names(&jit).into_iter().map(|(.., name)| name).collect();
    assert_eq!(named, ["stays", "old", "new", "other"]);
    // What is appended to it is read on.
    let _ = with_map(folder.path(), "5000 100 appended\n");
    assert!(refresh(&mut jit, &space, 30).is_empty());
    assert!(jit.changed);
}

/// A jitdump file that loads these functions of 16 bytes: address, name, time.
fn jitdump(folder: &Path, loads: &[(u64, &str, u64)]) -> ForeignFile {
    let word = |number: u32| number.to_le_bytes();
    let long = |number: u64| number.to_le_bytes();
    let mut bytes = Vec::new();
    for field in [0x4A69_5444, 1, 40, 62, 0, 1] {
        bytes.extend(word(field));
    }
    bytes.extend([long(0), long(0)].concat());
    for (index, (address, name, time)) in loads.iter().enumerate() {
        let size = 16 + 40 + name.len() as u32 + 1 + 16;
        bytes.extend([word(0), word(size)].concat());
        bytes.extend(long(*time));
        bytes.extend([word(1), word(1)].concat());
        bytes.extend([*address, *address, 16, index as u64].map(long).concat());
        bytes.extend(name.as_bytes());
        bytes.extend([0; 17]);
    }
    let path = folder.join("jit-1.dump");
    std::fs::write(&path, bytes).unwrap();
    ForeignFile::own(std::fs::File::open(path).unwrap())
}

/// A turn's samples are recorded after the dump was read: those from before the load stay what they were.
#[test]
fn code_that_is_loaded_again_has_its_own_name_from_its_time_on() {
    let folder = tempfile::tempdir().unwrap();
    let loads = [
        (0x1000, "early", 10),
        (0x1010, "other", 10),
        (0x1000, "late", 100),
    ];
    let mut jit = JitCode::default();
    let path = folder.path().join("jit-1.dump");
    jit.files.set_jitdump(jitdump(folder.path(), &loads), &path);
    let (mapped, space) = (0x1000..0x3000, AddressSpace::default());
    let now = MonotonicNs::new(200);
    jit.refresh(Pid::new(1), &space, now, &ReadBudget::ALL);
    for time in [50, 99, 100, 150] {
        let replaced = jit.replaced_until(MonotonicNs::new(time));
        assert_eq!(replaced.is_empty(), time != 100, "{time}");
        for address in [0x1004, 0x1014] {
            jit.area(address, &mapped).unwrap();
            sample(&mut jit, address, time);
        }
    }
    let named: Vec<String> = names(&jit).into_iter().map(|(.., name)| name).collect();
    assert_eq!(named, ["early", "other", "late"]);
}

/// The file is open: reading it takes no request, so it is read at each turn.
#[test]
fn a_jitdump_file_is_read_however_short_ago_names_were_read() {
    let folder = tempfile::tempdir().unwrap();
    let mut jit = JitCode::default();
    let path = folder.path().join("jit-1.dump");
    let mut loads = vec![(0x1000, "one", 10)];
    jit.files.set_jitdump(jitdump(folder.path(), &loads), &path);
    jit.area(0x1000, &(0x1000..0x3000)).unwrap();
    let later = ReadBudget {
        is_last: false,
        ..ReadBudget::ALL
    };
    for now in [1_000_000_000, 1_000_000_001] {
        jit.changed = false;
        jit.refresh(
            Pid::new(1),
            &AddressSpace::default(),
            MonotonicNs::new(now),
            &later,
        );
        assert!(jit.changed);
        loads.push((0x2000, "two", 20));
        let _ = jitdump(folder.path(), &loads);
    }
}

#[test]
fn a_map_that_is_read_in_several_turns_is_one_pass() {
    let folder = tempfile::tempdir().unwrap();
    let mut files = NameFiles::of_folder(folder.path(), Pid::new(4711));
    let path = folder.path().join("perf-4711.map");
    let others: String = (0..100)
        .map(|at| format!("{:x} 8 other\n", 0x10000 + at * 8))
        .collect();
    std::fs::write(&path, format!("1000 10 stale\n{others}1000 10 right\n")).unwrap();
    let mut turns = 0;
    let little = ReadBudget {
        is_last: false,
        bytes: 64,
        until: None,
    };
    while read_map(&mut files, 10 + turns, &little) {
        assert!(files.has_unread() || turns > 10);
        turns += 1;
    }
    let name = |files: &NameFiles, time| {
        let map = files.maps()[1].unwrap();
        map.lookup(time, 0x1000).map(|code| code.name.to_string())
    };
    assert_eq!(name(&files, 1).unwrap(), "right");
    assert!(turns > 10);
    // What is appended after that is newer.
    std::fs::write(
        &path,
        format!("1000 10 stale\n{others}1000 10 right\n1000 10 later\n"),
    )
    .unwrap();
    let update = files.read_map(MonotonicNs::new(2000), &ReadBudget::ALL);
    let [replaced] = &update.unwrap().replaced[..] else {
        panic!("not replaced");
    };
    assert_eq!((&replaced.range, replaced.from), (&(0x1000..0x1010), 2000));
    assert_eq!(name(&files, 9).unwrap(), "right");
    assert_eq!(name(&files, 2000).unwrap(), "later");
}

#[test]
fn a_turn_without_time_reads_at_least_one_chunk() {
    let folder = tempfile::tempdir().unwrap();
    let mut files = NameFiles::of_folder(folder.path(), Pid::new(4711));
    let lines: String = (0..3000)
        .map(|at| format!("{:x} 8 name\n", 0x10000 + at * 8))
        .collect();
    std::fs::write(folder.path().join("perf-4711.map"), lines).unwrap();
    let late = ReadBudget {
        is_last: false,
        until: Some(Instant::now()),
        ..ReadBudget::ALL
    };
    assert!(read_map(&mut files, 10, &late));
    assert!(files.has_unread());
    let known = files.maps()[1].unwrap().codes().len();
    assert!((1..3000).contains(&known), "{known}");
    read_map(&mut files, 10, &ReadBudget::ALL);
    assert!(!files.has_unread());
    assert_eq!(files.maps()[1].unwrap().codes().len(), 3000);
}

#[test]
fn names_are_read_every_so_often_and_at_the_end() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("perf-4711.map");
    let mut jit = JitCode {
        files: NameFiles::of_folder(folder.path(), Pid::new(4711)),
        ..JitCode::default()
    };
    jit.area(0x1000, &(0x1000..0x2000)).unwrap();
    let later = ReadBudget {
        is_last: false,
        ..ReadBudget::ALL
    };
    let mut text = String::new();
    let mut names = |now: Duration, budget: &ReadBudget| {
        text += "1000 10 f\n";
        std::fs::write(&path, &text).unwrap();
        let now = MonotonicNs::new(1_000_000_000 + now.as_nanos() as u64);
        jit.changed = false;
        jit.refresh(Pid::new(1), &AddressSpace::default(), now, budget);
        jit.changed
    };
    let moment = Duration::from_millis(1);
    assert!(names(Duration::ZERO, &later));
    assert!(!names(READ_INTERVAL - moment, &later));
    assert!(names(READ_INTERVAL, &later));
    assert!(!names(READ_INTERVAL + moment, &later));
    assert!(names(READ_INTERVAL + moment, &ReadBudget::ALL));
}

#[test]
fn the_map_of_a_process_that_became_another_user_is_its_own() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("perf-4711.map"), "1000 10 f\n").unwrap();
    let mut files = NameFiles::of_folder(folder.path(), Pid::new(4711));
    files.set_user(12345);
    assert!(read_map(&mut files, 5, &ReadBudget::ALL));
}

#[test]
fn a_name_stays_within_its_area() {
    let folder = tempfile::tempdir().unwrap();
    let mut jit = with_map(folder.path(), "800 10000000 huge\n");
    jit.area(0x1000, &(0x1000..0x3000)).unwrap();
    jit.area(0x5000, &(0x5000..0x6000)).unwrap();
    sample(&mut jit, 0x1050, 5);
    sample(&mut jit, 0x5010, 5);
    refresh(&mut jit, &AddressSpace::default(), 10);
    let (slots, length) = jit.changes(true).unwrap();
    varid_symbolizer::substitute::Substitute::remap(slots, length, &[1]).unwrap();
    assert_eq!(
        names(&jit),
        [
            (0x1000, 0x2000, "huge".to_owned()),
            (0x3000, 0x1000, "huge".to_owned())
        ]
    );
}

#[test]
fn names_beyond_the_budget_are_left_out() {
    let folder = tempfile::tempdir().unwrap();
    let name = "n".repeat(4096);
    let lines: String = (0..5000)
        .map(|at| format!("{:x} 10 {at}{name}\n", 0x10000 + at * 0x10))
        .collect();
    let mut jit = with_map(folder.path(), &lines);
    jit.area(0x10000, &(0x10000..0x100000)).unwrap();
    (0..5000).for_each(|at| sample(&mut jit, 0x10000 + at * 0x10, 5));
    refresh(&mut jit, &AddressSpace::default(), 10);
    assert_eq!(names(&jit).len(), MAX_NAMES / 4096);
    jit.written(Duration::from_secs(3600), true);
    assert!(
        jit.changes(false).is_none(),
        "a failed write is not repeated at once, either"
    );
    assert!(jit.changes(true).is_some());
}

#[test]
fn a_jitdump_file_is_known_by_its_name() {
    assert!(
        is_jitdump(Path::new("/home/a/jit-12.dump"))
            && is_jitdump(Path::new("/jit-1.dump (deleted)"))
    );
    for path in ["/jit-.dump", "/jit-x.dump", "/jit-12.dump/a", "jit-12", ""] {
        assert!(!is_jitdump(Path::new(path)), "{path}");
    }
}
