//! Programs of random instructions: loops, calls, returns, accesses of memory and of their own code, counters.

use varid_model::{Address, Mode};
use varid_riscv::{Image, Segment, Symbol, SymbolKind, Xlen};

use super::*;

const CODE: u32 = 0x1_0000;
/// Instructions of a program.
const COUNT: u32 = 160;
/// Instructions of a function.
const FUNCTION: u32 = 20;
const LIMIT: u64 = 6_000;

/// A generator of numbers: xorshift, by Marsaglia.
struct Random(u64);

impl Random {
    fn below(&mut self, end: u32) -> u32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 32) as u32 % end
    }

    fn of(&mut self, choices: &[u32]) -> u32 {
        choices[self.below(choices.len() as u32) as usize]
    }

    /// A register, often one of a few, so that operands have been computed.
    fn register(&mut self) -> u32 {
        self.of(&[0, 5, 10, 10, 11, 11, 12, 13, 14, 15])
    }

    /// An instruction at an index of the program.
    fn instruction(&mut self, index: u32) -> u32 {
        let (rd, rs1, rs2) = (self.register(), self.register(), self.register());
        let funct3 = self.below(8);
        match self.below(20) {
            0..5 => {
                let immediate = match funct3 {
                    1 => self.below(32),
                    5 => self.below(32) | self.of(&[0, 0x400]),
                    _ => self.below(1 << 12),
                };
                immediate << 20 | rs1 << 15 | funct3 << 12 | rd << 7 | 0x13
            }
            5..8 => {
                let funct7 = match funct3 {
                    0 | 5 => self.of(&[0, 0x20, 1]),
                    _ => self.of(&[0, 1]),
                };
                funct7 << 25 | rs2 << 20 | rs1 << 15 | funct3 << 12 | rd << 7 | 0x33
            }
            8 => self.below(1 << 20) << 12 | rd << 7 | 0x37,
            // Loads and stores by sp, mostly, or by gp, which leads to the code.
            9..12 => {
                let width = self.of(&[0, 1, 2, 2, 4, 5]);
                let offset = self.below(64) * self.of(&[1, 4, 4, 4]);
                offset << 20 | self.of(&[2, 2, 2, 3]) << 15 | width << 12 | rd << 7 | 3
            }
            12..14 => {
                let width = self.of(&[0, 1, 2, 2]);
                let base = if self.below(60) == 0 { 3 } else { 2 };
                let offset = self.below(64) * 4;
                (offset >> 5) << 25
                    | rs2 << 20
                    | base << 15
                    | width << 12
                    | (offset & 31) << 7
                    | 0x23
            }
            14..17 => {
                let condition = self.of(&[0, 1, 4, 5, 6, 7]);
                let target = self.near(index, 12);
                branch(target, rs1 << 15 | rs2 << 20 | condition << 12)
            }
            17 => {
                let target = self.near(index, COUNT);
                jump(target, self.of(&[0, 1, 1]))
            }
            // ret, or a call of what ra leads to.
            18 => 1 << 15 | self.of(&[0, 0, 0, 1]) << 7 | 0x67,
            // rdcycle or rdinstret.
            _ => self.of(&[0xc00, 0xc02]) << 20 | 2 << 12 | rd << 7 | 0x73,
        }
    }

    /// The distance in bytes to another instruction of the program.
    fn near(&mut self, index: u32, most: u32) -> i32 {
        let first = index.saturating_sub(most);
        let last = (index + most).min(COUNT - 1);
        let target = first + self.below(last - first);
        (target as i32 - index as i32) * 4
    }
}

fn branch(distance: i32, operands: u32) -> u32 {
    let offset = distance.cast_unsigned();
    let bit = |bit: u32| offset >> bit & 1;
    let low = (offset >> 1 & 15) << 8 | bit(11) << 7;
    bit(12) << 31 | (offset >> 5 & 63) << 25 | operands | low | 0x63
}

fn jump(distance: i32, rd: u32) -> u32 {
    let offset = distance.cast_unsigned();
    let bit = |bit: u32| offset >> bit & 1;
    let high = bit(20) << 31 | (offset >> 1 & 0x3ff) << 21 | bit(11) << 20;
    high | (offset >> 12 & 0xff) << 12 | rd << 7 | 0x6f
}

fn program(seed: u64) -> Image {
    let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    // auipc gp, 0; addi sp, sp, -512.
    let mut words = vec![3 << 7 | 0x17, 0xe00 << 20 | 2 << 15 | 2 << 7 | 0x13];
    for index in words.len() as u32..COUNT {
        words.push(random.instruction(index));
    }
    // li a7, 93; ecall.
    words.extend([93 << 20 | 17 << 7 | 0x13, 0x73]);
    let data: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    let starts = (0..COUNT).step_by(FUNCTION as usize);
    Image {
        xlen: Xlen::Rv32,
        entry: Address::new(CODE.into()),
        segments: vec![Segment {
            address: Address::new(CODE.into()),
            size: data.len() as u64,
            data,
            mode: Mode {
                read: true,
                write: true,
                execute: true,
                shared: false,
            },
        }],
        symbols: starts
            .map(|index| Symbol {
                name: format!("function{index}"),
                address: Address::new((CODE + index * 4).into()),
                size: (FUNCTION * 4).into(),
                kind: SymbolKind::Function,
            })
            .collect(),
    }
}

#[test]
fn random_programs_count_the_same() {
    let mut ended = [0, 0];
    for (target, settings) in [
        ("ibex", vec![]),
        ("cv32e40p", vec![]),
        ("picorv32", vec!["barrel_shifter=false"]),
        (
            "vexriscv",
            vec!["dcache.size=128", "dcache.ways=2", "icache.size=128"],
        ),
    ] {
        let settings: Vec<Setting> = settings
            .iter()
            .map(|it| Setting::parse(it).unwrap())
            .collect();
        let processor = Processor::named(target, &settings).unwrap();
        for seed in 1..80 {
            let image = program(seed);
            let interpreted = execute(&image, &processor, LIMIT, By::Interpreter);
            let translated = execute(&image, &processor, LIMIT, By::EngineAsItCan);
            assert_equal(&format!("{target} {seed}"), &interpreted, &translated);
            ended[usize::from(interpreted.instructions == LIMIT)] += 1;
        }
    }
    // Neither do all end at once, nor does none.
    assert!(ended.iter().all(|count| *count > 20), "{ended:?}");
}
