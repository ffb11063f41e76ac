use alloc::vec::Vec;
use core::time::Duration;

use millpond_coap::{
    Outgoing,
    message::{Code, Kind, number},
};

/// A request.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// Method.
    pub code: Code,
    /// Its path, as in `sensors/temperature`.
    pub path: &'a str,
    /// Content-Format of the payload.
    pub format: Option<u16>,
    /// Bytes of any number: what does not fit a block leaves in several.
    pub payload: &'a [u8],
    /// Other options, without Uri-Path, Content-Format, Observe, Echo and those of blocks.
    pub options: &'a [(u16, &'a [u8])],
    /// [`Kind::Confirmable`], or [`Kind::NonConfirmable`], which nobody repeats.
    pub kind: Kind,
}

impl<'a> Request<'a> {
    /// A confirmable request of this method.
    #[must_use]
    pub const fn new(code: Code, path: &'a str) -> Self {
        Self { code, path, format: None, payload: &[], options: &[], kind: Kind::Confirmable }
    }

    /// GET.
    #[must_use]
    pub const fn get(path: &'a str) -> Self {
        Self::new(Code::GET, path)
    }

    /// PUT of this payload.
    #[must_use]
    pub const fn put(path: &'a str, payload: &'a [u8]) -> Self {
        Self { payload, ..Self::new(Code::PUT, path) }
    }

    /// POST of this payload.
    #[must_use]
    pub const fn post(path: &'a str, payload: &'a [u8]) -> Self {
        Self { payload, ..Self::new(Code::POST, path) }
    }

    /// The same, whose payload has this Content-Format.
    #[must_use]
    pub const fn with_format(self, format: u16) -> Self {
        Self { format: Some(format), ..self }
    }

    /// The same with these options.
    #[must_use]
    pub const fn with_options(self, options: &'a [(u16, &'a [u8])]) -> Self {
        Self { options, ..self }
    }

    /// The same as a non-confirmable request.
    #[must_use]
    pub const fn non_confirmable(self) -> Self {
        Self { kind: Kind::NonConfirmable, ..self }
    }

    /// All options in their order, these among them.
    pub(crate) fn all_options<'o>(
        &self,
        format: Option<&'o [u8]>,
        own: &[(u16, Option<&'o [u8]>)],
    ) -> Vec<(u16, &'o [u8])>
    where
        'a: 'o,
    {
        let path = self.path.split('/').filter(|part| !part.is_empty());
        let path = path.map(|part| (number::URI_PATH, part.as_bytes()));
        let own = own.iter().filter_map(|(number, value)| Some((*number, (*value)?)));
        let format = format.map(|value| (number::CONTENT_FORMAT, value));
        let mut all: Vec<_> = path.chain(format).chain(own).chain(self.options.iter().copied()).collect();
        all.sort_by_key(|(number, _)| *number);
        all
    }

    pub(crate) const fn outgoing<'o>(&self, options: &'o [(u16, &'o [u8])], payload: &'o [u8]) -> Outgoing<'o> {
        Outgoing { kind: self.kind, payload, ..Outgoing::confirmable(self.code, options) }
    }
}

/// A response, or a state of what is observed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Response<'b> {
    /// Its code, which may be an error.
    pub code: Code,
    /// Content-Format of its body.
    pub format: Option<u16>,
    /// Its whole body.
    pub body: &'b [u8],
    /// Copies that had been sent of its last request; none of a notification.
    pub copies: u8,
    /// For how many seconds it is fresh (Max-Age): of 5.03 and 4.29 when to ask again, which [`Node::next_attempt`](crate::Node::next_attempt)
    /// heeds.
    pub max_age: u32,
}

impl Response<'_> {
    /// For how long the server does not want to be asked, if it says so.
    pub(crate) fn refusal(&self) -> Option<Duration> {
        self.code.refuses_for_a_while().then(|| Duration::from_secs(self.max_age.into()))
    }
}
