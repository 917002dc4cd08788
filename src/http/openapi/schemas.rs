//! The Schema Objects of JSON that the server sends.

use crate::http::problem::PROBLEMS;
use crate::store::{EntryId, RequestId, USAGE_FORMATS};
use serde_json::{Value as Json, json};

/// The Schema Objects by their names.
pub fn schemas() -> Json {
    json!({
        "Problem": problem(),
        "History": history(),
        "HistoryEntry": entry(),
        "HistoryTotals": totals(),
        "HistoryToken": token(),
        "Days": sums_of("day", "^[0-9]{4}-[0-9]{2}-[0-9]{2}$"),
        "Months": sums_of("month", "^[0-9]{4}-[0-9]{2}$"),
        "Failures": failures(),
    })
}

/// An object of these properties, all of which are there.
fn object(description: &str, properties: &Json) -> Json {
    let names: Vec<&String> = properties
        .as_object()
        .into_iter()
        .flat_map(|it| it.keys())
        .collect();
    json!({
        "type": "object",
        "description": description,
        "required": names,
        "properties": properties,
    })
}

fn problem() -> Json {
    let statuses: Vec<u16> = PROBLEMS.iter().map(|row| row.status).collect();
    let (least, most) = (statuses.iter().min(), statuses.iter().max());
    object(
        "An error (RFC 9457), with the fields `error` and `message` that clients of TinyPNG read.",
        &json!({
            "type": {"type": "string", "format": "uri", "pattern": "^urn:towebp:error:[a-z0-9_]+$",
                "description": "`urn:towebp:error:` and the code."},
            "title": {"type": "string", "description": "The same text for every occurrence."},
            "status": {"type": "integer", "minimum": least, "maximum": most,
                "description": "The HTTP status code."},
            "detail": {"type": "string",
                "description": "What is wrong with this request; for people, and may change."},
            "code": {"type": "string", "pattern": "^[a-z0-9_]+$",
                "description": "For programs, and stays. All of them are under `components/responses`."},
            "error": {"type": "string", "description": "The status's name."},
            "message": {"type": "string", "description": "The same as `detail`."},
        }),
    )
}

fn history() -> Json {
    object(
        "A page of the usage history, newest first.",
        &json!({
            "entries": {"type": "array", "maxItems": 1000,
                "items": {"$ref": "#/components/schemas/HistoryEntry"}},
            "next_before": {"type": ["string", "null"], "pattern": EntryId::PATTERN,
                "description": "The parameter `before` of the next page; `null` if this is the last."},
            "totals": {"$ref": "#/components/schemas/HistoryTotals"},
            "tokens": {"type": "array", "items": {"$ref": "#/components/schemas/HistoryToken"}},
        }),
    )
}

fn entry() -> Json {
    object(
        "One conversion.",
        &json!({
            "id": id(),
            "time": time(),
            "format": {"type": "string", "enum": USAGE_FORMATS,
                "description": "The format of the input."},
            "input_bytes": count("Bytes of the input."),
            "output_bytes": count("Bytes that were sent."),
            "width": {"type": "integer", "minimum": 1, "maximum": 16383},
            "height": {"type": "integer", "minimum": 1, "maximum": 16383},
            "quality": {"type": "integer", "minimum": 0, "maximum": 100},
            "watermark": {"type": "string", "enum": ["none", "text", "image", "both"]},
            "milliseconds": count("What the conversion took."),
            "token": {"type": "string", "description": "The name of the token."},
            "request_id": {"type": "string", "pattern": RequestId::PATTERN,
                "description": "The `X-Request-Id` of the response."},
        }),
    )
}

fn totals() -> Json {
    object("The sums over all conversions.", &sums())
}

/// The sums of all days or months, each with its name in this pattern.
fn sums_of(period: &str, pattern: &str) -> Json {
    let mut properties = sums();
    properties[period] = json!({"type": "string", "pattern": pattern});
    let one = object(&format!("The sums of a {period} (UTC)."), &properties);
    object(
        &format!("The sums of each {period} (UTC) with conversions, oldest first."),
        &json!({"sums": {"type": "array", "items": one}}),
    )
}

fn failures() -> Json {
    let one = object(
        "A conversion that failed.",
        &json!({
            "id": id(),
            "time": time(),
            "status": {"type": "integer", "minimum": 400, "maximum": 599},
            "code": {"type": "string", "pattern": "^[a-z0-9_]+$",
                "description": "The problem's `code`."},
            "input_bytes": count("Bytes of the body, as far as they are known."),
            "token": {"type": "string", "description": "The name of the token."},
            "request_id": {"type": "string", "pattern": RequestId::PATTERN,
                "description": "The `X-Request-Id` of the response."},
        }),
    );
    object(
        "A page of failed conversions, newest first.",
        &json!({
            "failures": {"type": "array", "maxItems": 1000, "items": one},
            "next_before": {"type": ["string", "null"], "pattern": EntryId::PATTERN,
                "description": "The parameter `before` of the next page; `null` if this is the last."},
        }),
    )
}

fn sums() -> Json {
    json!({
        "conversions": count("Conversions."),
        "input_bytes": count("Bytes of all inputs."),
        "output_bytes": count("Bytes that were sent."),
    })
}

fn token() -> Json {
    let mut properties = sums();
    properties["name"] = json!({"type": "string"});
    properties["is_deleted"] = json!({"type": "boolean"});
    properties["created"] = time();
    properties["last_used"] = time();
    properties["last_used"]["type"] = json!(["string", "null"]);
    object("A token, with the sums over its conversions.", &properties)
}

fn id() -> Json {
    json!({"type": "string", "pattern": EntryId::PATTERN,
        "description": "The entry's name in this list. Take it as it is: its form may change."})
}

fn count(description: &str) -> Json {
    json!({"type": "integer", "minimum": 0, "description": description})
}

fn time() -> Json {
    json!({"type": "string", "format": "date-time"})
}
