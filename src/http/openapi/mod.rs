//! `GET /openapi.json`: the description of the API in the form of `OpenAPI` 3.1, made at the start
//! of the tables of routes, parameters, response headers and problems.
//!
//! It has the paths that programs call. The dashboard's pages are for people: their forms carry
//! secrets of the session and change between versions. `GET /metrics` is on an address of its own.

mod examples;
mod operations;
mod parameters;
mod schemas;

use super::asset::Asset;
use super::problem::{Kind, ProblemRow};
use super::response::{Response, problem_type};
use super::response_headers::{HeaderValue, RESPONSE_HEADERS};
use super::settings::Settings;
use serde_json::{Map, Value as Json, json};

/// The description of the API that a server with these settings has.
pub fn describe(settings: &Settings) -> Asset {
    let document = document(settings);
    let text = serde_json::to_string(&document).expect("a tree of JSON is written");
    Asset::new("application/json", text)
}

/// The `OpenAPI` Object.
fn document(settings: &Settings) -> Json {
    // Without a public URL the server is the one that sent the document.
    let server = settings.public_url.as_deref().unwrap_or("/");
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "towebp",
            "version": env!("CARGO_PKG_VERSION"),
            "summary": "Turns PNG, JPEG, GIF and BMP pictures into WebP.",
            "description": "Parameters that are not described are ignored; one that is close to a described one is \
                named in `X-Towebp-Warning`. Every parameter may be given once. GET is answered for HEAD, too. \
                Each problem is under `components/responses`, by its code, and the header `Link` of a \
                problem leads there. Other paths are answered with `not_found`, other methods with \
                `method_not_allowed`.",
        },
        "servers": [{"url": server}],
        "tags": [
            {"name": "conversion", "description": "Pictures to WebP."},
            {"name": "history", "description": "What an account has converted."},
            {"name": "server", "description": "The server itself."},
        ],
        "paths": operations::paths(settings),
        "components": {
            "securitySchemes": security_schemes(settings),
            "schemas": schemas::schemas(),
            "headers": headers(),
            "responses": operations::problem_responses(),
            "examples": problem_examples(),
        },
    })
}

fn security_schemes(settings: &Settings) -> Json {
    json!({
        "query": {"type": "apiKey", "in": "query", "name": "token",
            "description": "The API token, which the dashboard shows. Logs of proxies keep it."},
        "bearer": {"type": "http", "scheme": "bearer", "bearerFormat": "twp_...",
            "description": "The API token, which the dashboard shows."},
        "session": {"type": "apiKey", "in": "cookie", "name": settings.session_cookie(),
            "description": "The session of a browser that is signed in to the dashboard."},
    })
}

/// The Header Objects by their names.
fn headers() -> Json {
    let headers = RESPONSE_HEADERS.iter().map(|row| {
        let (schema, example) = match row.value {
            HeaderValue::Whole(i64::MIN) => (json!({"type": "integer"}), number(row.example)),
            HeaderValue::Whole(min) => {
                let schema = json!({"type": "integer", "minimum": min});
                (schema, number(row.example))
            }
            HeaderValue::Number => (json!({"type": "number"}), number(row.example)),
            HeaderValue::Word(words) => {
                let schema = json!({"type": "string", "enum": words});
                (schema, json!(row.example))
            }
            HeaderValue::Text(pattern) => {
                let schema = json!({"type": "string", "pattern": pattern});
                (schema, json!(row.example))
            }
        };
        let header = json!({
            "description": row.meaning,
            "required": row.is_always,
            "schema": schema,
            "example": example,
        });
        (row.name.to_owned(), header)
    });
    Json::Object(headers.collect())
}

fn number(text: &str) -> Json {
    serde_json::from_str(text).expect("the table's examples are of their types")
}

/// The Example Objects of all problems by their codes: the bodies that the server sends.
fn problem_examples() -> Json {
    let kinds = Kind::ALL.iter().filter(|kind| kind.row().is_sent());
    let examples: Map<String, Json> = kinds
        .map(|&kind| {
            let row: &ProblemRow = &kind.row();
            let body = Response::from(examples::example(kind)).body;
            let body: Json = serde_json::from_slice(&body).expect("the server writes JSON");
            let example = json!({"summary": row.title, "description": row.when, "value": body});
            (row.code.to_owned(), example)
        })
        .collect();
    Json::Object(examples)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_document_follows_the_settings() {
        let default = document(&Settings::default());
        assert_eq!(default["servers"][0]["url"], "/");
        let types = |document: &Json| {
            let content = &document["paths"]["/convert"]["post"]["requestBody"]["content"];
            content.as_object().expect("it has media types").len()
        };
        let other = document(&Settings {
            public_url: Some("https://webp.example.org".to_owned()),
            sniff: true,
            ..Settings::default()
        });
        assert_eq!(other["servers"][0]["url"], "https://webp.example.org");
        assert_eq!(types(&other), types(&default) + 1);
        let cookie = &other["components"]["securitySchemes"]["session"]["name"];
        assert_eq!(cookie, "__Host-towebp_session");
    }
}
