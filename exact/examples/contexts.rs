//! Prints the calling contexts of the trees in a folder, one in each line: how often, and the methods from the thread's first one on.

#![allow(clippy::expect_used, clippy::print_stdout)]

use varid_exact::read_vms;

fn main() {
    let folder = std::env::args().nth(1).expect("a folder with trees");
    for vm in read_vms(folder.as_ref()).expect("the tables") {
        let mut paths: Vec<String> = Vec::new();
        let mut sites: Vec<Vec<u16>> = Vec::new();
        let mut tree = vm.tree.expect("the tree");
        let walked = tree.visit(&vm.tables, |thread, caller, node, method| {
            let start = thread.map_or("?", |thread| &thread.name).to_owned();
            let start = caller
                .and_then(|caller: usize| paths.get(caller))
                .unwrap_or(&start);
            let site = match (node.site, caller.and_then(|caller| sites.get(caller))) {
                (Some(site), Some(bcis)) => bcis.get(site).map_or("-".to_owned(), u16::to_string),
                _ => "-".to_owned(),
            };
            sites.push(method.table.sites.iter().map(|site| site.bci.0).collect());
            let (class, table) = (&method.class, &method.table);
            let path = format!("{start};{site}:{class}.{}{}", table.name, table.descriptor);
            println!("{} {path}", node.calls);
            paths.push(path);
            Ok(paths.len().saturating_sub(1))
        });
        if let Err(error) = walked {
            eprintln!("{error}");
        }
        eprintln!(
            "process {}: {} contexts, {} folded",
            vm.pid,
            paths.len(),
            tree.folded
        );
    }
}
