//! Parameters by name: what they change, and what is said about wrong ones.

#![cfg(feature = "all")]
#![allow(clippy::expect_used, reason = "a test may stop at the first surprise")]

mod each;
mod legal;

use millpond_control::{AnyController, SettingValue};

pub(crate) fn set(mut controller: AnyController, settings: &[(&str, SettingValue<'_>)]) -> AnyController {
    for (name, value) in settings {
        controller.set(name, *value).expect(name);
    }
    controller
}
