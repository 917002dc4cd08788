//! Parameters of a query as `OpenAPI` has them.

use serde_json::{Map, Value as Json, json};
use towebp_pipeline::conversion::{CAPPED, DefaultValue, OR_ABSENT, Parameter, Value};

/// The extension with the treatment of numbers out of the range of a schema: `capped`, where the
/// server takes the nearest one that is allowed. All others are an error.
const OUT_OF_RANGE: &str = "x-out-of-range";

/// The extension with the meaning of 0 where it is in no range.
const ZERO: &str = "x-zero";

/// The Parameter Object; `None` for the token, which is a security scheme.
///
/// The default stands in the description: generated clients send a `default` of the schema, which
/// then displaces the token's preset.
pub fn parameter(row: &Parameter) -> Option<Json> {
    if matches!(row.value, Value::Token) {
        return None;
    }
    let default = match row.default {
        DefaultValue::Given(value) => format!("`{value}`"),
        DefaultValue::Other(words) => words.to_owned(),
    };
    let (meaning, otherwise) = (row.meaning, row.otherwise);
    Some(json!({
        "name": row.name,
        "in": "query",
        "required": false,
        "description": format!("{meaning}. Otherwise: {otherwise}. Default: {default}."),
        "schema": schema(row),
    }))
}

/// The Schema Object of its value.
fn schema(row: &Parameter) -> Json {
    let mut schema = typed(row.value);
    if row.otherwise.starts_with(CAPPED) {
        schema.insert(OUT_OF_RANGE.to_owned(), json!("capped"));
    }
    if row.otherwise == OR_ABSENT {
        schema.insert(ZERO.to_owned(), json!("absent"));
    }
    schema.insert(
        "examples".to_owned(),
        json!([literal(row.value, row.example)]),
    );
    Json::Object(schema)
}

fn typed(value: Value) -> Map<String, Json> {
    let schema = match value {
        Value::Number(min, max) => whole(min, max),
        Value::Count(min, u64::MAX) => json!({"type": "integer", "minimum": min}),
        Value::Count(min, max) => json!({"type": "integer", "minimum": min, "maximum": max}),
        Value::Decimal(min, max) => {
            json!({"type": "number", "minimum": thousandths(min), "maximum": thousandths(max)})
        }
        Value::Size(min, max) => {
            json!({"anyOf": [whole(min, max), text("^[0-9]+([kKmMgG]([iI]?[bB])?|[bB])$")]})
        }
        Value::Percent(min, max) => json!({"anyOf": [whole(min, max), text("^[0-9]+%$")]}),
        Value::Length {
            pixels: (min, max),
            has_auto,
            ..
        } => {
            let mut kinds = vec![whole(min, max), text(r"^[0-9]+(\.[0-9]+)?%$")];
            if has_auto {
                kinds.push(json!({"type": "string", "enum": ["auto"]}));
            }
            json!({ "anyOf": kinds })
        }
        Value::Word(_) => json!({"type": "string", "enum": value.words()}),
        Value::Color(_) => json!({"anyOf": [
            {"type": "string", "enum": value.words()},
            text("^#?([0-9A-Fa-f]{3}|[0-9A-Fa-f]{6})$"),
        ]}),
        Value::Rectangle => text("^[0-9]+,[0-9]+,[0-9]+,[0-9]+$"),
        Value::Day => json!({"type": "string", "format": "date"}),
        Value::Status => text("^[45]([0-9]{2}|[xX]{2})$"),
        Value::Cursor(pattern) => text(pattern),
        Value::Text | Value::Token => json!({"type": "string"}),
        Value::Url => json!({"type": "string", "format": "uri", "pattern": "^https?://"}),
    };
    match schema {
        Json::Object(schema) => schema,
        _ => unreachable!("each of them is an object"),
    }
}

fn whole(min: i32, max: i32) -> Json {
    json!({"type": "integer", "minimum": min, "maximum": max})
}

fn text(pattern: &str) -> Json {
    json!({"type": "string", "pattern": pattern})
}

fn thousandths(number: i32) -> f64 {
    f64::from(number) / 1000.0
}

/// A value of the table in the type of its schema: numbers as numbers, all else as text.
fn literal(value: Value, written: &str) -> Json {
    let is_number = !matches!(
        value,
        Value::Word(_) | Value::Color(_) | Value::Cursor(_) | Value::Text
    );
    let number = || serde_json::from_str(written).ok().filter(Json::is_number);
    is_number
        .then(number)
        .flatten()
        .unwrap_or_else(|| json!(written))
}

#[cfg(test)]
mod tests {
    use super::*;
    use towebp_pipeline::conversion::{PARAMETERS, Params};

    #[test]
    fn examples_and_words_are_allowed_ones() {
        for row in PARAMETERS {
            let mut values = row.value.words();
            values.push(row.example);
            for value in values {
                let pairs = [(row.name, value)];
                let parsed = Params::parse(pairs.iter().copied());
                parsed.unwrap_or_else(|error| panic!("{error}"));
            }
        }
    }

    #[test]
    fn values_are_of_their_schema_s_type() {
        let [quality, size] = ["quality", "watermark_size"].map(|name| {
            let row = PARAMETERS.iter().find(|row| row.name == name);
            schema(row.expect("it is in the table"))
        });
        let expected = json!({"type": "integer", "minimum": 0, "maximum": 100,
            "examples": [80], "x-out-of-range": "capped"});
        assert_eq!(quality, expected);
        assert_eq!(size["examples"], json!(["3%"]));
        let quality = PARAMETERS.iter().find_map(|row| {
            let described = parameter(row).filter(|_| row.name == "quality")?;
            described["description"].as_str().map(str::to_owned)
        });
        let quality = quality.expect("it is in the table");
        assert!(quality.ends_with(" Default: `85`."), "{quality}");
    }
}
