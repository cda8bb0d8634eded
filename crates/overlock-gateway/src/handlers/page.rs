//! `GET /` and `GET /page/{file}`: the page, whose files are compiled into the program.
//!
//! It needs no key: it contains no data, and reads the JSON API with the key of the user.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::LazyLock;

use hyper::header::{ETAG, HeaderMap, HeaderValue, IF_NONE_MATCH};
use hyper::{StatusCode, Uri};

use crate::error::ApiError;
use crate::handlers::Handled;
use crate::reply::{Reply, reply, whole};

/// A file of the page.
struct File {
    name: &'static str,
    kind: &'static str,
    text: &'static str,
}

macro_rules! files {
    ($($kind:ident $name:literal)*) => {
        &[$(File {
            name: $name,
            kind: $kind,
            text: include_str!(concat!("../../page/", $name)),
        },)*]
    };
}

const HTML: &str = "text/html; charset=utf-8";
const STYLE: &str = "text/css; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";
const ICON: &str = "image/svg+xml";

/// All files. The first is the page itself.
const FILES: &[File] = files! {
    HTML   "index.html"
    STYLE  "style.css"
    ICON   "icon.svg"
    SCRIPT "main.js"
    SCRIPT "api.js"
    SCRIPT "dom.js"
    SCRIPT "text.js"
    SCRIPT "json.js"
    SCRIPT "words.js"
    SCRIPT "window.js"
    SCRIPT "runs.js"
    SCRIPT "run.js"
    SCRIPT "attempts.js"
    SCRIPT "document.js"
    SCRIPT "pipeline.js"
    SCRIPT "blocks.js"
    SCRIPT "playground.js"
};

/// The `ETag`s of the files, in the order of [`FILES`].
static TAGS: LazyLock<Vec<HeaderValue>> = LazyLock::new(|| {
    let tags = FILES.iter().map(|file| {
        let mut hasher = DefaultHasher::new();
        file.text.hash(&mut hasher);
        let tag = format!("\"{:016x}\"", hasher.finish());
        HeaderValue::from_str(&tag).expect("digits in quotes are plain text")
    });
    tags.collect()
});

/// The page may load its own files and call its own gateway, nothing else.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; \
    connect-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'; \
    frame-ancestors 'none'";

/// The headers of every file. `no-cache` has browsers check the `ETag` before they reuse a file.
const FILE_HEADERS: &[(&str, &str)] = &[
    ("cache-control", "no-cache"),
    ("content-security-policy", POLICY),
    ("referrer-policy", "no-referrer"),
    ("x-content-type-options", "nosniff"),
];

pub(crate) async fn index(headers: HeaderMap) -> Reply {
    file_reply(0, &headers)
}

pub(crate) async fn file(uri: Uri, headers: HeaderMap) -> Handled {
    let path = uri.path();
    let name = path.rsplit('/').next().unwrap_or_default();
    let Some(place) = FILES.iter().position(|file| file.name == name) else {
        return Err(ApiError::unknown_url(path));
    };
    Ok(file_reply(place, &headers))
}

fn file_reply(place: usize, headers: &HeaderMap) -> Reply {
    let (file, tag) = (&FILES[place], &TAGS[place]);
    let mut reply = if headers.get(IF_NONE_MATCH) == Some(tag) {
        reply(StatusCode::NOT_MODIFIED, file.kind, whole(""))
    } else {
        reply(StatusCode::OK, file.kind, whole(file.text))
    };
    let headers = reply.headers_mut();
    headers.insert(ETAG, tag.clone());
    for (name, value) in FILE_HEADERS {
        headers.insert(*name, HeaderValue::from_static(value));
    }
    reply
}
