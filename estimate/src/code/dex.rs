//! Reads the code of a method of a dex file.

use varid_model::CodeUnits;
use varid_symbolizer::bytecode;
use varid_symbolizer::dex::{DexFile, Instruction};

use super::{CodeInstruction, MethodCode, Opcode, Operand, reach};

impl MethodCode {
    /// Reads a method of a dex file. Its places are code units.
    ///
    /// # Errors
    ///
    /// The file violates its format.
    pub fn read_dex(dex: &DexFile<'_>, code: &bytecode::MethodCode) -> Result<Self, String> {
        let decoded = dex.disassemble(code).collect::<Result<Vec<_>, _>>();
        let mut decoded = decoded.map_err(|error| error.to_string())?;
        decoded.retain(|one| !one.is_table());
        let index = |offset: u32| decoded.binary_search_by_key(&offset, |one| one.offset).ok();
        let mut list: Vec<CodeInstruction> = Vec::with_capacity(decoded.len());
        let (mut falls, mut leads) = (true, true);
        for one in &decoded {
            let opcode = Opcode::Dex(one.code());
            let target = one.targets().next();
            list.push(CodeInstruction {
                place: CodeUnits::new(place(one, code)),
                opcode,
                operand: operand(one),
                leads,
                falls_through: one.falls_through(),
                target: target.filter(|_| opcode.is_condition()).and_then(index),
                ways: u32::from(falls),
            });
            falls = one.falls_through();
            leads = !falls || target.is_some();
        }
        let tries = dex.tries(code).map_err(|error| error.to_string())?;
        let handlers = tries.flatten().flat_map(|one| one.handlers);
        let handlers: Vec<u32> = handlers.map(|handler| handler.offset).collect();
        let targets = decoded.iter().flat_map(Instruction::targets);
        for reached in targets.chain(handlers).filter_map(index) {
            reach(&mut list, reached);
        }
        Ok(Self {
            instructions: list,
            length: code.code.end.saturating_sub(code.code.start),
            is_synchronized: false,
        })
    }
}

/// Returns the place of an instruction in code units.
fn place(instruction: &Instruction<'_>, code: &bytecode::MethodCode) -> u32 {
    instruction.offset.saturating_sub(code.code.start) / 2
}

fn operand(instruction: &Instruction<'_>) -> Operand {
    match instruction.called_method() {
        Some(name) => Operand::Method(name),
        None => Operand::None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use varid_instrument_dex::assemble::{Class, Code, DexBuilder};

    #[test]
    fn blocks_calls_and_branches_of_dex_code_are_read() {
        let mut dex = DexBuilder::default();
        let called = dex.method("La/App;", "run", "()V").unwrap();
        let mut code = Code::new(1, 0);
        let (top, end) = (code.label(), code.label());
        code.place(top);
        // if-eqz v0, packed-switch v0, invoke-static, goto, return-void.
        code.branch(0x38, end);
        code.table(0x2b, &[0x0100, 1, 0, 0], &[end]);
        code.indexed(&[0x71, 0, 0], called);
        code.goto(top);
        code.place(end);
        code.units(&[0x0e]);
        let mut class = Class::new("La/App;");
        class.method(9, "main", "(I)V", Some(code));
        dex.class(class);
        let bytes = dex.finish().unwrap();
        let dex = DexFile::parse(&bytes).unwrap();
        let main = dex.methods().next().unwrap().unwrap();
        let code = MethodCode::read_dex(&dex, &main.method_code().unwrap()).unwrap();
        let found = code.instructions.iter().map(|one| {
            let CodeInstruction {
                place,
                target,
                ways,
                leads,
                ..
            } = one;
            (place.get(), one.opcode.name(), *target, *ways, *leads)
        });
        let expected = [
            (0, "if-eqz", Some(4), 2, true),
            (2, "packed-switch", None, 1, true),
            (5, "invoke-static", None, 1, true),
            (8, "goto", None, 1, false),
            (9, "return-void", None, 2, true),
        ];
        assert_eq!(found.collect::<Vec<_>>(), expected);
        let call = &code.instructions[2];
        assert_eq!(call.operand, Operand::Method("a.App.run".to_owned()));
        assert!(call.opcode.is_invoke() && !code.is_straight());
    }
}
