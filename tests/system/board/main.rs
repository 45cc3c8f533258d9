//! System tests on an ARM board. All tests share one boot.

mod art14;
mod attribution;
mod device;
mod pmu;
mod profile;
