//! `towebp completions` in real shells, where they are installed, and `towebp man`.

use super::{names, succeeded};
use crate::support::Folder;
use crate::support::command::{run, towebp};
use std::fs;
use std::process::{Command, Output};

/// Runs a script of a shell in a folder with its completions in the file `completions`; `None` if
/// the shell is not installed.
fn in_shell(shell: &str, options: &[&str], script: &str) -> Option<String> {
    if Command::new(shell).arg("--version").output().is_err() {
        return None;
    }
    let made = run(towebp().args(["completions", shell]), b"");
    succeeded(&made);
    let folder = Folder::new();
    fs::write(folder.path.join("completions"), made.stdout).expect("our own folder");
    fs::write(folder.path.join("script"), script).expect("our own folder");
    fs::write(folder.path.join("a b.png"), b"").expect("our own folder");
    let mut command = Command::new(shell);
    command
        .args(options)
        .arg("script")
        .current_dir(&folder.path)
        .env("HOME", &folder.path)
        .env("TERM", "dumb");
    let output = run(&mut command, b"");
    let Output { status, stderr, .. } = &output;
    let stderr = String::from_utf8_lossy(stderr);
    assert!(
        status.success() && stderr.is_empty(),
        "{shell}: {status}: {stderr}"
    );
    Some(String::from_utf8(output.stdout).expect("text"))
}

#[test]
fn bash_completes_commands_flags_values_and_files() {
    let script = r#"
        source ./completions
        # Files are completed by the shell itself where nothing else is.
        [[ $(complete -p towebp) == *" -o default "* ]] || exit 1
        compopt() { :; }
        try() { COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _towebp_equals towebp "${@: -1}" "${COMP_WORDS[COMP_CWORD - 1]}"; local IFS=,; echo "$*: ${COMPREPLY[*]}"; }
        try towebp conv
        try towebp convert --eff
        try towebp convert --effort ''
        try towebp convert --effort = h
        try towebp account set-e
        try towebp account create --secret-f
        try towebp convert a
        try towebp convert -o a
        try towebp completions f
        try towebp convert --quality ''
    "#;
    let Some(said) = in_shell("bash", &["--norc"], script) else {
        return;
    };
    let expected = [
        "towebp,conv: convert",
        "towebp,convert,--eff: --effort",
        "towebp,convert,--effort,: low,medium,high,max",
        "towebp,convert,--effort,=,h: high",
        "towebp,account,set-e: set-email",
        "towebp,account,create,--secret-f: --secret-file",
        "towebp,convert,a: ",
        "towebp,convert,-o,a: a b.png",
        "towebp,completions,f: fish",
        "towebp,convert,--quality,: ",
    ];
    assert_eq!(said.lines().collect::<Vec<_>>(), expected);
}

#[test]
fn fish_completes_commands_flags_values_and_files() {
    let script = "
        source ./completions
        for line in 'towebp conv' 'towebp convert --eff' 'towebp convert --effort ' \\
                'towebp account set-e' 'towebp convert a' 'towebp completions f' 'towebp account create --data x --f'
            echo $line: (complete -C $line | string replace -r '\\t.*' '')
        end
    ";
    let Some(said) = in_shell("fish", &["--no-config"], script) else {
        return;
    };
    let expected = [
        "towebp conv: convert",
        "towebp convert --eff: --effort",
        "towebp convert --effort : high low max medium",
        "towebp account set-e: set-email",
        "towebp convert a: a b.png",
        "towebp completions f: fish",
        "towebp account create --data x --f: --force",
    ];
    assert_eq!(said.lines().collect::<Vec<_>>(), expected);
}

#[test]
fn zsh_completes_commands_flags_values_and_files() {
    // A shell at a terminal of its own: each line is typed up to a tab, and what appears has to
    // hold the next line.
    let script = r#"
        zmodload zsh/zpty
        zpty z zsh -f -i
        zpty -w z 'PROMPT=; unset zle_bracketed_paste; autoload -Uz compinit; compinit -u -D; source ./completions; print REA""DY'
        zpty -r -m z out '*READY*'
        while IFS= read -r typed; do
            IFS= read -r expected
            zpty -w -n z "$typed"$'\t'
            zpty -r -m z out "*$expected*"
            print -r -- "$typed"
            zpty -w -n z $'\x15'
        done <<'END'
towebp conv
towebp convert 
towebp convert --eff
--effort
towebp convert --effort l
low
towebp convert --effort=m
medium
towebp account set-e
set-email
towebp convert a
b.png
towebp completions f
fish
END
        zpty -d z
    "#;
    let Some(said) = in_shell("zsh", &["-f"], script) else {
        return;
    };
    assert_eq!(said.lines().count(), 7, "{said}");
}

#[test]
fn the_manual_has_a_page_for_every_command() {
    let folder = Folder::new();
    let mut all = towebp();
    succeeded(&run(
        all.args(["man", "--into"]).arg(folder.path.join("man1")),
        b"",
    ));
    let pages = names(&folder.path.join("man1"));
    for page in ["towebp.1", "towebp-convert.1", "towebp-account-set-token.1"] {
        assert!(
            pages.contains(&page.to_owned()),
            "{page} is not in {pages:?}"
        );
    }
    let one = run(towebp().args(["man", "convert"]), b"");
    succeeded(&one);
    let page = String::from_utf8(one.stdout).expect("text");
    for part in [
        ".TH TOWEBP-CONVERT 1",
        ".SH SYNOPSIS",
        "\\-\\-watermark\\-size",
        ".SH EXAMPLES",
    ] {
        assert!(page.contains(part), "{part} is not in {page}");
    }
    for page in &pages {
        let path = folder.path.join("man1").join(page);
        for (program, options) in [
            ("man", &["--warnings", "-l"][..]),
            ("mandoc", &["-T", "lint", "-W", "warning"]),
        ] {
            let mut command = Command::new(program);
            command.args(options).arg(&path).env("LC_ALL", "C.UTF-8");
            let Ok(output) = command.output() else {
                continue;
            };
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(
                output.status.success() && said.is_empty(),
                "{program} {page}: {said}"
            );
        }
    }
}
