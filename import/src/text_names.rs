//! Which addresses stand for the names of a text, which has none that can be looked up?
//!
//! Each file that the text names is an image of the session, each function of it has 16 bytes, in the order in which they come. An image
//! is mapped at the same place in every process that has a frame in it. How many names there are is bounded, whatever a text has: the
//! others are one function.

use std::collections::HashMap;

use varid_model::{Address, Layer};
use varid_recording::ImageKind;
use varid_symbolizer::substitute::Slot;

use crate::images::{MAX_NAMES, NamedImage};

/// Where the first image is mapped, and how far apart they are.
const BASE: u64 = 0x5000_0000_0000;
/// Addresses of an image.
pub(crate) const WINDOW: u64 = 1 << 32;
/// Bytes of a function.
const SLOT: u64 = 16;
/// The first function's offset: before it lie headers.
const FIRST: u64 = 0x1000;
/// Most images; what belongs to others is in the last one.
const MAX_IMAGES: usize = 4_000;
/// Most bytes of a name.
const MAX_NAME: usize = 4_096;
/// Most functions of all images, and most bytes of their names.
const MAX_FUNCTIONS: usize = 1 << 19;
const MAX_BYTES: usize = 64 << 20;
/// What stands for all functions beyond these.
const OTHERS: NamedFrame<'_> = NamedFrame {
    name: "[names beyond the limit]",
    image: "[others]",
    layer: Layer::Native,
};

/// A frame that is named.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NamedFrame<'a> {
    /// The function.
    pub(crate) name: &'a str,
    /// The file it is in.
    pub(crate) image: &'a str,
    /// Its layer.
    pub(crate) layer: Layer,
}

/// Where a function is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FunctionPlace {
    /// The number of its image.
    pub(crate) image: usize,
    pub(crate) address: Address,
    /// It stands for functions that there are too many of.
    pub(crate) is_of_others: bool,
}

/// An image with its functions' addresses.
#[derive(Debug)]
struct TextImage {
    named: NamedImage,
    functions: HashMap<String, Address>,
    /// Bytes of the functions' names: a substitute takes no more than so many.
    bytes: usize,
}

/// The names of a text.
#[derive(Debug, Default)]
pub(crate) struct TextNames {
    images: Vec<TextImage>,
    /// The images of a file: the next one begins where one is full.
    by_name: HashMap<Layer, HashMap<String, Vec<usize>>>,
    functions: usize,
    bytes: usize,
}

impl TextNames {
    /// Where the function of a frame is.
    pub(crate) fn place(&mut self, frame: NamedFrame<'_>) -> FunctionPlace {
        let known = self.known(frame);
        let place = known.or_else(|| {
            let has_room = self.functions < MAX_FUNCTIONS && self.bytes < MAX_BYTES;
            has_room.then(|| self.add(frame))
        });
        let is_of_others = place.is_none();
        let place = place.or_else(|| self.known(OTHERS));
        let (image, address) = place.unwrap_or_else(|| self.add(OTHERS));
        FunctionPlace {
            image,
            address,
            is_of_others,
        }
    }

    /// Where an image starts.
    pub(crate) fn start(image: usize) -> Address {
        Address::new(BASE.saturating_add(WINDOW.saturating_mul(image as u64)))
    }

    /// The images in order of their numbers, with their functions.
    pub(crate) fn into_images(self) -> impl Iterator<Item = NamedImage> {
        self.images.into_iter().map(|image| image.named)
    }

    fn known(&self, frame: NamedFrame<'_>) -> Option<(usize, Address)> {
        let of_layer = self.by_name.get(&frame.layer)?;
        let numbers = of_layer.get(short(frame.image))?;
        numbers.iter().find_map(|number| {
            let image = self.images.get(*number)?;
            let address = image.functions.get(short(frame.name))?;
            Some((*number, *address))
        })
    }

    fn add(&mut self, frame: NamedFrame<'_>) -> (usize, Address) {
        let name = short(frame.name);
        let number = self.image(frame);
        let start = Self::start(number);
        let Some(image) = self.images.get_mut(number) else {
            return (number, start);
        };
        let count = image.named.slots.len() as u64;
        let offset = FIRST.saturating_add(count.saturating_mul(SLOT));
        image.named.slots.push(Slot {
            offset,
            size: SLOT,
            name: name.to_owned(),
        });
        let address = Address::new(start.get().saturating_add(offset));
        image.functions.insert(name.to_owned(), address);
        image.bytes = image.bytes.saturating_add(name.len());
        self.bytes = self.bytes.saturating_add(name.len());
        self.functions = self.functions.saturating_add(1);
        (number, address)
    }

    /// The image that a function of this file goes to.
    fn image(&mut self, frame: NamedFrame<'_>) -> usize {
        let (layer, name) = (frame.layer, short(frame.image));
        let number = self.images.len();
        let of_layer = self.by_name.entry(layer).or_default();
        if let Some(known) = of_layer.get(name).and_then(|images| images.last()) {
            let image = self.images.get(*known);
            let is_full = image.is_some_and(|image| image.bytes >= MAX_NAMES);
            if !is_full || number >= MAX_IMAGES {
                return *known;
            }
        }
        let image = match number >= MAX_IMAGES {
            true => number.saturating_sub(1),
            false => number,
        };
        if image == number {
            self.images.push(TextImage {
                named: NamedImage {
                    path: name.to_owned(),
                    kind: ImageKind::Elf,
                    layer,
                    build_id: Vec::new(),
                    slots: Vec::new(),
                },
                functions: HashMap::new(),
                bytes: 0,
            });
        }
        of_layer.entry(name.to_owned()).or_default().push(image);
        image
    }
}

/// A name that is not too long; a function without one is `[unknown]`.
fn short(name: &str) -> &str {
    let ends = (0..=MAX_NAME.min(name.len())).rev();
    let cut = ends.take(4).find_map(|end| name.get(..end));
    match cut.unwrap_or_default().trim() {
        "" => "[unknown]",
        name => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(name: &str) -> NamedFrame<'_> {
        NamedFrame {
            name,
            image: "prog",
            layer: Layer::Native,
        }
    }

    #[test]
    fn functions_beyond_the_limits_are_one() {
        // The names' number is reached first, or their bytes.
        for (len, kept) in [(8, MAX_FUNCTIONS), (MAX_NAME, MAX_BYTES / MAX_NAME)] {
            let mut names = TextNames::default();
            let first = names.place(frame("first"));
            let mut others = std::collections::HashSet::new();
            for number in 1..kept + 100 {
                let place = names.place(frame(&format!("{number:0len$}")));
                if place.is_of_others {
                    others.insert((place.image, place.address));
                }
            }
            assert_eq!((others.len(), names.place(frame("first"))), (1, first));
            let slots: usize = names.into_images().map(|image| image.slots.len()).sum();
            assert!((kept..kept + 3).contains(&slots), "{slots} of {kept}");
        }
    }

    #[test]
    fn a_function_is_one_of_its_file_and_layer() {
        let mut names = TextNames::default();
        let first = names.place(frame("f"));
        assert_eq!(names.place(frame("f")), first);
        let of_kernel = NamedFrame {
            layer: Layer::Kernel,
            ..frame("f")
        };
        assert_ne!(names.place(of_kernel).image, first.image);
        assert_eq!(
            names.place(frame("g")).address.get() - first.address.get(),
            SLOT
        );
        let unnamed = names.place(frame(" "));
        assert_eq!(names.place(frame("[unknown]")), unnamed);
    }
}
