//! Assigns addresses to the names of a text, which has no addresses that can be looked up.
//!
//! Each file that the text names is an image of the session. Each function has 16 bytes in it, in the order of occurrence. An image is
//! mapped at the same address in every process that has a frame in it. The number of names is bounded: those beyond the limit are one
//! function.

use std::collections::HashMap;

use varid_model::{Address, Layer};
use varid_recording::ImageKind;
use varid_symbolizer::substitute::{MethodSlot, MethodSource, Slot};

use crate::{
    images::{MAX_NAMES, NamedImage},
    limits::{ListRoom, MAX_NAME, cut},
};

/// The address of the first image, and the distance between images.
const BASE: u64 = 0x5000_0000_0000;
/// Size of an image in bytes.
pub(crate) const WINDOW: u64 = 1 << 32;
/// Size of a function in bytes, or the smallest multiple that holds its lines.
const SLOT: u64 = 16;
/// The offset of the first function, after the headers.
const FIRST: u64 = 0x1000;
/// The most images. One more holds the functions beyond the limits.
const MAX_IMAGES: usize = 4_000;
/// The most functions of all images, the most bytes of their names, and the most addresses that they take together.
pub(crate) const MAX_FUNCTIONS: usize = 1 << 19;
pub(crate) const MAX_BYTES: usize = 64 << 20;
const MAX_SIZE: u64 = 1 << 30;
/// Stands for all functions beyond these limits.
pub(crate) const OTHERS: NamedFrame<'_> = NamedFrame {
    name: "[names beyond the limit]",
    image: "[others]",
    layer: Layer::Native,
};

/// A function with the lines in which it has frames.
#[derive(Debug, Clone)]
pub(crate) struct NamedMethod<'a> {
    pub(crate) frame: NamedFrame<'a>,
    /// Its lines. Its slot ends behind the last one's offset.
    pub(crate) source: MethodSource,
}

/// A frame with a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NamedFrame<'a> {
    /// The function.
    pub(crate) name: &'a str,
    /// The file of the function.
    pub(crate) image: &'a str,
    /// Its layer.
    pub(crate) layer: Layer,
}

/// The position of a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FunctionPlace {
    /// The index of its image.
    pub(crate) image: usize,
    pub(crate) address: Address,
    /// It stands for functions beyond the limits.
    pub(crate) is_of_others: bool,
}

/// An image with the addresses of its functions.
#[derive(Debug)]
struct TextImage {
    named: NamedImage,
    functions: HashMap<String, Address>,
    /// Size of the functions' names in bytes, which a substitute limits.
    bytes: usize,
    /// The offset of the next function.
    next: u64,
}

/// The names of a text.
#[derive(Debug)]
pub(crate) struct TextNames {
    images: Vec<TextImage>,
    /// The remaining room in the list of images.
    room: ListRoom,
    /// The images of each file. When one is full, the next begins.
    by_name: HashMap<Layer, HashMap<String, Vec<usize>>>,
    functions: usize,
    bytes: usize,
    /// Size of all functions in addresses.
    size: u64,
}

impl Default for TextNames {
    fn default() -> Self {
        Self {
            images: Vec::new(),
            room: ListRoom::new(MAX_IMAGES),
            by_name: HashMap::new(),
            functions: 0,
            bytes: 0,
            size: 0,
        }
    }
}

impl TextNames {
    /// Returns the position of a frame's function, and adds the function if it is new.
    pub(crate) fn place(&mut self, frame: NamedFrame<'_>) -> FunctionPlace {
        self.place_as(frame, ImageKind::Elf, None)
    }

    /// Returns the position of a method, and adds the method with its lines if it is new. A line is at its offset from that position.
    pub(crate) fn place_method(&mut self, method: NamedMethod<'_>) -> FunctionPlace {
        self.place_as(method.frame, ImageKind::Remap, Some(method.source))
    }

    fn place_as(
        &mut self,
        frame: NamedFrame<'_>,
        kind: ImageKind,
        source: Option<MethodSource>,
    ) -> FunctionPlace {
        let known = self.known(frame);
        let size = size(source.as_ref());
        let place = known.or_else(|| {
            let has_room = self.has_room(frame, size);
            has_room.then(|| self.add(frame, kind, source))
        });
        let is_of_others = place.is_none();
        let place = place.or_else(|| self.known(OTHERS));
        let (image, address) = place.unwrap_or_else(|| self.add(OTHERS, ImageKind::Elf, None));
        FunctionPlace {
            image,
            address,
            is_of_others,
        }
    }

    /// The start address of an image.
    pub(crate) fn start(image: usize) -> Address {
        Address::new(BASE.saturating_add(WINDOW.saturating_mul(image as u64)))
    }

    /// The images in order of their indices, with their functions.
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

    fn add(
        &mut self,
        frame: NamedFrame<'_>,
        kind: ImageKind,
        source: Option<MethodSource>,
    ) -> (usize, Address) {
        let name = short(frame.name);
        let number = self.image(frame, kind);
        let start = Self::start(number);
        let size = size(source.as_ref());
        let Some(image) = self.images.get_mut(number) else {
            return (number, start);
        };
        let offset = image.next;
        image.next = offset.saturating_add(size);
        let address = Address::new(start.get().saturating_add(offset));
        let name = name.to_owned();
        image.bytes = image.bytes.saturating_add(name.len());
        self.bytes = self.bytes.saturating_add(name.len());
        image.functions.insert(name.clone(), address);
        let slot = Slot { offset, size, name };
        image.named.slots.push(MethodSlot {
            slot,
            descriptor: String::new(),
            source,
        });
        self.functions = self.functions.saturating_add(1);
        self.size = self.size.saturating_add(size);
        (number, address)
    }

    /// Returns true if another function of this size, and its image if that is new, are within the limits.
    fn has_room(&self, frame: NamedFrame<'_>, size: u64) -> bool {
        let has_image =
            self.open_image(frame).is_some() || self.room.fits(short(frame.image).len());
        let has_addresses = self.size.saturating_add(size) <= MAX_SIZE;
        has_image && has_addresses && self.functions < MAX_FUNCTIONS && self.bytes < MAX_BYTES
    }

    /// The image of a frame's file that still has room for names.
    fn open_image(&self, frame: NamedFrame<'_>) -> Option<usize> {
        let of_layer = self.by_name.get(&frame.layer)?;
        let last = of_layer.get(short(frame.image))?.last()?;
        let image = self.images.get(*last)?;
        (image.bytes < MAX_NAMES).then_some(*last)
    }

    /// The image for a new function of this file.
    fn image(&mut self, frame: NamedFrame<'_>, kind: ImageKind) -> usize {
        if let Some(known) = self.open_image(frame) {
            return known;
        }
        let (layer, name) = (frame.layer, short(frame.image));
        let number = self.images.len();
        self.room.take(name.len());
        self.images.push(TextImage {
            named: NamedImage {
                path: name.to_owned(),
                kind,
                layer,
                build_id: Vec::new(),
                slots: Vec::new(),
            },
            functions: HashMap::new(),
            bytes: 0,
            next: FIRST,
        });
        let of_layer = self.by_name.entry(layer).or_default();
        of_layer.entry(name.to_owned()).or_default().push(number);
        number
    }
}

/// The size of a function with these lines.
fn size(source: Option<&MethodSource>) -> u64 {
    let last = source.and_then(|source| source.lines.last());
    let last = last.map_or(0, |line| u64::from(line.offset));
    last.saturating_add(1).next_multiple_of(SLOT)
}

/// Cuts a name that is too long. An empty name becomes `[unknown]`.
fn short(name: &str) -> &str {
    match cut(name, MAX_NAME).trim() {
        "" => "[unknown]",
        name => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use varid_symbolizer::substitute::SlotLine;

    fn frame(name: &str) -> NamedFrame<'_> {
        NamedFrame {
            name,
            image: "prog",
            layer: Layer::Native,
        }
    }

    #[test]
    fn functions_beyond_the_limits_are_one() {
        // First the limit of the number of names, then the limit of their bytes.
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
    fn functions_of_files_beyond_the_limit_are_in_no_other_file() {
        // First the limit of the number of files, then the limit of the bytes of their names.
        for (len, kept) in [(8, MAX_IMAGES), (MAX_NAME, (2 << 20) / MAX_NAME)] {
            let mut names = TextNames::default();
            let files: Vec<_> = (0..kept + 5)
                .map(|number| format!("{number:0len$}"))
                .collect();
            let places: Vec<_> = files
                .iter()
                .map(|image| NamedFrame {
                    image,
                    ..frame("f")
                })
                .map(|frame| names.place(frame))
                .collect();
            let (own, others) = places.split_at(kept);
            assert!(own.iter().all(|place| !place.is_of_others));
            assert!(others.iter().all(|place| place.is_of_others));
            assert!(others.iter().all(|place| *place == others[0]));
            let paths: Vec<_> = names.into_images().map(|image| image.path).collect();
            let [last, of_others] = &paths[kept - 1..] else {
                panic!("{} images", paths.len())
            };
            assert_eq!((last, of_others.as_str()), (&files[kept - 1], OTHERS.image));
        }
    }

    #[test]
    fn a_method_has_addresses_for_all_of_its_lines() {
        let mut names = TextNames::default();
        let mut place = |name, lines: u32| {
            let line = |offset| SlotLine {
                offset,
                line: offset + 7,
            };
            let source = MethodSource {
                class: "org.example.App".to_owned(),
                file: "App".to_owned(),
                lines: (0..lines).map(line).collect(),
            };
            let frame = frame(name);
            let place = names.place_method(NamedMethod { frame, source });
            place.address.get() - TextNames::start(place.image).get()
        };
        let places = [
            place("a", 16),
            place("b", 17),
            place("c", 0),
            place("a", 16),
        ];
        assert_eq!(
            (places, place("d", 1)),
            ([0x1000, 0x1010, 0x1030, 0x1000], 0x1040)
        );
        let slots = names.images.iter().flat_map(|image| &image.named.slots);
        let size: u64 = slots.map(|method| method.slot.size).sum();
        assert_eq!(names.size, size);
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
