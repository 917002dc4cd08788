//! `/openapi.json`: a valid document, whose parameters and problems are those of the running
//! server. The tests read the document, so that a new parameter is tested as soon as it is in the
//! table, and a new problem fails until it is provoked.

mod document;
mod generated;
mod parameters;
mod problems;

use crate::support::picture::Picture;
use crate::support::service::Service;
use crate::support::{Response, Server};
use document::Document;
use jsonschema::Draft;
use serde_json::{Value as Json, json};

/// The media type of forms with a file.
const FORM: &str = "multipart/form-data";

/// The schema of documents of `OpenAPI` 3.1.
const SCHEMA: &str = include_str!("../../../testdata/openapi-3.1.schema.json");

#[test]
fn the_document_is_one_of_openapi_3_1() {
    for flags in [
        &[][..],
        &["--sniff", "--public-url", "https://webp.example.org"],
    ] {
        let document = Document::of(&Server::start_with(flags));
        let schema: Json = serde_json::from_str(SCHEMA).expect("the schema is JSON");
        let options = jsonschema::options().with_draft(Draft::Draft202012);
        let validator = options.build(&schema).expect("the schema is one");
        let faults: Vec<_> = validator
            .iter_errors(&document.0)
            .map(|fault| format!("{}: {fault}", fault.instance_path()))
            .collect();
        assert!(faults.is_empty(), "{faults:#?}");
        check_parts(&document, &document.0);
    }
}

/// Checks that each reference leads somewhere, that each schema is one, and that examples are of
/// their schemas.
fn check_parts(document: &Document, part: &Json) {
    document.resolve(part);
    if let Some(schema) = part.get("schema").filter(|it| it.is_object()) {
        let validator = document.validator(schema);
        let examples = schema["examples"].as_array().into_iter().flatten();
        let own = part.get("examples").and_then(Json::as_object);
        let own = own.into_iter().flat_map(|it| it.values());
        let own = own.map(|example| &document.resolve(example)["value"]);
        for example in examples.chain(part.get("example")).chain(own) {
            assert!(validator.is_valid(example), "{example} in {part}");
        }
    }
    match part {
        Json::Object(members) => members.values().for_each(|it| check_parts(document, it)),
        Json::Array(items) => items.iter().for_each(|it| check_parts(document, it)),
        _ => {}
    }
}

#[test]
fn the_document_is_kept_by_caches_and_read_by_other_origins() {
    let app = "https://app.example.org";
    let server = Server::start_with(&["--allow-origin", app]);
    let get = |headers: &[(&str, &str)]| {
        let request = server.request("GET", "/openapi.json");
        let request = headers
            .iter()
            .fold(request, |it, (name, value)| it.header(name, value));
        request.send()
    };
    let first = get(&[("Origin", app)]);
    assert_eq!(first.status, 200);
    assert_eq!(first.header("content-type"), Some("application/json"));
    assert_eq!(first.header("access-control-allow-origin"), Some(app));
    let tag = first.header("etag").expect("it has a tag");
    let document = Document::of(&server);
    let operation = &document.0["paths"]["/openapi.json"]["get"];
    document.check(operation, &first, "the document");
    let again = get(&[("If-None-Match", tag)]);
    assert_eq!((again.status, again.body.len()), (304, 0));
    document.check(operation, &again, "the same document");
    assert_eq!(get(&[("If-None-Match", "\"other\"")]).status, 200);
    let posted = server.request("POST", "/openapi.json").body("").send();
    assert_eq!(
        document.check_problem(&posted, "POST"),
        "method_not_allowed"
    );
}

#[test]
fn every_operation_answers_as_it_says() {
    let service = Service::start();
    // Histories have something to tell.
    service.webp(&[("watermark", "Ab")], &picture("image/png"));
    service.convert(&[], "image/png", b"no picture");
    let document = Document::of(&service.server);
    for (path, method, operation) in document.operations() {
        let content = operation["requestBody"]["content"].as_object();
        for media_type in content.into_iter().flat_map(|it| it.keys()) {
            let what = format!("{method} {path} of {media_type}");
            let answer = send(&service, operation, &method, path, &[], media_type);
            assert_eq!(answer.status, 200, "{what}: {}", answer.text());
            document.check(operation, &answer, &what);
        }
        if content.is_none() {
            let answer = send(&service, operation, &method, path, &[], "");
            let what = format!("{method} {path}");
            assert_eq!(answer.status, 200, "{what}: {}", answer.text());
            document.check(operation, &answer, &what);
        }
        let bare = service.request(&method, path, &[], b"");
        let needs_token = operation["security"] != json!([]);
        assert_eq!(bare.status == 401, needs_token, "{method} {path}");
        document.check(operation, &bare, path);
    }
}

/// Generated clients send what stands in the query and in the form as both.
#[test]
fn a_parameter_is_described_once() {
    let document = Document::of(&Server::start());
    let operation = &document.0["paths"]["/convert"]["post"];
    let form = &operation["requestBody"]["content"][FORM]["schema"];
    let fields: Vec<_> = form["properties"]
        .as_object()
        .expect("fields")
        .keys()
        .collect();
    assert_eq!(fields, ["file"]);
    // They are allowed all the same.
    assert_eq!(form["additionalProperties"]["type"], "string");
}

/// Sends a request of this operation with these parameters, the token where it is needed, and a
/// body of this media type. The parameters are fields of a form, if it is one.
fn send(
    service: &Service,
    operation: &Json,
    method: &str,
    path: &str,
    parameters: &[(&str, &str)],
    media_type: &str,
) -> Response {
    let in_query = if media_type == FORM { &[] } else { parameters };
    let query = form_urlencoded::Serializer::new(String::new())
        .extend_pairs(in_query)
        .finish();
    let bearer = format!("Bearer {}", service.token);
    let mut headers = vec![];
    if operation["security"] != json!([]) {
        headers.push(("Authorization", bearer.as_str()));
    }
    let mut body = Vec::new();
    let mut content_type = media_type.to_owned();
    if operation["requestBody"].is_object() {
        if media_type == FORM {
            content_type.push_str("; boundary=part");
            body = form(operation, parameters);
        } else {
            body = picture(media_type);
        }
        headers.push(("Content-Type", content_type.as_str()));
    }
    service.request(method, &format!("{path}?{query}"), &headers, &body)
}

/// A form with a PNG as the one field that is required, and these fields.
fn form(operation: &Json, fields: &[(&str, &str)]) -> Vec<u8> {
    let schema = &operation["requestBody"]["content"][FORM]["schema"];
    let [Json::String(file)] = schema["required"].as_array().expect("a list").as_slice() else {
        panic!("one field is required: {schema}");
    };
    let field = |name: &str, more: &str, value: &[u8]| {
        let head =
            format!("--part\r\nContent-Disposition: form-data; name=\"{name}\"{more}\r\n\r\n");
        [head.as_bytes(), value, b"\r\n"].concat()
    };
    let mut form = Vec::new();
    for (name, value) in fields {
        form.extend(field(name, "", value.as_bytes()));
    }
    let more = "; filename=\"a.png\"\r\nContent-Type: image/png";
    form.extend(field(file, more, &picture("image/png")));
    form.extend(b"--part--\r\n");
    form
}

/// A small picture of this media type.
fn picture(media_type: &str) -> Vec<u8> {
    let picture = Picture::waves(24, 16);
    match media_type {
        "image/png" | "image/apng" => picture.png(),
        "image/gif" => picture.gif(),
        "image/bmp" | "image/x-ms-bmp" | "image/x-bmp" => picture.bmp(),
        "image/jpeg" | "image/jpg" => include_bytes!("../../../testdata/rotated.jpg").to_vec(),
        other => panic!("there is no picture of {other}"),
    }
}
