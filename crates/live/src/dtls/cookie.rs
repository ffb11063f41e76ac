//! The cookies by which clients show that they are at their address, before anything is kept of them.
//!
//! RFC 6347 §4.2.1 and RFC 9147 §5.1 let a server answer a first ClientHello without state. The state machine of `dimpl`
//! has the exchange, but each of its servers keeps a key of its own, so that it must exist before the first hello. So the
//! exchange is here, and a server is made when a cookie comes back that is right. It is told then what went before. Out of
//! the second hello follows the first one, the cookie that the server would have made is the one that was sent (`dimpl` lets
//! its HMAC be chosen, and uses `hmac_sha256` for cookies alone), and what it answers to the first hello has been sent long
//! ago, byte for byte.
//!
//! What must be right of a cookie is a keyed hash of address and time. Were the hello in it, one that somebody else sends in
//! the client's name would be answered with a cookie that the client brings back for nothing. Behind the hash stands a hint:
//! that of the first hello of DTLS 1.3, which is part of what both sides sign, and need not follow from the second one in
//! one way alone.

use std::{cell::Cell, hash::Hash, net::SocketAddr};

use dimpl::{
    Config, CryptoError,
    crypto::{HashAlgorithm, HmacProvider, rust_crypto},
};
use millpond_control::Instant;
use siphasher::sip128::{Hasher128, SipHasher24};

use super::{
    fault::HANDSHAKE_FAILURE,
    hello::{COOKIE, DTLS_1_2, DTLS_1_3, Hello, SUPPORTED_VERSIONS, extension},
    record::{HELLO_VERIFY_REQUEST, SERVER_HELLO, fatal_alert, in_record},
};
use crate::{Error, secrets};

/// Bytes of a cookie, all that `dimpl` takes, and of the hash in it.
const LENGTH: usize = 32;
const HASH: usize = 16;
/// Microseconds after which cookies are made with another key. Those made with the one before are still good.
const PERIOD: u64 = 60_000_000;
/// The highest sequence number of a record from which the server's can go on.
const HIGHEST: u64 = 1 << 47;
/// The version by which a HelloVerifyRequest says nothing of versions (RFC 6347 §4.2.1).
const DTLS_1_0: [u8; 2] = [0xfe, 0xff];
/// The random value by which a ServerHello is a HelloRetryRequest (RFC 8446 §4.1.3).
const RETRY_RANDOM: [u8; 32] = [
    0xcf, 0x21, 0xad, 0x74, 0xe5, 0x9a, 0x61, 0x11, 0xbe, 0x1d, 0x8c, 0x02, 0x1e, 0x65, 0xb8, 0x91, 0xc2, 0xa2, 0x11,
    0x16, 0x7a, 0xbb, 0x8c, 0x5e, 0x07, 0x9e, 0x09, 0xe2, 0xc8, 0xa8, 0x33, 0x9c,
];

pub(super) type Cookie = [u8; LENGTH];
pub(super) type Digest = [u8; HASH];

/// What becomes of a ClientHello.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// This is answered, and nothing kept.
    Answer(Vec<u8>),
    /// The sender is at its address. What a server must be told before it.
    Proved(Proof),
    /// Nothing: the cookie is wrong, or too old.
    Ignore,
}

/// A cookie came back.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Proof {
    /// The hello that went before.
    pub(super) first: Vec<u8>,
    /// What was answered to it.
    pub(super) answer: Vec<u8>,
    pub(super) cookie: Cookie,
    /// What distinguishes the handshake from others with this address.
    pub(super) handshake: Digest,
    /// By how much the sequence numbers of the server's records are behind.
    pub(super) behind: u64,
}

/// Makes cookies and knows them again.
#[derive(Clone)]
pub(super) struct Cookies {
    address: SipHasher24,
    digest: SipHasher24,
    /// Cipher suites and groups of DTLS 1.3; none if it is not spoken.
    suites: Vec<u16>,
    groups: Vec<u16>,
}

impl Cookies {
    /// Of a server that speaks DTLS 1.2, and 1.3 if it `has_certificate`.
    ///
    /// # Errors
    /// The operating system gives no random bytes.
    pub(super) fn new(config: &Config, has_certificate: bool) -> Result<Self, Error> {
        let key = || Ok::<_, Error>(SipHasher24::new_with_key(&secrets::bytes()?));
        let suites = config.dtls13_cipher_suites().filter(|_| has_certificate);
        Ok(Self {
            address: key()?,
            digest: key()?,
            suites: suites.map(|suite| suite.suite().as_u16()).collect(),
            groups: config.kx_groups().map(|group| group.name().as_u16()).collect(),
        })
    }

    /// What was made by these is good here, too.
    pub(super) const fn go_on_from(&mut self, before: &Self) {
        (self.address, self.digest) = (before.address, before.digest);
    }

    /// What becomes of a ClientHello from this address.
    pub(super) fn judge(&self, now: Instant, from: SocketAddr, hello: &Hello<'_>) -> Verdict {
        if hello.sequence > HIGHEST {
            return Verdict::Ignore;
        }
        let period = now.as_micros() / PERIOD;
        let verdict = if hello.offers_1_3() && !self.suites.is_empty() {
            self.judge_1_3(period, from, hello)
        } else {
            self.judge_1_2(period, from, hello)
        };
        verdict.unwrap_or(Verdict::Ignore)
    }

    fn judge_1_2(&self, period: u64, from: SocketAddr, hello: &Hello<'_>) -> Option<Verdict> {
        let request = |cookie: &Cookie, sequence| {
            let mut body = DTLS_1_0.to_vec();
            body.push(u8::try_from(cookie.len()).ok()?);
            body.extend_from_slice(cookie);
            in_record(sequence, HELLO_VERIFY_REQUEST, &body)
        };
        match self.good(period, from, hello.cookie()) {
            Some(cookie) => {
                let first = hello.as_first(&hello.before_cookie())?;
                Some(self.proved(hello, first, request(&cookie, 0)?, cookie))
            }
            // One whose cookie is of another time or place counts as one without (RFC 6347 §4.2.1).
            None if hello.number == 0 => {
                let cookie = self.make(period, from, Digest::default());
                Some(Verdict::Answer(request(&cookie, hello.sequence)?))
            }
            None => None,
        }
    }

    fn judge_1_3(&self, period: u64, from: SocketAddr, hello: &Hello<'_>) -> Option<Verdict> {
        let Some(suite) = hello.suites().find(|suite| self.suites.contains(suite)) else {
            return Some(Verdict::Answer(fatal_alert(hello.sequence, HANDSHAKE_FAILURE).to_vec()));
        };
        let request = |cookie: &Cookie, sequence| in_record(sequence, SERVER_HELLO, &retry(suite, cookie)?);
        let Some(given) = hello.retry_cookie() else {
            // A share in another group would be another hello, of which the first could not be told again.
            if !hello.share_groups().any(|group| self.groups.contains(&group)) {
                return Some(Verdict::Answer(fatal_alert(hello.sequence, HANDSHAKE_FAILURE).to_vec()));
            }
            let cookie = self.make(period, from, self.digest(&[&hello.before_retry(false)?]));
            return Some(Verdict::Answer(request(&cookie, hello.sequence)?));
        };
        let cookie = self.good(period, from, given)?;
        let (plain, padded) = (hello.before_retry(false)?, hello.before_retry(true)?);
        let hint = cookie.get(HASH..).unwrap_or_default();
        // The cookie of a hello that somebody else sent says nothing of this one; then clients that pad do it to a length.
        let first = if self.digest(&[&plain]) == hint { plain } else { padded };
        Some(self.proved(hello, hello.as_first(&first)?, request(&cookie, 0)?, cookie))
    }

    fn digest(&self, parts: &[&[u8]]) -> Digest {
        self.digest.hash(&parts.concat()).as_bytes()
    }

    fn make(&self, period: u64, from: SocketAddr, hint: Digest) -> Cookie {
        let mut cookie = [0; LENGTH];
        let (hash, behind) = cookie.split_at_mut(HASH);
        hash.copy_from_slice(&self.hash(period, from));
        behind.copy_from_slice(&hint);
        cookie
    }

    fn hash(&self, period: u64, from: SocketAddr) -> Digest {
        let mut hasher = self.address;
        (period, from).hash(&mut hasher);
        hasher.finish128().as_bytes()
    }

    /// The cookie that was given, if it is of this period or the one before.
    fn good(&self, period: u64, from: SocketAddr, given: &[u8]) -> Option<Cookie> {
        let given: &Cookie = given.try_into().ok()?;
        let hash = given.first_chunk()?;
        let mut periods = [Some(period), period.checked_sub(1)].into_iter().flatten();
        periods.any(|period| is_equal(&self.hash(period, from), hash)).then_some(*given)
    }

    fn proved(&self, hello: &Hello<'_>, first: Vec<u8>, answer: Vec<u8>, cookie: Cookie) -> Verdict {
        let handshake = self.digest(&hello.lasting());
        // The ServerHello has the number of the hello that it answers (RFC 6347 §4.2.1), and would have 1 by itself.
        Verdict::Proved(Proof { first, answer, cookie, handshake, behind: hello.sequence.saturating_sub(1) })
    }
}

/// A HelloRetryRequest, as `dimpl` would write it: it is part of what both sides sign.
fn retry(suite: u16, cookie: &Cookie) -> Option<Vec<u8>> {
    let mut list = Vec::new();
    extension(&mut list, SUPPORTED_VERSIONS, &DTLS_1_3)?;
    let mut value = u16::try_from(cookie.len()).ok()?.to_be_bytes().to_vec();
    value.extend_from_slice(cookie);
    extension(&mut list, COOKIE, &value)?;
    let mut body = DTLS_1_2.to_vec();
    body.extend_from_slice(&RETRY_RANDOM);
    // No session, the suite, no compression.
    body.push(0);
    body.extend_from_slice(&suite.to_be_bytes());
    body.push(0);
    body.extend_from_slice(&u16::try_from(list.len()).ok()?.to_be_bytes());
    body.extend_from_slice(&list);
    Some(body)
}

/// Without telling by the time how much of it is equal.
fn is_equal(one: &Digest, other: &Digest) -> bool {
    one.iter().zip(other).fold(0, |differs, (one, other)| differs | (one ^ other)) == 0
}

thread_local! {
    static AGREED: Cell<Option<Cookie>> = const { Cell::new(None) };
}

/// While this is done, state machines hold this cookie for the one that they would make.
pub(super) fn agreed<T>(cookie: Cookie, what: impl FnOnce() -> T) -> T {
    struct Reset;
    impl Drop for Reset {
        fn drop(&mut self) {
            AGREED.set(None);
        }
    }
    AGREED.set(Some(cookie));
    let _reset = Reset;
    what()
}

/// The HMAC of state machines: `dimpl`'s own, but for cookies that were made already.
#[derive(Debug)]
pub(super) struct Hmac;

impl HmacProvider for Hmac {
    // Keys are derived by `hmac`; this one is for cookies.
    fn hmac_sha256(&self, key: &[u8], data: &[u8]) -> Result<[u8; 32], CryptoError> {
        AGREED.get().map_or_else(|| rust_crypto::default_provider().hmac_provider.hmac_sha256(key, data), Ok)
    }

    fn hmac(&self, hash: HashAlgorithm, key: &[u8], data: &[u8], out: &mut [u8]) -> Result<usize, CryptoError> {
        rust_crypto::default_provider().hmac_provider.hmac(hash, key, data, out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dtls::record::CLIENT_HELLO;

    fn cookies() -> Cookies {
        let config = Config::builder().with_crypto_provider(rust_crypto::default_provider()).build().unwrap();
        Cookies::new(&config, false).unwrap()
    }

    fn hello(cookie: &[u8], number: u16) -> Vec<u8> {
        let mut body = DTLS_1_2.to_vec();
        body.extend_from_slice(&[7; 33]);
        *body.last_mut().unwrap() = 0;
        body.push(u8::try_from(cookie.len()).unwrap());
        body.extend_from_slice(cookie);
        body.extend_from_slice(&[0, 2, 0xc0, 0xa8, 1, 0]);
        let mut datagram = in_record(3, CLIENT_HELLO, &body).unwrap();
        datagram[17..19].copy_from_slice(&number.to_be_bytes());
        datagram
    }

    #[test]
    fn a_cookie_is_good_for_one_address_and_two_minutes() {
        let cookies = cookies();
        let [here, there, one_link, other_link] =
            ["192.0.2.1:5", "192.0.2.1:6", "[fe80::1%1]:5", "[fe80::1%2]:5"].map(|text| text.parse().unwrap());
        let at = |second: u64| Instant::from_micros(second * 1_000_000);
        let judge = |second, from, datagram: &[u8]| cookies.judge(at(second), from, &Hello::of(datagram).unwrap());
        let Verdict::Answer(answer) = judge(59, here, &hello(&[], 0)) else { panic!("a cookie is asked for") };
        // In the record with the number of the hello's (RFC 6347 §4.2.1), and no longer than that.
        assert_eq!(answer[5..11], hello(&[], 0)[5..11]);
        assert!(answer.len() <= hello(&[], 0).len());
        let cookie = &answer[answer.len() - LENGTH..];
        let is_proved = |second, from, number| matches!(judge(second, from, &hello(cookie, number)), Verdict::Proved(proof) if proof.behind == 2);
        assert!(is_proved(59, here, 1) && is_proved(60, here, 1) && is_proved(119, here, 1));
        assert!(!is_proved(120, here, 1) && !is_proved(60, there, 1));
        assert_eq!(judge(120, here, &hello(cookie, 1)), Verdict::Ignore);
        // A first hello with a cookie of another time is a first hello.
        assert!(matches!(judge(200, here, &hello(cookie, 0)), Verdict::Answer(again) if again != answer));
        assert!(matches!(judge(60, here, &hello(&cookie[1..], 0)), Verdict::Answer(_)));
        let Verdict::Answer(answer) = judge(59, one_link, &hello(&[], 0)) else { panic!("a cookie is asked for") };
        let of_a_link = &answer[answer.len() - LENGTH..];
        assert_eq!(judge(59, other_link, &hello(of_a_link, 1)), Verdict::Ignore);
    }
}
