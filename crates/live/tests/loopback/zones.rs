//! IPv6 addresses that mean something on one link only (RFC 4007).

use std::{
    net::{Ipv6Addr, SocketAddrV6},
    time::Duration,
};

use millpond_live::{Client, Error, Resource, Response, Server};

/// The link-local addresses of this machine, with number and name of their interfaces.
#[cfg(target_os = "linux")]
fn link_local() -> Vec<(Ipv6Addr, u32, String)> {
    let table = std::fs::read_to_string("/proc/net/if_inet6").unwrap_or_default();
    let line = |line: &str| {
        let words: Vec<_> = line.split_whitespace().collect();
        let [address, index, _, _, flags, name] = words[..] else { return None };
        let ip = Ipv6Addr::from(u128::from_str_radix(address, 16).ok()?);
        // One that is not yet known to be unique on its link cannot be bound.
        let is_tentative = u32::from_str_radix(flags, 16).ok()? & 0x40 != 0;
        let index = u32::from_str_radix(index, 16).ok()?;
        (ip.is_unicast_link_local() && !is_tentative).then(|| (ip, index, name.to_owned()))
    };
    table.lines().filter_map(line).collect()
}

/// On every interface that has such an address; a machine without any has nothing to try.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_zone_is_the_name_of_an_interface_or_its_number() {
    for (ip, index, name) in link_local() {
        let resource = Resource::new().get(|| async { Response::content("on this link") });
        let here = SocketAddrV6::new(ip, 0, 0, index);
        let server = Server::builder().bind(here).bind_tcp(here).route("/", resource).start().await.unwrap();
        let client = Client::new().await.unwrap();
        for (scheme, (_, local)) in ["coap", "coap+tcp"].into_iter().zip(server.local_addrs()) {
            for zone in [format!("%25{name}"), format!("%{name}"), format!("%25{index}"), format!("%{index}")] {
                let uri = format!("{scheme}://[{ip}{zone}]:{}/", local.port());
                assert_eq!(client.get(&uri).await.unwrap().text(), Ok("on this link"), "{uri}");
            }
        }
    }
}

#[tokio::test]
async fn a_zone_that_this_machine_lacks_is_one_clear_error() {
    let client = Client::new().await.unwrap();
    for (uri, part) in [
        ("coap://[fe80::1%25nosuch0]/", "for fe80::1%nosuch0 this machine has no interface nosuch0"),
        ("coap+tcp://[fe80::1%nosuch0]/", "for fe80::1%nosuch0 this machine has no interface nosuch0"),
        ("coap://[fe80::1]/", "fe80::1 is an address on a link; say on which, as in coap://[fe80::1%eth0]/"),
    ] {
        let error = client.get(uri).await.unwrap_err();
        assert!(matches!(error, Error::Refused { .. }) && error.to_string().contains(part), "{error}");
    }
    // A number may be that of an interface; the kernel knows better, and at once.
    let error = client.get("coap://[fe80::1%4000000]/").deadline(Duration::from_secs(20)).await.unwrap_err();
    assert!(matches!(error, Error::Unreachable { .. }), "{error}");
}
