//! What tests of the whole system share: the programs under test, recordings of real runs, and oracles.
//!
//! An oracle (`oracle/`, Python) uses no crate of varid and takes nothing that varid computed for true.

mod app;
mod board;
mod corpus;
mod libart;
mod methods;
mod oracle;
mod session;
mod testbed;

pub use app::App;
pub use board::{
    Board, Processor, board, board_of, board_with_module, run_on_board, run_on_other_board,
};
pub use corpus::{assembled_dex_files, dex_files, fetched_dex_files};
pub use libart::{Libart, Says};
pub use methods::{Methods, PERF_REPORT, methods_by_perf, methods_by_varid, printed_by_perf};
pub use oracle::{judge, judge_in, oracle};
pub use session::{Recording, attach, attach_to, is_alive, record};
pub use testbed::{Testbed, skip_without_root, skipped, testbed};
