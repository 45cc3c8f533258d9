use super::*;
use std::collections::HashMap;
use varid_instrument::{Bci, Block, Body, Executions, MethodReference, MethodTable, Site};

/// The address of the tree in its VM.
const ADDRESS: u64 = 0x7f00_0000_0000;

pub fn number(value: u32) -> MethodNumber {
    MethodNumber::new(value).unwrap()
}

/// A method of `org/example/App` with so many sites.
pub fn method(value: u32, name: &str, sites: u16) -> CountedMethod {
    let site = |bci| Site {
        bci: Bci(bci),
        opcode: 184,
        target: MethodReference {
            class: String::new(),
            name: String::new(),
            descriptor: String::new(),
        },
    };
    CountedMethod {
        class: "org/example/App".to_owned(),
        source_file: "App.java".to_owned(),
        class_file: None,
        table: MethodTable {
            number: number(value),
            name: name.to_owned(),
            descriptor: "()V".to_owned(),
            access: 9,
            body: Body::Counted,
            code_length: 10,
            sites: (0..sites).map(site).collect(),
            blocks: Vec::new(),
            counters: 0,
            lines: Vec::new(),
        },
        instructions: Vec::new(),
        returns: Vec::new(),
    }
}

/// A constructor that calls another one at 4, and returns at 7, of one block.
fn constructor(value: u32) -> CountedMethod {
    let mut found = method(value, CONSTRUCTOR, 1);
    found.instructions = vec![0, 4, 7];
    found.returns = vec![7];
    found.table.blocks = vec![Block {
        start: Bci(0),
        end: Bci(8),
        executions: Executions::Calls,
    }];
    found.table.sites = found.table.sites.into_iter().map(super_site).collect();
    found
}

fn super_site(mut site: Site) -> Site {
    site.bci = Bci(4);
    site.opcode = INVOKESPECIAL;
    CONSTRUCTOR.clone_into(&mut site.target.name);
    site
}

/// A file of a tree, word by word.
struct File(Vec<u64>);

impl File {
    fn new() -> Self {
        let mut file = Self(vec![0; 512]);
        file.set(header::MAGIC, node::MAGIC);
        file.set(header::VERSION, node::VERSION);
        file.set(header::ADDRESS, ADDRESS);
        file
    }

    fn set(&mut self, offset: u64, value: u64) {
        self.0[usize::try_from(offset / 8).unwrap()] = value;
    }

    fn get(&self, offset: u64) -> u64 {
        self.0[usize::try_from(offset / 8).unwrap()]
    }

    /// Adds a node with so many slots in front of the chain of a slot. Returns its offset.
    fn add(&mut self, slot: u64, method: u64, slots: usize, calls: u64) -> u64 {
        let start = self.0.len() + slots;
        self.0.resize(start + 4, 0);
        let offset = start as u64 * 8;
        let next = self.get(slot);
        for (at, value) in (0..).zip([method, next, slot + ADDRESS, calls]) {
            self.set(offset + at * 8, value);
        }
        self.set(slot, offset + ADDRESS);
        self.set(header::ALLOCATED, self.0.len() as u64 * 8 - node::HEADER);
        offset
    }

    /// Writes the file and returns its nodes.
    fn read(&self) -> Result<Vec<Read>> {
        self.read_with_aborts(&mut Vec::new())
    }

    /// The same, with the exceptions of each node.
    fn read_with_aborts(&self, aborts: &mut Vec<Vec<(u16, u64)>>) -> Result<Vec<Read>> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tree");
        let bytes: Vec<u8> = self.0.iter().flat_map(|word| word.to_le_bytes()).collect();
        std::fs::write(&path, bytes).unwrap();
        let methods = [(1, "main", 2), (2, "leaf", 0)];
        let methods =
            methods.map(|(value, name, sites)| (number(value), method(value, name, sites)));
        let mut methods = HashMap::from(methods);
        methods.insert(number(4), constructor(4));
        let tables = Tables {
            methods,
            ..Tables::default()
        };
        let mut found = Vec::new();
        let mut tree = Tree::open(&path)?;
        tree.visit(&tables, |_, parent, node, _| {
            found.push((parent, node.method.get(), node.site, node.calls));
            aborts.push(node.aborts.clone());
            Ok(found.len() - 1)
        })?;
        match tree.damage {
            Some((_, error)) => Err(error),
            None => Ok(found),
        }
    }
}

/// A node that was read: key of the caller, method, site, calls.
type Read = (Option<usize>, u32, Option<usize>, u64);

/// A root with `main`, which calls `leaf` from its second site, and itself from the first. Returns the offset of the outer `main`.
fn recursion() -> (File, u64) {
    let mut file = File::new();
    let root = file.add(header::ROOTS, 0, 1, 0);
    // A root is in no slot.
    file.set(root + 16, 0);
    let main = file.add(root - 8, 1, 3, 1);
    file.add(main - 16, 1, 3, 2);
    file.add(main - 24, 2, 1, 7);
    (file, main)
}

#[test]
fn nodes_come_after_their_callers_with_their_sites() {
    let (file, _) = recursion();
    let mut found = file.read().unwrap();
    found.sort_unstable();
    assert_eq!(
        found,
        [
            (None, 1, None, 1),
            (Some(0), 1, Some(0), 2),
            (Some(0), 2, Some(1), 7)
        ]
    );
}

#[test]
fn a_damaged_tree_is_an_error_with_its_offset() {
    let problem = |change: &dyn Fn(&mut File, u64)| {
        let (mut file, main) = recursion();
        change(&mut file, main);
        match file.read().unwrap_err() {
            Error::Tree {
                offset, problem, ..
            } => (offset as i64 - main as i64, problem),
            error => panic!("{error}"),
        }
    };
    let circle = problem(&|file, main| file.set(main + 8, main + ADDRESS));
    assert_eq!(circle, (0, "the tree has a circle, or nodes that overlap"));
    let slot = problem(&|file, main| file.set(main + 16, main + ADDRESS));
    assert_eq!(slot, (0, "the node is in the chain of another slot"));
    let method = problem(&|file, main| file.set(main, 3));
    assert_eq!(method, (0, "the node has a method that is not described"));
    let away = problem(&|file, main| file.set(main + 8, 8));
    assert_eq!(away.1, "the address leads out of the tree");
    let odd = problem(&|file, main| file.set(main + 8, main + ADDRESS + 4));
    assert_eq!(odd, (20, "a word is not aligned"));
}

#[test]
fn a_node_that_is_added_after_the_header_was_read_is_left_out() {
    let (mut file, main) = recursion();
    let allocated = file.get(header::ALLOCATED);
    // It comes before the other one in its chain, and has a method that is not described.
    let later = file.add(main - 24, 3, 1, 9);
    file.set(header::ALLOCATED, allocated);
    assert_eq!(file.get(main - 24), later + ADDRESS);
    assert_eq!(file.read().unwrap().len(), 3);
}

#[test]
fn any_changed_word_ends_the_walk() {
    let (file, _) = recursion();
    for at in 0..file.0.len() {
        for value in [1, 0x1000, ADDRESS, ADDRESS + 0x1008, u64::MAX] {
            let mut changed = File(file.0.clone());
            changed.0[at] = value;
            let _ = changed.read();
        }
    }
}

#[test]
fn what_follows_super_did_not_run_if_the_constructor_it_calls_threw() {
    let mut file = File::new();
    let root = file.add(header::ROOTS, 0, 1, 0);
    file.set(root + 16, 0);
    // A constructor that calls one that calls one, which has thrown twice at 0.
    let mut slot = root - 8;
    for calls in [9, 7, 5] {
        let node = file.add(slot, 4, 2, calls);
        // The word of exceptions, and an exception.
        file.0.push(0);
        slot = node - 16;
        if calls == 5 {
            let exception = file.0.len() as u64 * 8;
            file.set(node + 32, exception + ADDRESS);
            file.0.extend([0, 0, 2]);
        }
    }
    file.set(header::ALLOCATED, file.0.len() as u64 * 8 - node::HEADER);
    let mut aborts = Vec::new();
    file.read_with_aborts(&mut aborts).unwrap();
    assert_eq!(aborts, [vec![(4, 2)], vec![(4, 2)], vec![(0, 2)]]);
}
