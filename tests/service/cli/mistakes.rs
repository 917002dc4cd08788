//! What is said of mistakes on the command line, and with which exit code.

use super::{convert, failed, write};
use crate::support::Folder;
use crate::support::command::{run, towebp};
use crate::support::picture::Picture;

#[test]
fn mistakes_are_told_with_what_was_meant_and_exit_code_2() {
    for (arguments, words) in [
        (&["conver", "a.png"][..], "did you mean convert?"),
        (&["account", "creat"], "did you mean create?"),
        (
            &["convert", "a.png", "--qualty=3"],
            "did you mean --quality?",
        ),
        (
            &["convert", "a.png", "--effort", "hihg"],
            "did you mean high?",
        ),
        (
            &["convert", "a.png", "--watermark-position=botom"],
            "did you mean bottom?",
        ),
        (
            &["convert", "a.png", "--quality"],
            "--quality needs a value",
        ),
        (&["convert"], "no input was given"),
        (&["convert", "a.png", "b.png", "-o", "-"], "takes one input"),
        (
            &["convert", "a.png", "--force", "--no-clobber"],
            "only one of these",
        ),
        (
            &["convert", "a.png", "--newer", "--skip-existing"],
            "only one of these",
        ),
        (
            &["convert", "a.png", "--json", "-o", "-"],
            "--json and a WebP on standard output",
        ),
        (
            &["convert", "a.png", "--name", "{stm}"],
            "did you mean stem?",
        ),
        (
            &["convert", "a.png", "--name", "{stem}", "-o", "b.webp"],
            "b.webp is the name of a file",
        ),
        (
            &[
                "convert",
                "a.png",
                "--skip-if-larger",
                "--if-larger",
                "original",
            ],
            "one of the two",
        ),
        (&["serve", "now"], "\"now\" is one argument too many"),
        (
            &["serve", "--threads", "0"],
            "--threads 0: allowed are 1 to 1024",
        ),
        (
            &["account", "limit", "a@example.org"],
            "say --rate or --monthly",
        ),
        (&["completions", "fsh"], "bash, zsh, fish"),
        (&["man", "convrt"], "did you mean convert?"),
        (&["store", "copy", "--from", "a"], "--to is missing"),
        (&[], "Usage: towebp"),
        (&["account"], "Usage: towebp account"),
    ] {
        let refused = run(towebp().args(arguments), b"");
        failed(&refused, &[words]);
        let said = String::from_utf8_lossy(&refused.stderr);
        assert_eq!(refused.status.code(), Some(2), "{arguments:?}: {said}");
        assert!(refused.stdout.is_empty(), "{arguments:?}");
        assert!(said.contains(" -h"), "{arguments:?}: {said}");
    }
}

#[test]
fn work_that_fails_has_exit_code_1() {
    let folder = Folder::new();
    write(&folder, "bad.png", b"not a picture");
    for arguments in [
        &["bad.png"][..],
        &["none.png"],
        &["none.png", "bad.png", "--quiet"],
    ] {
        let refused = convert(&folder, arguments, b"");
        failed(&refused, &[arguments[0]]);
        assert_eq!(refused.status.code(), Some(1), "{arguments:?}");
    }
}

#[test]
fn short_flags_are_joined_and_help_is_asked_for_in_several_ways() {
    let folder = Folder::new();
    write(&folder, "a.png", &Picture::waves(30, 20).png());
    let joined = convert(&folder, &["-roout", "a.png"], b"");
    super::succeeded(&joined);
    super::assert_webp(&folder.path.join("out/a.webp"), 30, 20);
    let asked = |arguments: &[&str]| {
        let output = run(towebp().args(arguments), b"");
        super::succeeded(&output);
        String::from_utf8(output.stdout).expect("text")
    };
    let help = asked(&["convert", "-h"]);
    assert_eq!(help, asked(&["help", "convert"]));
    assert_eq!(help, asked(&["convert", "a.png", "--help"]));
    for part in [
        "Examples:",
        "Watermarks:",
        "-r, --recursive",
        "--effort <low|medium|high|max>",
        "(default {stem}.webp)",
    ] {
        assert!(help.contains(part), "{part} is not in {help}");
    }
    assert!(
        help.lines().all(|line| line.chars().count() <= 80),
        "{help}"
    );
}
