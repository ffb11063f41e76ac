//! The path of the studies: the narrow cell behind NB-IoT, with a buffer in front of each direction.

/// Its two tables in TOML, with buffers of this size.
pub(crate) fn path(buffer: &str) -> String {
    format!(
        r#"
        [path.uplink]
        rate = "60 kbit/s"
        delay = "215 ms"
        queue = "{buffer}"
        [path.downlink]
        rate = "30 kbit/s"
        delay = "415 ms"
        queue = "{buffer}"
        "#
    )
}
