//! What was counted: calling contexts, how often each instruction ran in them, and the code of their methods.

use std::collections::HashSet;

use varid_model::CodeUnits;
use varid_recording::{ContextNode, Contexts, MethodId, NodeId, SiteTarget};

use crate::{
    code::{Bytecode, MethodCode, MethodName},
    error::{Error, Result},
    target::VmCalls,
};

/// The names of the counters that are priced.
const CALLS: &str = "calls";
const BYTECODES: &str = "bytecodes";

/// A method of a program.
#[derive(Debug, Clone, PartialEq)]
pub struct ProgramMethod {
    /// Its name. None if it is not known.
    pub name: Option<MethodName>,
    /// Its code.
    pub body: MethodBody,
}

/// The code of a method.
#[derive(Debug, Clone, PartialEq)]
pub enum MethodBody {
    /// This.
    Code(MethodCode),
    /// It has none: it is native.
    Native,
    /// It is not known, for this reason.
    Unknown(String),
}

/// A calling context.
#[derive(Debug, Clone, PartialEq)]
pub struct ProgramNode {
    /// The index of its method.
    pub method: usize,
    /// The calling context that is priced with it: its caller, or the caller of the VM's calls that lead to it.
    pub parent: Option<NodeId>,
    /// The place of the call in the caller's method. None if the VM or native code is the caller.
    pub site: Option<CodeUnits>,
    /// Its calls.
    pub calls: u64,
    /// Executions by the index of the instruction, in order. Empty if its instructions were not counted.
    pub executions: Vec<(usize, u64)>,
    /// Whether nothing but its calls was counted: what a call of it executes is not in the order of calls.
    pub is_leaf: bool,
    /// Whether it is a part of the program on the target, not of what the VM does by itself.
    pub is_run: bool,
    /// Whether it is priced.
    pub is_priced: bool,
}

/// What was counted.
#[derive(Debug, Clone, PartialEq)]
pub struct Program {
    /// The methods, by [`MethodId`].
    pub methods: Vec<ProgramMethod>,
    /// The contexts, by [`NodeId`].
    pub nodes: Vec<ProgramNode>,
    /// What is missing of the counts.
    pub notes: Vec<String>,
}

impl Program {
    /// Makes a program of a session's contexts and the code of their methods, by [`MethodId`]. All of it is priced.
    ///
    /// # Errors
    ///
    /// Executions of bytecodes were not counted.
    pub fn new(
        contexts: &Contexts,
        methods: Vec<ProgramMethod>,
        vm_calls: VmCalls,
    ) -> Result<Self> {
        let (calls, bytecodes) = (contexts.counter(CALLS), contexts.counter(BYTECODES));
        let (Some(calls), Some(bytecodes)) = (calls, bytecodes) else {
            return Err(Error::Counts(
                "the session does not count bytecodes: 'varid exact --bytecodes' counts them, '--call-order' keeps the order of calls, too"
                    .to_owned(),
            ));
        };
        let mut program = Self {
            methods,
            nodes: Vec::with_capacity(contexts.nodes().len()),
            notes: Vec::new(),
        };
        let mut without_place = 0_u64;
        for (id, node) in contexts.node_ids().zip(contexts.nodes()) {
            let method = contexts.method_of(id).map_or(usize::MAX, MethodId::index);
            let site = node.site.and_then(|site| contexts.site(site));
            let by_site =
                node.parent.is_some() && program.is_called_by_site(contexts, node, method);
            let parent = node
                .parent
                .and_then(|parent| program.nodes.get(parent.index()));
            let name = program
                .methods
                .get(method)
                .and_then(|method| method.name.as_ref());
            let is_left_out = node.parent.is_some()
                && !by_site
                && vm_calls == VmCalls::BeforeStart
                && name.is_some_and(loads_classes);
            let is_run = parent.is_none_or(|parent| parent.is_run) && !is_left_out;
            let mut executions = Vec::new();
            let code = match program.methods.get(method).map(|method| &method.body) {
                Some(MethodBody::Code(code)) => Some(code),
                _ => None,
            };
            for count in contexts
                .counts(id)
                .iter()
                .filter(|count| count.counter == bytecodes)
            {
                let index = count.place.zip(code);
                let index = index.and_then(|(place, code)| code.at(CodeUnits::new(place)));
                match index {
                    Some(index) => executions.push((index, count.value)),
                    None => without_place = without_place.saturating_add(count.value),
                }
            }
            let calls = contexts.value(id, calls);
            let is_leaf = executions.is_empty();
            // Code that cannot be rewritten has no counts: the constructor of Object.
            if executions.is_empty()
                && let Some(code) = code.filter(|code| code.is_straight())
            {
                executions = (0..code.instructions.len())
                    .map(|index| (index, calls))
                    .collect();
            }
            program.nodes.push(ProgramNode {
                method,
                parent: node.parent,
                site: site.filter(|_| by_site).map(|site| site.pc),
                calls,
                executions,
                is_leaf,
                is_run,
                is_priced: is_run,
            });
        }
        program.note_what_is_missing(contexts, without_place);
        Ok(program)
    }

    /// Returns true if the instruction of its site calls a context's method, not the VM or native code that it has called.
    fn is_called_by_site(&self, contexts: &Contexts, node: &ContextNode, method: usize) -> bool {
        let Some(site) = node.site.and_then(|site| contexts.site(site)) else {
            return false;
        };
        let name = self
            .methods
            .get(method)
            .and_then(|method| method.name.as_ref());
        match (&site.target, name) {
            (Some(SiteTarget::Name(target)), Some(name)) => {
                let target = target.split('(').next().unwrap_or_default();
                let target = target.rsplit(['.', '/']).next().unwrap_or_default();
                target == name.name
            }
            _ => true,
        }
    }

    fn note_what_is_missing(&mut self, contexts: &Contexts, without_place: u64) {
        for process in contexts.processes() {
            if let Some(why) = &process.incomplete {
                let pid = process.pid;
                self.notes.push(format!(
                    "the counts of process {pid} are incomplete, and so is the estimate: {why}"
                ));
            }
        }
        if let Some(damage) = contexts.damage() {
            self.notes.push(format!(
                "the counts are incomplete, and so is the estimate: {damage}"
            ));
        }
        if without_place > 0 {
            self.notes.push(format!(
                "{without_place} executions cost nothing in this estimate: their instructions are not known"
            ));
        }
    }

    /// Checks that a target executes the program's bytecode.
    ///
    /// # Errors
    ///
    /// It executes another one.
    pub fn check_bytecode(&self, target: &str, bytecode: Bytecode) -> Result<()> {
        let kinds = self.methods.iter().filter_map(|method| match &method.body {
            MethodBody::Code(code) => code.bytecode(),
            MethodBody::Native | MethodBody::Unknown(_) => None,
        });
        match kinds.into_iter().find(|own| *own != bytecode) {
            Some(own) => Err(Error::Counts(format!(
                "the target {target} prices {bytecode}, and the session has {own}"
            ))),
            None => Ok(()),
        }
    }

    /// Prices only the contexts of these methods with what they call.
    pub fn restrict(&mut self, methods: &[usize]) {
        let methods: HashSet<usize> = methods.iter().copied().collect();
        let mut inside: Vec<bool> = Vec::with_capacity(self.nodes.len());
        for node in &mut self.nodes {
            let parent = node.parent.and_then(|parent| inside.get(parent.index()));
            let is_inside = methods.contains(&node.method) || parent.copied().unwrap_or_default();
            inside.push(is_inside);
            node.is_priced = node.is_run && is_inside;
        }
    }

    /// Returns a context.
    #[must_use]
    pub fn node(&self, node: NodeId) -> Option<&ProgramNode> {
        self.nodes.get(node.index())
    }

    /// Returns the code of a context's method.
    #[must_use]
    pub fn code(&self, node: &ProgramNode) -> Option<&MethodCode> {
        match &self.methods.get(node.method)?.body {
            MethodBody::Code(code) => Some(code),
            MethodBody::Native | MethodBody::Unknown(_) => None,
        }
    }
}

/// Returns true if the VM calls a method to load, link or initialise a class. All else that it or native code calls, such as what
/// `Method.invoke` does, is a part of the program.
fn loads_classes(name: &MethodName) -> bool {
    match (name.class.as_str(), name.name.as_str()) {
        (_, "<clinit>") => true,
        (_, "loadClass") => name.descriptor.starts_with("(Ljava/lang/String;"),
        ("java.lang.ClassLoader", "loadClassInternal" | "checkPackageAccess") => true,
        ("java.lang.invoke.MethodHandleNatives", _) => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_loading_linking_and_initialising_classes_is_before_the_program() {
        let is = |class: &str, name: &str, descriptor: &str| {
            loads_classes(&MethodName {
                class: class.to_owned(),
                name: name.to_owned(),
                descriptor: descriptor.to_owned(),
            })
        };
        assert!(is("App", "<clinit>", "()V"));
        let load = "(Ljava/lang/String;)Ljava/lang/Class;";
        assert!(is("app.Loader", "loadClass", load));
        let natives = "java.lang.invoke.MethodHandleNatives";
        assert!(is(natives, "linkCallSite", "()V"));
        // By reflection.
        assert!(!is("App", "loop", "(I)I"));
        assert!(!is("App", "loadClass", "(I)V"));
    }
}
