//! The security context of the device.

use alloc::vec::Vec;
use core::cell::RefCell;

use critical_section::Mutex;
use millpond_coap::{
    message::{Kind, Message, MessageId, Token},
    oscore::{self, Parameters, ProtectError, Protector, ReceivedRequest, Refusal, ResponseFault, SentRequest, Start},
};

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

    fn with<T>(act: impl FnOnce(&mut oscore::Context) -> T) -> Option<T> {
        critical_section::with(|section| {
            let mut context = CONTEXT.borrow_ref_mut(section);
            let context = context.as_mut()?;
            if let Some(bound) = context.bound_to_store(GAP) {
                device::store_bound(bound);
                context.bound_is_stored(bound);
            }
            Some(act(context))
        })
    }
}

impl Protector for Context {
    fn protect_request(&self, request: &Message<'_>, into: &mut Vec<u8>) -> Result<SentRequest, ProtectError> {
        Self::with(|context| context.protect_request(request, into)).unwrap_or(Err(ProtectError::NotStored))
    }

    fn unprotect_response(
        &self,
        request: &mut SentRequest,
        response: &Message<'_>,
        into: &mut Vec<u8>,
    ) -> Result<(), ResponseFault> {
        Self::with(|context| context.unprotect_response(request, response, into))
            .unwrap_or(Err(ResponseFault::OtherContext))
    }

    fn unprotect_request(&self, request: &Message<'_>, into: &mut Vec<u8>) -> Result<ReceivedRequest, Refusal> {
        Self::with(|context| context.unprotect_request(request, into)).unwrap_or(Err(Refusal::UnknownContext))
    }

    fn protect_response(
        &self,
        request: &mut ReceivedRequest,
        response: &Message<'_>,
        into: &mut Vec<u8>,
    ) -> Result<(), ProtectError> {
        Self::with(|context| context.protect_response(request, response, into)).unwrap_or(Err(ProtectError::NotStored))
    }

    fn challenge(
        &self,
        request: &mut ReceivedRequest,
        kind: Kind,
        id: MessageId,
        token: Token,
        into: &mut Vec<u8>,
    ) -> Result<(), ProtectError> {
        Self::with(|context| context.challenge(request, kind, id, token, into)).unwrap_or(Err(ProtectError::NotStored))
    }
}
