//! Controllers from Python modules, written in Python or compiled: tried out once, and handed to runs by name.

use std::sync::{Arc, OnceLock};

use millpond_control::{PeerController, Span, Wishes};
use millpond_plugin::{CAPSULE, Guest};
use millpond_sim::Controllers;
use millpond_sim::scenario::{OwnChoice, Settings, Value};
use pyo3::call::PyCallArgs;
use pyo3::exceptions::PyValueError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict};

use super::failure::{Failure, Fault};
use super::numbers::{length, shown};
use super::own::PythonController;
use super::values;

/// Copies that an exchange can have: their numbers fit a byte.
const COPIES: usize = 1 << u8::BITS;

/// What makes the controllers of a name.
#[derive(Debug)]
pub(crate) enum OwnMaker {
    /// A class written in Python.
    Class(Arc<OwnClass>),
    /// The pattern that a compiled module handed over; Python is not asked again.
    Guest { name: String, pattern: Guest },
}

impl OwnMaker {
    /// Makes one controller for trial. `make` is called without arguments.
    ///
    /// # Errors
    /// ValueError with one line; what was raised is its cause.
    pub(super) fn read(name: &str, make: Bound<'_, PyAny>) -> PyResult<Self> {
        let py = make.py();
        let made = make.call0().map_err(|error| Fault::Raised(error).told(py, name, "its making").raised(py))?;
        let Some(hand_over) = made.getattr_opt(intern!(py, "__millpond__"))? else {
            return OwnClass::read(name, make, made).map(|class| Self::Class(Arc::new(class)));
        };
        let refused = |why: String| PyValueError::new_err(format!("{name}: {why}"));
        let handed =
            hand_over.call0().map_err(|error| Fault::Raised(error).told(py, name, "__millpond__").raised(py))?;
        let capsule = handed.cast::<PyCapsule>().ok().and_then(|capsule| capsule.pointer_checked(Some(CAPSULE)).ok());
        let Some(plugin) = capsule else {
            let told =
                format!("__millpond__ returned {}, not a capsule '{}'", shown(&handed), CAPSULE.to_string_lossy());
            return Err(refused(told));
        };
        #[expect(unsafe_code, reason = "what a compiled module hands over is a pointer")]
        // SAFETY: a capsule of this name holds a plugin, lives as long as `handed`, and modules are never unloaded.
        let pattern = unsafe { Guest::of(plugin.as_ptr().cast()) }.map_err(|error| refused(error.to_string()))?;
        Ok(Self::Guest { name: name.to_owned(), pattern })
    }

    /// A controller for a peer about which nothing is known. It leaves its first failure in `failed`.
    pub(super) fn controller(&self, failed: &Arc<OnceLock<Failure>>) -> PeerController {
        match self {
            Self::Class(class) => PythonController::of(class, failed),
            Self::Guest { name, pattern } => {
                let (name, failed) = (name.clone(), Arc::clone(failed));
                PeerController::own(pattern.telling(Arc::new(move |told| {
                    // Only the first one counts.
                    let _ = failed.set(Failure { told: format!("{name}: {told}"), cause: None });
                })))
            }
        }
    }
}

/// A class of the user's own that makes controllers, and what all of them have in common.
#[derive(Debug)]
pub(crate) struct OwnClass {
    /// The name by which errors call it.
    pub(super) name: String,
    /// Called without arguments for every peer.
    pub(super) make: Py<PyAny>,
    pub(super) shortest: Span,
    /// By number of the copy.
    longest: Vec<Span>,
    pub(super) wishes: Wishes,
    pub(super) defines: Defines,
}

/// Which calls are the class's own; the others are answered without asking Python.
#[derive(Clone, Copy, Debug)]
pub(super) struct Defines {
    pub(super) admit: bool,
    pub(super) on_end: bool,
    pub(super) on_plain_send: bool,
    pub(super) on_feedback: bool,
    pub(super) view: bool,
    pub(super) base_rtt: bool,
    pub(super) recall: bool,
}

impl OwnClass {
    /// Asks one controller, which was made for trial, for all that never changes.
    fn read(name: &str, make: Bound<'_, PyAny>, controller: Bound<'_, PyAny>) -> PyResult<Self> {
        let py = make.py();
        let base = py.import(intern!(py, "millpond.controller"))?.getattr(intern!(py, "Controller"))?;
        if !controller.is_instance(&base)? {
            let what = controller.get_type().name()?;
            return Err(PyValueError::new_err(format!(
                "{name}: makes a {what}, which is no controller: write `class {what}(millpond.Controller)`"
            )));
        }
        let trial = Trial { name, controller };
        let shortest = trial.shortest_wait()?;
        let longest = trial.longest_waits(shortest)?;
        let (wishes, defines) = (trial.wishes()?, trial.defines(&base)?);
        Ok(Self { name: name.to_owned(), make: make.unbind(), shortest, longest, wishes, defines })
    }

    /// The longest wait after this copy.
    pub(super) fn longest(&self, copy: u8) -> Span {
        self.longest.get(usize::from(copy)).copied().unwrap_or(Span::MAX)
    }
}

/// The controller that is asked what holds for all of its class.
struct Trial<'n, 'py> {
    name: &'n str,
    controller: Bound<'py, PyAny>,
}

impl<'py> Trial<'_, 'py> {
    fn refused(&self, call: &str, fault: Fault) -> PyErr {
        let py = self.controller.py();
        fault.told(py, self.name, call).raised(py)
    }

    fn answer(&self, call: &str, args: impl PyCallArgs<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.controller.call_method1(call, args).map_err(|error| self.refused(call, error.into()))
    }

    fn length(&self, call: &str, args: impl PyCallArgs<'py>) -> PyResult<Span> {
        let answer = self.answer(call, args)?;
        length(&answer).map_err(|why| self.refused(call, Fault::Returned(format!("{}, {why}", shown(&answer)))))
    }

    fn shortest_wait(&self) -> PyResult<Span> {
        const CALL: &str = "shortest_wait_us";
        match self.length(CALL, ())? {
            Span::ZERO => Err(self.refused(CALL, Fault::Returned("0: a wait is never zero".to_owned()))),
            span => Ok(span),
        }
    }

    fn longest_waits(&self, shortest: Span) -> PyResult<Vec<Span>> {
        const CALL: &str = "longest_wait_us";
        let mut longest = Vec::with_capacity(COPIES);
        let mut previous = Span::ZERO;
        for copy in 0..COPIES {
            previous = self.length(CALL, (copy, previous.as_micros()))?;
            if previous < shortest {
                let told = format!("{} for copy {copy}, less than shortest_wait_us()", previous.as_micros());
                return Err(self.refused(CALL, Fault::Returned(told)));
            }
            longest.push(previous);
        }
        Ok(longest)
    }

    fn wishes(&self) -> PyResult<Wishes> {
        let answer = self.answer("wishes", ())?;
        match answer.cast::<values::Wishes>() {
            Ok(wishes) => Ok(wishes.get().0),
            Err(_) => Err(self.refused("wishes", Fault::Returned(format!("{}, not Wishes", shown(&answer))))),
        }
    }

    fn defines(&self, base: &Bound<'py, PyAny>) -> PyResult<Defines> {
        let defines = |call: &str| -> PyResult<bool> {
            let inherited = base.getattr(call)?;
            Ok(!self.controller.getattr(call)?.getattr("__func__").is_ok_and(|function| function.is(&inherited)))
        };
        Ok(Defines {
            admit: defines("admit")?,
            on_end: defines("on_end")?,
            on_plain_send: defines("on_plain_send")?,
            on_feedback: defines("on_feedback")?,
            view: defines("view")?,
            base_rtt: defines("base_rtt_us")?,
            recall: defines("recall")?,
        })
    }
}

/// The classes that a scenario names.
#[derive(Debug, Default)]
pub(crate) struct OwnClasses(Vec<(OwnChoice, OwnMaker)>);

impl OwnClasses {
    /// Asks `find` for the class behind every custom name, and tries it out. `find` takes name and settings and
    /// gives a callable without arguments.
    ///
    /// # Errors
    /// The place in the scenario, and what Python raised.
    pub(crate) fn find(
        py: Python<'_>,
        scenario: &millpond_sim::Scenario,
        find: Option<&Bound<'_, PyAny>>,
    ) -> Result<Self, (String, PyErr)> {
        let mut classes: Vec<(OwnChoice, OwnMaker)> = Vec::new();
        for (place, choice) in scenario.controllers() {
            let Some(choice) = choice.own().filter(|&choice| classes.iter().all(|(known, _)| known != choice)) else {
                continue;
            };
            let class = Self::load(py, choice, find).map_err(|error| (place, error))?;
            classes.push((choice.clone(), class));
        }
        Ok(Self(classes))
    }

    fn load(py: Python<'_>, choice: &OwnChoice, find: Option<&Bound<'_, PyAny>>) -> PyResult<OwnMaker> {
        let Some(find) = find else {
            let told = format!("`{}` is not built in, and controllers of your own cannot be found here", choice.name());
            return Err(PyValueError::new_err(told));
        };
        let make = find.call1((choice.name(), as_dict(py, choice.settings())?))?;
        OwnMaker::read(choice.name(), make)
    }

    /// Whether all controllers are built in.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The same for one run, which learns of its own failures alone.
    pub(crate) fn for_a_run(&self) -> RunClasses<'_> {
        RunClasses { classes: self, failed: Arc::default() }
    }
}

/// The classes of a scenario in one run.
#[derive(Debug)]
pub(crate) struct RunClasses<'s> {
    classes: &'s OwnClasses,
    failed: Arc<OnceLock<Failure>>,
}

impl RunClasses<'_> {
    /// What Python raised, if that ended the run.
    pub(crate) fn cause(self) -> Option<PyErr> {
        // The controllers are gone by now, and with them the other owners.
        Arc::into_inner(self.failed)?.into_inner()?.cause
    }
}

impl Controllers for RunClasses<'_> {
    fn own(&self, choice: &OwnChoice) -> Result<PeerController, String> {
        let found = self.classes.0.iter().find(|(known, _)| known == choice);
        let (_, maker) = found.ok_or_else(|| format!("`{}` was not loaded with the scenario", choice.name()))?;
        Ok(maker.controller(&self.failed))
    }

    fn failure(&self) -> Option<String> {
        self.failed.get().map(|failure| failure.told.clone())
    }
}

fn as_dict<'py>(py: Python<'py>, settings: &Settings) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    for (name, value) in settings {
        match value {
            Value::Truth(truth) => dict.set_item(name, truth)?,
            Value::Whole(whole) => dict.set_item(name, whole)?,
            Value::Fraction(fraction) => dict.set_item(name, fraction)?,
            Value::Text(text) => dict.set_item(name, text)?,
        }
    }
    Ok(dict)
}
