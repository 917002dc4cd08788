//! "Copy as" of the page that converts: each snippet does what the page does, with a text that
//! means something to every language. A language that is not installed is skipped;
//! where nothing may be skipped, all but PHP and Go have to be.

use crate::page::Browser;
use crate::support::picture::Picture;
use crate::support::service::{Service, Webp};
use crate::support::skip;
use crate::support::{Folder, Server};
use crate::visitor;
use std::path::Path;
use std::process::{Command, Output};

const TEXT: &str = "it's \"50%\" © é $HOME `a` \\n #{1} ${2}\n& <b>";

/// What runs a snippet, after the file that it is written to.
const RUNNERS: [(&str, &str, &[&str], &[&str]); 5] = [
    ("curl", "convert.sh", &["curl", "--version"], &["sh"]),
    (
        "python",
        "convert.py",
        &["python3", "-c", "import requests"],
        &["python3"],
    ),
    ("node", "convert.mjs", &["node", "--version"], &["node"]),
    (
        "php",
        "convert.php",
        &["php", "-r", "exit(function_exists('curl_init') ? 0 : 1);"],
        &["php"],
    ),
    ("go", "convert.go", &["go", "version"], &["go", "run"]),
];

fn run(folder: &Path, file: &str, runner: &[&str], token: &str) -> Output {
    let cache = Path::new(env!("CARGO_TARGET_TMPDIR")).join("go");
    Command::new(runner[0])
        .args(&runner[1..])
        .arg(file)
        .current_dir(folder)
        .env("TOWEBP_TOKEN", token)
        // The server is on this machine, whatever proxy others go through.
        .envs(["NO_PROXY", "no_proxy"].map(|name| (name, "127.0.0.1")))
        .env("GOCACHE", cache)
        .env("GO111MODULE", "off")
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .output()
        .expect("it was there for the probe")
}

#[test]
fn snippets_do_what_the_page_does() {
    let server = Server::start();
    let Some(browser) = Browser::start(&server) else {
        return;
    };
    let token = visitor::sign_up(&browser);
    let service = Service { server, token };
    browser.open("/dashboard/convert");
    browser.run(
        "for (const group of document.querySelectorAll('#settings details')) group.open = true",
        &[],
    );
    let parameters = [
        ("quality", "60"),
        ("enlarge", "true"),
        ("watermark", TEXT),
        ("watermark_size", "8%"),
        ("watermark_color", "#fc0"),
        ("watermark_position", "topLeft"),
    ];
    let set = "const all = [...document.querySelectorAll(`[name=${arguments[0]}]`)]; \
         const field = all.find((one) => one.type === 'radio' && one.value === arguments[1]) ?? all[0]; \
         if (['checkbox', 'radio'].includes(field.type)) field.checked = true; else field.value = arguments[1]; \
         field.dispatchEvent(new Event('input', { bubbles: true }))";
    for (name, value) in parameters {
        browser.run(set, &[name.into(), value.into()]);
    }
    let picture = Picture::waves(240, 160).png();
    let expected = service.webp(&parameters, &picture);
    let folder = Folder::new();
    std::fs::write(folder.path.join("picture.png"), picture).expect("a new file");
    let choose = "const select = document.querySelector('#snippet-language'); \
         select.value = arguments[0]; select.dispatchEvent(new Event('change')); \
         return document.querySelector('#snippet').textContent";
    for (language, file, probe, runner) in RUNNERS {
        let snippet = browser.run(choose, &[language.into()]);
        let snippet = snippet.as_str().expect("a text");
        assert!(!snippet.contains("twp_"), "{snippet}");
        if !skip::succeeds(probe) {
            let what = format!("the snippet for {language} was not run: {probe:?} fails");
            if ["php", "go"].contains(&language) {
                skip::report(&what);
            } else {
                skip::skipped(&what);
            }
            continue;
        }
        std::fs::write(folder.path.join(file), snippet).expect("a new file");
        let webp = folder.path.join("picture.webp");
        std::fs::remove_file(&webp).ok();
        let output = run(&folder.path, file, runner, &service.token);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{said}\n{snippet}");
        let webp = std::fs::read(&webp).expect("it was written");
        assert_eq!(Webp(webp), expected, "{snippet}");
        let output = run(&folder.path, file, runner, "twp_wrong");
        assert!(!output.status.success(), "a wrong token fails\n{snippet}");
    }
}
