//! Protects and unprotects what comes on standard input, for comparison with other implementations.
//!
//! A line is a case: fields in hexadecimal, separated by blanks, `-` for what is not there.
//!
//! | field | is |
//! |---|---|
//! | algorithm, hash | numbers: of the AEAD in COSE, and 256 or 512 |
//! | secret, salt, ID context, ID of the client, ID of the server, first sequence number of both | given beforehand |
//! | request, response | messages as they are before they are protected |
//! | request, response, response | the same, protected by the other implementation; the second response has a Partial IV |
//!
//! The answer is a line: the three messages as protected here, and those of the other implementation unprotected, or `!` and why
//! not, with `_` for each blank.

#![allow(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::arithmetic_side_effects,
    reason = "a tool for tests may fail loudly"
)]

use std::error::Error;
use std::io::{self, BufRead, Write};

use millpond_coap::message::Message;
use millpond_coap::oscore::{Algorithm, Context, Hash, Parameters, PartialIv, SentRequest, Start};

fn main() -> Result<(), Box<dyn Error>> {
    let mut out = io::BufWriter::new(io::stdout().lock());
    for line in io::stdin().lock().lines() {
        let line = line?;
        let fields: Vec<&str> = line.split(' ').collect();
        let fields: [&str; 13] = fields.try_into().map_err(|_| format!("not 13 fields: {line}"))?;
        writeln!(out, "{}", case(fields)?)?;
    }
    Ok(())
}

fn case(fields: [&str; 13]) -> Result<String, Box<dyn Error>> {
    let [algorithm, hash, secret, salt, id_context, client, server, first, request, response, theirs @ ..] = fields;
    let algorithm: u8 = algorithm.parse()?;
    let algorithm = Algorithm::ALL.iter().find(|known| known.number() == algorithm).ok_or("no such algorithm")?;
    let hash = if hash == "512" { Hash::Sha512 } else { Hash::Sha256 };
    let id_context = (id_context != "-").then(|| bytes(id_context)).transpose()?;
    let (secret, salt, client, server) = (bytes(secret)?, bytes(salt)?, bytes(client)?, bytes(server)?);
    let of_client = Parameters {
        secret: &secret,
        salt: &salt,
        id_context: id_context.as_deref(),
        sender_id: &client,
        recipient_id: &server,
        algorithm: *algorithm,
        hash,
    };
    let case = Case { parameters: of_client, first: first.parse()?, request: bytes(request)? };
    let [their_request, their_responses @ ..] = theirs;
    let mut answer = case.protected(&bytes(response)?)?.map(|bytes| hex(&bytes)).to_vec();
    answer.push(case.read_request(&bytes(their_request)?)?);
    for response in their_responses {
        answer.push(case.read_response(&bytes(response)?)?);
    }
    Ok(answer.join(" "))
}

/// What a client and a server were given, the number of the client's request, and the request.
struct Case<'a> {
    parameters: Parameters<'a>,
    first: u64,
    request: Vec<u8>,
}

impl Case<'_> {
    /// The client with the request that it has sent.
    fn asked(&self) -> Result<(Context, SentRequest, Vec<u8>), Box<dyn Error>> {
        let mut client = Context::derive(&self.parameters, Start::Stored(self.first))?;
        client.bound_is_stored(PartialIv::LIMIT);
        let mut protected = Vec::new();
        let sent = client.protect_request(&Message::parse(&self.request)?, &mut protected)?;
        Ok((client, sent, protected))
    }

    fn server(&self) -> Result<Context, Box<dyn Error>> {
        Ok(Context::derive(&self.parameters.mirrored(), Start::Fresh)?)
    }

    /// The request, the response with the request's nonce, and the response with a Partial IV.
    fn protected(&self, response: &[u8]) -> Result<[Vec<u8>; 3], Box<dyn Error>> {
        let (_, _, request) = self.asked()?;
        let (mut server, mut first, mut second) = (self.server()?, Vec::new(), Vec::new());
        let mut received = server.unprotect_request(&Message::parse(&request)?, &mut Vec::new())?;
        let response = Message::parse(response)?;
        server.protect_response(&mut received, &response, &mut first)?;
        server.protect_response(&mut received, &response, &mut second)?;
        Ok([request, first, second])
    }

    fn read_request(&self, protected: &[u8]) -> Result<String, Box<dyn Error>> {
        let mut plain = Vec::new();
        let read = self.server()?.unprotect_request(&Message::parse(protected)?, &mut plain);
        Ok(read.map_or_else(|refusal| format!("!{refusal}").replace(' ', "_"), |_| hex(&plain)))
    }

    fn read_response(&self, protected: &[u8]) -> Result<String, Box<dyn Error>> {
        let (mut client, mut sent, _) = self.asked()?;
        let mut plain = Vec::new();
        let read = client.unprotect_response(&mut sent, &Message::parse(protected)?, &mut plain);
        Ok(read.map_or_else(|fault| format!("!{fault}").replace(' ', "_"), |()| hex(&plain)))
    }
}

fn bytes(hex: &str) -> Result<Vec<u8>, Box<dyn Error>> {
    let digit = |byte: u8| char::from(byte).to_digit(16).ok_or("not hexadecimal");
    let digits = hex.bytes().map(digit).collect::<Result<Vec<_>, _>>()?;
    Ok(digits.chunks_exact(2).map(|pair| (pair[0] << 4 | pair[1]) as u8).collect())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
