//! Resolves the addresses of a recording to names.
//!
//! | question | file |
//! |---|---|
//! | which mapping held an address at that time | `address_spaces` |
//! | which file, which layer and which functions are behind a mapping | `images` |
//! | which file of this machine is the recorded one | `recorded_files` |
//! | which file of the session has the symbols of one | `kept_symbols` |
//! | has a file changed since it was read | `file_version` |
//! | what is a kernel address called | `kernel` |
//! | which files are the runtime of a language | `runtimes` |
//! | which layer has code that was made at run time | `run_time_code` |
//! | what were an app's methods called before R8 or ProGuard | `retrace` |
//! | all of it together | `resolver` |
//! | what of the recorded files names their addresses | `symbol_files` |
//! | what is in the file of one image | `image_file` |

mod address_spaces;
mod file_version;
mod image_file;
mod images;
mod kept_symbols;
mod kernel;
mod recorded_files;
mod resolver;
mod retrace;
mod run_time_code;
mod runtimes;
mod symbol_files;

pub use address_spaces::SpaceState;
pub use image_file::{JavaMethod, OpenImage};
pub use images::{ImageFile, ImageFileState, NamedFunction};
pub use recorded_files::{RecordedPath, inside};
pub use resolver::{MARKERS, Resolver, UNNAMED_JIT};
pub use runtimes::{Runtime, is_library};
pub use symbol_files::each_symbol_file;
