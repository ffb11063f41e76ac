//! What a proxy hands back.

use millpond_coap::{
    message::{Code, Message, Uint, number},
    proxy::Answer as MayBeKept,
};

/// An answer to a request of a client.
#[derive(Clone, Debug)]
pub(super) struct Answer {
    pub(super) code: Code,
    /// Content-Format, ETag and Max-Age, in the order of their numbers.
    options: Vec<(u16, Vec<u8>)>,
    pub(super) payload: Vec<u8>,
}

impl Answer {
    /// Of the proxy itself.
    pub(super) fn own(code: Code) -> Self {
        Self { code, options: Vec::new(), payload: Vec::new() }
    }

    /// Of the server.
    pub(super) fn of(message: &Message<'_>) -> Self {
        let handed_back = [number::ETAG, number::CONTENT_FORMAT, number::MAX_AGE];
        let option = |number| Some((number, message.option(number)?.to_vec()));
        let options = handed_back.into_iter().filter_map(option).collect();
        Self { code: message.code, options, payload: message.payload().to_vec() }
    }

    /// The same with this Max-Age in seconds.
    pub(super) fn with_max_age(mut self, seconds: u32) -> Self {
        self.options.retain(|(number, _)| *number != number::MAX_AGE);
        self.options.push((number::MAX_AGE, Uint::new(seconds).as_bytes().to_vec()));
        self
    }

    /// Its options, as a message takes them.
    pub(super) fn options(&self) -> Vec<(u16, &[u8])> {
        self.options.iter().map(|(number, value)| (*number, &value[..])).collect()
    }

    fn option(&self, number: u16) -> Option<&[u8]> {
        self.options.iter().find(|(other, _)| *other == number).map(|(_, value)| &value[..])
    }
}

impl MayBeKept for Answer {
    fn code(&self) -> Code {
        self.code
    }

    fn etag(&self) -> Option<&[u8]> {
        self.option(number::ETAG)
    }

    fn max_age(&self) -> u32 {
        self.option(number::MAX_AGE).and_then(Uint::read).unwrap_or(60)
    }

    fn weight(&self) -> usize {
        let options = self.options.iter().map(|(_, value)| value.len() + size_of::<(u16, Vec<u8>)>());
        options.sum::<usize>() + self.payload.len()
    }

    fn aged(&self, left: u32) -> Self {
        self.clone().with_max_age(left)
    }

    fn renewed(&self, by: &Self) -> Self {
        self.aged(by.max_age())
    }
}
