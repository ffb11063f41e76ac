//! A network namespace without a name, with one interface whose packets a program reads and writes (TUN). It is held by
//! descriptors and processes alone, so that nothing of it can be left over.

use std::{
    fs::{File, OpenOptions},
    io::{self, Read, Seek, SeekFrom},
    os::{
        fd::{AsRawFd, OwnedFd},
        unix::fs::OpenOptionsExt,
    },
    thread,
};

use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space, unshare_unsafe};

use super::{
    addresses::{End, NETWORK_4, NETWORK_6},
    netlink::Interfaces,
};
use crate::Error;

/// The interface inside.
pub(super) const INTERFACE: &str = "millpond";
/// Packets that the kernel keeps for us while we are busy.
const QUEUE: u32 = 20_000;
/// An interface that carries IPv6 takes packets at least so long (RFC 8200, section 5), and one of Linux that carries IPv4
/// (RFC 791).
pub const LEAST_MTU_6: u32 = 1_280;
pub(super) const LEAST_MTU_4: u32 = 68;
/// The number of `lo`, in every namespace.
const LOOPBACK: u32 = 1;

#[derive(Debug)]
pub(super) struct Namespace {
    /// What enters it.
    net: OwnedFd,
    /// Packets, one a read, one a write.
    pub(super) tun: File,
    /// The kernel's counts of its interfaces.
    counts: File,
}

impl Namespace {
    /// Makes one.
    pub(super) fn new(end: End, mtu: u32) -> Result<Self, Error> {
        // A thread of its own: where it is, nobody else is.
        let made = thread::Builder::new().name("namespace".to_owned()).spawn(move || make(end, mtu));
        let made = made.map_err(Error::system("no thread could be started"))?;
        made.join().map_err(|_| Error::System("a namespace", io::Error::other("its thread broke off")))?
    }

    /// Moves the calling thread into it.
    pub(super) fn enter(&self) -> io::Result<()> {
        Ok(move_into_link_name_space(std::os::fd::AsFd::as_fd(&self.net), Some(LinkNameSpaceType::Network))?)
    }

    /// Packets that the kernel dropped because we did not read them in time.
    pub(super) fn dropped(&mut self) -> u64 {
        let mut text = String::new();
        let read = self.counts.seek(SeekFrom::Start(0)).and_then(|_| self.counts.read_to_string(&mut text));
        let line = text.lines().find_map(|line| line.trim().strip_prefix(INTERFACE)?.strip_prefix(':'));
        // Eight columns of what was received, then bytes, packets, errors, drops of what was sent.
        read.ok().and(line).and_then(|line| line.split_whitespace().nth(11)?.parse().ok()).unwrap_or(0)
    }
}

fn make(end: End, mtu: u32) -> Result<Namespace, Error> {
    // SAFETY: descriptors are not unshared, and nobody relies on which network this new thread sees.
    #[expect(unsafe_code, reason = "descriptors could be unshared with it, which they are not")]
    unsafe { unshare_unsafe(UnshareFlags::NEWNET) }.map_err(|error| Error::Namespaces(error.into()))?;
    let tun = open_tun()?;
    let failed = Error::system;
    // No chatter of the kernel's own on the link; where this cannot be written it is left out when it comes.
    let _ = std::fs::write(format!("/proc/sys/net/ipv6/conf/{INTERFACE}/addr_gen_mode"), "1");
    let _ = std::fs::write(format!("/proc/sys/net/ipv6/conf/{INTERFACE}/router_solicitations"), "0");
    let interfaces = Interfaces::open().map_err(failed("interfaces cannot be set up"))?;
    let number = interfaces.number(INTERFACE).map_err(failed("the TUN device has no number"))?;
    interfaces.bring_up(LOOPBACK, None, None).map_err(failed("lo does not come up"))?;
    interfaces.bring_up(number, Some(mtu), Some(QUEUE)).map_err(failed("the TUN device does not come up"))?;
    let address = |address| interfaces.add_address(number, address).map_err(failed("an address is refused"));
    let route = |network, prefix| interfaces.add_route(number, network, prefix).map_err(failed("a route is refused"));
    address(end.ipv4().into())?;
    route(NETWORK_4.0.into(), NETWORK_4.1)?;
    if mtu >= LEAST_MTU_6 && std::path::Path::new("/proc/sys/net/ipv6").exists() {
        address(end.ipv6().into())?;
        route(NETWORK_6.0.into(), NETWORK_6.1)?;
    }
    let own = |name: &str| File::open(format!("/proc/thread-self/{name}"));
    let net = own("ns/net").map_err(failed("/proc/thread-self/ns/net"))?;
    let counts = own("net/dev").map_err(failed("/proc/thread-self/net/dev"))?;
    Ok(Namespace { net: net.into(), tun, counts })
}

/// What TUNSETIFF takes: `struct ifreq` of linux/if.h.
#[repr(C)]
struct Request {
    name: [u8; 16],
    flags: u16,
    rest: [u8; 22],
}

const TUNSETIFF: libc::c_ulong = 0x4004_54ca;
/// IP packets without a header of their own in front.
const IFF_TUN_NO_PI: u16 = 0x1001;

fn open_tun() -> Result<File, Error> {
    let mut options = OpenOptions::new();
    let tun = options.read(true).write(true).custom_flags(libc::O_NONBLOCK).open("/dev/net/tun").map_err(Error::Tun)?;
    let mut request = Request { name: [0; 16], flags: IFF_TUN_NO_PI, rest: [0; 22] };
    request.name[..INTERFACE.len()].copy_from_slice(INTERFACE.as_bytes());
    // SAFETY: the kernel reads and writes the 40 bytes of `struct ifreq`, which the record has.
    #[expect(unsafe_code, reason = "a call of the system that no safe crate here has")]
    let made = unsafe { libc::ioctl(tun.as_raw_fd(), TUNSETIFF as _, &raw mut request) };
    if made < 0 {
        return Err(Error::Tun(io::Error::last_os_error()));
    }
    let _ = request.rest;
    Ok(tun)
}
