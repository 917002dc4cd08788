//! Each parameter at and beyond its bounds, and each of its words.

use super::document::Document;
use super::{FORM, send};
use crate::support::Response;
use crate::support::host::Host;
use crate::support::picture::Picture;
use crate::support::service::Service;
use serde_json::{Value as Json, json};

/// A value to send, and what the document says of it.
#[derive(Debug)]
struct Probe {
    value: String,
    expected: Expected,
}

#[derive(Debug)]
enum Expected {
    /// It is allowed.
    Allowed,
    /// It is as if this value were given.
    SameAs(String),
    /// It is an error of the client.
    Rejected,
}

#[test]
fn every_parameter_is_as_it_is_described() {
    let host = Host::of(&Picture::waves(8, 8).png());
    let service = Service::start();
    let document = Document::of(&service.server);
    let (mut sent, mut defaults) = (0, 0);
    for (path, method, operation) in document.operations() {
        for parameter in operation["parameters"].as_array().expect("a list") {
            let name = parameter["name"].as_str().expect("a name");
            let url = host.url();
            let ask_as = |media_type: &str, value: &str| {
                let mut parameters = vec![(name, value)];
                // What is said of a text has an effect beside one.
                if name.starts_with("watermark_") {
                    parameters.push(("watermark", "Ab"));
                }
                send(&service, operation, &method, path, &parameters, media_type)
            };
            let ask = |value: &str| ask_as("image/png", value);
            let takes_forms = operation["requestBody"]["content"][FORM].is_object();
            let schema = &parameter["schema"];
            // A client that is generated would send it, and undo what the token's preset says.
            assert!(schema.get("default").is_none(), "{name}: {schema}");
            let default = default(parameter);
            defaults += usize::from(default.is_some());
            for probe in probes(&document, schema, default, &url) {
                let what = format!("{method} {path} {name}: {probe:?}");
                let answer = ask(&probe.value);
                document.check(operation, &answer, &what);
                check(&probe, &answer, ask, &what);
                if takes_forms {
                    check_same(&ask_as(FORM, &probe.value), &answer, &what);
                }
                sent += 1;
            }
        }
    }
    assert!(sent > 150, "{sent} values");
    assert!(defaults > 20, "{defaults} defaults that are values");
}

/// The default by a parameter's description, if that is a value.
fn default(parameter: &Json) -> Option<&str> {
    let text = parameter["description"].as_str().expect("a text");
    let (_, default) = text.rsplit_once(" Default: ").expect("it has one");
    default.strip_prefix('`')?.strip_suffix("`.")
}

/// Checks that an answer is the one that is expected.
#[track_caller]
fn check(probe: &Probe, answer: &Response, ask: impl Fn(&str) -> Response, what: &str) {
    match &probe.expected {
        Expected::Allowed if answer.status == 200 => {}
        Expected::Allowed => {
            let problem = answer.json();
            assert_ne!(problem["code"], "invalid_parameter", "{what}: {problem}");
            assert_eq!(answer.status, 400, "{what}: {problem}");
        }
        Expected::SameAs(bound) => {
            let at_bound = ask(bound);
            let of = |answer: &Response| (answer.status, answer.body.clone());
            assert!(of(answer) == of(&at_bound), "{what}: {}", answer.text());
        }
        Expected::Rejected => assert_eq!(answer.status, 400, "{what}: {}", answer.text()),
    }
}

/// Checks that a field of a form is answered as a parameter of the query.
#[track_caller]
fn check_same(answer: &Response, expected: &Response, what: &str) {
    assert_eq!(
        answer.status,
        expected.status,
        "{what}, as a field: {}",
        answer.text()
    );
    if answer.status == 200 {
        assert!(answer.body == expected.body, "{what}, as a field");
    } else {
        assert_eq!(
            answer.json()["code"],
            expected.json()["code"],
            "{what}, as a field"
        );
    }
}

/// What a schema says of values at and beyond its bounds. `url` is a URL that can be fetched, which
/// the examples of the document are not.
fn probes(document: &Document, schema: &Json, default: Option<&str>, url: &str) -> Vec<Probe> {
    let mut probes = Vec::new();
    let mut push = |value: String, expected| probes.push(Probe { value, expected });
    let is_capped = schema["x-out-of-range"] == "capped";
    let alternatives = schema["anyOf"].as_array();
    let alternatives = alternatives.map_or(std::slice::from_ref(schema), Vec::as_slice);
    for alternative in alternatives {
        // A step beyond a bound; parts of numbers count to the thousandth.
        let step = if alternative["type"] == "number" {
            0.001
        } else {
            1.0
        };
        for (bound, step) in [("minimum", -step), ("maximum", step)] {
            let Some(bound) = alternative[bound].as_f64() else {
                continue;
            };
            push(bound.to_string(), Expected::Allowed);
            // 0 is within no range of these, and as if the parameter were absent.
            let is_absent = schema["x-zero"] == "absent" && bound + step == 0.0;
            let step = if is_absent { -2.0 } else { step };
            let beyond = (bound + step).to_string();
            push(
                beyond,
                if is_capped {
                    Expected::SameAs(bound.to_string())
                } else {
                    Expected::Rejected
                },
            );
        }
        for word in alternative["enum"].as_array().into_iter().flatten() {
            push(text(word), Expected::Allowed);
        }
    }
    let is_url = schema["format"] == "uri";
    let given = schema["examples"].as_array().into_iter().flatten();
    for value in given.map(text).chain(default.map(str::to_owned)) {
        let value = if is_url { url.to_owned() } else { value };
        push(value, Expected::Allowed);
    }
    let nonsense = "no such value";
    if !document.validator(schema).is_valid(&json!(nonsense)) {
        push(nonsense.to_owned(), Expected::Rejected);
    }
    probes
}

/// A value as a query has it.
fn text(value: &Json) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
}
