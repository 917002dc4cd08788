//! Reads Rust files as far as their layout goes: comments, paths, imports and modules.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// A Rust file.
pub struct Source {
    /// From the root of the workspace.
    pub path: PathBuf,
    /// The text with comments, but with nothing between the quotes of string literals.
    pub text: String,
    /// The same without comments.
    pub code: String,
    /// The opening `//!` lines.
    pub head: String,
}

/// Returns every Rust file under `folder`, sorted by path; none if there is no such folder.
pub fn sources(folder: &str) -> Vec<Source> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found = Vec::new();
    let mut folders = vec![root.join(folder)];
    while let Some(folder) = folders.pop() {
        let Ok(entries) = fs::read_dir(&folder) else {
            continue;
        };
        for entry in entries {
            let path = entry.expect("the folder can be read to its end").path();
            if path.is_dir() && path.file_name().is_none_or(|name| name != "target") {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = fs::read_to_string(&path).expect("a source file is UTF-8");
                let path = path.strip_prefix(root).expect("found under the root");
                found.push(Source::new(path, &text));
            }
        }
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    found
}

impl Source {
    pub fn new(path: &Path, text: &str) -> Source {
        let head = text.lines().take_while(|line| line.starts_with("//!"));
        Source {
            path: path.to_owned(),
            text: without_literals(text, true),
            code: without_literals(text, false),
            head: head.collect::<Vec<_>>().join("\n"),
        }
    }
}

/// Returns the text with empty string and character literals, and with or without its comments.
/// The lines stay the same lines.
fn without_literals(text: &str, with_comments: bool) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let length = if rest.starts_with("//") {
            let length = rest.find('\n').unwrap_or(rest.len());
            if with_comments {
                kept.push_str(&rest[..length]);
            }
            length
        } else if rest.starts_with("/*") {
            let length = rest.find("*/").map_or(rest.len(), |end| end + 2);
            keep_lines(&mut kept, &rest[..length], with_comments);
            length
        } else if let Some(length) = string_length(rest, kept.chars().next_back()) {
            kept.push('"');
            keep_lines(&mut kept, &rest[..length], false);
            kept.push('"');
            length
        } else if let Some(length) = character_length(rest) {
            kept.push_str("''");
            length
        } else {
            kept.push(first);
            first.len_utf8()
        };
        rest = &rest[length..];
    }
    kept
}

/// Appends `part`, or its line ends alone.
fn keep_lines(kept: &mut String, part: &str, whole: bool) {
    kept.extend(part.chars().filter(|&c| whole || c == '\n'));
}

/// The length of the string literal, raw or not, that `text` begins with.
fn string_length(text: &str, before: Option<char>) -> Option<usize> {
    if let Some(content) = text.strip_prefix('"') {
        let mut is_escaped = false;
        let end = content.find(|c| {
            let is_end = c == '"' && !is_escaped;
            is_escaped = c == '\\' && !is_escaped;
            is_end
        });
        return Some(end.map_or(text.len(), |end| end + 2));
    }
    if before.is_some_and(|c| c.is_alphanumeric() && c != 'b' || c == '_') {
        return None;
    }
    let quote = text.strip_prefix('r')?.find(|c| c != '#')? + 1;
    if !text[quote..].starts_with('"') {
        return None;
    }
    let end = format!("\"{}", &text[1..quote]);
    let begin = quote + 1;
    Some(
        text[begin..]
            .find(&end)
            .map_or(text.len(), |at| begin + at + end.len()),
    )
}

/// The length of the character literal that `text` begins with; none of a lifetime.
fn character_length(text: &str) -> Option<usize> {
    let inside = text.strip_prefix('\'')?;
    let first = inside.chars().next()?;
    if first == '\\' {
        let end = inside[2..].find('\'')?;
        return Some(end + 4);
    }
    let length = first.len_utf8();
    inside[length..].starts_with('\'').then_some(length + 2)
}

/// The name by which the program imports the crate of `pipeline/`.
const PIPELINE: &str = "towebp_pipeline";

/// A path of names from the root of a crate, which itself is the empty path.
pub type ModulePath = Vec<String>;

/// The files of a crate, each a module, and what they import of each other.
pub struct Crate {
    modules: BTreeMap<ModulePath, Module>,
}

/// What the text of one module says.
#[derive(Default)]
struct Module {
    file: PathBuf,
    /// The absolute paths behind the names that `use` declares, private ones included: a child sees
    /// those too.
    names: BTreeMap<String, ModulePath>,
    /// The absolute paths that its code mentions, those of `pub use` excepted, which is a table of
    /// contents.
    mentions: BTreeSet<ModulePath>,
    /// Whether it is compiled for tests alone.
    is_test: bool,
}

/// One file uses something that is defined in another.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Import {
    pub from: PathBuf,
    /// Where the item is defined, whatever re-exports it came by.
    pub to: PathBuf,
    /// The path as the importing file has it, from the root of the crate.
    pub written: ModulePath,
    /// The same where the item is defined.
    pub resolved: ModulePath,
}

impl Crate {
    /// Reads the crate whose root is `lib.rs` in the first folder, and into it the modules of other
    /// crates, which have to be named differently; with or without what is compiled for tests
    /// alone. Other roots, as `main.rs`, are left out.
    pub fn read(folders: &[&str], with_tests: bool) -> Crate {
        let mut files = BTreeMap::new();
        for folder in folders {
            for source in sources(folder) {
                let path = source.path.strip_prefix(folder).expect("found under it");
                if let Some(module) = module_path(path) {
                    files.entry(module).or_insert(source);
                }
            }
        }
        Crate::new(&files, with_tests)
    }

    fn new(files: &BTreeMap<ModulePath, Source>, with_tests: bool) -> Crate {
        let scans: BTreeMap<ModulePath, Scan> = files
            .iter()
            .map(|(path, source)| (path.clone(), Scan::of(&source.code, with_tests)))
            .collect();
        let is_test = |path: &ModulePath| {
            (1..=path.len()).any(|depth| {
                let (name, parent) = (&path[depth - 1], &path[..depth - 1]);
                name.ends_with("tests")
                    || scans
                        .get(parent)
                        .is_some_and(|scan| scan.test_modules.contains(name))
            })
        };
        let mut modules: BTreeMap<ModulePath, Module> = BTreeMap::new();
        for (path, scan) in &scans {
            let mut module = Module {
                file: files[path].path.clone(),
                is_test: !with_tests && is_test(path),
                ..Module::default()
            };
            let is_module = |child: &ModulePath| scans.contains_key(child);
            for import in &scan.imports {
                if let Some(target) = absolute(path, &import.path, is_module) {
                    if !import.is_public {
                        module.mentions.insert(target.clone());
                    }
                    module.names.insert(import.name.clone(), target);
                }
            }
            for mention in &scan.mentions {
                // A module that calls its own child by its name alone owns it, and imports nothing.
                let target = match module.names.get(&mention[0]) {
                    Some(target) => Some([target, &mention[1..]].concat()),
                    None => absolute(path, mention, |_| false),
                };
                module.mentions.extend(target);
            }
            modules.insert(path.clone(), module);
        }
        Crate { modules }
    }

    /// Every import of a file that is not for tests alone, by where the item is defined.
    pub fn imports(&self) -> BTreeSet<Import> {
        let mut found = BTreeSet::new();
        for module in self.modules.values().filter(|module| !module.is_test) {
            for written in &module.mentions {
                let Some(resolved) = self.resolve(written, 0) else {
                    continue;
                };
                let target = &self.modules[&resolved];
                if target.file != module.file && !target.is_test {
                    found.insert(Import {
                        from: module.file.clone(),
                        to: target.file.clone(),
                        written: written.clone(),
                        resolved,
                    });
                }
            }
        }
        found
    }

    /// The module that defines what a path names; none of a path that names a module, whose items
    /// are mentioned elsewhere.
    fn resolve(&self, path: &[String], depth: usize) -> Option<ModulePath> {
        let mut module = Vec::new();
        for (at, name) in path.iter().enumerate() {
            let child: ModulePath = module.iter().chain([name]).cloned().collect();
            let behind = self.modules[&module].names.get(name);
            let is_last = at + 1 == path.len();
            match behind {
                Some(target) if (is_last || !self.modules.contains_key(&child)) && depth < 8 => {
                    let target = [target, &path[at + 1..]].concat();
                    return self.resolve(&target, depth + 1);
                }
                _ if self.modules.contains_key(&child) => module = child,
                _ => return Some(module),
            }
        }
        None
    }

    /// The groups of files that reach each other by their imports, each sorted; a pair that imports
    /// each other is the smallest.
    pub fn circles(&self) -> Vec<Vec<PathBuf>> {
        let mut targets: BTreeMap<PathBuf, BTreeSet<PathBuf>> = BTreeMap::new();
        for import in self.imports() {
            targets.entry(import.from).or_default().insert(import.to);
        }
        let reached = |from: &PathBuf| {
            let mut reached = BTreeSet::new();
            let mut next: Vec<&PathBuf> = targets.get(from).into_iter().flatten().collect();
            while let Some(file) = next.pop() {
                if reached.insert(file.clone()) {
                    next.extend(targets.get(file).into_iter().flatten());
                }
            }
            reached
        };
        let reachable: BTreeMap<&PathBuf, BTreeSet<PathBuf>> =
            targets.keys().map(|file| (file, reached(file))).collect();
        let circles: BTreeSet<Vec<PathBuf>> = reachable
            .iter()
            .filter(|(file, reached)| reached.contains(**file))
            .map(|(file, reached)| {
                let returns =
                    |other: &&PathBuf| reachable.get(other).is_some_and(|r| r.contains(*file));
                reached.iter().filter(returns).cloned().collect()
            })
            .collect();
        circles.into_iter().collect()
    }
}

/// The module of a file of a crate: `http/mod.rs` is `http`, `lib.rs` the root; none of `main.rs`.
fn module_path(file: &Path) -> Option<ModulePath> {
    let without_ending = file.with_extension("");
    let mut names: ModulePath = without_ending
        .iter()
        .map(|name| name.to_string_lossy().into_owned())
        .collect();
    match names.last().map(String::as_str) {
        Some("main") if names.len() == 1 => return None,
        Some("lib") if names.len() == 1 => names.clear(),
        Some("mod") => drop(names.pop()),
        _ => {}
    }
    Some(names)
}

/// A path of this crate from its root; none of another crate's. `module` is where it is written.
fn absolute(
    module: &[String],
    names: &[String],
    is_module: impl Fn(&ModulePath) -> bool,
) -> Option<ModulePath> {
    let up = names.iter().take_while(|name| *name == "super").count();
    let (from, rest) = match names[0].as_str() {
        // The modules of the pipeline's crate are read beside the program's own.
        "crate" | PIPELINE => (&module[..0], &names[1..]),
        "self" => {
            // `self::super` is unusual, but means the same.
            let rest = &names[1..];
            let up = rest.iter().take_while(|name| *name == "super").count();
            (&module[..module.len().checked_sub(up)?], &rest[up..])
        }
        "super" => (&module[..module.len().checked_sub(up)?], &names[up..]),
        child if is_module(&[module, &[child.to_owned()]].concat()) => (module, names),
        _ => return None,
    };
    Some([from, rest].concat())
}

/// What one file's code says, in its own words.
#[derive(Default)]
struct Scan {
    imports: Vec<Use>,
    /// Paths of two or more names outside `use`.
    mentions: Vec<ModulePath>,
    /// Names of child modules that are compiled for tests alone.
    test_modules: BTreeSet<String>,
}

/// One name that a `use` declares.
struct Use {
    name: String,
    path: ModulePath,
    is_public: bool,
}

impl Scan {
    fn of(code: &str, with_tests: bool) -> Scan {
        let tokens = tokens(code);
        let mut scan = Scan::default();
        // Names of the modules inside the file that the code is in, and the depth of their braces.
        let mut inner: Vec<(&str, usize)> = Vec::new();
        let (mut depth, mut at) = (0, 0);
        let (mut is_public, mut is_for_tests) = (false, false);
        while at < tokens.len() {
            let rest = &tokens[at..];
            let mut taken = 1;
            match rest {
                ["#", "[", "cfg", "(", "test", ")", "]", ..] => {
                    is_for_tests = true;
                    at += 7;
                    continue;
                }
                ["#", "[", ..] => {
                    at += group_length(&rest[1..]) + 1;
                    continue;
                }
                ["pub", "(", ..] => {
                    is_public = true;
                    at += group_length(&rest[1..]) + 1;
                    continue;
                }
                ["pub", ..] => {
                    is_public = true;
                    at += 1;
                    continue;
                }
                ["mod", name, ";", ..] => {
                    if is_for_tests {
                        scan.test_modules.insert((*name).to_owned());
                    }
                    taken = 3;
                }
                ["mod", _, "{", ..] if is_for_tests && !with_tests => {
                    taken = group_length(&rest[2..]) + 2;
                }
                ["mod", name, "{", ..] => {
                    inner.push((name, depth));
                    depth += 1;
                    taken = 3;
                }
                // The lifetimes that a returned `impl Trait` captures.
                ["use", "<", ..] => {}
                ["use", ..] => {
                    let end = rest.iter().position(|token| *token == ";");
                    taken = end.unwrap_or(rest.len());
                    if with_tests || !is_for_tests {
                        scan.read_use(&[], &rest[1..taken], is_public, &inner);
                    }
                }
                ["{", ..] => depth += 1,
                ["}", ..] => {
                    depth -= 1;
                    inner.retain(|(_, begin)| *begin < depth);
                }
                [first, "::", ..] if is_name(first) => {
                    let names = rest.chunks(2).take_while(|pair| is_name(pair[0])).scan(
                        false,
                        |is_over, pair| {
                            let is_before = *is_over;
                            *is_over = pair.get(1) != Some(&"::");
                            (!is_before).then(|| pair[0].to_owned())
                        },
                    );
                    let names: ModulePath = names.collect();
                    taken = names.len() * 2 - 1;
                    scan.mentions.extend(out_of(names, &inner));
                }
                _ => {}
            }
            (is_public, is_for_tests) = (false, false);
            at += taken;
        }
        scan
    }

    /// Reads the tree of a `use` behind `before`.
    fn read_use(
        &mut self,
        before: &[String],
        tree: &[&str],
        is_public: bool,
        inner: &[(&str, usize)],
    ) {
        if tree.is_empty() {
            return; // behind the last comma of a group
        }
        let names = tree
            .iter()
            .step_by(2)
            .take_while(|token| is_name(token))
            .count();
        let plain = tree.iter().take(names * 2).step_by(2);
        let mut path = before.to_vec();
        path.extend(
            plain
                .take_while(|token| is_name(token))
                .map(|name| (*name).to_owned()),
        );
        let rest = tree.get(names * 2..).unwrap_or_default();
        if let ["{", ..] = rest {
            let inside = &rest[1..group_length(rest) - 1];
            let mut depth = 0;
            for item in inside.split(|token| {
                match *token {
                    "{" => depth += 1,
                    "}" => depth -= 1,
                    _ => {}
                }
                depth == 0 && *token == ","
            }) {
                self.read_use(&path, item, is_public, inner);
            }
            return;
        }
        if let ["*"] = rest {
            path.push("*".to_owned());
        }
        // `x as y` is taken for `x`, `y` for its new name.
        let renamed = tree.iter().position(|token| *token == "as");
        if let Some(at) = renamed {
            path.truncate(before.len() + at.div_ceil(2));
        }
        if path.last().is_some_and(|last| last == "self") && path.len() > 1 {
            path.pop();
        }
        let Some(last) = path.last().cloned() else {
            return;
        };
        let name = renamed.map_or(last, |at| tree[at + 1].to_owned());
        if let Some(path) = out_of(path, inner) {
            self.imports.push(Use {
                name,
                path,
                is_public,
            });
        }
    }
}

/// The path as it would be written outside the modules inside the file; none if it stays inside.
fn out_of(mut path: ModulePath, inner: &[(&str, usize)]) -> Option<ModulePath> {
    for _ in inner {
        match path[0].as_str() {
            "super" => drop(path.remove(0)),
            "crate" => return Some(path),
            _ => return None,
        }
        if path.is_empty() {
            return None;
        }
    }
    if inner.is_empty() || path[0] == "super" {
        return Some(path);
    }
    path.insert(0, "self".to_owned());
    Some(path)
}

/// Names, `::`, and every other character by itself.
fn tokens(code: &str) -> Vec<&str> {
    let mut tokens = Vec::new();
    let mut rest = code.trim_start();
    while let Some(first) = rest.chars().next() {
        let length = if is_of_name(first) {
            rest.find(|c| !is_of_name(c)).unwrap_or(rest.len())
        } else if rest.starts_with("::") {
            2
        } else {
            first.len_utf8()
        };
        tokens.push(&rest[..length]);
        rest = rest[length..].trim_start();
    }
    tokens
}

fn is_of_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

fn is_name(token: &str) -> bool {
    token.starts_with(|c: char| c.is_alphabetic() || c == '_')
}

/// How many tokens the group of brackets has that the tokens begin with, brackets included.
fn group_length(tokens: &[&str]) -> usize {
    let mut depth = 0;
    for (at, token) in tokens.iter().enumerate() {
        match *token {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return at + 1;
        }
    }
    tokens.len()
}

/// Whether the code has this word.
pub fn has_word(code: &str, word: &str) -> bool {
    tokens(code).contains(&word)
}

#[test]
fn literals_and_comments_are_told_from_code() {
    let text = r##"let a = "use // \" b"; // "c
let d = r#"e " f"#; /* g
h */ let i = 'j'; fn k<'l>(m: &'l str) { '\'' }"##;
    let code = without_literals(text, false);
    assert_eq!(
        code,
        "let a = \"\"; \nlet d = \"\"; \n let i = ''; fn k<'l>(m: &'l str) { '' }"
    );
    assert!(without_literals(text, true).contains("// \"c\n"));
    assert!(!has_word("#![expect(unsafe_code)]", "unsafe"));
    assert!(has_word("unsafe { f() }", "unsafe"));
}

#[test]
fn imports_lead_to_where_the_item_is() {
    let files = [
        ("lib.rs", "pub mod a; pub mod b; mod c;"),
        (
            "a/mod.rs",
            "mod x; mod y; #[cfg(test)] mod z; pub use x::{X, y as w}; pub use crate::c::C; pub struct A;",
        ),
        (
            "a/x.rs",
            "use super::y::{self, Y}; pub struct X; fn f() { y::g(); super::A; }",
        ),
        (
            "a/y.rs",
            "use crate::b::{self, *}; fn g() { b::deep::h(); Vec::new() }",
        ),
        ("a/z.rs", "use crate::c::C;"),
        (
            "b.rs",
            "use crate::{a::{X, C as D, A}, c as e}; mod deep { use super::super::a::w; fn h() { e::f(); } }",
        ),
        (
            "c.rs",
            "pub struct C; #[cfg(test)] mod tests { use crate::a::A; }",
        ),
    ];
    let files = files.map(|(path, text)| {
        let path = Path::new(path);
        (
            module_path(path).expect("a module"),
            Source::new(path, text),
        )
    });
    let code = Crate::new(&files.into(), false);
    let imports = code.imports();
    let pairs: BTreeSet<String> = imports
        .iter()
        .map(|import| format!("{} {}", import.from.display(), import.to.display()))
        .collect();
    assert_eq!(
        pairs.into_iter().collect::<Vec<_>>(),
        [
            "a/x.rs a/mod.rs",
            "a/x.rs a/y.rs",
            "a/y.rs b.rs",
            "b.rs a/mod.rs",
            "b.rs a/x.rs",
            "b.rs c.rs",
        ]
    );
    let circles = code.circles();
    let names: Vec<_> = circles.iter().map(Vec::len).collect();
    assert_eq!(names, [3], "{circles:?}");
}
