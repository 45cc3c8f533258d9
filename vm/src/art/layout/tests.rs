use super::*;
use varid_tunnel::abi::RANGE_VM;
use varid_tunnel::builds;

#[test]
fn each_library_is_found_as_the_table_has_it() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/lib");
    for name in ["11-amd64", "14-amd64", "11-arm64", "14-arm64", "11-armhf"] {
        let bytes = std::fs::read(folder.join(format!("{name}.so"))).unwrap();
        let file = varid_symbolizer::parse_elf(&*bytes).unwrap();
        use object::Object;
        let build = builds::lookup(file.build_id().unwrap().unwrap()).unwrap();
        let now = std::time::Instant::now();
        let found = LibraryLayout::read(&bytes);
        let library = Library::read(&bytes).unwrap();
        println!("== {name} {:?}", now.elapsed());
        let found = match found { Ok(found) => found, Err(error) => { println!("   {error}"); continue; } };
        let table = build.layout(0, |_| Some(8)).unwrap();
        let (layout, ranges) = found.loaded_at(0, 8);
        let mut table = table; for rule in table.rules.iter_mut().skip(table.rule_count.into()) { *rule = Rule::default(); }
        if layout != table {
            println!("   {layout:?}\n   {table:?}");
        }
        println!("   self {:?} threads {:?} begin {}", found.self_pointer, found.threads, found.has_dex_file_begin);
        let (mine, theirs) = (ranges, build.ranges(0));
        for range in &theirs {
            if range.kind != RANGE_VM && !mine.contains(range) { println!("   missing {range:x?}"); }
        }
        for range in &mine {
            if range.kind != RANGE_VM && !theirs.contains(range) { println!("   more {:x} {:x} {} {}", range.start, range.end, range.kind, library.function_at(range.start).map_or("", |f| f.name.get(..50).unwrap_or(&f.name))); }
        }
    }
}
