//! Scenarios drawn from a seed.

/// SplitMix64: the same numbers from the same seed, everywhere.
pub(crate) struct Draw(pub u64);

impl Draw {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn geometric(&mut self, from: f64, to: f64) -> f64 {
        from * (to / from).powf(self.unit())
    }

    fn one_of<T: Copy>(&mut self, of: &[T]) -> T {
        of[(self.next() % of.len() as u64) as usize]
    }
}

/// A scenario and the truth about its path.
pub(crate) struct Drawn {
    pub text: String,
    /// bit/s, up and down.
    pub rates: [f64; 2],
    /// Bytes of IP packets, up and down.
    pub buffers: [f64; 2],
    /// Seconds there and back, without serialization.
    pub propagation: f64,
}

pub(crate) const KINDS: [&str; 5] = ["closed", "think", "periodic", "cut", "burst"];

/// A small scenario of this kind.
pub(crate) fn drawn(kind: &'static str, seed: u64) -> Drawn {
    let mut draw = Draw(seed);
    let rates = [draw.geometric(10e3, 150e3).round(), draw.geometric(10e3, 150e3).round()];
    let buffers = [draw.geometric(2e3, 4e5).round(), draw.geometric(2e3, 4e5).round()];
    let delays = [draw.geometric(20.0, 900.0).round(), draw.geometric(20.0, 900.0).round()];
    let losses = [draw.one_of(&[0, 0, 1, 2, 5, 10]), draw.one_of(&[0, 0, 1, 2, 5, 10])];
    let count = draw.geometric(20.0, 250.0).round();
    let timeout = draw.one_of(&[2, 2, 2, 3, 5]);
    let (request, answer) = (draw.one_of(&[0, 20, 60, 100]), draw.one_of(&[10, 60, 120]));
    let period = draw.geometric(10.0, 90.0).round();
    let (workload, until) = match kind {
        "closed" => ("exchanges = 12\nworkload = \"continuous\"".to_owned(), "until = \"1 h\""),
        "think" => {
            let think = "{ kind = \"exponential\", mean = \"15 s\" }";
            let workload = format!("{{ kind = \"continuous\", think = {think} }}");
            (format!("exchanges = 12\nstart_spread = \"15 s\"\nworkload = {workload}"), "until = \"1 h\"")
        }
        "periodic" => (format!("workload = {{ kind = \"periodic\", period = \"{period} s\" }}"), "for = \"600 s\""),
        _ => {
            let requests = if kind == "cut" { 1 } else { 4 };
            let arrival = "{ kind = \"beta\", over = \"10 s\", alpha = 3, beta = 4 }";
            let after = format!("{{ kind = \"after-event\", arrival = {arrival}, requests = {requests} }}");
            (format!("workload = [{after}, {{ kind = \"periodic\", period = \"300 s\" }}]"), "for = \"900 s\"")
        }
    };
    let link = |name: &str, of: usize| {
        format!(
            "[path.{name}]\nrate = \"{} bit/s\"\ndelay = \"{} ms\"\nqueue = \"{} B\"\n\
             loss = {{ kind = \"bernoulli\", rate = \"{} %\" }}\nloss_of = \"each-client\"\n",
            rates[of], delays[of], buffers[of], losses[of]
        )
    };
    let text = format!(
        "[[clients]]\ncount = {count}\ncontroller = {{ preset = \"rfc7252\", ack-timeout = \"{timeout} s\" }}\n\
         token_length = 2\nrequest_payload = \"{request} B\"\n{workload}\n[server]\npayload = \"{answer} B\"\n{}{}[run]\n{until}\n",
        link("uplink", 0),
        link("downlink", 1)
    );
    Drawn { text, rates, buffers, propagation: (delays[0] + delays[1]) / 1000.0 }
}
