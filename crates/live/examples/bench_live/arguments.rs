//! What is asked of the program.

use std::time::Duration;

use crate::Failure;

/// What is to be measured, and for how long.
#[derive(Debug)]
pub(crate) struct Arguments {
    /// Of each measurement.
    pub(crate) time: Duration,
    /// Measurements of each side, one side after the other.
    pub(crate) rounds: usize,
    /// How long one peer asks as fast as it can.
    pub(crate) steady: Duration,
    /// Over how many requests memory is looked at.
    pub(crate) requests: u64,
    /// Parts wanted; all if empty.
    only: Vec<String>,
    /// Others wanted; all if none are named.
    beside: Option<Vec<String>>,
}

impl Arguments {
    /// From the words of the command line.
    pub(crate) fn read(words: Vec<String>) -> Result<Self, Failure> {
        let is_quick = words.iter().any(|word| word == "--quick");
        let (seconds, steady, requests) = if is_quick { (1, 5, 200_000) } else { (2, 60, 1_000_000) };
        let mut arguments = Self {
            time: Duration::from_secs(seconds),
            rounds: if is_quick { 1 } else { 3 },
            steady: Duration::from_secs(steady),
            requests,
            only: Vec::new(),
            beside: None,
        };
        let mut words = words.into_iter();
        while let Some(word) = words.next() {
            let mut value = || words.next().ok_or_else(|| format!("{word} wants a value"));
            match word.as_str() {
                "--quick" => {}
                "--seconds" => arguments.time = Duration::from_secs(value()?.parse()?),
                "--rounds" => arguments.rounds = value()?.parse::<usize>()?.max(1),
                "--steady" => arguments.steady = Duration::from_secs(value()?.parse()?),
                "--requests" => arguments.requests = value()?.parse()?,
                "--only" => arguments.only.push(value()?),
                "--beside" => arguments.beside.get_or_insert_default().push(value()?),
                "--alone" => arguments.beside = Some(Vec::new()),
                // What cargo bench adds.
                "--bench" => {}
                _ => return Err(format!("{word} is not known; the head of main.rs has all arguments").into()),
            }
        }
        Ok(arguments)
    }

    /// Whether a part is wanted.
    pub(crate) fn wants(&self, part: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|only| only == part)
    }

    /// Whether another implementation is wanted.
    pub(crate) fn wants_beside(&self, name: &str) -> bool {
        self.beside.as_ref().is_none_or(|beside| beside.iter().any(|wanted| wanted == name))
    }
}
