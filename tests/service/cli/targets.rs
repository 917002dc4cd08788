//! `towebp convert -o`: what is at the target's place is replaced, written to, or left alone, and
//! never destroyed.

use super::{assert_webp, convert, failed, names, succeeded, write};
use crate::support::command::{run, towebp};
use crate::support::picture::Picture;
use crate::support::{Folder, TIMEOUT};
use std::fs::{self, File, Permissions};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt, symlink};
use std::process::{Command, Output};
use std::sync::mpsc;
use std::thread;

/// A folder with `a.png` of 30 x 20 pixels.
fn folder() -> Folder {
    let folder = Folder::new();
    write(&folder, "a.png", &Picture::waves(30, 20).png());
    folder
}

fn read(folder: &Folder, name: &str) -> Vec<u8> {
    fs::read(folder.path.join(name)).expect("it is there")
}

fn shell(folder: &Folder, script: &str) -> Output {
    let mut command = Command::new("sh");
    command.args(["-c", script, env!("CARGO_BIN_EXE_towebp")]);
    run(command.current_dir(&folder.path), b"")
}

#[test]
fn an_unrelated_file_is_replaced_by_force_alone_and_does_not_stop_the_others() {
    let folder = folder();
    for name in ["precious.png", "notes.txt", "notes"] {
        write(&folder, name, b"precious");
        let refused = convert(&folder, &["a.png", "-o", name], b"");
        failed(&refused, &[name, "--force", "-o"]);
        assert_eq!(refused.status.code(), Some(1));
        assert_eq!(read(&folder, name), b"precious");
    }
    succeeded(&convert(
        &folder,
        &["a.png", "-o", "notes.txt", "--force"],
        b"",
    ));
    assert_webp(&folder.path.join("notes.txt"), 30, 20);
    // New names are free, and so are existing WebP files, however their ending is written.
    for name in ["new.bin", "old.webp", "old.webp", "OLD.WEBP", "OLD.WEBP"] {
        succeeded(&convert(&folder, &["a.png", "-o", name], b""));
    }

    // The name of the file counts that would be lost, not that of a link to it.
    symlink("notes", folder.path.join("link.webp")).expect("our own folder");
    let refused = convert(&folder, &["a.png", "-o", "link.webp"], b"");
    failed(&refused, &["notes exists", "--force"]);

    let out = folder.path.join("out");
    fs::create_dir_all(out.join("a.webp")).expect("our own folder");
    write(&folder, "b.png", &Picture::waves(10, 10).png());
    let output = convert(&folder, &["a.png", "b.png", "-o", "out"], b"");
    failed(&output, &["1 of 2 pictures", "a.png", "out/a.webp"]);
    assert_webp(&out.join("b.webp"), 10, 10);
    assert_eq!(names(&out), ["a.webp", "b.webp"]);
}

#[test]
fn what_exists_is_kept_in_silence_or_with_a_note() {
    let folder = folder();
    write(&folder, "bad.png", b"not a picture: reading it would fail");
    write(&folder, "bad.webp", b"precious");
    let all = ["a.png", "bad.png"];
    let kept = convert(&folder, &[&all[..], &["--no-clobber"]].concat(), b"");
    succeeded(&kept);
    let said = String::from_utf8_lossy(&kept.stderr);
    assert!(said.contains("a.webp") && !said.contains("bad"), "{said}");
    let kept = convert(&folder, &[&all[..], &["--skip-existing"]].concat(), b"");
    succeeded(&kept);
    let said = String::from_utf8_lossy(&kept.stderr);
    for name in ["a", "bad"] {
        let note = format!("{name}.png: skipped, since {name}.webp exists");
        assert!(said.contains(&note), "{note} is not in: {said}");
    }
    assert_eq!(read(&folder, "bad.webp"), b"precious");
    assert_webp(&folder.path.join("a.webp"), 30, 20);
    let both = convert(&folder, &["a.png", "--no-clobber", "--force"], b"");
    failed(&both, &["--no-clobber", "--force"]);
}

#[test]
fn a_link_stays_and_its_target_keeps_its_mode() {
    let folder = folder();
    fs::create_dir(folder.path.join("elsewhere")).expect("our own folder");
    let file = folder.path.join("elsewhere/real.webp");
    fs::write(&file, "old").expect("our own folder");
    fs::set_permissions(&file, Permissions::from_mode(0o600)).expect("our own file");
    symlink("elsewhere/real.webp", folder.path.join("a.webp")).expect("our own folder");
    succeeded(&convert(&folder, &["a.png"], b""));
    let link = fs::symlink_metadata(folder.path.join("a.webp")).expect("it is there");
    assert!(link.is_symlink(), "the link was replaced");
    assert_webp(&file, 30, 20);
    let mode = fs::metadata(&file).expect("it is there").mode() & 0o7777;
    assert_eq!(mode, 0o600);
    assert_eq!(names(&folder.path.join("elsewhere")), ["real.webp"]);

    // An input behind a link is one still.
    symlink("a.png", folder.path.join("b.webp")).expect("our own folder");
    let refused = convert(&folder, &["a.png", "-o", "b.webp", "--force"], b"");
    failed(&refused, &["overwrite an input"]);
}

#[test]
fn fifos_and_devices_are_written_to() {
    let folder = folder();
    let make = |program: &str, arguments: &[&str]| {
        let mut command = Command::new(program);
        run(command.args(arguments).current_dir(&folder.path), b"")
            .status
            .success()
    };
    assert!(make("mkfifo", &["fifo"]), "mkfifo failed");
    let fifo = folder.path.join("fifo");
    let (sender, received) = mpsc::channel();
    let reader = fifo.clone();
    // It waits for a writer: for ever, if the FIFO is replaced.
    thread::spawn(move || sender.send(fs::read(reader)));
    succeeded(&convert(&folder, &["a.png", "-o", "fifo"], b""));
    let written = received.recv_timeout(TIMEOUT);
    let written = written.expect("nothing was written to the FIFO");
    let written = written.expect("it can be read");
    let picture = Picture::decode(&written);
    assert_eq!((picture.width, picture.height), (30, 20));
    let kind = fs::symlink_metadata(&fifo)
        .expect("it is there")
        .file_type();
    assert!(kind.is_fifo(), "the FIFO was replaced");

    // Only root may make a device, such as this twin of /dev/null, and not everywhere.
    let null = folder.path.join("null");
    if make("mknod", &["null", "c", "1", "3"]) && File::options().write(true).open(&null).is_ok() {
        succeeded(&convert(&folder, &["a.png", "-o", "null"], b""));
        let kind = fs::symlink_metadata(&null)
            .expect("it is there")
            .file_type();
        assert!(kind.is_char_device(), "the device was replaced");
    }
}

#[test]
fn open_descriptors_are_written_to() {
    let folder = folder();
    for script in [
        r#""$0" convert a.png -o /dev/stdout"#,
        r#""$0" convert a.png -o /dev/fd/3 3>&1 >/dev/null"#,
        r#""$0" convert a.png -o /dev/stdout >out; cat out"#,
        r#": >out; "$0" convert a.png -o /proc/self/fd/3 3>>out; cat out"#,
    ] {
        let output = shell(&folder, script);
        succeeded(&output);
        let picture = Picture::decode(&output.stdout);
        assert_eq!((picture.width, picture.height), (30, 20), "{script}");
    }
    // What others write to the same descriptor stays.
    let script = r#"{ echo before; "$0" convert a.png -o /dev/stdout; echo after; } >out"#;
    succeeded(&shell(&folder, script));
    let out = read(&folder, "out");
    assert!(out.starts_with(b"before\nRIFF") && out.ends_with(b"after\n"));
    assert_eq!(names(&folder.path), ["a.png", "out"]);
}

#[test]
fn a_folder_is_a_folder_whatever_its_name() {
    let folder = folder();
    fs::create_dir(folder.path.join("x.webp")).expect("our own folder");
    for target in ["x.webp", "x.webp/", "new/"] {
        succeeded(&convert(&folder, &["a.png", "-o", target], b""));
        assert_webp(&folder.path.join(target).join("a.webp"), 30, 20);
    }
    let output = run(
        towebp()
            .args(["convert", "a.png", "-o", "a.png/b.webp"])
            .current_dir(&folder.path),
        b"",
    );
    failed(&output, &["a.png"]);
}
