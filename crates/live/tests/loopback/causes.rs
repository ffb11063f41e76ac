//! Beneath an error lies that of the system or of another library.

use std::{error::Error as _, io};

use millpond_live::{
    Bytes, Cause, Client, Code, ContentFormat, Error, KeyedCertificate, Resource, Response, Server, TrustAnchors,
};
use tokio::{io::AsyncReadExt, net::TcpListener};

use crate::{ANY, authority::Authority};

/// What lies beneath, if it is one of these.
#[track_caller]
fn beneath<E: std::error::Error + 'static>(error: &Error) -> &E {
    let cause = error.source().unwrap_or_else(|| panic!("nothing beneath {error:?}"));
    let cause = cause.downcast_ref::<Cause>().expect("a cause");
    cause.get().downcast_ref().unwrap_or_else(|| panic!("another: {cause:?}"))
}

#[tokio::test]
async fn of_a_connection_that_was_reset_what_the_system_said() {
    let listener = TcpListener::bind(ANY).await.unwrap();
    let uri = format!("coap+tcp://{}/", listener.local_addr().unwrap());
    let resetting = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        // It says something, and what follows is not read.
        stream.read_exact(&mut [0; 2]).await.unwrap();
        stream.set_zero_linger().unwrap();
    };
    let client = Client::new().await.unwrap();
    let (outcome, ()) = tokio::join!(client.get(&uri).send(), resetting);
    let error = outcome.unwrap_err();
    assert!(matches!(error, Error::ConnectionLost { .. }), "{error:?}");
    assert_eq!(beneath::<io::Error>(&error).kind(), io::ErrorKind::ConnectionReset);
}

#[tokio::test]
async fn of_a_certificate_that_is_not_trusted_what_it_was_checked_with_said() {
    let (authority, stranger) = (Authority::new(), Authority::new());
    let server = Server::builder()
        .bind_tls(ANY)
        .bind_dtls(ANY)
        .security(stranger.server(&["127.0.0.1"]))
        .route("/", Resource::new().get(|| async { "hello" }))
        .start()
        .await
        .unwrap();
    let client = Client::builder().security(authority.client()).build().await.unwrap();
    for (transport, address) in server.local_addrs() {
        let scheme = if transport.is_datagram() { "coaps" } else { "coaps+tcp" };
        let error = client.get(format!("{scheme}://{address}/")).await.unwrap_err();
        assert!(matches!(error, Error::Insecure { .. }), "{error:?}");
        let expected = rustls::Error::InvalidCertificate(rustls::CertificateError::UnknownIssuer);
        assert_eq!(*beneath::<rustls::Error>(&error), expected, "{transport}");
    }
}

#[test]
fn of_a_body_that_is_no_value_what_read_it_said() {
    let answer = |format, body: &'static [u8]| Response::content(Bytes::from_static(body)).with_content_format(format);
    let error = answer(ContentFormat::JSON, b"{\"level\": }").json::<serde_json::Value>().unwrap_err();
    assert_eq!(beneath::<serde_json::Error>(&error).column(), 11);
    let error = answer(ContentFormat::CBOR, b"\x82\x01").cbor::<serde_json::Value>().unwrap_err();
    assert!(matches!(beneath(&error), ciborium::de::Error::<io::Error>::Io(_)));
    // Where nothing lies beneath there is none.
    let error = Response::new(Code::NOT_FOUND).json::<serde_json::Value>().unwrap_err();
    assert!(error.source().is_none() && error.to_string().contains("4.04"));
}

#[test]
fn of_a_credential_what_the_system_or_what_read_it_said_and_nothing_of_a_key() {
    let error = TrustAnchors::from_file("/no/such/file.pem").unwrap_err();
    assert_eq!(beneath::<io::Error>(&error).kind(), io::ErrorKind::NotFound);
    let error = TrustAnchors::from_pem(b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n").unwrap_err();
    assert!(matches!(beneath::<rustls::Error>(&error), rustls::Error::InvalidCertificate(_)));
    let error = TrustAnchors::from_pem(b"-----BEGIN CERTIFICATE-----\n*!*\n-----END CERTIFICATE-----\n").unwrap_err();
    assert!(matches!(beneath(&error), rustls::pki_types::pem::Error::Base64Decode(_)));
    // All of a key may stand on the line that begins it.
    let certificate = b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    for key in
        [&b"-----BEGIN PRIVATE KEY-----c2VjcmV0-----END PRIVATE KEY-----\n"[..], b"-----BEGIN PRIVATE KEY c2VjcmV0\n"]
    {
        let shown = format!("{:?}", KeyedCertificate::from_pem(certificate, key).unwrap_err());
        assert!(!shown.contains("c2Vj") && !shown.contains("99, 50"), "{shown}");
    }
}
