//! What leads a diagnosis astray, put into captures of the simulator. How often verdicts are right on drawn scenarios is
//! tested beside them, in `python/tests/test_diagnose_accuracy.py`.
#![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

mod devices;
mod dtls;
mod laboratory;
mod told;
