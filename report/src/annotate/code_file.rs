//! The file with the code of a method.

use std::{cell::OnceCell, path::Path};

use varid_model::Layer;
use varid_symbolizer::dex::DexFile;

use super::{
    annotation::AnnotateRequest, class_files::ClassFiles, counted_dex::CountedDex, dex_files,
};
use crate::{
    error::Result,
    frames::ProfileSymbol,
    naming::{ImageFile, OpenImage},
    profile::Profile,
};

/// The file of an image, kept open for all its methods.
#[derive(Debug)]
pub struct CodeFile<'p> {
    pub image: OpenImage<'p>,
    pub file: &'p ImageFile,
    /// The original dex file of a substitute, found on first use.
    dex: OnceCell<Result<RecordedDex, String>>,
    /// The dex files whose instructions were counted, opened on first use. None if the session has none.
    counted_dex: OnceCell<Result<Option<CountedDex>, String>>,
    /// Where class files are, opened on first use.
    classes: OnceCell<Result<ClassFiles, String>>,
}

/// A recorded dex file and its path.
type RecordedDex = (DexFile<'static>, String);

impl<'p> CodeFile<'p> {
    /// Opens the file of a symbol's image. The inner error is a note with the reason why it is missing.
    ///
    /// # Errors
    ///
    /// A folder or file of the options cannot be read.
    pub fn open(profile: &'p Profile, symbol: &ProfileSymbol) -> Result<Result<Self, String>> {
        let image = profile.frames.image(symbol.image);
        let file = profile.files.get(symbol.image.index());
        let file = file.and_then(Option::as_ref);
        let (Some(image), Some(state)) = (image, file) else {
            return Ok(Err(match symbol.layer {
                Layer::Kernel => {
                    "no instructions: the kernel changes its own code while it runs, so no file has it; --vmlinux FILE with debug information gives lines"
                        .to_owned()
                }
                _ => {
                    let name = image.map_or("", |image| &image.name);
                    format!("no instructions: {name} is no file")
                }
            }));
        };
        let (names, manifest) = (&profile.options.names, &profile.recording.manifest);
        let opened = OpenImage::new(names, manifest, image, &state.file)?;
        Ok(match opened {
            Ok(image) => Ok(Self {
                image,
                file: &state.file,
                dex: OnceCell::new(),
                counted_dex: OnceCell::new(),
                classes: OnceCell::new(),
            }),
            Err(why) => Err(format!(
                "no instructions, and no lines but sampled ones: {} cannot be read: {why}; --symbols DIR with the recorded file",
                state.file.path.display()
            )),
        })
    }

    /// Opens the dex files that the session has of methods whose instructions were counted. None if it has none.
    ///
    /// # Errors
    ///
    /// They cannot be read.
    pub fn counted_dex(&self, profile: &Profile) -> Result<Option<&CountedDex>, &String> {
        let opened = self
            .counted_dex
            .get_or_init(|| CountedDex::open(&profile.recording.session));
        opened.as_ref().map(Option::as_ref)
    }

    /// Opens the folders and archives that may have class files.
    ///
    /// # Errors
    ///
    /// One that the user names does not exist.
    pub fn class_files(
        &self,
        profile: &Profile,
        request: &AnnotateRequest,
    ) -> Result<&ClassFiles, &String> {
        let opened = self.classes.get_or_init(|| {
            let opened = ClassFiles::open(profile, request);
            opened.map_err(|error| error.to_string())
        });
        opened.as_ref()
    }

    /// Finds the recorded dex file of a substitute.
    ///
    /// # Errors
    ///
    /// It was not found; the error lists the searched places.
    pub fn dex(
        &self,
        profile: &Profile,
        request: &AnnotateRequest,
    ) -> Result<&RecordedDex, &String> {
        let found = self.dex.get_or_init(|| {
            let mut images = profile.recording.manifest.images.iter();
            let listed = images.find(|image| {
                let substitute = image.substitute.as_deref();
                substitute.is_some_and(|substitute| self.file.path.ends_with(substitute))
            });
            let recorded = listed.map(|image| Path::new(&image.path));
            let names = &profile.options.names;
            dex_files::find(recorded, &self.file.build_id, names, &request.sources)
        });
        found.as_ref()
    }
}
