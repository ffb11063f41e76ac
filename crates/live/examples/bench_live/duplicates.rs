//! Whether a server recognises a request that comes twice (RFC 7252 §4.5).

use std::{
    io,
    net::{Ipv4Addr, SocketAddr, UdpSocket},
    time::Duration,
};

use crate::Failure;

/// Sends one request twice and looks what became of the second: `/tally` reports how often it was asked. Where there is no
/// such resource, one is made twice: who makes it anew says 2.04 the second time.
pub(crate) fn are_recognised(server: SocketAddr) -> Result<bool, Failure> {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
    socket.set_read_timeout(Some(Duration::from_millis(500)))?;
    socket.connect(server)?;
    let tally = |id: u8| [&[0x41, 1, 0x70, id, id, 0xb5][..], b"tally"].concat();
    let first = ask(&socket, &tally(1))?;
    if first.code == 0x45 {
        ask(&socket, &tally(1))?;
        let last = ask(&socket, &tally(2))?;
        return match &last.payload[..] {
            b"2" => Ok(true),
            b"3" => Ok(false),
            other => Err(format!("a tally of {}", String::from_utf8_lossy(other)).into()),
        };
    }
    let make = [&[0x41, 3, 0x70, 9, 9, 0xb5][..], b"twice\xffx"].concat();
    match [ask(&socket, &make)?.code, ask(&socket, &make)?.code] {
        [0x41, 0x41] => Ok(true),
        [0x41, 0x44] => Ok(false),
        other => Err(format!("codes {other:x?}").into()),
    }
}

#[derive(Debug, Default)]
struct Answer {
    code: u8,
    payload: Vec<u8>,
}

/// Sends a datagram and waits for a response. A server that recognises a copy may keep silent: then the answer is empty.
fn ask(socket: &UdpSocket, datagram: &[u8]) -> Result<Answer, Failure> {
    socket.send(datagram)?;
    let mut room = [0; 256];
    loop {
        let length = match socket.recv(&mut room) {
            Ok(length) => length,
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
                return Ok(Answer::default());
            }
            Err(error) => return Err(error.into()),
        };
        let (Some(&[first, code, ..]), Some(bytes)) = (room.first_chunk::<4>(), room.get(..length)) else { continue };
        if code == 0 {
            continue;
        }
        if first & 0x30 == 0 {
            socket.send(&[0x60, 0, room[2], room[3]])?;
        }
        let payload = bytes.iter().position(|byte| *byte == 0xff).and_then(|at| bytes.get(at + 1..));
        return Ok(Answer { code, payload: payload.unwrap_or_default().to_vec() });
    }
}
