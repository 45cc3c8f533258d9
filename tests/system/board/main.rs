//! Does it on an ARM board? All tests share one boot.

mod attribution;
mod device;
mod pmu;
mod profile;
