//! How is a program run whose classes are rewritten, without the agent?

use crate::tree::Tree;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use varid_instrument::{
    Body, Counted, Intrinsics, MethodNumber, MethodReference, MethodTable, Plain, Plan,
    TreeAddress, node, rewrite, runtime, runtime_class, thread_class,
};

/// Where the tree is mapped: an address that nothing else has on 64-bit Linux.
const ADDRESS: u64 = 0x1000_0000_0000;
/// Length of the tree's arena in bytes.
const ARENA: u64 = 64 << 20;

/// An installed JDK.
pub struct Jdk {
    home: PathBuf,
}

impl Jdk {
    /// Returns the JDK of `JAVA_HOME`, or that of the `javac` in `PATH`.
    pub fn find() -> Option<Self> {
        let home = match std::env::var_os("JAVA_HOME") {
            Some(home) => PathBuf::from(home),
            None => {
                let path = std::env::var_os("PATH")?;
                let javac = std::env::split_paths(&path)
                    .map(|folder| folder.join("javac"))
                    .find(|javac| javac.exists())?;
                let javac = fs::canonicalize(javac).ok()?;
                javac.parent()?.parent()?.to_owned()
            }
        };
        let jdk = Self { home };
        let installed =
            jdk.tool("jimage").exists() && Command::new("cc").arg("--version").output().is_ok();
        installed.then_some(jdk)
    }

    fn tool(&self, name: &str) -> PathBuf {
        self.home.join("bin").join(name)
    }
}

/// A folder with rewritten classes, their tables, and the tree.
pub struct Workspace<'j> {
    jdk: &'j Jdk,
    folder: tempfile::TempDir,
    plan: Plan,
    next: MethodNumber,
    methods: BTreeMap<u32, (String, MethodTable)>,
}

impl<'j> Workspace<'j> {
    pub fn new(jdk: &'j Jdk, counted: Counted) -> Self {
        Self {
            jdk,
            folder: tempfile::tempdir().unwrap(),
            plan: Plan {
                counted,
                intrinsics: Intrinsics::Leaves,
                start: Some(MethodReference {
                    class: "Program".to_owned(),
                    name: "main".to_owned(),
                    descriptor: "([Ljava/lang/String;)V".to_owned(),
                }),
                within: None,
            },
            next: MethodNumber::FIRST,
            methods: BTreeMap::new(),
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The folder of the rewritten `java.base`.
    pub fn module(&self) -> PathBuf {
        self.path("rewritten")
    }

    /// Rewrites all classes of `java.base`, adds the runtime class, and returns the number of those that were rewritten.
    pub fn rewrite_java_base(&mut self) -> usize {
        let original = self.path("original");
        run(Command::new(self.jdk.tool("jimage"))
            .arg("extract")
            .arg("--dir")
            .arg(&original)
            .args(["--include", "regex:/java.base/.*\\.class"])
            .arg(self.jdk.home.join("lib/modules")));
        let module = self.module();
        let count = self.rewrite_folder(&original.join("java.base"), &module);
        let runtime = runtime_class(TreeAddress(ADDRESS), &self.plan);
        write(
            &module.join(runtime::CLASS).with_extension("class"),
            &runtime,
        );
        count
    }

    fn rewrite_folder(&mut self, from: &Path, to: &Path) -> usize {
        let files = class_files(from);
        for path in &files {
            let relative = path.strip_prefix(from).unwrap();
            let mut class = fs::read(path).unwrap();
            if relative == Path::new("java/lang/Thread.class") {
                class = thread_class(&class).unwrap();
            }
            let rewritten = rewrite(&class, &self.plan, self.next).unwrap();
            self.next = self.next.after(rewritten.methods.len()).unwrap();
            for method in rewritten.methods {
                let valid = !matches!(
                    method.body,
                    Body::Plain(Plain::Invalid | Plain::BranchTooFar)
                );
                assert!(
                    valid,
                    "{}.{}: {:?}",
                    rewritten.class, method.name, method.body
                );
                let entry = (rewritten.class.clone(), method);
                self.methods.insert(entry.1.number.get(), entry);
            }
            // What was written is a class file.
            rewrite(&rewritten.bytes, &self.plan, MethodNumber::FIRST).unwrap();
            write(&to.join(relative), &rewritten.bytes);
        }
        files.len()
    }

    /// Compiles a program beside this file, and other files, which are given by their names and contents.
    pub fn compile(&self, source: &str, others: &[(&str, &str)]) {
        let mut javac = Command::new(self.jdk.tool("javac"));
        javac
            .arg("-d")
            .arg(self.path("classes"))
            .arg(beside(source));
        for (name, contents) in others {
            fs::write(self.path(name), contents).unwrap();
            javac.arg(self.path(name));
        }
        run(&mut javac);
    }

    /// Compiles and rewrites a program.
    pub fn rewrite_program(&mut self, source: &str, others: &[(&str, &str)]) {
        let classes = self.path("classes");
        let _ = fs::remove_dir_all(&classes);
        self.compile(source, others);
        let compiled = self.path("compiled");
        fs::rename(&classes, &compiled).unwrap();
        self.rewrite_folder(&compiled, &classes);
    }

    /// Runs a program with the rewritten `java.base`, and returns its output.
    pub fn java(&self, options: &[&str], program: &[&str]) -> String {
        let library = self.path("map.so");
        run(Command::new("cc")
            .args(["-shared", "-fPIC", "-o"])
            .arg(&library)
            .arg(beside("map.c")));
        let file = self.path("tree");
        let length = node::HEADER + ARENA;
        let mut header = vec![0; usize::try_from(length).unwrap()];
        let at = usize::try_from(node::header::ARENA_LENGTH).unwrap();
        header[at..at + 8].copy_from_slice(&ARENA.to_le_bytes());
        fs::write(&file, header).unwrap();
        run(Command::new(self.jdk.tool("java"))
            .env("LD_PRELOAD", library)
            .env("VARID_TEST_TREE", file)
            .env("VARID_TEST_ADDRESS", format!("{ADDRESS:x}"))
            .env("VARID_TEST_LENGTH", length.to_string())
            .arg(format!(
                "--patch-module=java.base={}",
                self.module().display()
            ))
            .arg("-Xshare:off")
            .args(options)
            .arg("-cp")
            .arg(self.path("classes"))
            .args(program))
    }

    /// Reads the tree.
    pub fn tree(&self) -> Tree<'_> {
        Tree {
            bytes: fs::read(self.path("tree")).unwrap(),
            address: ADDRESS,
            methods: &self.methods,
        }
    }
}

fn beside(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/it")
        .join(name)
}

fn run(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {text}{errors}");
    text
}

fn class_files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|it| it == "class")
                && path.file_name().is_some_and(|it| it != "module-info.class")
            {
                files.push(path);
            }
        }
    }
    files.sort();
    files
}

fn write(path: &Path, bytes: &[u8]) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, bytes).unwrap();
}
