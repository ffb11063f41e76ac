//! A controller as a Python object: a built-in one, or one of the user's own behind the same calls.

use std::sync::{Arc, OnceLock};

use millpond_control::{
    Admit, AnyController, Checked, Controller as _, PeerController, Preset, Setting, SettingError, SettingValue, Span,
    Violation, least_wait::not_below,
};
use millpond_sim::scenario::{BuiltChoice, Settings, Value};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyFloat, PyInt, PyMapping, PyString};

use super::class::OwnMaker;
use super::failure::Failure;
use super::feedback::Feedback;
use super::numbers::{length_named, shown, whole, word};
use super::own::{CLASSES, NOW, WHEN_ONE_ENDS};
use super::values::{Cx, ENDS, Exchange, Sample, View, Wait, Wishes};

/// What programs set beside the preset's own, if that has none: no wait is shorter.
const LEAST_WAIT: Setting = Setting::LeastWait;

/// A setting: its name, the value in force, what it takes.
type SettingRow = (&'static str, String, String);
/// A preset: name, source, number, summary, readings, bytes of state, settings.
/// Name, source, number, summary, readings, bytes of state, settings, label, family.
type PresetRow = (
    &'static str,
    &'static str,
    u16,
    &'static str,
    Vec<&'static str>,
    usize,
    Vec<SettingRow>,
    &'static str,
    &'static str,
);

/// The controller of one peer. It is watched: a call that breaks the contract raises ValueError, and if the controller is a
/// built-in one, changes nothing.
#[pyclass(module = "millpond._engine")]
#[derive(Debug)]
pub(crate) struct Controller {
    kind: Kind,
    watched: Checked<PeerController>,
}

#[derive(Clone, Debug)]
enum Kind {
    Built { preset: Preset, settings: Vec<SettingRow>, state_bytes: usize },
    Own { name: String, failed: Arc<OnceLock<Failure>> },
}

#[pymethods]
impl Controller {
    /// A built-in controller. `settings` are those of a scenario, `{"max-wait": "60 s"}`, and `least-wait`: no wait is
    /// shorter.
    #[new]
    #[pyo3(signature = (preset, settings = None))]
    fn new(preset: &str, settings: Option<&Bound<'_, PyMapping>>) -> PyResult<Self> {
        if preset.contains(':') {
            let told = format!("`{preset}` is not built in: Controller.own takes a class of your own");
            return Err(PyValueError::new_err(told));
        }
        let mut settings = settings.map_or_else(|| Ok(Settings::new()), read_settings)?;
        let has_one = Preset::from_name(preset).is_some_and(|preset| preset.build().get(LEAST_WAIT).is_some());
        let least = if has_one { None } else { settings.remove(LEAST_WAIT.name()) };
        let least = least.map(read_least_wait).transpose().map_err(PyValueError::new_err)?;
        let choice = BuiltChoice::named(preset, settings).map_err(PyValueError::new_err)?;
        let controller = choice.build();
        let mut settings = setting_rows(&controller);
        settings.extend(least.map(|least| (LEAST_WAIT.name(), least.to_string(), LEAST_WAIT.kind().to_string())));
        let kind = Kind::Built { preset: choice.preset(), settings, state_bytes: controller.state_bytes() };
        Ok(Self { kind, watched: Checked::new(least.map_or(controller.into(), |least| not_below(controller, least))) })
    }

    /// A controller of the user's own: `make` is its class or a factory, called without arguments.
    #[staticmethod]
    fn own(make: Bound<'_, PyAny>, name: &str) -> PyResult<Self> {
        let failed = Arc::default();
        let watched = Checked::new(OwnMaker::read(name, make)?.controller(&failed));
        Ok(Self { kind: Kind::Own { name: name.to_owned(), failed }, watched })
    }

    /// The preset's name, or that of a custom controller.
    #[getter]
    fn name(&self) -> &str {
        match &self.kind {
            Kind::Built { preset, .. } => preset.name(),
            Kind::Own { name, .. } => name,
        }
    }

    /// Where it is described; empty for custom controllers.
    #[getter]
    fn source(&self) -> &'static str {
        self.preset().map_or("", Preset::source)
    }

    /// What it does, in one line; empty for custom controllers.
    #[getter]
    fn summary(&self) -> &'static str {
        self.preset().map_or("", Preset::summary)
    }

    /// How its source was read, by number.
    #[getter]
    fn readings(&self) -> Vec<&'static str> {
        self.preset().map_or_else(Vec::new, |preset| preset.readings().to_vec())
    }

    /// Bytes that it keeps for each peer, its parameters included; None for custom controllers.
    #[getter]
    fn state_bytes(&self) -> Option<usize> {
        match &self.kind {
            Kind::Built { state_bytes, .. } => Some(*state_bytes),
            Kind::Own { .. } => None,
        }
    }

    /// The preset's number; None for custom controllers.
    #[getter]
    fn id(&self) -> Option<u16> {
        self.preset().map(Preset::id)
    }

    /// Its settings: name, value in force, what is legal.
    #[getter]
    fn settings(&self) -> Vec<SettingRow> {
        match &self.kind {
            Kind::Built { settings, .. } => settings.clone(),
            Kind::Own { .. } => Vec::new(),
        }
    }

    /// May a message of this kind (`confirmable` or `plain`) and length leave now? `now`, `when-one-ends`, or a point in time.
    fn admit<'py>(
        &self,
        py: Python<'py>,
        kind: &str,
        length: &Bound<'py, PyAny>,
        cx: &Cx,
    ) -> PyResult<Bound<'py, PyAny>> {
        let admit = self.watched.admit(word("kind", kind, CLASSES)?, whole("length", length)?, cx.0);
        self.own_failure(py)?;
        Ok(match admit {
            Admit::Now => NOW.into_pyobject(py)?.into_any(),
            Admit::WhenOneEnds => WHEN_ONE_ENDS.into_pyobject(py)?.into_any(),
            Admit::At(at) => at.as_micros().into_pyobject(py)?.into_any(),
        })
    }

    /// The first copy of a confirmable message leaves. How long until the second?
    fn on_start(
        &mut self,
        py: Python<'_>,
        mut exchange: PyRefMut<'_, Exchange>,
        length: &Bound<'_, PyAny>,
        cx: &Cx,
    ) -> PyResult<Wait> {
        let mut record = exchange.record;
        let length = whole("length", length)?;
        let wait = self.call(py, "on_start", |watched| watched.on_start(&mut record, length, cx.0))?;
        exchange.record = record;
        Ok(Wait(wait))
    }

    /// The wait ran out and a retransmission leaves. How long this time?
    fn on_timeout(&mut self, py: Python<'_>, mut exchange: PyRefMut<'_, Exchange>, cx: &Cx) -> PyResult<Wait> {
        let mut record = exchange.record;
        let wait = self.call(py, "on_timeout", |watched| watched.on_timeout(&mut record, cx.0))?;
        exchange.record = record;
        Ok(Wait(wait))
    }

    /// The exchange ended with an answer.
    fn on_reply(&mut self, py: Python<'_>, exchange: PyRef<'_, Exchange>, sample: &Sample, cx: &Cx) -> PyResult<()> {
        self.call(py, "on_reply", |watched| watched.on_reply(&exchange.record, sample.0, cx.0))
    }

    /// The exchange ended without an answer: `gave-up`, `reset` or `cancelled`.
    fn on_end(&mut self, py: Python<'_>, exchange: PyRef<'_, Exchange>, why: &str, cx: &Cx) -> PyResult<()> {
        let why = word("why", why, ENDS)?;
        self.call(py, "on_end", |watched| watched.on_end(&exchange.record, why, cx.0))
    }

    /// A message left that nobody will acknowledge.
    fn on_plain_send(&mut self, py: Python<'_>, length: &Bound<'_, PyAny>, cx: &Cx) -> PyResult<()> {
        let length = whole("length", length)?;
        self.call(py, "on_plain_send", |watched| watched.on_plain_send(length, cx.0))
    }

    /// It became known what happened to a message that nobody acknowledges.
    fn on_feedback(&mut self, py: Python<'_>, feedback: &Feedback, cx: &Cx) -> PyResult<()> {
        self.call(py, "on_feedback", |watched| watched.on_feedback(feedback.0, cx.0))
    }

    /// What the algorithm asks of the endpoint.
    fn wishes(&self) -> Wishes {
        Wishes(self.watched.wishes())
    }

    /// Numbers for traces and reports.
    fn view(&self, py: Python<'_>) -> PyResult<View> {
        let view = self.watched.view();
        self.own_failure(py)?;
        Ok(View(view))
    }

    /// The round trip of the path without a queue, as far as it measured it itself: worth keeping over a restart. None before
    /// the first sample, and from one that keeps none.
    fn base_rtt_us(&self, py: Python<'_>) -> PyResult<Option<u32>> {
        let base_rtt = self.watched.base_rtt();
        self.own_failure(py)?;
        Ok(base_rtt.map(Span::as_micros))
    }

    /// A base round trip from an earlier life, which may be old or wrong. 0, and what comes after the first certain sample,
    /// changes nothing.
    fn recall(&mut self, py: Python<'_>, base_rtt_us: &Bound<'_, PyAny>) -> PyResult<()> {
        let base_rtt = length_named("base_rtt_us", base_rtt_us)?;
        self.call(py, "recall", |watched| watched.recall(base_rtt))
    }

    /// The shortest wait that it can ever arm.
    fn shortest_wait_us(&self) -> u32 {
        self.watched.shortest_wait().as_micros()
    }

    /// The longest wait after this copy (0 is the first), given the longest after the copy before.
    fn longest_wait_us(&self, copy: &Bound<'_, PyAny>, previous_us: &Bound<'_, PyAny>) -> PyResult<u32> {
        let previous = length_named("previous_us", previous_us)?;
        Ok(self.watched.longest_wait(whole("copy", copy)?, previous).as_micros())
    }

    /// A controller that knows what this one knows; from now on each goes its own way. Exchanges under way can go on with
    /// either, each with a record of its own.
    fn copy(&self, py: Python<'_>) -> PyResult<Self> {
        let twin = Self { kind: self.kind.clone(), watched: self.watched.clone() };
        self.own_failure(py)?;
        Ok(twin)
    }

    fn __repr__(&self) -> String {
        format!("<Controller {}>", self.name())
    }
}

impl Controller {
    fn preset(&self) -> Option<Preset> {
        match &self.kind {
            Kind::Built { preset, .. } => Some(*preset),
            Kind::Own { .. } => None,
        }
    }

    /// Makes a call and raises what was wrong with it.
    fn call<T>(
        &mut self,
        py: Python<'_>,
        name: &str,
        call: impl FnOnce(&mut Checked<PeerController>) -> T,
    ) -> PyResult<T> {
        // A custom controller cannot be set back: a copy of it may cost anything.
        let before = self.preset().map(|_| self.watched.clone());
        let answer = call(&mut self.watched);
        let violation = self.watched.violation();
        if let (Some(_), Some(before)) = (violation, before) {
            self.watched = before;
        }
        // First what the caller did wrong: a custom controller may have failed because of it.
        if let Some(violation) = violation {
            return Err(PyValueError::new_err(format!("{name}: {violation}{}", fix(violation))));
        }
        self.own_failure(py)?;
        Ok(answer)
    }

    /// What went wrong inside a custom controller, now or before.
    fn own_failure(&self, py: Python<'_>) -> PyResult<()> {
        match &self.kind {
            Kind::Own { failed, .. } => failed.get().map_or(Ok(()), |failure| Err(failure.raised(py))),
            Kind::Built { .. } => Ok(()),
        }
    }
}

/// How the caller keeps the contract, behind what was wrong.
fn fix(violation: Violation) -> &'static str {
    match violation {
        Violation::NoneOpen => ": cx.open counts the exchange that the call is about",
        Violation::RecordInUse => ": give every exchange an Exchange() of its own",
        Violation::NeverStarted => ": call on_start with it first",
        Violation::EndedTwice => ": call on_reply or on_end once for each",
        _ => "",
    }
}

/// Every preset as a row.
#[pyfunction]
pub(crate) fn presets() -> Vec<PresetRow> {
    let row = |preset: Preset| {
        let built = preset.build();
        let (name, source, id, summary) = (preset.name(), preset.source(), preset.id(), preset.summary());
        let readings = preset.readings().to_vec();
        let (bytes, settings) = (built.state_bytes(), setting_rows(&built));
        (name, source, id, summary, readings, bytes, settings, preset.label(), preset.family())
    };
    Preset::all().map(row).collect()
}

fn setting_rows(controller: &AnyController) -> Vec<SettingRow> {
    let row = |setting: &millpond_control::Setting| {
        let value = controller.get(*setting).map_or_else(String::new, |value| value.to_string());
        (setting.name(), value, setting.kind().to_string())
    };
    controller.settings().iter().map(row).collect()
}

/// The least wait as written.
fn read_least_wait(value: Value) -> Result<Span, String> {
    match value.read(LEAST_WAIT)? {
        SettingValue::Time(wait) if wait.as_micros() <= LEAST_WAIT.range().1 => Ok(wait),
        _ => Err(SettingError::OutOfRange(LEAST_WAIT).to_string()),
    }
}

/// Settings as Python hands them in.
fn read_settings(mapping: &Bound<'_, PyMapping>) -> PyResult<Settings> {
    let mut settings = Settings::new();
    for item in mapping.items()?.iter() {
        let (name, value): (String, Bound<'_, PyAny>) = item.extract()?;
        let told = if let Ok(truth) = value.cast::<PyBool>() {
            Value::Truth(truth.is_true())
        } else if let Ok(text) = value.cast::<PyString>() {
            Value::Text(text.to_string_lossy().into_owned())
        } else if value.is_instance_of::<PyInt>() {
            let out_of_range = |_| PyValueError::new_err(format!("{name}: {} is out of range", shown(&value)));
            Value::Whole(value.extract().map_err(out_of_range)?)
        } else if value.is_instance_of::<PyFloat>() {
            Value::Fraction(value.extract()?)
        } else {
            let told = format!("{name}: {} is neither a number nor a text such as '60 s'", shown(&value));
            return Err(PyTypeError::new_err(told));
        };
        settings.insert(name, told);
    }
    Ok(settings)
}
