//! What a request costs our server under OSCORE (RFC 8613) beside one in the clear.

use std::fmt::Write;

use millpond_coap::oscore::{Context, ContextError, Parameters, Start};

use crate::{
    Arguments, Failure, OUTSTANDING,
    comparison::{asked_by, beside},
    generator::Generator,
    sides,
};

const SECRET: &[u8] = b"for measurements alone";

/// In hexadecimal digits.
fn secret() -> String {
    SECRET.iter().fold(String::new(), |mut digits, byte| {
        let _ = write!(digits, "{byte:02x}");
        digits
    })
}

/// That of the server in aiocoap's form.
fn settings() -> String {
    format!(r#"{{"secret_hex": "{}", "sender-id_hex": "02", "recipient-id_hex": "01"}}"#, secret())
}

/// The same in libcoap's, which asks nobody for Echo then.
fn configuration() -> String {
    let secret = secret();
    format!("master_secret,hex,\"{secret}\"\nsender_id,hex,\"02\"\nrecipient_id,hex,\"01\"\nrfc8613_b_1_2,bool,false\n")
}

/// That of the server, or of its clients: AES-CCM-16-64-128.
pub(crate) fn context(is_server: bool) -> Result<Context, ContextError> {
    let of_clients = Parameters { sender_id: &[1], recipient_id: &[2], ..Parameters::of(SECRET) };
    Context::derive(&if is_server { of_clients.mirrored() } else { of_clients }, Start::Fresh)
}

/// CPU for each request and requests a second, in the clear and protected, one after the other in each round.
pub(crate) fn cost(arguments: &Arguments) -> Result<(), Failure> {
    let mut sides = vec![
        (sides::ours()?, asked_by(Generator::new(OUTSTANDING)?)),
        (sides::ours_protected()?, asked_by(Generator::protected(OUTSTANDING, context(false)?)?)),
    ];
    // aiocoap keeps its sequence numbers there, and none may have been used.
    let directory = std::env::temp_dir().join(format!("millpond-bench-{}.aiocoap", std::process::id()));
    std::fs::create_dir_all(&directory)?;
    std::fs::write(directory.join("settings.json"), settings())?;
    if let Some(side) = sides::aiocoap_protected(arguments, &directory) {
        sides.push((side, asked_by(Generator::protected(OUTSTANDING, context(false)?)?)));
    }
    std::fs::write(directory.join("libcoap.conf"), configuration())?;
    if let Some(side) = sides::libcoap_protected(arguments, &directory.join("libcoap.conf")) {
        sides.push((side, asked_by(Generator::protected(OUTSTANDING, context(false)?)?)));
    }
    let measured = beside(arguments, &format!("{OUTSTANDING} clients, in the clear and under OSCORE"), sides);
    std::fs::remove_dir_all(&directory)?;
    measured
}
