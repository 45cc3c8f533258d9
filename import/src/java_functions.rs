//! The functions of a recording's frames, with the lines in which they have frames.

use std::collections::HashMap;

use varid_model::{Address, Layer};
use varid_symbolizer::{
    java::ClassName,
    substitute::{MethodSource, SlotLine},
};

use crate::{
    folded_line::image,
    jfr::{Constants, JavaFrame, MethodNames},
    layers,
    text_names::{
        FunctionPlace, MAX_BYTES, MAX_FUNCTIONS, NamedFrame, NamedMethod, OTHERS, TextNames,
    },
};

/// What descriptors of async-profiler's native functions end in, and the one of those of the kernel.
const NATIVE: &str = ")L;";
const KERNEL: &str = "(Lk;)L;";
/// The most lines of all functions.
const MAX_LINES: usize = 1 << 22;

/// A function: a method of Java, or a native function that async-profiler has found.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct JavaFunction {
    name: String,
    image: String,
    layer: Layer,
    /// The class of a method.
    class: Option<String>,
}

impl JavaFunction {
    /// The function of frames whose method is not in the recording.
    fn unknown() -> Self {
        Self::of_frame(NamedFrame {
            name: "[unknown]",
            image: "[unknown]",
            layer: Layer::Native,
        })
    }

    fn of_frame(frame: NamedFrame<'_>) -> Self {
        Self {
            name: frame.name.to_owned(),
            image: frame.image.to_owned(),
            layer: frame.layer,
            class: None,
        }
    }

    fn frame(&self) -> NamedFrame<'_> {
        NamedFrame {
            name: &self.name,
            image: &self.image,
            layer: self.layer,
        }
    }

    fn of(names: &MethodNames) -> Self {
        let MethodNames {
            class,
            name,
            descriptor,
        } = names;
        let library = class.trim();
        let (image, layer) = match (&**descriptor, library) {
            (KERNEL, _) => (image(Layer::Kernel), Layer::Kernel),
            (native, "") if native.ends_with(NATIVE) => (image(Layer::Native), Layer::Native),
            (native, _) if native.ends_with(NATIVE) => (library, layers::of_named(library)),
            (_, class) => return Self::of_java(class, name),
        };
        Self::of_frame(NamedFrame { name, image, layer })
    }

    fn of_java(class: &str, name: &str) -> Self {
        // The VM writes the names of hidden classes with dots.
        let class = ClassName::new(&class.replace('.', "/"));
        let layer = match class.is_of_jdk() {
            true => Layer::Framework,
            false => Layer::App,
        };
        let class = class.readable();
        Self {
            name: format!("{class}.{name}"),
            image: image(layer).to_owned(),
            layer,
            class: Some(class),
        }
    }
}

/// The lines of a function, each with its offset in the function's slot. Offset 0 is that of frames without a line.
type Lines = HashMap<u32, u32>;

/// The functions of a recording.
#[derive(Debug, Default)]
pub(crate) struct JavaFunctions {
    numbers: HashMap<JavaFunction, usize>,
    lines: Vec<Lines>,
    /// Size of all names in bytes.
    bytes: usize,
    /// Number of lines of all functions.
    line_count: usize,
}

/// The functions of a chunk's methods, by their numbers in the chunk.
pub(crate) type ChunkMethods = HashMap<i64, usize>;

impl JavaFunctions {
    /// Adds the function and the line of a frame.
    pub(crate) fn add(
        &mut self,
        frame: JavaFrame,
        constants: &Constants,
        methods: &mut ChunkMethods,
    ) {
        let known = methods.get(&frame.method).copied();
        let number = known.unwrap_or_else(|| {
            let number = self.number(function(constants, frame.method));
            methods.insert(frame.method, number);
            number
        });
        let lines = self.lines.get_mut(number);
        if let (Some(lines), Some(line)) = (lines, frame.line)
            && self.line_count < MAX_LINES
        {
            let next = u32::try_from(lines.len()).unwrap_or(u32::MAX);
            lines.entry(line).or_insert_with(|| {
                self.line_count = self.line_count.saturating_add(1);
                next.saturating_add(1)
            });
        }
    }

    /// Returns the number of a function. Beyond the limits, it is the one that stands for all others.
    fn number(&mut self, mut function: JavaFunction) -> usize {
        let is_full = self.lines.len() >= MAX_FUNCTIONS || self.bytes >= MAX_BYTES;
        if is_full && !self.numbers.contains_key(&function) {
            function = JavaFunction::of_frame(OTHERS);
        }
        if let Some(number) = self.numbers.get(&function) {
            return *number;
        }
        let number = self.lines.len();
        let class = function.class.as_ref().map_or(0, String::len);
        let sizes = [function.name.len(), function.image.len(), class];
        self.bytes = sizes.into_iter().fold(self.bytes, usize::saturating_add);
        self.numbers.insert(function, number);
        self.lines.push(Lines::new());
        number
    }

    /// Assigns addresses to all functions.
    pub(crate) fn place(self, names: &mut TextNames) -> PlacedFunctions {
        let mut functions: Vec<_> = self.numbers.iter().collect();
        functions.sort_unstable_by_key(|(_, number)| **number);
        let places = functions.into_iter().zip(&self.lines);
        let places = places.map(|((function, _), lines)| {
            let frame = function.frame();
            let place = match &function.class {
                Some(class) => {
                    let source = source(class, lines);
                    names.place_method(NamedMethod { frame, source })
                }
                None => names.place(frame),
            };
            FunctionPlace {
                is_of_others: place.is_of_others || frame == OTHERS,
                ..place
            }
        });
        PlacedFunctions {
            places: places.collect(),
            functions: self,
        }
    }
}

/// The functions of a recording with their addresses.
#[derive(Debug)]
pub(crate) struct PlacedFunctions {
    functions: JavaFunctions,
    /// By number.
    places: Vec<FunctionPlace>,
}

impl PlacedFunctions {
    /// Returns the position of a frame. None if its function was not added.
    pub(crate) fn place(
        &self,
        frame: JavaFrame,
        constants: &Constants,
        methods: &mut ChunkMethods,
    ) -> Option<FunctionPlace> {
        let known = methods.get(&frame.method).copied();
        let number = known.or_else(|| {
            let function = function(constants, frame.method);
            let numbers = &self.functions.numbers;
            let others = || numbers.get(&JavaFunction::of_frame(OTHERS));
            let number = *numbers.get(&function).or_else(others)?;
            methods.insert(frame.method, number);
            Some(number)
        })?;
        let place = *self.places.get(number)?;
        if place.is_of_others {
            return Some(place);
        }
        let lines = self.functions.lines.get(number)?;
        let offset = frame.line.and_then(|line| lines.get(&line).copied());
        let address = place
            .address
            .get()
            .saturating_add(offset.unwrap_or(0).into());
        Some(FunctionPlace {
            address: Address::new(address),
            ..place
        })
    }
}

fn function(constants: &Constants, method: i64) -> JavaFunction {
    let names = constants.method(method);
    names.map_or_else(JavaFunction::unknown, |names| JavaFunction::of(&names))
}

/// The lines of a method. The recording does not name its source file, so that is called as its class.
fn source(class: &str, lines: &Lines) -> MethodSource {
    let lines = lines.iter().map(|(line, offset)| SlotLine {
        offset: *offset,
        line: *line,
    });
    let mut lines: Vec<_> = lines.collect();
    lines.sort_unstable_by_key(|line| line.offset);
    let file = class.rsplit_once('.').map_or(class, |(_, name)| name);
    MethodSource {
        class: class.to_owned(),
        file: file.to_owned(),
        lines,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_have_the_names_and_layers_of_a_session_s() {
        for (class, name, descriptor, expected) in [
            (
                "org/example/App",
                "run",
                "()V",
                ("org.example.App.run", "[jit]", Layer::App),
            ),
            (
                "java/lang/Object",
                "wait",
                "(J)V",
                ("java.lang.Object.wait", "[jit]", Layer::Framework),
            ),
            (
                "java.lang.invoke.LambdaForm$MH+0x00007f0d08014000/688726285",
                "invoke",
                "()V",
                (
                    "java.lang.invoke.LambdaForm$MH.invoke",
                    "[jit]",
                    Layer::Framework,
                ),
            ),
            ("", "write", "()L;", ("write", "[native]", Layer::Native)),
            (
                "libjvm.so",
                "JavaMain",
                "()L;",
                ("JavaMain", "libjvm.so", Layer::Vm),
            ),
            (
                "[kernel.kallsyms]",
                "vfs_write",
                "(Lk;)L;",
                ("vfs_write", "[kernel]", Layer::Kernel),
            ),
        ] {
            let found = JavaFunction::of(&MethodNames {
                class: class.into(),
                name: name.into(),
                descriptor: descriptor.into(),
            });
            let found = (found.name.as_str(), found.image.as_str(), found.layer);
            assert_eq!(found, expected);
        }
    }
}
