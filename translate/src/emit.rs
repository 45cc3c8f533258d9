//! Makes machine code of plans, by Cranelift.

mod accesses;
mod caches;
mod counters;
mod function;
mod instruction;
mod registers;
mod transfer;
mod values;

use cranelift_codegen::{
    CodegenError, Context,
    control::ControlPlane,
    ir::{AbiParam, Function, InstBuilder, Signature, UserFuncName, types},
    isa::{self, CallConv, OwnedTargetIsa},
    settings::{self, Configurable},
};
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext};
use nix::errno::Errno;
use varid_processor::CacheLayouts;

use crate::{
    code::{Code, Gate},
    memory::{Alignment, Range},
    planner::Planned,
};

/// Why there is no translation.
#[derive(Debug, thiserror::Error)]
pub enum EmitError {
    /// Cranelift does not know this machine, or one of its settings.
    #[error("Cranelift cannot be set up: {0}")]
    Setup(String),
    /// Cranelift refuses a function.
    #[error("Cranelift: {0}")]
    Compile(Box<CodegenError>),
    /// The code depends on its address.
    #[error("Cranelift has made code that depends on its address")]
    Relocated,
    /// There is no memory for code.
    #[error("memory for machine code: {0}")]
    Memory(#[from] Errno),
}

/// What is the same for all functions of a program.
#[derive(Debug, Clone, Copy)]
pub struct Target {
    /// The memory that translated code accesses.
    pub memory: Range,
    /// Which accesses it leaves to the interpreter.
    pub alignment: Alignment,
    /// Whether it counts instructions, to end at a limit.
    pub is_limited: bool,
    /// The caches of the pipeline.
    pub caches: CacheLayouts,
}

impl Target {
    /// Returns true if there is a cache.
    pub fn has_caches(&self) -> bool {
        self.caches != CacheLayouts::default()
    }
}

/// Makes machine code.
pub struct Emitter {
    isa: OwnedTargetIsa,
    context: Context,
    frontend: FunctionBuilderContext,
    target: Target,
}

/// The code of a function.
#[derive(Debug)]
pub struct Translation {
    /// Machine code.
    pub code: Code,
    /// The numbers of the targets of jumps to registers, which the code reads.
    _targets: Box<[u32]>,
}

impl Emitter {
    /// Makes an emitter for this machine.
    ///
    /// # Errors
    ///
    /// Cranelift does not know it.
    pub fn new(target: Target) -> Result<Self, EmitError> {
        let setup = |error: &dyn std::fmt::Display| EmitError::Setup(error.to_string());
        let mut flags = settings::builder();
        for (name, value) in [
            ("opt_level", "speed"),
            // Cranelift's tail calls need them.
            ("preserve_frame_pointers", "true"),
            ("unwind_info", "false"),
            (
                "enable_verifier",
                if cfg!(debug_assertions) {
                    "true"
                } else {
                    "false"
                },
            ),
            // The program is this user's own, and sees no more than its memory.
            ("enable_table_access_spectre_mitigation", "false"),
        ] {
            flags.set(name, value).map_err(|error| setup(&error))?;
        }
        let isa = isa::lookup_by_name("x86_64-unknown-linux").map_err(|error| setup(&error))?;
        let isa = isa.finish(settings::Flags::new(flags));
        Ok(Self {
            isa: isa.map_err(|error| setup(&error))?,
            context: Context::new(),
            frontend: FunctionBuilderContext::new(),
            target,
        })
    }

    /// Makes the code that leads from this machine's calling convention to that of translated code.
    ///
    /// # Errors
    ///
    /// It cannot be made.
    pub fn gate(&mut self) -> Result<Gate, EmitError> {
        let mut signature = Signature::new(CallConv::SystemV);
        let parameters = [types::I64, types::I64, types::I64, types::I32];
        signature.params.extend(parameters.map(AbiParam::new));
        self.context.clear();
        self.context.func = Function::with_name_signature(UserFuncName::default(), signature);
        let mut builder = FunctionBuilder::new(&mut self.context.func, &mut self.frontend);
        let block = builder.create_block();
        builder.append_block_params_for_function_params(block);
        builder.switch_to_block(block);
        if let [state, row, code, entry] = *builder.block_params(block) {
            let callee = builder.import_signature(function::signature());
            builder
                .ins()
                .call_indirect(callee, code, &[state, row, entry]);
        }
        builder.ins().return_(&[]);
        builder.seal_all_blocks();
        builder.finalize();
        self.compile().map(Gate::new)
    }

    /// Translates a function.
    ///
    /// # Errors
    ///
    /// It cannot be translated.
    pub fn translate(&mut self, planned: &Planned) -> Result<Translation, EmitError> {
        let targets = function::target_table(&planned.plan);
        self.context.clear();
        let name = UserFuncName::default();
        self.context.func = Function::with_name_signature(name, function::signature());
        let builder = FunctionBuilder::new(&mut self.context.func, &mut self.frontend);
        function::emit(builder, planned, &self.target, &targets);
        let code = self.compile()?;
        Ok(Translation {
            code,
            _targets: targets,
        })
    }

    fn compile(&mut self) -> Result<Code, EmitError> {
        let mut control = ControlPlane::default();
        let compiled = self.context.compile(&*self.isa, &mut control);
        let compiled = compiled.map_err(|error| EmitError::Compile(Box::new(error.inner)))?;
        if !compiled.buffer.relocs().is_empty() {
            return Err(EmitError::Relocated);
        }
        Ok(Code::new(compiled.code_buffer())?)
    }
}
