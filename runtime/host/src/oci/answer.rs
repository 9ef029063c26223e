//! What a status means, and what a registry says about it.

use reqwest::Response;
use serde::Deserialize;

use super::{
    Error,
    auth::Session,
    http::{content_type, place},
    retry::retry_after,
    text,
};

/// Longest error text that is read, bytes.
const MAX_BODY: u64 = 64 << 10;

/// What was asked for.
pub(super) struct Asked<'a> {
    /// In words.
    pub(super) what: &'a str,
    /// What a 404 says is missing; `None` when it says nothing.
    pub(super) missing: Option<&'a str>,
    /// Whether credentials were sent.
    pub(super) sent: bool,
}

/// The response, if it is a success.
pub(super) async fn check(session: &Session<'_>, response: Response, asked: &Asked<'_>) -> Result<Response, Error> {
    let status = response.status();
    if status.is_success() {
        return Ok(response);
    }
    let at = place(response.url());
    let retry_after = retry_after(response.headers(), std::time::SystemTime::now());
    let kind = content_type(response.headers()).to_owned();
    // The status is what counts; a body that cannot be read must not hide it.
    let body = session.transport.body(response, MAX_BODY, "an error", false).await.unwrap_or_default();
    let Said { code, text } = said(&body, &kind);
    let said = session.credentials.scrub(&text);
    let place = session.reference.place();
    Err(match (status.as_u16(), asked.missing) {
        (401, _) => Error::Unauthorized { at, place, sent: asked.sent, said },
        (403, _) => Error::Denied { at, place, sent: asked.sent, right: session.scope.right(), said },
        (404, Some(missing)) => Error::NotFound { what: missing.to_owned(), said },
        (status, _) => Error::Status { at, status, what: asked.what.to_owned(), code, said, retry_after },
    })
}

#[derive(Deserialize)]
struct Envelope {
    #[serde(default)]
    errors: Vec<Fault>,
}

/// The specification's object, or what registries make of it.
#[derive(Deserialize)]
#[serde(untagged)]
enum Fault {
    Object {
        #[serde(default)]
        code: Option<String>,
        #[serde(default)]
        message: Option<String>,
    },
    Text(String),
}

#[derive(Deserialize)]
struct Loose {
    #[serde(default, alias = "details", alias = "detail", alias = "error_description")]
    message: Option<String>,
    #[serde(default)]
    error: Option<String>,
}

/// The registry's own words.
struct Said {
    /// Of the specification, such as `MANIFEST_INVALID`; empty where there is none.
    code: String,
    text: String,
}

/// Registries differ in how they write errors, and proxies write pages.
fn said(body: &[u8], kind: &str) -> Said {
    let mut said = Said { code: String::new(), text: String::new() };
    if let Ok(Envelope { errors }) = serde_json::from_slice(body) {
        let first = errors.into_iter().find_map(|fault| match fault {
            Fault::Object { code, message } => {
                said.code = text::said(&code.clone().unwrap_or_default());
                message.filter(|text| !text.is_empty()).or(code)
            }
            Fault::Text(text) => Some(text),
        });
        if let Some(first) = first {
            said.text = text::said(&first);
            return said;
        }
    }
    if let Ok(Loose { message, error }) = serde_json::from_slice(body) {
        said.text = text::said(&message.or(error).unwrap_or_default());
        return said;
    }
    let plain = kind.starts_with("text/plain") || kind.is_empty();
    if body.trim_ascii_start().starts_with(b"<") {
        "an HTML page".clone_into(&mut said.text);
    } else if plain {
        said.text = text::said(&String::from_utf8_lossy(body));
    }
    said
}
