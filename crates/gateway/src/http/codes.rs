//! Methods and codes, both ways (RFC 7252 §10, RFC 8075 §7, RFC 8132 §2, RFC 10008).

use hyper::{Method, StatusCode};
use millpond_live::Code;

/// The method of CoAP that means the same. That of HEAD is GET.
pub(super) fn method(method: &Method) -> Option<Code> {
    Some(match method.as_str() {
        "GET" | "HEAD" => Code::GET,
        "POST" => Code::POST,
        "PUT" => Code::PUT,
        "DELETE" => Code::DELETE,
        "PATCH" => Code::PATCH,
        "QUERY" => Code::FETCH,
        _ => return None,
    })
}

/// The method of HTTP that means the same.
pub(super) fn http_method(method: Code) -> Option<&'static str> {
    Some(match method {
        Code::GET => "GET",
        Code::POST => "POST",
        Code::PUT => "PUT",
        Code::DELETE => "DELETE",
        Code::PATCH | Code::IPATCH => "PATCH",
        Code::FETCH => "QUERY",
        _ => return None,
    })
}

/// How a code is told in HTTP, of an answer with a body or without one (RFC 8075 §7, Table 2).
pub(super) fn status(code: Code, has_body: bool) -> StatusCode {
    match (code.class(), code.detail()) {
        (2, 1) => StatusCode::CREATED,
        (2, 3) => StatusCode::NOT_MODIFIED,
        // Deleted and Changed.
        (2, 2 | 4) if !has_body => StatusCode::NO_CONTENT,
        (2, _) => StatusCode::OK,
        // 401 would have to say how a client can show who it is.
        (4, 1 | 3) => StatusCode::FORBIDDEN,
        (4, 4) => StatusCode::NOT_FOUND,
        // 405 would have to say which methods there are; the gateway's own rules do.
        (4, 6) => StatusCode::NOT_ACCEPTABLE,
        // The gateway's own, of a body that did not come.
        (4, 8) => StatusCode::REQUEST_TIMEOUT,
        (4, 9) => StatusCode::CONFLICT,
        (4, 12) => StatusCode::PRECONDITION_FAILED,
        (4, 13) => StatusCode::PAYLOAD_TOO_LARGE,
        (4, 15) => StatusCode::UNSUPPORTED_MEDIA_TYPE,
        (4, 22) => StatusCode::UNPROCESSABLE_ENTITY,
        (4, 29) => StatusCode::TOO_MANY_REQUESTS,
        (4, _) => StatusCode::BAD_REQUEST,
        (5, 1) => StatusCode::NOT_IMPLEMENTED,
        (5, 2 | 5) => StatusCode::BAD_GATEWAY,
        (5, 3) => StatusCode::SERVICE_UNAVAILABLE,
        (5, 4) => StatusCode::GATEWAY_TIMEOUT,
        (5, 8) => StatusCode::LOOP_DETECTED,
        _ => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

/// How a status is told in CoAP, of an answer to a request by this method (RFC 7252 §10.1). None of one that is no answer.
pub(super) fn code(status: StatusCode, method: Code) -> Option<Code> {
    Some(match status.as_u16() {
        201 => Code::CREATED,
        304 => Code::VALID,
        200..=299 => match method {
            Code::GET | Code::FETCH => Code::CONTENT,
            Code::DELETE => Code::DELETED,
            _ => Code::CHANGED,
        },
        401 | 407 => Code::UNAUTHORIZED,
        403 => Code::FORBIDDEN,
        404 | 410 => Code::NOT_FOUND,
        405 => Code::METHOD_NOT_ALLOWED,
        406 => Code::NOT_ACCEPTABLE,
        409 => Code::CONFLICT,
        412 => Code::PRECONDITION_FAILED,
        413 => Code::REQUEST_ENTITY_TOO_LARGE,
        415 => Code::UNSUPPORTED_CONTENT_FORMAT,
        422 => Code::UNPROCESSABLE_ENTITY,
        429 => Code::TOO_MANY_REQUESTS,
        400..=499 => Code::BAD_REQUEST,
        501 => Code::NOT_IMPLEMENTED,
        502 => Code::BAD_GATEWAY,
        503 => Code::SERVICE_UNAVAILABLE,
        504 => Code::GATEWAY_TIMEOUT,
        508 => Code::HOP_LIMIT_REACHED,
        500..=599 => Code::INTERNAL_SERVER_ERROR,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 8075 §7, Table 2, with what was registered since.
    #[test]
    fn codes_are_told_as_the_table_says() {
        for (class, detail, with_body, without) in [
            (2, 1, 201, 201),
            (2, 2, 200, 204),
            (2, 3, 304, 304),
            (2, 4, 200, 204),
            (2, 5, 200, 200),
            (4, 0, 400, 400),
            (4, 1, 403, 403),
            (4, 2, 400, 400),
            (4, 3, 403, 403),
            (4, 4, 404, 404),
            (4, 5, 400, 400),
            (4, 6, 406, 406),
            (4, 9, 409, 409),
            (4, 12, 412, 412),
            (4, 13, 413, 413),
            (4, 15, 415, 415),
            (4, 22, 422, 422),
            (4, 29, 429, 429),
            (4, 31, 400, 400),
            (5, 0, 500, 500),
            (5, 1, 501, 501),
            (5, 2, 502, 502),
            (5, 3, 503, 503),
            (5, 4, 504, 504),
            (5, 5, 502, 502),
            (5, 8, 508, 508),
            (5, 31, 500, 500),
        ] {
            let code = Code::new(class, detail).unwrap();
            assert_eq!((status(code, true).as_u16(), status(code, false).as_u16()), (with_body, without), "{code}");
        }
    }

    /// An error never comes back as a success.
    #[test]
    fn statuses_keep_their_class() {
        for number in 100..=999 {
            let status = StatusCode::from_u16(number).unwrap();
            let class = code(status, Code::GET).map(Code::class);
            let expected = match number {
                200..=299 | 304 => Some(2),
                400..=499 => Some(4),
                500..=599 => Some(5),
                _ => None,
            };
            assert_eq!(class, expected, "{number}");
        }
    }
}
