//! The types and constants that C sees, in the order of the header that is made from them.

#![allow(non_camel_case_types, reason = "these are the names that C sees")]
#![allow(clippy::upper_case_acronyms, reason = "so are these")]

/// The controller of one peer. millpond_peer_init makes it; its words are not yours to look at. It holds no pointer:
/// copy it with memcpy, keep it where you like, forget it when you like.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct millpond_peer {
    /// Opaque.
    pub w: [u64; 12],
}

/// What goes with one confirmable message from its first copy to its end. Keep it beside the message.
/// millpond_on_start makes it.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct millpond_exchange {
    /// Opaque.
    pub w: [u64; 4],
}

/// What a call may know.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct millpond_cx {
    /// The time in microseconds since an origin of yours; never goes back.
    pub now_us: u64,
    /// 32 random bits, fresh for each call.
    pub chance: u32,
    /// Exchanges open with this peer, the one the call is about included.
    pub open: u16,
    /// Messages held back for this peer.
    pub waiting: u16,
}

/// How long to wait, and what then.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct millpond_wait {
    /// How long, in microseconds.
    pub span_us: u32,
    /// A MILLPOND_THEN_.
    pub then: u8,
    /// A MILLPOND_REASON_: why so long, for traces.
    pub reason: u8,
    /// Zero.
    pub reserved: u16,
}

/// What follows when a wait runs out.
#[derive(Clone, Copy, Debug)]
#[repr(u8)]
pub enum millpond_then {
    /// A retransmission leaves, if your limit allows one.
    MILLPOND_THEN_RETRANSMIT = 0,
    /// The exchange ends without an answer.
    MILLPOND_THEN_ABANDON = 1,
}

/// Why a wait is as long as it is.
#[derive(Clone, Copy, Debug)]
#[repr(u8)]
pub enum millpond_reason {
    /// First copy, timed by the estimate or the default.
    MILLPOND_REASON_INITIAL = 0,
    /// A later copy.
    MILLPOND_REASON_BACKED_OFF = 1,
    /// Timed by a separate, slow estimate.
    MILLPOND_REASON_SLOW = 2,
    /// First copy, timed by a wait kept from an earlier exchange.
    MILLPOND_REASON_CARRIED = 3,
    /// First copy to a peer that was never measured.
    MILLPOND_REASON_BLIND = 4,
    /// One that this header does not know yet.
    MILLPOND_REASON_OTHER = 255,
}

/// What an answer says about the path. Set all of it to zero, then what you know.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct millpond_sample {
    /// Microseconds since the first copy left.
    pub since_first_us: u32,
    /// Microseconds since the last copy left.
    pub since_last_us: u32,
    /// Microseconds since the copy that it names (MILLPOND_NAMES_COPY).
    pub since_named_us: u32,
    /// Retransmissions.
    pub retransmissions: u8,
    /// A MILLPOND_KIND_.
    pub kind: u8,
    /// A MILLPOND_NAMES_.
    pub names: u8,
    /// The number of that copy, 0 being the first (MILLPOND_NAMES_COPY).
    pub named: u8,
    /// Bytes of one copy of the message; 0 if you do not say.
    pub len: u16,
    /// Bytes of the answer; 0 if you do not say.
    pub reply_len: u16,
}

/// What kind of message the answer is.
#[derive(Clone, Copy, Debug)]
#[repr(u8)]
pub enum millpond_kind {
    /// An empty acknowledgement.
    MILLPOND_KIND_EMPTY_ACK = 0,
    /// A response inside the acknowledgement.
    MILLPOND_KIND_PIGGYBACKED = 1,
    /// A separate response, before or instead of the acknowledgement.
    MILLPOND_KIND_SEPARATE = 2,
}

/// Which copy the answer names.
#[derive(Clone, Copy, Debug)]
#[repr(u8)]
pub enum millpond_names {
    /// None.
    MILLPOND_NAMES_NOTHING = 0,
    /// The copy whose number is given.
    MILLPOND_NAMES_COPY = 1,
    /// One after the first, not said which.
    MILLPOND_NAMES_FURTHER = 2,
}

/// What became of a message that nobody acknowledges. Set all of it to zero, then what you know.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct millpond_feedback {
    /// Microseconds since it left.
    pub since_us: u32,
    /// Bytes of it.
    pub len: u16,
    /// Bytes of the answer (MILLPOND_FATE_ANSWERED).
    pub reply_len: u16,
    /// A MILLPOND_MESSAGE_: what it was.
    pub message: u8,
    /// A MILLPOND_FATE_.
    pub fate: u8,
    /// Zero.
    pub reserved: u16,
    /// Of a request: how many plain requests had left to this peer before it, wrapping.
    pub number: u32,
}

/// What a message was that nobody acknowledges.
#[derive(Clone, Copy, Debug)]
#[repr(u8)]
pub enum millpond_message {
    /// A request that awaits an answer.
    MILLPOND_MESSAGE_REQUEST = 0,
    /// A response beyond the first to its request: a notification.
    MILLPOND_MESSAGE_FURTHER = 1,
    /// A block of a body in bursts (RFC 9177).
    MILLPOND_MESSAGE_BLOCK = 2,
}

/// What became of it.
#[derive(Clone, Copy, Debug)]
#[repr(u8)]
pub enum millpond_fate {
    /// It drew an answer, which came now.
    MILLPOND_FATE_ANSWERED = 0,
    /// It arrived, as the answer to another message says.
    MILLPOND_FATE_ARRIVED = 1,
    /// It is lost.
    MILLPOND_FATE_LOST = 2,
}

/// Why an exchange ended without an answer.
#[derive(Clone, Copy, Debug)]
#[repr(u8)]
pub enum millpond_end {
    /// The wait after the last copy ran out.
    MILLPOND_END_GAVE_UP = 0,
    /// The peer sent a Reset.
    MILLPOND_END_RESET = 1,
    /// Nobody wants the answer any more.
    MILLPOND_END_CANCELLED = 2,
}

/// Whether a message opens an exchange.
#[derive(Clone, Copy, Debug)]
#[repr(u8)]
pub enum millpond_class {
    /// It does: the peer acknowledges it.
    MILLPOND_CLASS_CONFIRMABLE = 0,
    /// It does not: nobody acknowledges it.
    MILLPOND_CLASS_PLAIN = 1,
}

/// What millpond_admit answers.
#[derive(Clone, Copy, Debug)]
#[repr(i32)]
pub enum millpond_admission {
    /// The message may leave.
    MILLPOND_ADMIT_NOW = 0,
    /// Nothing leaves before *at_us; ask again then.
    MILLPOND_ADMIT_AT = 1,
    /// Ask again when an exchange with this peer ends.
    MILLPOND_ADMIT_WHEN_ONE_ENDS = 2,
}

/// How the algorithm wants the copies of a message to be distinguished: the low byte of what millpond_wishes answers.
#[derive(Clone, Copy, Debug)]
#[repr(u8)]
pub enum millpond_naming {
    /// Not at all.
    MILLPOND_NAMING_NONE = 0,
    /// By a number in the token.
    MILLPOND_NAMING_TOKEN = 1,
    /// By a number in an option.
    MILLPOND_NAMING_COUNT = 2,
    /// By one bit in an option: the first, or a further one.
    MILLPOND_NAMING_FLAG = 3,
    /// By the time at which each left.
    MILLPOND_NAMING_TIMESTAMP = 4,
}

/// Numbers for traces and reports, never for decisions. Those that a controller does not keep are zero.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct millpond_numbers {
    /// A bit for each number that is kept, the lowest for rto_us.
    pub kept: u32,
    /// Timeout of the next exchange, before limits and dithering.
    pub rto_us: u32,
    /// Smoothed round-trip time.
    pub srtt_us: u32,
    /// Its variation.
    pub rttvar_us: u32,
    /// Smoothed round-trip time of exchanges with retransmissions.
    pub weak_srtt_us: u32,
    /// Its variation.
    pub weak_rttvar_us: u32,
    /// Backed-off wait kept for the next exchange.
    pub carried_us: u32,
}

/// What a server that follows millpond_calm_ knows of one peer.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct millpond_calm_peer {
    /// Opaque.
    pub w: [u64; 4],
}

/// What it knows of a path that peers share, such as those of one network.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct millpond_calm_path {
    /// Opaque.
    pub w: [u64; 9],
}

/// What millpond_calm_asked_again answers. Only the first one means silence.
#[derive(Clone, Copy, Debug)]
#[repr(i32)]
pub enum millpond_again {
    /// Stay silent: an answer is on its way.
    MILLPOND_AGAIN_WITHHOLD = 0,
    /// Answer: nothing is known of the path.
    MILLPOND_AGAIN_UNKNOWN = 1,
    /// Answer: the last answer is likely to be lost.
    MILLPOND_AGAIN_DUE = 2,
    /// Answer: a message that left after the last answer was rejected.
    MILLPOND_AGAIN_LOST = 3,
    /// Answer: every third copy of a request is.
    MILLPOND_AGAIN_THIRD = 4,
}

/// What a call answers when it refuses. It has changed nothing then (but see millpond_peer_set).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum millpond_error {
    /// A pointer is null.
    MILLPOND_E_NULL = -1,
    /// A pointer is not aligned as its type must be.
    MILLPOND_E_ALIGNMENT = -2,
    /// Header and library do not belong together.
    MILLPOND_E_HEADER = -3,
    /// No such preset, or its algorithm is not in the library.
    MILLPOND_E_UNKNOWN_PRESET = -4,
    /// The controller of this peer has no such setting.
    MILLPOND_E_UNKNOWN_SETTING = -5,
    /// The value lies outside the range of the setting.
    MILLPOND_E_OUT_OF_RANGE = -6,
    /// Two settings of the peer contradict each other.
    MILLPOND_E_CONFLICT = -7,
    /// An argument is none of its constants.
    MILLPOND_E_ARGUMENT = -8,
    /// The peer was never initialised, the exchange never started.
    MILLPOND_E_BLANK = -9,
    /// The record is of another kind, build or algorithm.
    MILLPOND_E_FOREIGN = -10,
    /// The record was written to by something else.
    MILLPOND_E_DAMAGED = -11,
    /// The exchange has ended already.
    MILLPOND_E_ENDED = -12,
}
