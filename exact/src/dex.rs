//! Rewrites the dex files of a program, and the command that runs it in artvm.
//!
//! artvm is the launcher of ART on Linux. Its dex files are replaced by rewritten copies, and it loads the agent as a library of JNI.

use std::{
    collections::{BTreeMap, HashSet},
    ffi::{OsStr, OsString},
    fs,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use varid_exact_agent::{
    Options, art,
    record::{ClassRecord, Record},
};
use varid_instrument::{Counted, Intrinsics, MethodNumber};
use varid_instrument_dex::{Entries, NotRewritten, Plan, RewrittenClass, RuntimeClass, rewrite};
use varid_recording::{DEX_ZIP, SessionWriter};

use crate::{
    error::{Error, Result},
    session_zip::SessionZip,
};

/// The program that runs dex files.
const ARTVM: &str = "artvm";
/// Its options: those with dex files, and those that cannot be kept.
const DEX: &str = "--dex";
const APP_DEX: &str = "--app-dex";
const IMAGE: &str = "--image";
const LIBRARY: &str = "--lib";
/// Its option that compiles code.
const JIT: &str = "--jit";

/// A program of dex files that counts its calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DexProgram {
    /// The command, with the rewritten files and the agent.
    pub command: Vec<OsString>,
    /// The variable that the agent needs, with its value.
    pub environment: (&'static str, String),
    /// The files as they were, if their instructions are counted.
    originals: Vec<Vec<u8>>,
}

/// The most bytes of dex files that a session keeps. Apps have a tenth of it.
const MAX_KEPT: usize = 512 << 20;

/// Dex files that were rewritten together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RewrittenDex {
    /// The new files, in the order of the old ones. The first one has the class that the rewritten code calls.
    pub files: Vec<Vec<u8>>,
    /// The old files.
    pub originals: Vec<Vec<u8>>,
    /// The records that describe their classes: the file [`art::RECORDS`].
    pub records: Vec<u8>,
    /// The number of methods whose calls are counted.
    pub methods: usize,
}

/// Rewrites the dex files of a program.
///
/// # Errors
///
/// A file cannot be read or rewritten.
pub fn rewrite_dex(paths: &[PathBuf], plan: Plan) -> Result<RewrittenDex> {
    let mut dex = RewrittenDex {
        files: Vec::new(),
        originals: Vec::new(),
        records: Vec::new(),
        methods: 0,
    };
    let mut next = MethodNumber::FIRST;
    let mut runtime_class = RuntimeClass::Added;
    let mut own = HashSet::new();
    let mut others: BTreeMap<String, RewrittenClass> = BTreeMap::new();
    for path in paths {
        let bytes = fs::read(path).map_err(Error::io("read", path))?;
        let failed = |source| Error::Dex {
            path: path.clone(),
            source,
        };
        let new = rewrite(&bytes, plan, next, runtime_class).map_err(failed)?;
        runtime_class = RuntimeClass::Elsewhere;
        let classes = new.classes.iter().chain(&new.others);
        let methods = classes.map(|class| class.methods.len());
        let taken = methods.fold(0, usize::saturating_add);
        let numbers = next.after(taken).ok_or(NotRewritten::NoNumbers);
        next = numbers.map_err(failed)?;
        for class in new.classes {
            dex.methods = dex.methods.saturating_add(class.methods.len());
            dex.describe(&class, false);
            own.insert(class.name);
        }
        for other in new.others {
            match others.get_mut(&other.name) {
                Some(known) => add_unknown(known, other),
                None => {
                    others.insert(other.name.clone(), other);
                }
            }
        }
        dex.files.push(new.bytes);
        dex.originals.push(bytes);
    }
    for class in others.values().filter(|class| !own.contains(&class.name)) {
        dex.describe(class, true);
        let reason = Record::NotCounted {
            class: class.name.clone(),
            reason: "it is not in the rewritten dex files".to_owned(),
        };
        dex.records.extend(reason.encode());
    }
    Ok(dex)
}

/// Adds the methods of a class that are not known.
fn add_unknown(known: &mut RewrittenClass, other: RewrittenClass) {
    for method in other.methods {
        let mut methods = known.methods.iter();
        if methods.all(|one| (&one.name, &one.descriptor) != (&method.name, &method.descriptor)) {
            known.methods.push(method);
        }
    }
}

impl RewrittenDex {
    /// Appends the records of a class.
    fn describe(&mut self, class: &RewrittenClass, is_boot: bool) {
        for (method, places) in &class.instructions {
            let record = Record::Instructions {
                method: *method,
                places: places.clone(),
            };
            self.records.extend(record.encode());
        }
        let record = Record::Class(ClassRecord {
            is_boot,
            name: class.name.clone(),
            source_file: class.source_file.clone().unwrap_or_default(),
            methods: class.methods.clone(),
            bytes: &[],
        });
        self.records.extend(record.encode());
    }
}

impl DexProgram {
    /// Rewrites the dex files of a command that starts artvm, into the folder of the options. None: it starts another program.
    ///
    /// # Errors
    ///
    /// The dex files cannot be rewritten, or the command has options with which they cannot be replaced.
    pub fn prepare(command: &[OsString], agent: &Path, options: &Options) -> Result<Option<Self>> {
        let Some((program, arguments)) = command.split_first() else {
            return Ok(None);
        };
        if Path::new(program).file_name() != Some(OsStr::new(ARTVM)) {
            return Ok(None);
        }
        let asks_for_more = options.within.is_some()
            || !options.include.is_empty()
            || options.is_switched
            || options.intrinsics == Intrinsics::Expanded;
        if options.counted == Counted::Order || asks_for_more {
            return Err(Error::Option {
                option: "--call-order, --within, --include, --switch or --intrinsics expand",
                reason: "they are for HotSpot only",
            });
        }
        let found = DexArguments::find(arguments)?;
        let paths: Vec<PathBuf> = found.places.iter().map(|place| place.path()).collect();
        let plan = Plan {
            counted: options.counted,
            entries: found.entries,
        };
        let dex = rewrite_dex(&paths, plan)?;
        let folder = &options.folder;
        let write = |name: &str, bytes: &[u8]| {
            let path = folder.join(name);
            let written = fs::write(&path, bytes).map_err(Error::io("write", &path));
            written.map(|()| path)
        };
        write(art::RECORDS, &dex.records)?;
        let mut new = arguments.to_vec();
        for (number, (place, bytes)) in found.places.iter().zip(&dex.files).enumerate() {
            let path = write(&format!("{number}.dex"), bytes)?;
            let mut argument = place.option.clone();
            argument.push(path);
            if let Some(old) = new.get_mut(place.index) {
                *old = argument;
            }
        }
        let library: [OsString; 2] = [LIBRARY.into(), agent.into()];
        let command = [program.clone()].into_iter().chain(library).chain(new);
        Ok(Some(Self {
            command: command.collect(),
            environment: (art::OPTIONS, options.to_string()),
            originals: match options.counted {
                Counted::Calls => Vec::new(),
                Counted::Blocks | Counted::Order => dex.originals,
            },
        }))
    }

    /// Copies the dex files as they were into a session, so that the counted instructions can be shown.
    ///
    /// # Errors
    ///
    /// The archive cannot be written.
    pub fn keep_files(&self, writer: &mut SessionWriter) -> Result<()> {
        let sizes = self.originals.iter().map(Vec::len);
        if sizes.fold(0, usize::saturating_add) > MAX_KEPT {
            writer.manifest_mut().notes.push(
                "the dex files had no room in the session: 'varid annotate' shows no instructions"
                    .to_owned(),
            );
            return Ok(());
        }
        let mut archive = SessionZip::new(writer, DEX_ZIP);
        for (number, bytes) in (1_usize..).zip(&self.originals) {
            // As in an APK.
            let name = match number {
                1 => "classes.dex".to_owned(),
                number => format!("classes{number}.dex"),
            };
            archive.add(&name, bytes)?;
        }
        archive.finish()
    }
}

/// The arguments of artvm that are dex files.
#[derive(Debug)]
struct DexArguments {
    places: Vec<DexPlace>,
    /// How methods find their nodes: whether artvm compiles them.
    entries: Entries,
}

/// A dex file among arguments.
#[derive(Debug)]
struct DexPlace {
    index: usize,
    /// What stands before the path in the same argument, such as `--dex=`.
    option: OsString,
    path: OsString,
}

impl DexPlace {
    fn path(&self) -> PathBuf {
        PathBuf::from(&self.path)
    }
}

impl DexArguments {
    fn find(arguments: &[OsString]) -> Result<Self> {
        let mut found = Self {
            places: Vec::new(),
            entries: Entries::Called,
        };
        let mut options = HashSet::new();
        // The option whose values follow.
        let mut option = None;
        for (index, argument) in arguments.iter().enumerate() {
            let bytes = argument.as_bytes();
            if bytes == b"--" {
                break;
            }
            if !bytes.starts_with(b"-") {
                // All values are of `--dex`, one of the other.
                if let Some(last) = option {
                    options.insert(last);
                    found.add(index, "", argument);
                    option = option.filter(|last| *last == DEX);
                }
                continue;
            }
            if bytes == JIT.as_bytes() {
                found.entries = Entries::Inline;
            }
            option = [DEX, APP_DEX]
                .into_iter()
                .find(|one| bytes == one.as_bytes());
            for one in [DEX, APP_DEX] {
                let prefix = format!("{one}=");
                if let Some(path) = bytes.strip_prefix(prefix.as_bytes()) {
                    options.insert(one);
                    found.add(index, &prefix, OsStr::from_bytes(path));
                }
            }
            if bytes == IMAGE.as_bytes() || bytes.starts_with(b"--image=") {
                return Err(Error::Option {
                    option: IMAGE,
                    reason: "an image has the code of the original dex files; --jit compiles the rewritten ones",
                });
            }
        }
        if options.len() > 1 {
            return Err(Error::Option {
                option: "--dex and --app-dex",
                reason: "each has a class loader of its own, and the agent's library belongs to one",
            });
        }
        Ok(found)
    }

    fn add(&mut self, index: usize, option: &str, path: &OsStr) {
        self.places.push(DexPlace {
            index,
            option: option.into(),
            path: path.to_owned(),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(arguments: &[&str]) -> Result<Vec<(usize, String)>> {
        let arguments: Vec<OsString> = arguments.iter().map(OsString::from).collect();
        let found = DexArguments::find(&arguments)?;
        let places = found.places.iter();
        let place = |place: &DexPlace| (place.index, place.path().display().to_string());
        Ok(places.map(place).collect())
    }

    #[test]
    fn dex_files_are_found_among_arguments() {
        let one = |index, path: &str| (index, path.to_owned());
        let dex = find(&["--dex", "a.dex", "b.dex", "--name", "org.app", "App", "run"]).unwrap();
        assert_eq!(dex, [one(1, "a.dex"), one(2, "b.dex")]);
        let dex = find(&["--dex=a.dex", "--jit", "--", "App", "run"]).unwrap();
        assert_eq!(dex, [one(0, "a.dex")]);
        let dex = find(&["--app-dex", "a.dex", "App", "run"]).unwrap();
        assert_eq!(dex, [one(1, "a.dex")]);
        let entries = |arguments: &[&str]| {
            let arguments: Vec<OsString> = arguments.iter().map(OsString::from).collect();
            DexArguments::find(&arguments).unwrap().entries
        };
        assert_eq!(entries(&["--dex=a.dex", "--jit", "App"]), Entries::Inline);
        assert_eq!(
            entries(&["--dex=a.dex", "--", "App", "--jit"]),
            Entries::Called
        );
        assert!(find(&["--dex", "a.dex", "--image", "DIR"]).is_err());
        assert!(find(&["--dex", "a.dex", "--app-dex", "b.dex"]).is_err());
    }
}
