//! What `towebp convert` tells programs.

use super::{convert, failed, succeeded, write};
use crate::support::Folder;
use crate::support::command::account;
use crate::support::picture::Picture;
use crate::support::service::{OWNER, Service};
use serde_json::{Value, json};
use std::fs;

fn objects(output: &std::process::Output) -> Vec<Value> {
    let text = std::str::from_utf8(&output.stdout).expect("text");
    let read = |line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{line}: {error}"));
    text.lines().map(read).collect()
}

#[test]
fn json_is_an_object_for_each_picture_and_one_for_all() {
    let folder = Folder::new();
    let png = Picture::waves(90, 60).png();
    write(&folder, "a.png", &png);
    write(&folder, "bad.png", b"not a picture");
    write(&folder, "old.webp", b"RIFF0000WEBP");
    let arguments = [
        "a.png",
        "bad.png",
        "old.webp",
        "--json",
        "--mode=lossy",
        "--threads=1",
    ];
    let output = convert(&folder, &arguments, b"");
    failed(&output, &["1 of 3 pictures", "bad.png"]);
    let objects = objects(&output);
    let of = |name: &str| {
        let found = objects.iter().find(|object| object["input"] == name);
        found.unwrap_or_else(|| panic!("{name} is not in {objects:?}"))
    };
    let (before, after) = (png.len() as u64, fs::metadata(folder.path.join("a.webp")));
    let after = after.expect("written").len();
    let saved = (before - after) * 100 / before;
    let mut converted = of("a.png").clone();
    assert!(converted["milliseconds"].is_u64(), "{converted}");
    converted["milliseconds"] = Value::Null;
    assert_eq!(
        converted,
        json!({
            "input": "a.png", "output": "a.webp", "state": "converted",
            "input_bytes": before, "output_bytes": after, "saved_percent": saved,
            "width": 90, "height": 60, "milliseconds": null,
            "coding": "lossy", "quality": 85, "score": null, "placeholder": null,
        })
    );
    let bad = of("bad.png");
    assert_eq!(
        (&bad["state"], &bad["output"]),
        (&json!("failed"), &Value::Null)
    );
    assert!(
        bad["error"]
            .as_str()
            .is_some_and(|error| error.contains("none of PNG")),
        "{bad}"
    );
    assert_eq!(of("old.webp")["state"], "skipped");
    let total = &objects.last().expect("a last one")["total"];
    for (name, value) in [
        ("pictures", 3),
        ("converted", 1),
        ("skipped", 1),
        ("failed", 1),
        ("planned", 0),
        ("input_bytes", before),
        ("output_bytes", after),
        ("saved_percent", saved),
    ] {
        assert_eq!(total[name], value, "{name}: {total}");
    }
    assert_eq!(objects.len(), 4);
}

#[test]
fn json_tells_what_a_search_found_and_what_would_be_done() {
    let folder = Folder::new();
    write(&folder, "a.png", &Picture::waves(90, 60).png());
    let found = convert(
        &folder,
        &["a.png", "--json", "--target=70", "--mode=lossy"],
        b"",
    );
    succeeded(&found);
    assert!(found.stderr.is_empty(), "{found:?}");
    let found = &objects(&found)[0];
    assert!(
        found["score"].as_f64().is_some_and(|score| score >= 70.0),
        "{found}"
    );
    assert!(found["quality"].is_u64(), "{found}");
    let planned = convert(
        &folder,
        &["a.png", "--json", "--dry-run", "-o", "out/"],
        b"",
    );
    succeeded(&planned);
    let planned = objects(&planned);
    assert_eq!(
        planned[0],
        json!({ "input": "a.png", "output": "out/a.webp", "state": "planned" })
    );
    assert_eq!(planned[1]["total"]["planned"], 1);
}

#[test]
fn the_percent_is_the_same_here_at_the_server_and_in_the_account() {
    let service = Service::start();
    let folder = Folder::new();
    let png = Picture::waves(120, 90).png();
    write(&folder, "a.png", &png);
    let here = convert(&folder, &["a.png", "--json"], b"");
    succeeded(&here);
    let percent = objects(&here)[0]["saved_percent"].to_string();
    let answer = service.convert(&[], "image/png", &png);
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert_eq!(answer.header("x-saved-percent"), Some(&*percent));
    let usage = account(&["usage", OWNER], &service.data());
    let line = format!("percent saved\t{percent}");
    assert!(
        usage.lines().any(|own| own == line),
        "{line} is not in {usage}"
    );
}
