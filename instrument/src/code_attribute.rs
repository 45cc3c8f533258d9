//! How is the attribute `Code` written?

use crate::Plain;
use crate::attributes::moved;
use crate::blocks::range;
use crate::class::{Code, Constants, Index, Instructions};
use crate::constructor::This;
use crate::frames::{AddedHandler, Frames};
use crate::layout::Layout;
use crate::request::Failed;
use crate::sequences::{ENTRY_STACK, Locals, STACK};

pub(crate) const STACK_MAP_TABLE: &[u8] = b"StackMapTable";

/// Writes the attribute `Code`.
pub(crate) struct Writer<'m> {
    pub(crate) code: &'m Code<'m>,
    pub(crate) instructions: &'m Instructions<'m>,
    pub(crate) layout: &'m Layout,
    pub(crate) this: &'m [This],
    /// Length of the added handlers.
    pub(crate) tail: u16,
}

impl Writer<'_> {
    /// Returns the contents of the attribute.
    pub(crate) fn write(
        &self,
        new_code: &[u8],
        locals: Locals,
        frames: Option<&Frames>,
        constants: &mut Constants<'_>,
    ) -> Result<Vec<u8>, Failed> {
        let max_stack = self.code.max_stack.checked_add(STACK);
        let max_stack = max_stack.ok_or(Plain::TooManyLocals)?.max(ENTRY_STACK);
        let mut to = Vec::new();
        to.extend(max_stack.to_be_bytes());
        to.extend(locals.max.to_be_bytes());
        to.extend(u32::try_from(new_code.len()).unwrap_or(0).to_be_bytes());
        to.extend(new_code);
        self.write_handlers(&mut to)?;

        let mut attributes: Vec<(u16, Vec<u8>)> = Vec::new();
        for attribute in &self.code.attributes {
            if let Some(data) = moved(attribute, self.instructions, self.layout) {
                attributes.push((attribute.name_index, data));
            }
        }
        if let Some(frames) = frames {
            let throwable = constants.add_class(b"java/lang/Throwable")?;
            let data = frames.write(self.layout, &self.handlers(), throwable)?;
            attributes.push((constants.add_utf8(STACK_MAP_TABLE)?, data));
        }
        let count = u16::try_from(attributes.len()).map_err(|_| Plain::Invalid)?;
        to.extend(count.to_be_bytes());
        for (name, data) in attributes {
            to.extend(name.to_be_bytes());
            to.extend(u32::try_from(data.len()).unwrap_or(0).to_be_bytes());
            to.extend(data);
        }
        Ok(to)
    }

    /// The added handlers: the first one for code with an initialised `this`.
    fn handlers(&self) -> Vec<AddedHandler> {
        let offset = self.layout.start(self.instructions.end());
        let mut handlers = vec![AddedHandler {
            offset,
            uninitialised_this: false,
        }];
        if self.this.contains(&This::Uninitialised) {
            handlers.push(AddedHandler {
                offset: offset.saturating_add(self.tail / 2),
                uninitialised_this: true,
            });
        }
        handlers
    }

    fn write_handlers(&self, to: &mut Vec<u8>) -> Result<(), Plain> {
        let mut entries = Vec::new();
        for handler in &self.code.handlers {
            let (start, end) =
                range(handler.start, handler.end, self.instructions).ok_or(Plain::Invalid)?;
            let target = self.instructions.at(usize::from(handler.handler));
            entries.push([
                self.layout.start(start),
                self.layout.start(end),
                self.layout.handler(target.ok_or(Plain::Invalid)?),
                handler.catch_type,
            ]);
        }
        // The method's own handlers come first.
        let handlers = self.handlers();
        let mut start: Index = 0;
        for run in self.this.chunk_by(|a, b| a == b) {
            let end = u16::try_from(run.len())
                .ok()
                .and_then(|length| start.checked_add(length))
                .ok_or(Plain::Invalid)?;
            let handler = match run.first() {
                Some(This::Initialised) => handlers.first(),
                Some(This::Uninitialised) => handlers.get(1),
                _ => None,
            };
            if let Some(handler) = handler {
                let (start, end) = (self.layout.start(start), self.layout.start(end));
                entries.push([start, end, handler.offset, 0]);
            }
            start = end;
        }
        let count = u16::try_from(entries.len()).map_err(|_| Plain::TooLarge)?;
        to.extend(count.to_be_bytes());
        to.extend(
            entries
                .as_flattened()
                .iter()
                .flat_map(|it| it.to_be_bytes()),
        );
        Ok(())
    }
}
