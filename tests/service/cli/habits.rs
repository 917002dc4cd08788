//! What people bring along from other commands: it works, or they are told what to do here.

use super::terminal::Terminal;
use super::{assert_webp, convert, failed, names, succeeded, write};
use crate::support::Folder;
use crate::support::command::{run, towebp};
use crate::support::picture::Picture;
use crate::support::service::Webp;
use serde_json::Value;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::process::{Command, Output};

fn folder() -> Folder {
    let folder = Folder::new();
    write(&folder, "a.png", &Picture::waves(90, 60).png());
    folder
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn shell(folder: &Folder, script: &str) -> Output {
    let mut command = Command::new("sh");
    command.args(["-c", script, env!("CARGO_BIN_EXE_towebp")]);
    run(command.current_dir(&folder.path), b"")
}

/// The WebP that these flags make.
fn webp(folder: &Folder, flags: &[&str]) -> Webp {
    let output = convert(folder, &[flags, &["a.png", "-o", "-"]].concat(), b"");
    succeeded(&output);
    Webp(output.stdout)
}

#[test]
fn q_is_the_quality() {
    let folder = folder();
    let lossy = |flags: &[&str]| webp(&folder, &[&["--mode=lossy"], flags].concat());
    let output = convert(
        &folder,
        &["-q", "20", "--mode=lossy", "a.png", "-o", "out.webp"],
        b"",
    );
    succeeded(&output);
    let written = Webp(fs::read(folder.path.join("out.webp")).expect("a file, not a folder"));
    assert_eq!(written, lossy(&["--quality=20"]));
    assert_eq!(lossy(&["-q20"]), lossy(&["--quality=20"]));
    assert_ne!(lossy(&["-q20"]), lossy(&["-q90"]));
    let quiet = convert(&folder, &["a.png", "--quiet"], b"");
    succeeded(&quiet);
    assert!(quiet.stderr.is_empty(), "{quiet:?}");
}

#[test]
fn a_webp_is_no_folder_for_several_inputs() {
    let folder = folder();
    write(&folder, "b.png", &Picture::waves(30, 20).png());
    for arguments in [
        &["a.png", "b.png", "-o", "out.webp"][..],
        &["-r", ".", "-o", "out.webp"],
    ] {
        let refused = convert(&folder, arguments, b"");
        failed(&refused, &["out.webp is the name of one picture"]);
        assert_eq!(refused.status.code(), Some(2));
    }
    assert_eq!(names(&folder.path), ["a.png", "b.png"]);
}

#[test]
fn names_that_are_not_utf8_are_names() {
    let folder = folder();
    let name = OsStr::from_bytes(b"caf\xE9.png");
    fs::rename(folder.path.join("a.png"), folder.path.join(name)).expect("our own folder");
    let convert = |more: &[&str]| {
        let mut command = towebp();
        command.arg("convert").arg(name).args(more);
        run(command.current_dir(&folder.path), b"")
    };
    let output = convert(&["--json"]);
    succeeded(&output);
    let lines = String::from_utf8(output.stdout).expect("text");
    let object: Value = serde_json::from_str(lines.lines().next().expect("a line")).expect("JSON");
    assert_eq!(object["input"], "caf\u{FFFD}.png");
    assert_eq!(object["input_escaped"], "caf%E9.png");
    assert_eq!(object["output_escaped"], "caf%E9.webp");
    assert_webp(
        &folder.path.join(OsStr::from_bytes(b"caf\xE9.webp")),
        90,
        60,
    );
    let output = convert(&[]);
    assert!(
        said(&output).contains(r"caf\xE9.png -> caf\xE9.webp"),
        "{}",
        said(&output)
    );
    let mut marked = towebp();
    marked.args(["convert", "-o", "b.webp", "--watermark-image"]);
    marked.args([name, name]).current_dir(&folder.path);
    succeeded(&run(&mut marked, b""));
}

#[test]
fn control_characters_of_names_do_not_reach_the_terminal() {
    let folder = folder();
    let name = "a\u{1b}[31m\n\u{202E}b.png";
    fs::rename(folder.path.join("a.png"), folder.path.join(name)).expect("our own folder");
    write(&folder, "\u{1b}[2J.png", b"not a picture");
    for arguments in [
        &[name][..],
        &["-r", "."],
        &["none\u{1b}.png"],
        &["--n\u{1b}o"],
    ] {
        let output = convert(&folder, arguments, b"");
        let said = said(&output);
        assert!(said.contains(r"\u{1b}"), "{said}");
        assert!(!said.contains(['\u{1b}', '\u{202E}']), "{said:?}");
    }
    let output = convert(&folder, &[name], b"");
    assert_eq!(said(&output).lines().count(), 1, "{output:?}");
}

#[test]
fn names_of_webp_files_have_one_point_and_may_have_folders() {
    let folder = folder();
    let png = Picture::waves(30, 20).png();
    fs::create_dir_all(folder.path.join("x/y")).expect("our own folder");
    for name in ["plain", "x/a.png", "x/y/a.png"] {
        write(&folder, name, &png);
    }
    succeeded(&convert(
        &folder,
        &["plain", "--name", "{stem}.{ext}.webp"],
        b"",
    ));
    assert_webp(&folder.path.join("plain.webp"), 30, 20);
    let all = ["a.png", "x/a.png", "./x/y/a.png", "-o", "out"];
    let name = ["--name", "{dir}/{stem}.webp"];
    succeeded(&convert(&folder, &[&all[..], &name].concat(), b""));
    for (path, width) in [
        ("out/a.webp", 90),
        ("out/x/a.webp", 30),
        ("out/x/y/a.webp", 30),
    ] {
        let height = if width == 90 { 60 } else { 20 };
        assert_webp(&folder.path.join(path), width, height);
    }
    let refused = convert(&folder, &[&["a.png"], &name[..]].concat(), b"");
    failed(&refused, &["needs -o FOLDER"]);
}

#[test]
fn all_collisions_are_told_and_the_others_are_converted() {
    let folder = folder();
    let png = Picture::waves(30, 20).png();
    for name in ["x", "y"] {
        fs::create_dir(folder.path.join(name)).expect("our own folder");
        for picture in ["1.png", "2.png"] {
            write(&folder, &format!("{name}/{picture}"), &png);
        }
    }
    write(&folder, "x/3.png", &png);
    let output = convert(&folder, &["-r", "x", "y", "-o", "out"], b"");
    let pairs = [
        "x/1.png: out/1.webp would be made of y/1.png, too; with -o, --name '{dir}/{stem}.webp'",
        "x/2.png: out/2.webp",
        "y/1.png: out/1.webp",
        "y/2.png: out/2.webp",
        "4 of 5 pictures",
    ];
    failed(&output, &pairs);
    assert_eq!(names(&folder.path.join("out")), ["3.webp"]);
    // The same file is no collision.
    let twice = convert(&folder, &["a.png", "./a.png", "x/../a.png"], b"");
    succeeded(&twice);
    assert_eq!(said(&twice).lines().count(), 1, "{twice:?}");
}

#[test]
fn numbers_out_of_range_are_mistakes_at_a_prompt() {
    let folder = folder();
    for (flag, value, allowed) in [
        ("--quality", "-5", "from 0 to 100"),
        ("-q", "101", "from 0 to 100"),
        ("--target", "99", "from 30 to 95"),
        ("--dpr", "9", "from 0.1 to 8"),
        ("--width", "20000", "from 1 to 16383"),
        ("--watermark-size", "500", "from 8 to 200"),
        ("--watermark-margin", "30%", "0% to 25%"),
        ("--watermark-scale", "0%", "from 1 to 100"),
        ("--max-bytes", "0", "from 1"),
    ] {
        let refused = convert(&folder, &["a.png", flag, value], b"");
        failed(
            &refused,
            &[&format!("{value:?} was given; allowed is"), allowed],
        );
        assert_eq!(refused.status.code(), Some(2), "{flag} {value}");
    }
    let refused = convert(&folder, &["a.png", "--threads", "0"], b"");
    failed(&refused, &["--threads 0: allowed are 1 to 1024"]);
    // As `-resize 400 0` of cwebp.
    succeeded(&convert(
        &folder,
        &["a.png", "--width=45", "--height=0"],
        b"",
    ));
    assert_webp(&folder.path.join("a.webp"), 45, 30);
}

#[test]
fn flags_without_effect_are_told_in_a_line() {
    let folder = folder();
    for (flags, line) in [
        (
            &["--quality=50", "--lossless"][..],
            "--quality has no effect with --lossless",
        ),
        (
            &["-q50", "--mode=lossless"],
            "--quality has no effect with --mode lossless",
        ),
        (
            &["--best-effort"],
            "--best-effort has no effect without --max-bytes",
        ),
        (
            &["--fit=cover", "--dpr=2"],
            "--fit and --dpr have no effect without --width or --height",
        ),
        (
            &["--width=9", "--gravity=top"],
            "--gravity has no effect without --fit cover",
        ),
        (
            &["--watermark-color=red"],
            "--watermark-color has no effect without --watermark",
        ),
    ] {
        let flags = [flags, &["a.png"]].concat();
        let output = convert(&folder, &flags, b"");
        succeeded(&output);
        let said = said(&output);
        assert!(said.contains(&format!("towebp: {line}\n")), "{said}");
        assert_eq!(said.lines().count(), 2, "{said}");
        let quiet = convert(&folder, &[&flags[..], &["--quiet"]].concat(), b"");
        assert!(quiet.stderr.is_empty(), "{quiet:?}");
    }
}

#[test]
fn the_last_of_a_repeated_flag_counts_and_no_undoes_a_switch() {
    let folder = folder();
    let twice = ["--mode=lossy", "--quality=90", "-q20"];
    assert_eq!(
        webp(&folder, &twice),
        webp(&folder, &["--mode=lossy", "-q20"])
    );
    let undone = ["-q20", "--lossless", "--no-lossless"];
    assert_eq!(webp(&folder, &undone), webp(&folder, &["-q20"]));
    let again = ["--no-lossless", "--lossless"];
    assert_eq!(webp(&folder, &again), webp(&folder, &["--lossless"]));
    let mut command = towebp();
    command.args(["serve", "--data", "none", "--data", "a.png"]);
    let refused = run(command.current_dir(&folder.path), b"");
    failed(&refused, &["--data a.png: is a file"]);
    // What a variable turns on, too.
    let mut command = towebp();
    command.env("TOWEBP_SNIFF", "perhaps");
    command.args(["serve", "--no-sniff", "--max-body=3"]);
    failed(&run(&mut command, b""), &["--max-body 3: allowed are"]);
}

#[test]
fn output_that_is_lost_is_a_failure() {
    let folder = folder();
    for (script, words) in [
        (
            r#""$0" convert a.png --json >/dev/full"#,
            "standard output cannot be written",
        ),
        (r#""$0" convert - <a.png >/dev/full"#, "No space left"),
        (r#""$0" convert - <a.png >&-"#, "standard output is closed"),
        (
            r#""$0" secret >/dev/full"#,
            "standard output cannot be written",
        ),
        (r#""$0" -h >/dev/full"#, "standard output cannot be written"),
    ] {
        let output = shell(&folder, script);
        assert!(!output.status.success(), "{script}");
        failed(&output, &[words]);
    }
    succeeded(&shell(&folder, r#""$0" convert - <a.png >/dev/null"#));
}

#[test]
fn a_webp_is_not_written_onto_a_terminal() {
    let folder = folder();
    for arguments in [
        &["convert", "a.png", "-o", "-"][..],
        &["convert", "a.png", "-o", "/dev/stdout"],
    ] {
        let mut terminal = Terminal::start(arguments, &folder.path);
        assert_eq!(terminal.end(), Some(2), "{arguments:?}");
        terminal.wait_for("a WebP is not for a terminal");
    }
}

#[test]
fn the_bar_moves_from_the_start() {
    let folder = folder();
    let made = Command::new("mkfifo")
        .arg(folder.path.join("slow.png"))
        .status();
    assert!(made.expect("it starts").success());
    let mut terminal = Terminal::start(
        &["convert", "slow.png", "a.png", "--threads=1"],
        &folder.path,
    );
    // Nothing is done yet, and the time goes on.
    terminal.wait_for("0 of 2");
    terminal.wait_for("slow.png");
    terminal.wait_for("1s");
    fs::write(folder.path.join("slow.png"), Picture::waves(8, 8).png()).expect("it is read");
    assert_eq!(terminal.end(), Some(0));
    terminal.wait_for("2 pictures in");
}

#[test]
fn what_other_programs_have_gets_a_hint() {
    let folder = folder();
    for (arguments, hint) in [
        (
            &["convert", "a.png", "b.webp"][..],
            "an output is given by -o: towebp convert a.png -o b.webp",
        ),
        (&["a.png"], "did you mean towebp convert a.png?"),
        (&["convert", "a.png", "--size", "100k"], "--max-bytes"),
        (&["convert", "a.png", "-size", "100"], "--max-bytes"),
        (&["convert", "a.png", "--resize", "400x300"], "--width"),
        (&["convert", "a.png", "-crop", "4"], "did you mean --crop?"),
        (&["convert", "a.png", "-m", "6"], "--effort"),
        (&["convert", "a.png", "-z", "9"], "--effort"),
        (&["convert", "a.png", "-j", "4"], "--threads"),
        (&["convert", "a.png", "-v"], "-V prints the version"),
        (
            &["convert", "a.png", "-lossless"],
            "did you mean --lossless?",
        ),
        (
            &["convert", "-quality", "80", "a.png"],
            "did you mean --quality?",
        ),
    ] {
        let mut command = towebp();
        let refused = run(command.args(arguments).current_dir(&folder.path), b"");
        failed(&refused, &[hint]);
        assert_eq!(refused.status.code(), Some(2), "{arguments:?}");
        assert!(!said(&refused).contains("zero"), "{refused:?}");
    }
    assert_eq!(names(&folder.path), ["a.png"]);
    write(&folder, "b.webp", b"RIFF0000WEBP");
    let output = convert(&folder, &["a.png", "b.webp"], b"");
    assert!(
        said(&output).contains("-o b.webp writes to it"),
        "{output:?}"
    );
}

#[test]
fn errors_have_the_words_of_the_command_line() {
    let folder = folder();
    let refused = convert(&folder, &["a.png", "--max-bytes=20"], b"");
    failed(&refused, &["--max-bytes allows 20", "--best-effort"]);
    assert!(!said(&refused).contains('_'), "{refused:?}");
    let refused = convert(&folder, &["a.png", "--watermark=\u{E000}"], b"");
    failed(&refused, &["--watermark: "]);
    let mut command = towebp();
    command.args(["account", "set-token", "a@example.org", "x", "--rate", "0"]);
    let refused = run(&mut command, b"");
    failed(&refused, &["--rate \"0\": expected a whole number, 1 to"]);
    let data = Folder::new();
    crate::support::command::account(&["create", "a@example.org"], &data.path);
    let mut command = towebp();
    let checked = run(command.args(["check", "--data"]).arg(&data.path), b"");
    succeeded(&checked);
    let checked = String::from_utf8(checked.stdout).expect("text");
    assert!(
        checked.starts_with("1 account, 0 sessions, 0 conversions"),
        "{checked}"
    );
}
