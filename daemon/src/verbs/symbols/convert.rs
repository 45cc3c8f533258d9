//! `varid symbols FILE... --elf OUT --sym OUT`: writes the symbols of dex files for other tools.

use super::Errors;
use super::image::{Code, Image, InputFile};
use crate::output_file;
use anyhow::{Context, bail};
use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use varid_symbolizer::bytecode::BytecodeImage;
use varid_symbolizer::dex::{DexBytecode, DexFile};
use varid_symbolizer::substitute::{Substitute, write_sym_text};

/// Writes a bytecode image in one format.
type WriteForm = fn(&dyn BytecodeImage, &mut dyn Write) -> anyhow::Result<()>;

/// An output format and its path.
struct Form<'a> {
    out: &'a Path,
    suffix: &'static str,
    write: WriteForm,
    /// The files written.
    written: BTreeSet<PathBuf>,
}

/// Writes the requested files for each dex file.
pub fn run(files: &[InputFile], elf: Option<&Path>, sym: Option<&Path>, errors: &mut Errors) {
    let mut forms: Vec<Form<'_>> = Vec::new();
    forms.extend(elf.map(|out| {
        Form::new(out, "elf", |image, out| {
            let bytes = Substitute::of_bytecode(image).to_bytes()?;
            Ok(out.write_all(&bytes)?)
        })
    }));
    forms
        .extend(sym.map(|out| Form::new(out, "sym", |image, out| Ok(write_sym_text(image, out)?))));
    let inputs: Vec<PathBuf> = files.iter().map(|file| file.path().to_owned()).collect();
    for file in files {
        file.visit(errors, |images, errors| {
            let many = files.len() > 1 || images.len() > 1;
            for form in &mut forms {
                for image in images {
                    errors.report(form.put(image, many, &inputs));
                }
            }
        });
    }
}

impl<'a> Form<'a> {
    fn new(out: &'a Path, suffix: &'static str, write: WriteForm) -> Self {
        Self {
            out,
            suffix,
            write,
            written: BTreeSet::new(),
        }
    }

    /// Writes an image's file: into a folder if there are `many` or OUT is a folder.
    fn put(&mut self, image: &Image<'_>, many: bool, inputs: &[PathBuf]) -> anyhow::Result<()> {
        let name = &image.name;
        // The substitute of a container's first file contains all of them.
        let Code::Dex(files) = &image.code else {
            bail!("{name}: an ELF file already: tools read it as it is");
        };
        let Some((dex, _)) = files.first() else {
            return Ok(());
        };
        if many && (self.out.as_os_str() == "-" || self.out.exists() && !self.out.is_dir()) {
            let out = self.out.display();
            bail!("{name}: several dex files are written to a folder, which {out} is not");
        }
        let path = if many || self.out.is_dir() {
            fs::create_dir_all(self.out)
                .with_context(|| format!("{}: cannot create", self.out.display()))?;
            self.out.join(format!("{}.{}", stem(name), self.suffix))
        } else {
            self.out.to_owned()
        };
        if !self.written.insert(path.clone()) {
            bail!(
                "{name}: {} is another one's already: convert it by itself",
                path.display()
            );
        }
        let image = DexFile::parse_at(dex.bytes(), dex.header_offset()).and_then(DexBytecode::new);
        let image = image.with_context(|| name.clone())?;
        output_file::write(&path, inputs, |out| (self.write)(&image, out))
            .with_context(|| name.clone())?;
        Ok(())
    }
}

/// Returns `classes2` for `app.apk!classes2.dex`. The name of an archive's entry comes from the archive, so it must not contain a
/// path.
fn stem(name: &str) -> &str {
    let last = name.rsplit(['/', '!']).next().unwrap_or_default();
    let stem = last.rsplit_once('.').map_or(last, |(stem, _)| stem);
    if stem.is_empty() { "dex" } else { stem }
}

#[cfg(test)]
mod tests {
    use super::stem;

    #[test]
    fn a_file_is_called_after_the_dex_file_and_lies_in_its_folder() {
        assert_eq!(stem("app.apk!classes2.dex"), "classes2");
        assert_eq!(stem("/a.b/boot.dex"), "boot");
        assert_eq!(stem("a.apk!x.jar!classes.dex"), "classes");
        assert_eq!(stem("a.apk!../../.dex"), "dex");
        assert_eq!(stem("a.apk!.."), ".");
        assert_eq!(stem("plain"), "plain");
    }
}
