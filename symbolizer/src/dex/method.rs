//! The methods that a dex file defines, and their names.

use std::ops::Range;

use super::code::code_range;
use super::file::{DexFile, MethodItem};
use super::names::{class_name, type_name};
use super::read::{bad, uleb128};
use crate::Result;
use crate::bytecode::{MethodCode, shared_name};

impl DexFile<'_> {
    /// Returns all methods that the file's classes define, class by class, with and without code.
    #[must_use]
    pub fn methods(&self) -> DexMethods<'_> {
        DexMethods::new(self)
    }

    /// Returns for each class that the file defines the indices of its methods, in the order of its class_data_item: the direct methods,
    /// then the virtual ones. ART numbers the methods of a class in the same way.
    ///
    /// If a class_data_item is broken, the methods before the first broken one are listed.
    pub fn class_methods(&self) -> impl Iterator<Item = Vec<u32>> {
        let mut methods = DexMethods::new(self);
        (0..self.class_count()).map(move |class| methods.indices_of(class))
    }

    /// Returns the method with this index, whether it is defined here or elsewhere.
    ///
    /// # Errors
    /// [`crate::Error::Dex`] if there is no such index.
    pub fn method_id(&self, index: u32) -> Result<DexMethodId<'_>> {
        DexMethodId::new(self, index)
    }

    /// [`DexMethodId::display_name`] of method `index`.
    ///
    /// # Errors
    /// [`crate::Error::Dex`] if there is no such index or its name is broken.
    pub fn method_name(&self, index: u32) -> Result<String> {
        self.method_id(index)?.display_name()
    }

    /// The name of the code: [`DexFile::method_name`], and the number of other methods that share the instructions:
    /// `org.example.A.<init> and 41 more`.
    ///
    /// # Errors
    /// As for [`DexFile::method_name`].
    pub fn code_name(&self, method: &MethodCode) -> Result<String> {
        Ok(shared_name(self.method_name(method.index)?, method.others))
    }
}

/// A method by its index, whether it is defined in this file or elsewhere.
#[derive(Debug, Clone, Copy)]
pub struct DexMethodId<'d> {
    dex: &'d DexFile<'d>,
    index: u32,
    item: MethodItem,
}

impl<'d> DexMethodId<'d> {
    pub(super) fn new(dex: &'d DexFile<'_>, index: u32) -> Result<Self> {
        Ok(Self {
            dex,
            index,
            item: dex.method_item(index)?,
        })
    }

    /// Index in the file's method_ids, ART's dex method index.
    #[must_use]
    pub fn index(&self) -> u32 {
        self.index
    }

    /// The class: `org.example.Balls`.
    ///
    /// # Errors
    /// [`crate::Error::Dex`] if the name is broken.
    pub fn class_name(&self) -> Result<String> {
        let descriptor = self.dex.type_descriptor(self.item.class.into())?;
        Ok(match descriptor.starts_with('[') {
            true => type_name(&descriptor),
            false => class_name(&descriptor),
        })
    }

    /// The method's own name: `draw`, `<init>`.
    ///
    /// # Errors
    /// [`crate::Error::Dex`] if the name is broken.
    pub fn name(&self) -> Result<String> {
        self.dex.string(self.item.name)
    }

    /// Parameter types in Java's notation: `int`, `java.lang.String[]`.
    ///
    /// # Errors
    /// [`crate::Error::Dex`] if a name is broken.
    pub fn parameter_types(&self) -> Result<Vec<String>> {
        let mut types = Vec::new();
        self.dex
            .parameter_descriptors(self.item.proto.into(), |descriptor| {
                types.push(type_name(&descriptor));
            })?;
        Ok(types)
    }

    /// Return type in Java's notation.
    ///
    /// # Errors
    /// [`crate::Error::Dex`] if the name is broken.
    pub fn return_type(&self) -> Result<String> {
        let descriptor = self.dex.return_descriptor(self.item.proto.into())?;
        Ok(type_name(&descriptor))
    }

    /// The prototype in the notation of dex: `(I[J)V`.
    ///
    /// # Errors
    /// [`crate::Error::Dex`] if a name is broken.
    pub fn descriptor(&self) -> Result<String> {
        self.dex.prototype(self.item.proto.into())
    }

    /// The whole signature in the notation of dex tools: `Lorg/example/Balls;->draw(I)V`.
    ///
    /// # Errors
    /// [`crate::Error::Dex`] if a name is broken.
    pub fn signature(&self) -> Result<String> {
        Ok(format!(
            "{}->{}{}",
            self.dex.type_descriptor(self.item.class.into())?,
            self.name()?,
            self.descriptor()?
        ))
    }

    /// The name that profiles show: `org.example.Balls.draw`. If this file names several methods with that class and name, parameter types
    /// are added: `org.example.Balls.draw(int)`. A bridge method that differs from its target only in the return type has the same name.
    ///
    /// # Errors
    /// [`crate::Error::Dex`] if a name is broken.
    pub fn display_name(&self) -> Result<String> {
        let mut name = self.class_name()?;
        name.push('.');
        name.push_str(&self.name()?);
        if self.is_overloaded() {
            name.push('(');
            name.push_str(&self.parameter_types()?.join(","));
            name.push(')');
        }
        Ok(name)
    }

    /// Returns true if another method id has the same class and name. Method ids are sorted by class, then name, so it can only be a
    /// neighbour.
    fn is_overloaded(&self) -> bool {
        [self.index.checked_sub(1), self.index.checked_add(1)]
            .into_iter()
            .flatten()
            .filter_map(|index| self.dex.method_item(index).ok())
            .any(|other| (other.class, other.name) == (self.item.class, self.item.name))
    }
}

/// A method that a class of the file defines.
#[derive(Debug, Clone)]
pub struct DexMethod<'d> {
    /// Its id, which has its names.
    pub id: DexMethodId<'d>,
    /// Access flags, as in the dex format.
    pub access_flags: u32,
    /// File offsets of its instructions, without the code_item's header. None for native and abstract methods.
    pub code: Option<Range<u32>>,
    /// Index of its class among those that the file defines.
    class: u32,
}

impl DexMethod<'_> {
    /// Returns the entry for [`super::MethodIndex`]. None if the method has no code.
    #[must_use]
    pub fn method_code(&self) -> Option<MethodCode> {
        Some(MethodCode {
            code: self.code.clone()?,
            index: self.id.index,
            others: 0,
            access_flags: self.access_flags,
            class: self.class,
        })
    }

    /// The class's source file, as the compiler recorded it.
    ///
    /// # Errors
    /// [`crate::Error::Dex`] if the name is broken.
    pub fn source_file(&self) -> Result<Option<String>> {
        self.id
            .dex
            .class_source(self.class)?
            .map(|index| self.id.dex.string(index))
            .transpose()
    }
}

/// The methods of a dex file, class by class: see [`DexFile::methods`].
///
/// A broken method is reported, and the next one follows. A broken class_data_item is reported once, and the next class follows. A file
/// that defines more methods or fields than it references is invalid: the iterator ends there.
#[derive(Debug, Clone)]
pub struct DexMethods<'d> {
    dex: &'d DexFile<'d>,
    next_class: u32,
    class: u32,
    class_data: usize,
    direct: u32,
    virtuals: u32,
    index: Option<u32>,
    fields_left: u32,
    methods_left: u32,
}

/// An `encoded_method` of a class.
struct EncodedMethod {
    /// Index of the method's id.
    index: u32,
    access_flags: u32,
    /// Offset of the code; 0: the method has none.
    code_off: u32,
}

impl<'d> DexMethods<'d> {
    pub(super) fn new(dex: &'d DexFile<'_>) -> Self {
        Self {
            dex,
            next_class: 0,
            class: 0,
            class_data: 0,
            direct: 0,
            virtuals: 0,
            index: None,
            fields_left: dex.field_count(),
            methods_left: dex.method_count(),
        }
    }

    /// Ends the iterator.
    fn end(&mut self) {
        self.next_class = self.dex.class_count();
        self.skip_class();
    }

    /// Continues with the next class.
    fn skip_class(&mut self) {
        self.direct = 0;
        self.virtuals = 0;
    }

    /// Enters the next class and reads past its fields.
    fn enter_class(&mut self) -> Result<()> {
        self.class = self.next_class;
        self.next_class = self.class.saturating_add(1);
        let Some(class_data) = self.dex.class_def(self.class)?.class_data else {
            return Ok(());
        };
        let data = self.dex.bytes();
        let mut at = class_data;
        let static_fields = uleb128(data, &mut at, "static_fields_size")?;
        let instance_fields = uleb128(data, &mut at, "instance_fields_size")?;
        let direct = uleb128(data, &mut at, "direct_methods_size")?;
        let virtuals = uleb128(data, &mut at, "virtual_methods_size")?;
        let left = static_fields
            .checked_add(instance_fields)
            .and_then(|fields| self.fields_left.checked_sub(fields));
        let Some(left) = left else {
            self.end();
            return Err(bad(
                "class_data_item",
                class_data,
                "the classes define more fields than the file names",
            ));
        };
        self.fields_left = left;
        for _ in 0..static_fields.saturating_add(instance_fields) {
            uleb128(data, &mut at, "field_idx_diff")?;
            uleb128(data, &mut at, "access_flags")?;
        }
        self.class_data = at;
        self.direct = direct;
        self.virtuals = virtuals;
        self.index = None;
        Ok(())
    }

    /// The indices of a class's methods.
    fn indices_of(&mut self, class: u32) -> Vec<u32> {
        let mut indices = Vec::new();
        self.next_class = class;
        self.skip_class();
        if self.enter_class().is_ok() {
            while self.direct > 0 || self.virtuals > 0 {
                let Ok(encoded) = self.encoded_method() else {
                    break;
                };
                indices.push(encoded.index);
            }
        }
        indices
    }

    /// Reads the next encoded_method of the class.
    fn encoded_method(&mut self) -> Result<EncodedMethod> {
        let Some(left) = self.methods_left.checked_sub(1) else {
            self.end();
            return Err(bad(
                "class_data_item",
                self.class_data,
                "the classes define more methods than the file names",
            ));
        };
        self.methods_left = left;
        let last_direct = self.direct == 1;
        if self.direct > 0 {
            self.direct = self.direct.saturating_sub(1);
        } else {
            self.virtuals = self.virtuals.saturating_sub(1);
        }
        let data = self.dex.bytes();
        let start = self.class_data;
        let mut at = start;
        let diff = uleb128(data, &mut at, "method_idx_diff")?;
        let access_flags = uleb128(data, &mut at, "access_flags")?;
        let code_off = uleb128(data, &mut at, "code_off")?;
        self.class_data = at;
        let index = self
            .index
            .unwrap_or(0)
            .checked_add(diff)
            .ok_or_else(|| bad("method_idx_diff", start, "the index overflows"))?;
        // The indices of the virtual methods start from zero again.
        self.index = (!last_direct).then_some(index);
        Ok(EncodedMethod {
            index,
            access_flags,
            code_off,
        })
    }

    /// Makes the method of an encoded_method. If that is broken, those after it may still be valid.
    fn method(&self, encoded: &EncodedMethod) -> Result<DexMethod<'d>> {
        Ok(DexMethod {
            id: DexMethodId::new(self.dex, encoded.index)?,
            access_flags: encoded.access_flags,
            code: code_range(self.dex, encoded.code_off)?,
            class: self.class,
        })
    }
}

impl<'d> Iterator for DexMethods<'d> {
    type Item = Result<DexMethod<'d>>;

    fn next(&mut self) -> Option<Self::Item> {
        while self.direct == 0 && self.virtuals == 0 {
            if self.next_class >= self.dex.class_count() {
                return None;
            }
            if let Err(error) = self.enter_class() {
                self.skip_class();
                return Some(Err(error));
            }
        }
        let encoded = self.encoded_method().inspect_err(|_| self.skip_class());
        Some(encoded.and_then(|encoded| self.method(&encoded)))
    }
}
