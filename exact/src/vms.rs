//! Finds the VMs that a program has started, by their files.

use std::{fs, path::Path};

use varid_model::Pid;

use crate::{
    error::{Error, Result},
    order::Order,
    tables::Tables,
    tree::Tree,
};

/// The extensions of the two files of a VM.
const TABLES: &str = "tables";
const TREE: &str = "tree";
/// The extension of the file with the order of calls, if that is recorded.
const ORDER: &str = "order";
/// The largest file of tables. The JDK and the programs of an application server take a tenth of it.
const MAX_TABLES: u64 = 4 << 30;

/// A VM that has run.
#[derive(Debug)]
pub struct Vm {
    /// Its process.
    pub pid: Pid,
    /// Its tree, or why it cannot be read.
    pub tree: Result<Tree>,
    /// What its tree counts.
    pub tables: Tables,
    /// The order of its calls, if that is recorded, or why it cannot be read.
    pub order: Option<Result<Order>>,
    /// Whether it still runs. What it does later is not counted.
    pub is_running: bool,
}

/// Returns the VMs whose files are in a folder, by process.
///
/// # Errors
///
/// The folder or a file cannot be read.
pub fn read_vms(folder: &Path) -> Result<Vec<Vm>> {
    let mut vms = Vec::new();
    for entry in fs::read_dir(folder).map_err(Error::io("read", folder))? {
        let path = entry.map_err(Error::io("read", folder))?.path();
        let name = path.file_name().map(|name| name.to_string_lossy());
        let pid = name.and_then(|name| name.split('.').next()?.parse().ok());
        if let Some(pid) = pid.filter(|_| path.extension().is_some_and(|kind| kind == TABLES)) {
            let size = fs::metadata(&path).map_err(Error::io("read", &path))?.len();
            if size > MAX_TABLES {
                return Err(Error::Tree {
                    path,
                    offset: size,
                    problem: "the file is too large",
                });
            }
            let file = path.with_extension(TREE);
            let is_running = is_mapped(pid, &file);
            // First the tree: the tables describe a node before the tree has it.
            let tree = Tree::open(&file);
            let order = path.with_extension(ORDER);
            let order = order.exists().then(|| Order::open(&order));
            let bytes = fs::read(&path).map_err(Error::io("read", &path))?;
            vms.push((
                file,
                Vm {
                    pid: Pid::new(pid),
                    tree,
                    tables: Tables::read(&bytes),
                    order,
                    is_running,
                },
            ));
        }
    }
    vms.sort_by(|(one_file, one), (other_file, other)| {
        (one.pid, one_file).cmp(&(other.pid, other_file))
    });
    Ok(vms.into_iter().map(|(_, vm)| vm).collect())
}

/// Returns true if a process has a file mapped.
fn is_mapped(pid: u32, file: &Path) -> bool {
    let maps = fs::read(format!("/proc/{pid}/maps")).unwrap_or_default();
    let file = file.as_os_str().as_encoded_bytes();
    maps.split(|byte| *byte == b'\n')
        .any(|line| line.ends_with(file))
}
