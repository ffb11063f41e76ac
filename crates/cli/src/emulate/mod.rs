//! The verbs that put a path between real programs.

mod calm;
mod copies;
mod figures;
#[cfg(target_os = "linux")]
mod inside;
mod log;
mod paths;
mod relay;
mod told;

#[cfg(target_os = "linux")]
pub use inside::emulate;
pub use relay::relay;

/// Elsewhere there are no network namespaces.
///
/// # Errors
/// Always.
#[cfg(not(target_os = "linux"))]
pub async fn emulate(
    _: crate::arguments::Emulate,
    _: &mut crate::interrupt::Interrupt,
) -> Result<(), crate::failure::Failure> {
    let told = "emulate needs Linux and its network namespaces; relay puts UDP behind the same path on any system";
    Err(crate::failure::Failure::Failed(told.to_owned()))
}
