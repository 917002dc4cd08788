//! The description of the API as the tests use it: every answer is held to what it says.

use crate::support::{Response, Server};
use jsonschema::{Draft, Validator};
use serde_json::{Value as Json, json};

/// Headers that the description leaves out: of every HTTP server, or for browsers.
const UNDESCRIBED: [&str; 8] = [
    "connection",
    "content-length",
    "content-security-policy",
    "content-type",
    "date",
    "server",
    "transfer-encoding",
    "x-content-type-options",
];

/// Allows no other properties of objects than those that are described.
fn close(schema: &mut Json) {
    if let Some(properties) = schema.get_mut("properties").and_then(Json::as_object_mut) {
        properties.values_mut().for_each(close);
        schema["additionalProperties"] = json!(false);
    }
    if let Some(items) = schema.get_mut("items") {
        close(items);
    }
}

/// The document that a server sends.
pub struct Document(pub Json);

impl Document {
    pub fn of(server: &Server) -> Document {
        let answer = server.request("GET", "/openapi.json").send();
        assert_eq!(answer.status, 200, "{}", answer.text());
        Document(answer.json())
    }

    /// The path, the method in upper case, and the Operation Object of all operations.
    pub fn operations(&self) -> Vec<(&str, String, &Json)> {
        let paths = self.0["paths"].as_object().expect("it has paths").iter();
        let methods = paths.flat_map(|(path, item)| {
            let methods = item.as_object().expect("an object").iter();
            methods.map(move |(method, operation)| {
                (path.as_str(), method.to_ascii_uppercase(), operation)
            })
        });
        methods.collect()
    }

    /// The object that this object refers to, if it is a reference.
    pub fn resolve<'d>(&'d self, object: &'d Json) -> &'d Json {
        match object["$ref"].as_str() {
            Some(target) => self.at(target.strip_prefix('#').expect("within the document")),
            None => object,
        }
    }

    fn at(&self, pointer: &str) -> &Json {
        let found = self.0.pointer(pointer);
        found.unwrap_or_else(|| panic!("nothing is at {pointer}"))
    }

    /// A validator of a schema of the document. What a schema does not name is not allowed, so that
    /// a new field fails until it is described.
    pub fn validator(&self, schema: &Json) -> Validator {
        let mut schemas = self.0["components"]["schemas"].clone();
        schemas
            .as_object_mut()
            .expect("an object")
            .values_mut()
            .for_each(close);
        let whole = json!({"allOf": [schema], "components": {"schemas": schemas}});
        let options = jsonschema::options().with_draft(Draft::Draft202012);
        let options = options.should_validate_formats(true);
        options
            .build(&whole)
            .unwrap_or_else(|error| panic!("{error} in {schema}"))
    }

    #[track_caller]
    fn assert_valid(&self, schema: &Json, value: &Json, what: &str) {
        let validator = self.validator(schema);
        let faults: Vec<_> = validator
            .iter_errors(value)
            .map(|it| it.to_string())
            .collect();
        assert!(faults.is_empty(), "{what}: {faults:?} in {value}");
    }

    /// Checks that an operation describes this answer: its status, its media type, its body, its
    /// headers, and the code of a problem.
    #[track_caller]
    pub fn check(&self, operation: &Json, answer: &Response, what: &str) {
        let described = &operation["responses"][answer.status.to_string()];
        assert!(
            described.is_object(),
            "{what}: {} is not described: {}",
            answer.status,
            answer.text()
        );
        self.check_response(self.resolve(described), answer, what);
    }

    /// Checks a problem against its own Response Object, to which it links, and gives its code.
    #[track_caller]
    pub fn check_problem(&self, answer: &Response, what: &str) -> String {
        let problem = answer.json();
        let code = problem["code"].as_str().expect("it is a problem");
        let link = answer.header("link").unwrap_or_default();
        let target = format!("/components/responses/{code}");
        assert_eq!(
            link,
            format!("</openapi.json#{target}>; rel=\"describedby\""),
            "{what}"
        );
        self.check_response(self.at(&target), answer, what);
        let example = &self.at(&format!("/components/examples/{code}"))["value"];
        for field in ["type", "title", "status", "code", "error"] {
            assert_eq!(example[field], problem[field], "{what}: {field}");
        }
        assert_eq!(answer.reason, problem["error"], "{what}: the status line");
        code.to_owned()
    }

    #[track_caller]
    fn check_response(&self, described: &Json, answer: &Response, what: &str) {
        self.check_headers(described, answer, what);
        let Some(content) = described["content"].as_object() else {
            assert!(answer.body.is_empty(), "{what}: {}", answer.text());
            return;
        };
        let media_type = answer.header("content-type").unwrap_or_default();
        let Some(media) = content.get(media_type) else {
            panic!("{what}: {media_type} is not described");
        };
        let is_json = media_type == "application/json" || media_type.ends_with("+json");
        let value = if is_json {
            answer.json()
        } else {
            json!(String::from_utf8_lossy(&answer.body))
        };
        self.assert_valid(&media["schema"], &value, what);
        if media_type == "application/problem+json" {
            let code = value["code"].as_str().expect("a problem has a code");
            assert!(
                media["examples"].get(code).is_some(),
                "{what}: {code} is not described"
            );
        }
    }

    #[track_caller]
    fn check_headers(&self, described: &Json, answer: &Response, what: &str) {
        let described = described["headers"].as_object().expect("it has headers");
        for (name, header) in described {
            let header = self.resolve(header);
            let Some(value) = answer.header(&name.to_ascii_lowercase()) else {
                assert_eq!(header["required"], false, "{what}: {name} is missing");
                continue;
            };
            let is_text = header["schema"]["type"] == "string";
            let number = || serde_json::from_str(value).ok();
            let value = Some(value).filter(|_| !is_text).and_then(|_| number());
            let value = value.unwrap_or_else(|| json!(answer.header(&name.to_ascii_lowercase())));
            self.assert_valid(&header["schema"], &value, &format!("{what}: {name}"));
        }
        for (name, _) in &answer.headers {
            let is_described = described.keys().any(|it| it.eq_ignore_ascii_case(name))
                || UNDESCRIBED.contains(&name.as_str())
                || name.starts_with("access-control-")
                || name == "vary";
            assert!(is_described, "{what}: {name} is not described");
        }
    }
}
