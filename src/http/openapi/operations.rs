//! The paths and their responses.

use super::parameters::parameter;
use crate::http::problem::{PROBLEMS, ProblemRow};
use crate::http::response_headers::{On, RESPONSE_HEADERS};
use crate::http::routes::{Credentials, Operation, ROUTES, Route, Success};
use crate::http::settings::Settings;
use serde_json::{Map, Value as Json, json};
use std::collections::BTreeMap;
use towebp_pipeline::image::Format;

/// The media type of problems.
const PROBLEM: &str = "application/problem+json";

/// The Paths Object: all paths that programs call.
pub fn paths(settings: &Settings) -> Json {
    let described = |route: &Route| {
        let operation = route.operation.as_ref()?;
        // HEAD is like GET, and clients need no function for it.
        let methods = route.methods.split(", ").filter(|method| *method != "HEAD");
        let item: Map<String, Json> = methods
            .map(|method| {
                let described = describe(route, operation, settings);
                (method.to_ascii_lowercase(), described)
            })
            .collect();
        Some((route.path.to_owned(), Json::Object(item)))
    };
    Json::Object(ROUTES.iter().filter_map(described).collect())
}

/// The Response Objects of all problems, by their codes.
pub fn problem_responses() -> Json {
    let responses = sent_problems().map(|row| {
        let schema = json!({
            "allOf": [{"$ref": "#/components/schemas/Problem"}],
            "properties": {
                "type": {"const": super::problem_type(row)},
                "title": {"const": row.title},
                "status": {"const": row.status},
                "code": {"const": row.code},
            },
        });
        let response = json!({
            "description": row.when,
            "headers": headers(|on| is_on_problem(on, row.status, true)),
            "content": {PROBLEM: {"schema": schema, "examples": examples(&[row])}},
        });
        (row.code.to_owned(), response)
    });
    Json::Object(responses.collect())
}

/// The problems that clients see.
pub fn sent_problems() -> impl Iterator<Item = &'static ProblemRow> {
    PROBLEMS.iter().filter(|row| row.is_sent())
}

/// The Operation Object.
fn describe(route: &Route, operation: &Operation, settings: &Settings) -> Json {
    let rows = route.parameters.iter().copied().flatten();
    let parameters: Vec<Json> = rows.filter_map(parameter).collect();
    let schemes: &[&str] = match operation.credentials {
        Credentials::None => &[],
        // First the one that logs of proxies do not keep.
        Credentials::Token => &["bearer", "query"],
        Credentials::TokenOrSession => &["bearer", "query", "session"],
    };
    let security: Vec<Json> = schemes.iter().map(|name| json!({*name: []})).collect();
    let mut described = json!({
        "operationId": operation.id,
        "tags": [operation.tag],
        "summary": operation.summary,
        "description": operation.description,
        "parameters": parameters,
        "security": security,
        "responses": responses(operation),
    });
    if matches!(operation.success, Success::Picture) {
        described["requestBody"] = picture(settings);
    }
    described
}

/// The Request Body Object of a conversion.
fn picture(settings: &Settings) -> Json {
    let mut types = media_types(settings);
    if settings.sniff {
        types.push("application/octet-stream");
    }
    let mut content: Map<String, Json> = types
        .into_iter()
        .map(|media_type| (media_type.to_owned(), json!({"schema": bytes(media_type)})))
        .collect();
    let form = form(&media_types(settings));
    content.insert("multipart/form-data".to_owned(), form);
    json!({
        "description": format!(
            "The picture's bytes, or a form with them; up to {} bytes.",
            settings.max_body
        ),
        "required": true,
        "content": content,
    })
}

/// The media types of the pictures that are converted.
fn media_types(settings: &Settings) -> Vec<&'static str> {
    let types = Format::MEDIA_TYPES.into_iter();
    let types = types.filter(|(_, format)| format.is_accepted(settings.accepts));
    types.map(|(name, _)| name).collect()
}

/// The Media Type Object of a form: the picture as the one file. The parameters are described once,
/// as those of the query, since generated clients would send a parameter in both places.
fn form(media_types: &[&str]) -> Json {
    json!({
        "schema": {
            "type": "object",
            "description": "The picture as the one file. The parameters of the query may be fields in its place, without \
                the token; each may be given once.",
            "properties": {
                "file": {"type": "string", "format": "binary", "description": "The picture, by any name."},
            },
            "required": ["file"],
            "additionalProperties": {"type": "string"},
        },
        "encoding": {
            "file": {"contentType": media_types.join(", ")},
        },
    })
}

/// Bytes as they are. `format` is how code generators of `OpenAPI` 3.0 and 3.1 know them.
fn bytes(media_type: &str) -> Json {
    json!({"type": "string", "format": "binary", "contentMediaType": media_type})
}

/// The Responses Object.
fn responses(operation: &Operation) -> Json {
    let is_conversion = matches!(operation.success, Success::Picture);
    let mut responses = Map::new();
    responses.insert("200".to_owned(), success(&operation.success));
    if matches!(operation.success, Success::Description) {
        let response = json!({
            "description": "It is the one that `If-None-Match` names.",
            "headers": headers(|on| matches!(on, On::All | On::Asset)),
        });
        responses.insert("304".to_owned(), response);
    }
    let mut by_status: BTreeMap<u16, Vec<&ProblemRow>> = BTreeMap::new();
    for row in sent_problems().filter(|row| operation.scopes.contains(&row.scope)) {
        by_status.entry(row.status).or_default().push(row);
    }
    for (status, rows) in by_status {
        let response = match rows.as_slice() {
            [row] => json!({"$ref": format!("#/components/responses/{}", row.code)}),
            rows => {
                let when: Vec<String> = rows
                    .iter()
                    .map(|row| format!("- `{}`: {}", row.code, row.when))
                    .collect();
                json!({
                    "description": when.join("\n"),
                    "headers": headers(|on| is_on_problem(on, status, is_conversion)),
                    "content": {PROBLEM: {
                        "schema": {"$ref": "#/components/schemas/Problem"},
                        "examples": examples(rows),
                    }},
                })
            }
        };
        responses.insert(status.to_string(), response);
    }
    Json::Object(responses)
}

/// The Response Object of a success.
fn success(success: &Success) -> Json {
    let content = |media_type: &str, schema: &Json| json!({media_type: {"schema": schema}});
    let (description, content, headers_on): (_, _, &[On]) = match *success {
        Success::Picture => {
            let types = Format::ALL.map(Format::media_type);
            let content: Map<String, Json> = types
                .into_iter()
                .map(|name| (name.to_owned(), json!({"schema": bytes(name)})))
                .collect();
            (
                "The WebP file; with `if_larger=original`, perhaps the input.",
                Json::Object(content),
                &[On::Picture, On::Conversion, On::File],
            )
        }
        Success::Text(text) => {
            let schema = json!({"type": "string", "const": text});
            let content = content("text/plain; charset=utf-8", &schema);
            ("The server is well.", content, &[])
        }
        Success::Json(description, name) => {
            let schema = json!({"$ref": format!("#/components/schemas/{name}")});
            (description, content("application/json", &schema), &[])
        }
        Success::File(description, media_type) => {
            let schema = json!({"type": "string"});
            (description, content(media_type, &schema), &[On::File])
        }
        Success::Description => {
            let schema = json!({"type": "object"});
            let content = content("application/json", &schema);
            ("This document.", content, &[On::Asset])
        }
    };
    json!({
        "description": description,
        "headers": headers(|on| on == On::All || headers_on.contains(&on)),
        "content": content,
    })
}

/// References to the headers that come with a response.
fn headers(is_sent: impl Fn(On) -> bool) -> Json {
    let rows = RESPONSE_HEADERS.iter().filter(|row| is_sent(row.on));
    let reference = |name: &str| json!({"$ref": format!("#/components/headers/{name}")});
    Json::Object(
        rows.map(|row| (row.name.to_owned(), reference(row.name)))
            .collect(),
    )
}

fn is_on_problem(on: On, status: u16, is_conversion: bool) -> bool {
    match on {
        On::All | On::Problem => true,
        On::Conversion => is_conversion,
        On::Status(statuses) => statuses.contains(&status),
        On::Picture | On::File | On::Asset => false,
    }
}

/// References to the examples of these problems.
fn examples(rows: &[&ProblemRow]) -> Json {
    let reference = |code: &str| json!({"$ref": format!("#/components/examples/{code}")});
    let examples = rows
        .iter()
        .map(|row| (row.code.to_owned(), reference(row.code)));
    Json::Object(examples.collect())
}
