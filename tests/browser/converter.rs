//! Somebody who converts on the page that converts, and the ZIP that it saves.

use crate::chromium::Options;
use crate::page::Browser;
use crate::support::service::Service;
use crate::support::{Folder, Server};
use crate::visitor;
use serde_json::json;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Somebody who has signed up and opened the page.
pub struct Converter {
    pub browser: Browser,
    pub service: Service,
    pub folder: Folder,
}

impl Converter {
    /// In a browser that cannot load the module: the server converts everything.
    pub fn start(flags: &[&str], options: Options) -> Option<Converter> {
        let it = Converter::start_local(flags, options)?;
        it.browser.devtools("Network.enable", &json!({}));
        let blocked = json!({"urls": ["*/browser/*"]});
        it.browser.devtools("Network.setBlockedURLs", &blocked);
        it.browser.expect_on_console("/browser/index.js");
        Some(it)
    }

    /// In a browser that loads the module, if the program has it.
    pub fn start_local(flags: &[&str], options: Options) -> Option<Converter> {
        let server = Server::start_with(flags);
        let browser = Browser::start_with(&server, options)?;
        let token = visitor::sign_up(&browser);
        browser.open("/dashboard/convert");
        Some(Converter {
            browser,
            service: Service { server, token },
            folder: Folder::new(),
        })
    }

    pub fn file(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.folder.path.join(name);
        std::fs::write(&path, bytes).expect("a new file");
        path
    }

    #[track_caller]
    pub fn choose(&self, files: &[(&str, &[u8])]) {
        let files: Vec<_> = files
            .iter()
            .map(|(name, bytes)| self.file(name, bytes))
            .collect();
        let files: Vec<_> = files.iter().map(PathBuf::as_path).collect();
        self.browser.choose_files("#files", &files);
    }

    /// The states of all rows.
    #[track_caller]
    pub fn states(&self) -> Vec<String> {
        let script =
            "return [...document.querySelectorAll('.row')].map((row) => row.dataset.state)";
        serde_json::from_value(self.browser.run(script, &[])).expect("a list of texts")
    }

    #[track_caller]
    pub fn until_states(&self, states: &[&str]) {
        let what = format!("the pictures are {states:?}");
        self.browser.until(&what, || self.states() == states);
    }

    /// Waits until nothing is under way, for as long as some rows are settled.
    #[track_caller]
    pub fn until_settled(&self) {
        let is_pending =
            |state: &&String| ["waiting", "uploading", "converting"].contains(&state.as_str());
        let mut left = self.states().len() + 1;
        while left > 0 {
            let before = left;
            self.browser.until("something is settled", || {
                left = self.states().iter().filter(is_pending).count();
                left < before
            });
        }
    }

    #[track_caller]
    pub fn conversions(&self) -> u64 {
        let usage = self.service.usage();
        usage["totals"]["conversions"].as_u64().expect("a number")
    }

    /// Whether the page wants people to be asked before they leave it.
    #[track_caller]
    pub fn asks_before_it_leaves(&self) -> bool {
        let script = "return !dispatchEvent(new Event('beforeunload', { cancelable: true }))";
        self.browser.run(script, &[]) == true
    }

    /// A property of the first element by this selector, by its style.
    #[track_caller]
    pub fn style(&self, css: &str, property: &str) -> String {
        let script = "return document.querySelector(arguments[0]).style[arguments[1]]";
        let value = self.browser.run(script, &[css.into(), property.into()]);
        value.as_str().expect("a text").to_owned()
    }
}

/// The files of a ZIP in which all are stored, by their names; checks each against its CRC-32.
pub fn unzip(zip: &[u8]) -> BTreeMap<String, Vec<u8>> {
    let number = |at: usize, length: usize| {
        let bytes = &zip[at..at + length];
        bytes
            .iter()
            .rev()
            .fold(0, |sum, byte| sum << 8 | usize::from(*byte))
    };
    let end = zip.len() - 22;
    assert_eq!(number(end, 4), 0x0605_4b50, "the end of the directory");
    let mut files = BTreeMap::new();
    let mut at = number(end + 16, 4);
    assert_eq!(at + number(end + 12, 4), end, "the directory's length");
    for _ in 0..number(end + 10, 2) {
        assert_eq!(number(at, 4), 0x0201_4b50, "an entry of the directory");
        let (flags, method) = (number(at + 8, 2), number(at + 10, 2));
        assert_eq!((flags, method), (1 << 11, 0), "a name in UTF-8, stored");
        let (crc, size) = (number(at + 16, 4), number(at + 24, 4));
        let name_length = number(at + 28, 2);
        let name = String::from_utf8(zip[at + 46..at + 46 + name_length].to_vec());
        let name = name.expect("the flag says UTF-8");
        let local = number(at + 42, 4);
        assert_eq!(number(local, 4), 0x0403_4b50, "the file's own head");
        let start = local + 30 + number(local + 26, 2) + number(local + 28, 2);
        let bytes = zip[start..start + size].to_vec();
        assert_eq!(crc32fast::hash(&bytes) as usize, crc, "{name}");
        assert!(files.insert(name.clone(), bytes).is_none(), "{name} twice");
        at += 46 + name_length;
    }
    files
}
