//! What a request costs a gateway, beside our server and another proxy: `millpond gateway`, from MILLPOND or target/release.

use std::{net::SocketAddr, path::Path};

use crate::{
    Arguments, Failure, OUTSTANDING,
    comparison::{asked_by, beside},
    generator::Generator,
    idle::{self, CLIENTS},
    process::Running,
    sides::{self, Side},
};

/// CPU of the proxy alone; who is asked behind it is another process.
pub(crate) fn cost(arguments: &Arguments) -> Result<(), Failure> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let millpond = std::env::var("MILLPOND").map_or_else(|_| root.join("target/release/millpond"), Into::into);
    if !millpond.exists() {
        println!("left out: the gateway, for which {} is not built", millpond.display());
        return Ok(());
    }
    let upstream = Running::start(&sides::ours()?)?;
    let at = upstream.address;
    let ours = |name, size: &str| {
        let file = std::env::temp_dir().join(format!("millpond-bench-{}-{}.toml", std::process::id(), size.len()));
        let lines = format!(
            "[listen]\ncoap = [\"127.0.0.1:%s\"]\ntrust = [\"127.0.0.0/8\"]\n[cache]\nsize = \"{size}\"\n\
             [[forward]]\nto = [\"127.0.0.1\"]\n[[rule]]\npath = \"/{{*rest}}\"\nto = \"coap://{at}/{{*rest}}\"\n"
        );
        let (file, millpond) = (file.display(), millpond.display());
        Side::in_shell(name, &format!("printf '{lines}' $0 > {file}; exec {millpond} gateway --quiet {file}"))
    };
    many(&ours("many", "16 MiB"), at)?;
    let python = root.join(".tools/interop/venv/bin/python");
    let clients = |count| Generator::new(count).map(asked_by);
    let mut all = vec![
        (sides::ours()?, clients(OUTSTANDING)?),
        (ours("kept", "16 MiB"), clients(OUTSTANDING)?),
        (ours("not kept, shared", "0 B"), clients(OUTSTANDING)?),
        (ours("not kept, one client", "0 kB"), clients(1)?),
    ];
    if python.exists() && arguments.wants_beside("aiocoap") {
        let program = python.display();
        let proxy = format!("exec {program} -m aiocoap.cli.proxy --bind 127.0.0.1:$0 --reverse --unconditional {at}");
        all.push((Side::in_shell("aiocoap's proxy", &proxy), clients(OUTSTANDING)?));
    }
    if arguments.wants_beside("libcoap") && sides::is_there(Path::new("coap-server-notls")) {
        // It asks whom a client names, and keeps nothing.
        let named = || Generator::naming(OUTSTANDING, &format!("coap://{at}/bench")).map(asked_by);
        all.push((ours("named, not kept", "0 B"), named()?));
        let proxy = "exec coap-server-notls -A 127.0.0.1 -v 0 -P ,proxy.example -p $0";
        all.push((Side::in_shell("libcoap's, named", proxy), named()?));
    }
    beside(arguments, &format!("{OUTSTANDING} clients of the gateway"), all)
}

/// Memory of a gateway with many clients, and one change told to all who observe it, which it observes once.
fn many(side: &Side, upstream: SocketAddr) -> Result<(), Failure> {
    println!("{CLIENTS} clients of the gateway: MB resident");
    idle::asked_once(&Running::start(side)?)?;
    let running = Running::start(side)?;
    let mut observers = idle::observing(&running)?;
    let told = observers.told(&running, upstream)?;
    println!(
        "  all told of one change within {:.2} s, {:.2} µs CPU each, {} not told",
        told.within(1.0) / 1e3,
        told.cost(),
        told.lost + told.refused
    );
    Ok(())
}
