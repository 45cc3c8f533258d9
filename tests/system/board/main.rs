//! Does the whole system do on an ARM board what it promises? All tests share one boot.

mod art14;
mod attribution;
mod device;
mod pmu;
mod profile;
