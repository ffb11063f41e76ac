//! What the calls of a controller take and give, as Python objects.

use millpond_control::{self as control, End, Evidence, Instant, Naming, Reason, ReplyKind, Span, Then};
use pyo3::PyTraverseError;
use pyo3::exceptions::PyValueError;
use pyo3::gc::PyVisit;
use pyo3::prelude::*;

use super::numbers::{length, length_named, optional_length, shown, whole, word, word_for};

const REASONS: &[(&str, Reason)] = &[
    ("initial", Reason::Initial),
    ("backed-off", Reason::BackedOff),
    ("slow", Reason::Slow),
    ("carried", Reason::Carried),
    ("blind", Reason::Blind),
];
const THENS: &[(&str, Then)] = &[("retransmit", Then::Retransmit), ("abandon", Then::Abandon)];
const KINDS: &[(&str, ReplyKind)] =
    &[("empty-ack", ReplyKind::EmptyAck), ("piggybacked", ReplyKind::Piggybacked), ("separate", ReplyKind::Separate)];
const NAMINGS: &[(&str, Naming)] = &[
    ("none", Naming::None),
    ("token", Naming::Token),
    ("count", Naming::Count),
    ("flag", Naming::Flag),
    ("timestamp", Naming::Timestamp),
];
pub(super) const ENDS: &[(&str, End)] =
    &[("gave-up", End::GaveUp), ("reset", End::Reset), ("cancelled", End::Cancelled)];
const FURTHER: &str = "further";

/// What a call may know: the time in microseconds, a word of chance, exchanges open to the peer (the one the call is
/// about included) and messages held back for it.
#[pyclass(frozen, module = "millpond._engine")]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cx(pub(super) control::Cx);

#[pymethods]
impl Cx {
    #[new]
    #[pyo3(signature = (now_us, chance = None, open = None, waiting = None))]
    fn new(
        now_us: &Bound<'_, PyAny>,
        chance: Option<&Bound<'_, PyAny>>,
        open: Option<&Bound<'_, PyAny>>,
        waiting: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        Ok(Self(control::Cx {
            now: Instant::from_micros(whole("now_us", now_us)?),
            chance: control::Chance::from_word(chance.map_or(Ok(0), |word| whole("chance", word))?),
            open: open.map_or(Ok(1), |number| whole("open", number))?,
            waiting: waiting.map_or(Ok(0), |number| whole("waiting", number))?,
        }))
    }

    /// The time of the call.
    #[getter]
    fn now_us(&self) -> u64 {
        self.0.now.as_micros()
    }

    /// One uniform 32-bit word that belongs to this call alone.
    #[getter]
    fn chance(&self) -> u32 {
        self.0.chance.word()
    }

    /// Exchanges outstanding to this peer.
    #[getter]
    fn open(&self) -> u16 {
        self.0.open
    }

    /// Messages held back for this peer.
    #[getter]
    fn waiting(&self) -> u16 {
        self.0.waiting
    }

    /// A length that the word of chance spreads evenly over `low_us` to `high_us`, both included.
    fn between(&self, low_us: &Bound<'_, PyAny>, high_us: &Bound<'_, PyAny>) -> PyResult<u32> {
        let (low, high) = (length_named("low_us", low_us)?, length_named("high_us", high_us)?);
        if low > high {
            let told = format!("low_us: {} is more than high_us: {}", low.as_micros(), high.as_micros());
            return Err(PyValueError::new_err(told));
        }
        Ok(self.0.chance.between(low, high).as_micros())
    }

    fn __repr__(&self) -> String {
        let (now, chance, open, waiting) = (self.now_us(), self.chance(), self.open(), self.waiting());
        format!("Cx({now}, chance={chance}, open={open}, waiting={waiting})")
    }
}

/// The record of one exchange. `memory` is for custom controllers: anything, None at first.
#[pyclass(module = "millpond._engine")]
#[derive(Debug, Default)]
pub(crate) struct Exchange {
    pub(super) record: control::Exchange,
    memory: Option<Py<PyAny>>,
}

impl Exchange {
    /// The record of an exchange as the endpoint keeps it.
    pub(super) fn of(record: control::Exchange) -> Self {
        Self { record, memory: None }
    }
}

#[pymethods]
impl Exchange {
    #[new]
    fn new() -> Self {
        Self::default()
    }

    /// When the first copy left.
    #[getter]
    fn started_us(&self) -> u64 {
        self.record.started().as_micros()
    }

    /// The wait in force.
    #[getter]
    fn current_us(&self) -> u32 {
        self.record.current().as_micros()
    }

    /// The first wait.
    #[getter]
    fn first_wait_us(&self) -> u32 {
        self.record.first_wait().as_micros()
    }

    /// Retransmissions.
    #[getter]
    fn retransmissions(&self) -> u8 {
        self.record.retransmissions()
    }

    /// Whatever a custom controller keeps of this exchange.
    #[getter]
    fn memory(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        self.memory.as_ref().map(|memory| memory.clone_ref(py))
    }

    #[setter]
    fn set_memory(&mut self, memory: Option<Py<PyAny>>) {
        self.memory = memory;
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.memory)
    }

    fn __clear__(&mut self) {
        self.memory = None;
    }

    fn __repr__(&self) -> String {
        format!(
            "<Exchange started at {} us, wait {} us, {} retransmissions>",
            self.started_us(),
            self.current_us(),
            self.retransmissions()
        )
    }
}

/// How an exchange was answered. `kind` is `empty-ack`, `piggybacked` or `separate`; `named` the number of the copy that the
/// reply names (0: the first), `further` for one after the first, or None.
#[pyclass(frozen, module = "millpond._engine")]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sample(pub(super) control::Sample);

#[pymethods]
impl Sample {
    #[new]
    #[pyo3(signature = (kind, since_first_us, since_last_us, retransmissions, named = None, since_named_us = None))]
    fn new(
        kind: &str,
        since_first_us: &Bound<'_, PyAny>,
        since_last_us: &Bound<'_, PyAny>,
        retransmissions: &Bound<'_, PyAny>,
        named: Option<&Bound<'_, PyAny>>,
        since_named_us: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let since_first = length_named("since_first_us", since_first_us)?;
        let since_last = length_named("since_last_us", since_last_us)?;
        let retransmissions: u8 = whole("retransmissions", retransmissions)?;
        let since_named = optional_length("since_named_us", since_named_us)?;
        let refuse = |told: String| Err(PyValueError::new_err(told));
        if since_last > since_first {
            return refuse(
                "since_last_us: the last copy cannot be older than the first: not more than since_first_us".to_owned(),
            );
        }
        let sample = control::Sample::new(word("kind", kind, KINDS)?, since_first, since_last, retransmissions);
        let Some(named) = named else {
            return match since_named {
                None => Ok(Self(sample)),
                Some(_) => refuse("since_named_us: the reply names no copy: give named too".to_owned()),
            };
        };
        if let Ok(text) = named.extract::<&str>() {
            if text != FURTHER {
                return refuse(format!("named: '{text}' is neither the number of a copy nor '{FURTHER}'"));
            }
            if retransmissions == 0 {
                return refuse(format!("named: '{FURTHER}' makes no sense: nothing was retransmitted"));
            }
            return Ok(Self(sample.naming_a_further_copy()));
        }
        let copy: u8 = whole("named", named)?;
        if copy > retransmissions {
            return refuse(format!("named: copy {copy} was never sent: 0 to {retransmissions}"));
        }
        let Some(since_named) = since_named else {
            return refuse(format!("since_named_us: say how long ago copy {copy} left"));
        };
        Ok(Self(sample.naming(copy, since_named)))
    }

    /// The same, but a queue marked the answer in place of dropping it.
    fn marked(&self) -> Self {
        Self(self.0.marked())
    }

    /// Whether a queue marked the answer in place of dropping it.
    #[getter]
    fn is_marked(&self) -> bool {
        self.0.is_marked()
    }

    /// What kind of message the reply was.
    #[getter]
    fn kind(&self) -> &'static str {
        word_for(self.0.kind(), KINDS)
    }

    /// Time from the first copy to the reply.
    #[getter]
    fn since_first_us(&self) -> u32 {
        self.0.since_first().as_micros()
    }

    /// Time from the last copy to the reply.
    #[getter]
    fn since_last_us(&self) -> u32 {
        self.0.since_last().as_micros()
    }

    /// Retransmissions before the reply came.
    #[getter]
    fn retransmissions(&self) -> u8 {
        self.0.retransmissions()
    }

    /// The copy that the reply names: its number, `further`, or None.
    #[getter]
    fn named<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        Ok(match self.0.named() {
            control::Named::Nothing => None,
            control::Named::Copy(copy) => Some(copy.into_pyobject(py)?.into_any()),
            control::Named::Further => Some(FURTHER.into_pyobject(py)?.into_any()),
        })
    }

    /// Time from the copy that the reply names; None if it names none, or is a separate response.
    #[getter]
    fn since_named_us(&self) -> Option<u32> {
        self.0.named_rtt().map(|rtt| rtt.span().as_micros())
    }

    /// How far the sample may be trusted: `exact`, `echoed`, `ambiguous` or `none`.
    #[getter]
    fn grade(&self) -> &'static str {
        match self.0.evidence() {
            Evidence::Exact(_) => "exact",
            Evidence::Echoed { .. } => "echoed",
            Evidence::Ambiguous { .. } => "ambiguous",
            Evidence::None => "none",
        }
    }

    /// The round-trip time, if it is certain.
    #[getter]
    fn exact_us(&self) -> Option<u32> {
        self.0.exact().map(|rtt| rtt.span().as_micros())
    }

    fn __repr__(&self) -> String {
        format!(
            "<Sample {}, {}: {} us after the first copy, {} us after the last, {} retransmissions>",
            self.kind(),
            self.grade(),
            self.since_first_us(),
            self.since_last_us(),
            self.retransmissions()
        )
    }
}

/// How long to wait, why, and what then. `reason` is `initial`, `backed-off`, `slow`, `carried` or `blind`; `then` is
/// `retransmit` or `abandon`. A fraction of a microsecond is rounded to the nearest.
#[pyclass(frozen, eq, hash, module = "millpond._engine")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Wait(pub(super) control::Wait);

#[pymethods]
impl Wait {
    #[new]
    #[pyo3(signature = (us, reason = "initial", then = "retransmit"))]
    fn new(us: &Bound<'_, PyAny>, reason: &str, then: &str) -> PyResult<Self> {
        let span = length(us).map_err(|why| PyValueError::new_err(format!("us: {} is {why}", shown(us))))?;
        let (reason, then) = (word("reason", reason, REASONS)?, word("then", then, THENS)?);
        Ok(Self(control::Wait { span, then, reason }))
    }

    /// How long.
    #[getter]
    fn us(&self) -> u32 {
        self.0.span.as_micros()
    }

    /// Why this long.
    #[getter]
    fn reason(&self) -> &'static str {
        self.0.reason.name()
    }

    /// What follows.
    #[getter]
    fn then(&self) -> &'static str {
        word_for(self.0.then, THENS)
    }

    fn __repr__(&self) -> String {
        format!("Wait({}, '{}', '{}')", self.us(), self.reason(), self.then())
    }
}

/// Numbers for traces and reports, in microseconds. What a controller does not keep is None.
#[pyclass(frozen, eq, module = "millpond._engine")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct View(pub(super) control::View);

#[pymethods]
impl View {
    #[new]
    #[pyo3(signature = (
        *, rto_us = None, srtt_us = None, rttvar_us = None, weak_srtt_us = None, weak_rttvar_us = None, carried_us = None
    ))]
    fn new(
        rto_us: Option<&Bound<'_, PyAny>>,
        srtt_us: Option<&Bound<'_, PyAny>>,
        rttvar_us: Option<&Bound<'_, PyAny>>,
        weak_srtt_us: Option<&Bound<'_, PyAny>>,
        weak_rttvar_us: Option<&Bound<'_, PyAny>>,
        carried_us: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        Ok(Self(control::View {
            rto: optional_length("rto_us", rto_us)?,
            srtt: optional_length("srtt_us", srtt_us)?,
            rttvar: optional_length("rttvar_us", rttvar_us)?,
            weak_srtt: optional_length("weak_srtt_us", weak_srtt_us)?,
            weak_rttvar: optional_length("weak_rttvar_us", weak_rttvar_us)?,
            carried: optional_length("carried_us", carried_us)?,
        }))
    }

    /// The timeout that the next exchange starts from, before limit and dither.
    #[getter]
    fn rto_us(&self) -> Option<u32> {
        self.0.rto.map(Span::as_micros)
    }

    /// Smoothed round-trip time of the (strong) estimator.
    #[getter]
    fn srtt_us(&self) -> Option<u32> {
        self.0.srtt.map(Span::as_micros)
    }

    /// Round-trip time variation of the (strong) estimator.
    #[getter]
    fn rttvar_us(&self) -> Option<u32> {
        self.0.rttvar.map(Span::as_micros)
    }

    /// Smoothed round-trip time of the weak estimator.
    #[getter]
    fn weak_srtt_us(&self) -> Option<u32> {
        self.0.weak_srtt.map(Span::as_micros)
    }

    /// Round-trip time variation of the weak estimator.
    #[getter]
    fn weak_rttvar_us(&self) -> Option<u32> {
        self.0.weak_rttvar.map(Span::as_micros)
    }

    /// A backed-off wait kept for the next exchange.
    #[getter]
    fn carried_us(&self) -> Option<u32> {
        self.0.carried.map(Span::as_micros)
    }

    fn __repr__(&self) -> String {
        let kept = [
            ("rto_us", self.rto_us()),
            ("srtt_us", self.srtt_us()),
            ("rttvar_us", self.rttvar_us()),
            ("weak_srtt_us", self.weak_srtt_us()),
            ("weak_rttvar_us", self.weak_rttvar_us()),
            ("carried_us", self.carried_us()),
        ];
        let told: Vec<_> = kept.iter().filter_map(|(name, us)| us.map(|us| format!("{name}={us}"))).collect();
        format!("View({})", told.join(", "))
    }
}

/// What an algorithm asks of the endpoint. `naming` is `none`, `token`, `count`, `flag` or `timestamp`; among
/// `confirmable_every` consecutive unacknowledged messages one is to be made confirmable (0: no wish).
#[pyclass(frozen, eq, hash, module = "millpond._engine")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Wishes(pub(super) control::Wishes);

#[pymethods]
impl Wishes {
    #[new]
    #[pyo3(signature = (naming = "none", confirmable_every = None, nstart = None, governs_requests = false, last_wait_us = None, ecn = false))]
    fn new(
        naming: &str,
        confirmable_every: Option<&Bound<'_, PyAny>>,
        nstart: Option<&Bound<'_, PyAny>>,
        governs_requests: bool,
        last_wait_us: Option<&Bound<'_, PyAny>>,
        ecn: bool,
    ) -> PyResult<Self> {
        let every = confirmable_every.map_or(Ok(0), |number| whole("confirmable_every", number))?;
        let nstart = nstart.map_or(Ok(0), |number| whole("nstart", number))?;
        let last_wait = last_wait_us.map_or(Ok(0), |number| whole("last_wait_us", number)).map(Span::from_micros)?;
        let naming = word("naming", naming, NAMINGS)?;
        Ok(Self(control::Wishes { naming, confirmable_every: every, nstart, governs_requests, last_wait, ecn }))
    }

    /// How copies of a request are to be distinguished.
    #[getter]
    fn naming(&self) -> &'static str {
        word_for(self.0.naming, NAMINGS)
    }

    /// Among this many consecutive unacknowledged messages, make one confirmable; zero: no wish.
    #[getter]
    fn confirmable_every(&self) -> u8 {
        self.0.confirmable_every
    }

    /// Exchanges that may be open at once; zero: no wish.
    #[getter]
    fn nstart(&self) -> u16 {
        self.0.nstart
    }

    /// Whether it governs non-confirmable requests, and no other such messages, by their answers.
    #[getter]
    fn governs_requests(&self) -> bool {
        self.0.governs_requests
    }

    /// How long an answer to the last copy is awaited at least, as long as nothing else is to leave, in µs; zero: no wish.
    #[getter]
    fn last_wait_us(&self) -> u32 {
        self.0.last_wait.as_micros()
    }

    /// Whether it reacts to answers that a queue marked, so that they may be marked in place of being dropped.
    #[getter]
    fn ecn(&self) -> bool {
        self.0.ecn
    }

    fn __repr__(&self) -> String {
        let mut told = vec![format!("'{}'", self.naming()), self.confirmable_every().to_string()];
        told.extend(Some(self.nstart()).filter(|nstart| *nstart > 0).map(|nstart| nstart.to_string()));
        told.extend(self.governs_requests().then(|| "governs_requests=True".to_owned()));
        told.extend(Some(self.last_wait_us()).filter(|us| *us > 0).map(|us| format!("last_wait_us={us}")));
        told.extend(self.ecn().then(|| "ecn=True".to_owned()));
        format!("Wishes({})", told.join(", "))
    }
}
