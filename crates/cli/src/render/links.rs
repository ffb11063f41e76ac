//! Links of RFC 6690, one a line.

/// Breaks the text at commas that part links: those outside quotation marks and angle brackets.
pub(super) fn one_a_line(text: &str) -> String {
    let (mut quoted, mut escaped, mut bracketed) = (false, false, false);
    text.chars()
        .map(|c| {
            match c {
                '"' if !escaped => quoted = !quoted,
                '<' if !quoted => bracketed = true,
                '>' if !quoted => bracketed = false,
                _ => {}
            }
            escaped = c == '\\' && !escaped;
            if c == ',' && !quoted && !bracketed { '\n' } else { c }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commas_within_a_link_stay() {
        let text = r#"</a,b>;rt="x,\"y,",</c>"#;
        assert_eq!(one_a_line(text), "</a,b>;rt=\"x,\\\"y,\"\n</c>");
    }
}
