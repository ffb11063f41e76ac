//! A rate, a delay and losses over time: as a list, as a table of comma-separated values, or as Mahimahi's delivery opportunities.

use std::{fmt, sync::Arc};

use millpond_control::{ChanceSeed, Purpose, Span};
use millpond_link::{Probability, Step};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de, ser::SerializeMap};

use crate::{
    BitRate, Duration,
    direction::LONGEST,
    probability,
    quantity::{RATE_UNITS, TIME_UNITS, measured},
    unknown,
};

/// What a direction of a path is like over time.
#[derive(Clone, Debug)]
pub struct Trace {
    /// The file that the steps are from.
    file: Option<String>,
    steps: Steps,
    /// After how long it begins again; none: the last step holds for ever.
    every: Option<Duration>,
    offset: Offset,
    /// What links follow, once it is known what they are like by themselves.
    built: Option<Arc<millpond_link::Trace>>,
}

#[derive(Clone, Debug, PartialEq)]
enum Steps {
    List(Vec<StepKeys>),
    /// The text of a file, or nothing yet.
    Text(Option<String>),
}

/// How far into a trace a run begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Offset {
    Fixed(Duration),
    /// Anywhere, drawn from the seed: for traces of one length at the same place.
    PerSeed,
}

/// One step as it is written. What it leaves out is as before it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StepKeys {
    at: Duration,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    rate: Option<StepRate>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    delay: Option<Duration>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    loss: Option<Share>,
}

/// A rate that may be nothing, bit/s.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
struct StepRate(u64);

impl TryFrom<String> for StepRate {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        measured(&text, "", "a rate", "30 kbit/s", RATE_UNITS).map(Self)
    }
}

impl Serialize for StepRate {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&BitRate(self.0))
    }
}

/// A probability.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
struct Share(f64);

impl<'de> Deserialize<'de> for Share {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        probability(deserializer).map(Self)
    }
}

/// One delivery opportunity of Mahimahi's format, bytes.
const OPPORTUNITY: u32 = 1_504;

/// Steps with the numbers of their lines, and how long the trace is if its format says so.
type Read = (Vec<(usize, Step)>, Option<u64>);

impl Trace {
    /// The rate and delay of a direction that leaves them to its trace: the highest rate and the first delay.
    ///
    /// # Errors
    /// What is wrong with the trace, in one line.
    pub(crate) fn usual(&self) -> Result<(Option<BitRate>, Option<Duration>), String> {
        let (steps, every) = self.read()?;
        let begins = steps.first().filter(|(_, first)| first.at == 0);
        let rate = begins.and_then(|(_, first)| first.rate).map(|_| {
            let steps: Vec<Step> = steps.iter().map(|(_, step)| *step).collect();
            millpond_link::Trace::new(&steps, every).ok().and_then(|trace| trace.highest_rate()).unwrap_or(1)
        });
        let delay = begins.and_then(|(_, first)| first.delay);
        Ok((rate.map(|rate| BitRate(rate.max(1))), delay.map(|delay| Duration(u64::from(delay.as_micros())))))
    }

    /// Makes what links follow, for a direction with this rate and delay where the trace says nothing of them.
    ///
    /// # Errors
    /// What is wrong with it in one line, with the number of the line or of the step.
    pub(crate) fn build(&mut self, rate: BitRate, delay: Duration) -> Result<(), String> {
        let (mut steps, every) = self.read()?;
        let (has_rate, has_delay, has_loss) = steps.iter().fold((false, false, false), |has, (_, step)| {
            (has.0 | step.rate.is_some(), has.1 | step.delay.is_some(), has.2 | step.loss.is_some())
        });
        if steps.first().is_some_and(|(_, first)| first.at > 0) {
            steps.insert(0, (0, Step::default()));
        }
        if let Some((_, first)) = steps.first_mut() {
            first.rate = first.rate.or(has_rate.then_some(rate.0));
            first.delay = first.delay.or(has_delay.then_some(delay.span()));
            first.loss = first.loss.or(has_loss.then_some(Probability::ZERO));
        }
        if has_loss && steps.iter().all(|(_, step)| step.loss.unwrap_or(Probability::ONE) == Probability::ONE) {
            return Err(self.told(None, "every packet is lost, because 1 is 100 %"));
        }
        if self.offset == Offset::PerSeed && every.is_none() {
            return Err(self.told(None, "only a trace that begins again has a place for each seed: write `every`"));
        }
        let plain: Vec<Step> = steps.iter().map(|(_, step)| *step).collect();
        let built = millpond_link::Trace::new(&plain, every).map_err(|error| {
            let line = error.step().and_then(|step| steps.get(step)).map(|(line, _)| *line);
            self.told(line, &error.to_string())
        })?;
        self.built = Some(Arc::new(built));
        Ok(())
    }

    /// What links follow.
    pub(crate) fn built(&self) -> Option<&Arc<millpond_link::Trace>> {
        self.built.as_ref()
    }

    /// How old it is when a run with this seed begins, µs.
    pub(crate) fn ahead(&self, seed: ChanceSeed) -> u64 {
        match (self.offset, self.built().and_then(|built| built.every())) {
            (Offset::Fixed(offset), _) => offset.0,
            (Offset::PerSeed, every) => {
                let word = seed.wide(Purpose::Start, [u32::MAX; 4]);
                ((u128::from(word) * u128::from(every.unwrap_or(0))) >> 64) as u64
            }
        }
    }

    /// Whether it says how fast packets are sent.
    #[must_use]
    pub fn has_rates(&self) -> bool {
        self.built().is_some_and(|built| built.has_rates())
    }

    /// Whether it says how many packets are lost.
    #[must_use]
    pub fn has_losses(&self) -> bool {
        self.built().is_some_and(|built| built.has_losses())
    }

    fn read(&self) -> Result<Read, String> {
        let (steps, length) = match &self.steps {
            Steps::List(list) => (of_list(list).map_err(|(step, problem)| self.told(Some(step), &problem))?, None),
            Steps::Text(None) => {
                let file = self.file.as_deref().unwrap_or_default();
                return Err(format!("{file}: files are read by the programs only: write a list of steps here"));
            }
            Steps::Text(Some(text)) => of_text(text).map_err(|(line, problem)| self.told(Some(line), &problem))?,
        };
        if let Some((line, _)) = steps.iter().find(|(_, step)| step.delay == Some(Span::MAX)) {
            return Err(self.told(Some(*line), &format!("the delay is longer than can be told (at most {LONGEST})")));
        }
        Ok((steps, self.every.map(|every| every.0).or(length)))
    }

    /// A problem and where it is.
    fn told(&self, line: Option<usize>, problem: &str) -> String {
        let file = self.file.as_deref();
        match (file, line.filter(|line| *line > 0)) {
            (None, None) => problem.to_owned(),
            (None, Some(step)) => format!("step {step}: {problem}"),
            (Some(file), None) => format!("{file}: {problem}"),
            (Some(file), Some(line)) => format!("{file}, line {line}: {problem}"),
        }
    }
}

/// Steps of a list.
fn of_list(list: &[StepKeys]) -> Result<Vec<(usize, Step)>, (usize, String)> {
    let step = |(index, keys): (usize, &StepKeys)| {
        let loss = keys.loss.map(|loss| chance(loss.0).map_err(|problem| (index + 1, problem))).transpose()?;
        let (rate, delay) = (keys.rate.map(|rate| rate.0), keys.delay.map(Duration::span));
        Ok((index + 1, Step { at: keys.at.0, rate, delay, loss, burst: 0 }))
    };
    list.iter().enumerate().map(step).collect()
}

/// Steps of a file: of delivery opportunities, if its first line is a number alone, or of comma-separated values.
fn of_text(text: &str) -> Result<Read, (usize, String)> {
    let text = text.trim_start_matches('\u{feff}');
    let lines = text.lines().zip(1..).map(|(line, number)| (number, line.split('#').next().unwrap_or_default().trim()));
    let mut lines = lines.filter(|(_, line)| !line.is_empty()).peekable();
    match lines.peek() {
        None => Err((1, "no steps".to_owned())),
        Some((_, first)) if first.bytes().all(|byte| byte.is_ascii_digit()) => of_opportunities(lines),
        Some(_) => Ok((of_values(lines)?, None)),
    }
}

/// Mahimahi's format: each line is a millisecond at which 1504 bytes can be sent; the last one is how long the trace is.
fn of_opportunities<'t>(lines: impl Iterator<Item = (usize, &'t str)>) -> Result<Read, (usize, String)> {
    let mut steps = vec![(0, Step { rate: Some(0), ..Step::default() })];
    for (line, text) in lines {
        let millis: Option<u64> = text.parse().ok();
        let Some(at) = millis.and_then(|millis| millis.checked_mul(1_000)) else {
            return Err((line, format!("`{text}` is no millisecond: write a whole number in each line, such as `12`")));
        };
        match steps.last_mut() {
            Some((_, last)) if last.at == at => last.burst = last.burst.saturating_add(OPPORTUNITY),
            Some((_, last)) if last.at > at => {
                return Err((line, format!("{text} ms is before the line above it: write the lines in order")));
            }
            _ => steps.push((line, Step { at, burst: OPPORTUNITY, ..Step::default() })),
        }
    }
    let length = steps.last().map(|(_, last)| last.at);
    Ok((steps, length))
}

/// A column of comma-separated values, and the unit of what has none.
struct Column<'t> {
    kind: Kind,
    unit: &'t str,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Time,
    Rate,
    Delay,
    Loss,
}

const COLUMNS: [(&str, Kind); 4] =
    [("time", Kind::Time), ("rate", Kind::Rate), ("delay", Kind::Delay), ("loss", Kind::Loss)];

/// What the first line of comma-separated values names.
const HEADER: &str = "write a column `time` and what changes, such as `time (s),rate (kbit/s),delay (ms),loss`";

fn of_values<'t>(mut lines: impl Iterator<Item = (usize, &'t str)>) -> Result<Vec<(usize, Step)>, (usize, String)> {
    let (number, header) = lines.next().unwrap_or((1, ""));
    let columns: Vec<Column<'_>> =
        header.split(',').map(column).collect::<Result<_, _>>().map_err(|problem| (number, problem))?;
    if !columns.iter().any(|column| column.kind == Kind::Time) || columns.len() < 2 {
        return Err((number, HEADER.to_owned()));
    }
    let step = |(number, line): (usize, &str)| {
        let told = |problem| (number, problem);
        if line.split(',').count() != columns.len() {
            return Err(told(format!("{} values: write {}", line.split(',').count(), columns.len())));
        }
        let mut step = Step::default();
        for (Column { kind, unit }, value) in columns.iter().zip(line.split(',').map(str::trim)) {
            match kind {
                Kind::Time => step.at = measured(value, unit, "a time", "1.5 s", TIME_UNITS).map_err(told)?,
                _ if value.is_empty() => {}
                Kind::Rate => {
                    step.rate = Some(measured(value, unit, "a rate", "30 kbit/s", RATE_UNITS).map_err(told)?);
                }
                Kind::Delay => {
                    let delay = measured(value, unit, "a time", "215 ms", TIME_UNITS).map_err(told)?;
                    step.delay = Some(Duration(delay).span());
                }
                Kind::Loss => step.loss = Some(fraction(value, unit).and_then(chance).map_err(told)?),
            }
        }
        Ok((number, step))
    };
    lines.map(step).collect()
}

/// `rate (kbit/s)`, `rate kbit/s`, or `rate`.
fn column(text: &str) -> Result<Column<'_>, String> {
    let text = text.trim();
    let (name, unit) = text.split_at(text.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(text.len()));
    let names = COLUMNS.map(|(name, _)| name);
    match COLUMNS.iter().find(|(known, _)| *known == name) {
        Some((_, kind)) => Ok(Column { kind: *kind, unit: unit.trim_matches(['(', ')', ' ', '_']) }),
        None if name.is_empty() => Err(format!("`{text}` names no column: {HEADER}")),
        None => Err(unknown("column", name, &names)),
    }
}

/// A share with or without its unit.
fn fraction(text: &str, unit: &str) -> Result<f64, String> {
    if unit == "%" || text.ends_with('%') {
        return probability::share(&format!("{} %", text.trim_end_matches('%')));
    }
    text.parse().map_err(|_| {
        format!("`{text}` is not a probability: write a fraction, such as 0.01, or a share, such as `1 %`")
    })
}

fn chance(fraction: f64) -> Result<Probability, String> {
    Probability::from_f64(fraction).ok_or_else(|| {
        format!("{fraction} is not a probability: write a fraction from 0 to 1, or a share, such as `1 %`")
    })
}

impl PartialEq for Trace {
    fn eq(&self, other: &Self) -> bool {
        (&self.file, &self.steps, self.every, self.offset) == (&other.file, &other.steps, other.every, other.offset)
    }
}

impl Serialize for Trace {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        if let Some(file) = &self.file {
            map.serialize_entry("file", file)?;
        }
        match &self.steps {
            Steps::List(list) => map.serialize_entry("steps", list)?,
            Steps::Text(text) => map.serialize_entry("rows", text)?,
        }
        if let Some(every) = &self.every {
            map.serialize_entry("every", every)?;
        }
        match &self.offset {
            Offset::Fixed(Duration(0)) => {}
            Offset::Fixed(offset) => map.serialize_entry("offset", offset)?,
            Offset::PerSeed => map.serialize_entry("offset", PER_SEED)?,
        }
        map.end()
    }
}

const PER_SEED: &str = "per-seed";

impl<'de> Deserialize<'de> for Trace {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Written;
        impl<'de> de::Visitor<'de> for Written {
            type Value = TraceKeys;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the name of a file, a list of steps, or a table with the key `file` or `steps`")
            }
            fn visit_str<E: de::Error>(self, file: &str) -> Result<TraceKeys, E> {
                Ok(TraceKeys { file: Some(file.to_owned()), ..TraceKeys::default() })
            }
            fn visit_seq<A: de::SeqAccess<'de>>(self, list: A) -> Result<TraceKeys, A::Error> {
                let steps = Vec::deserialize(de::value::SeqAccessDeserializer::new(list))?;
                Ok(TraceKeys { steps: Some(steps), ..TraceKeys::default() })
            }
            fn visit_map<A: de::MapAccess<'de>>(self, map: A) -> Result<TraceKeys, A::Error> {
                TraceKeys::deserialize(de::value::MapAccessDeserializer::new(map))
            }
        }
        let TraceKeys { file, rows, steps, every, offset } = deserializer.deserialize_any(Written)?;
        let steps = match (&file, steps) {
            (None, Some(list)) => Steps::List(list),
            (Some(_), None) => Steps::Text(rows),
            (Some(_), Some(_)) => {
                return Err(de::Error::custom("a trace is a `file` or a list of `steps`: write one of the two"));
            }
            (None, None) => return Err(de::Error::custom("missing key `file` or `steps`")),
        };
        let offset = match offset.as_deref() {
            None => Offset::Fixed(Duration(0)),
            Some(PER_SEED) => Offset::PerSeed,
            Some(time) => Offset::Fixed(
                time.parse().map_err(|problem| de::Error::custom(format!("offset: {problem}; or `{PER_SEED}`")))?,
            ),
        };
        Ok(Self { file, steps, every, offset, built: None })
    }
}

/// The keys of a trace as they are written.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct TraceKeys {
    file: Option<String>,
    rows: Option<String>,
    steps: Option<Vec<StepKeys>>,
    every: Option<Duration>,
    offset: Option<String>,
}

/// Reads the files that the paths of a table name for traces, unless they are read already.
///
/// # Errors
/// What `read` says of a file.
pub(crate) fn read_files(
    table: &mut toml::Table,
    mut read: impl FnMut(&str) -> Result<String, String>,
) -> Result<bool, String> {
    let mut has_read = false;
    let mut fill = |table: &mut toml::Table| {
        for way in ["uplink", "downlink"] {
            let Some(trace) = table.get_mut(way).and_then(|way| way.get_mut("trace")) else { continue };
            if let toml::Value::String(file) = trace {
                *trace =
                    toml::Table::from_iter([("file".to_owned(), toml::Value::String(std::mem::take(file)))]).into();
            }
            let Some(keys) = trace.as_table_mut() else { continue };
            let Some(file) = keys.get("file").and_then(toml::Value::as_str).filter(|_| !keys.contains_key("rows"))
            else {
                continue;
            };
            let rows = read(file)?;
            keys.insert("rows".to_owned(), rows.into());
            has_read = true;
        }
        Ok::<(), String>(())
    };
    fill(table)?;
    if let Some(path) = table.get_mut("path").and_then(toml::Value::as_table_mut) {
        fill(path)?;
    }
    Ok(has_read)
}
