//! The security context of the device.

use core::cell::RefCell;

use critical_section::Mutex;
use millpond_coap::oscore::{self, Parameters, Protector, Start, Which};

use crate::device;

/// Messages between two writes to flash.
const GAP: u32 = 1_000;

/// As it was given to the device when that was made; each has its own.
const GIVEN: Parameters<'static> =
    Parameters { sender_id: &[7], recipient_id: &[], ..Parameters::of(b"of this device..") };

static CONTEXT: Mutex<RefCell<Option<oscore::Context>>> = Mutex::new(RefCell::new(None));

/// The one that there is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Context;

impl Context {
    /// None if what was given to the device makes none.
    pub(crate) fn of_device() -> Option<Self> {
        let context = oscore::Context::derive(&GIVEN, Start::Stored(device::stored_bound())).ok()?;
        critical_section::with(|section| CONTEXT.borrow_ref_mut(section).replace(context));
        Some(Self)
    }
}

impl Protector for Context {
    fn with_context(&self, _: Which<'_>, act: &mut dyn FnMut(&mut oscore::Context)) {
        critical_section::with(|section| {
            let mut context = CONTEXT.borrow_ref_mut(section);
            let Some(context) = context.as_mut() else { return };
            if let Some(bound) = context.bound_to_store(GAP) {
                device::store_bound(bound);
                context.bound_is_stored(bound);
            }
            act(context);
        });
    }
}
