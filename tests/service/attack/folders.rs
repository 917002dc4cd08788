//! What others of the same machine prepare in folders that they may write.

use crate::support::command::{run, towebp};
use crate::support::service::OWNER;
use crate::support::{Folder, Server, create_account};
use std::fs::{self, Permissions};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::process::Output;

fn allow(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).expect("it is ours");
}

#[test]
fn a_backup_follows_and_reuses_nothing_that_was_prepared() {
    let folder = Folder::new();
    let data = folder.path.join("data");
    create_account(&data, OWNER);
    let shared = folder.path.join("shared");
    fs::DirBuilder::new()
        .mode(0o1777)
        .create(&shared)
        .expect("our own folder");
    let victim = folder.path.join("victim");
    fs::write(&victim, "precious").expect("our own folder");
    allow(&victim, 0o644);
    // The name that the temporary file once had: a link in one try, an open file of a stranger in
    // the next.
    symlink(&victim, shared.join("a.redb.partial")).expect("our own folder");
    fs::write(shared.join("b.redb.partial"), "").expect("our own folder");
    allow(&shared.join("b.redb.partial"), 0o666);
    let prepared = fs::File::open(shared.join("b.redb.partial")).expect("it is there");
    for name in ["a.redb", "b.redb"] {
        let file = shared.join(name);
        let made = backup(&data, &file, &[]);
        assert!(made.status.success(), "{made:?}");
        let found = fs::symlink_metadata(&file).expect("it is there");
        assert!(found.is_file() && found.mode() & 0o777 == 0o600);
        let own = prepared.metadata().expect("it is open");
        assert_ne!(found.ino(), own.ino(), "a stranger has it open");
        assert_eq!(own.len(), 0, "a stranger could read it");
    }
    // The target itself as a link, to a file or to a place for one.
    for leads_to in [&victim, &folder.path.join("nowhere")] {
        let link = shared.join("link.redb");
        symlink(leads_to, &link).expect("our own folder");
        for flags in [&[][..], &["--force"]] {
            let refused = backup(&data, &link, flags);
            let said = String::from_utf8_lossy(&refused.stderr);
            assert_eq!(refused.status.code(), Some(1));
            assert!(said.contains("link.redb is a symbolic link"), "{said}");
        }
        fs::remove_file(link).expect("it is ours");
    }
    assert_eq!(fs::read(&victim).expect("it is there"), b"precious");
    let mode = fs::metadata(&victim).expect("it is there").mode();
    assert_eq!(mode & 0o777, 0o644);
    assert!(!folder.path.join("nowhere").exists());
    assert_eq!(fs::read_dir(&shared).expect("a folder").count(), 4);
}

fn backup(data: &Path, file: &Path, flags: &[&str]) -> Output {
    let mut command = towebp();
    command.arg("backup").arg(file).args(flags).arg("--data");
    run(command.arg(data), b"")
}

#[test]
fn a_data_folder_that_others_may_write_is_refused_unless_it_is_allowed() {
    let folder = Folder::new();
    let data = folder.path.join("data");
    create_account(&data, OWNER);
    let database = data.join("towebp.redb");
    let serve = ["serve", "--listen", "127.0.0.1:0"];
    let list = ["account", "list"];
    for (path, private, shared) in [(&data, 0o700, 0o770), (&database, 0o600, 0o606)] {
        allow(path, shared);
        for command in [&serve[..], &list] {
            let refused = run(towebp().args(command).arg("--data").arg(&data), b"");
            let said = String::from_utf8_lossy(&refused.stderr);
            assert_eq!(refused.status.code(), Some(1), "{command:?}: {said}");
            let mode = format!("{} may be written by ", path.display());
            let mend = if shared == 0o770 { "g-w" } else { "o-w" };
            let mend = format!("chmod {mend} {} ", path.display());
            for words in [&*mode, &*mend, "--allow-shared-data"] {
                assert!(said.contains(words), "{words} is not in: {said}");
            }
        }
        let flag = "--allow-shared-data";
        let mut allowed = towebp();
        allowed.args(list).args([flag, "--data"]).arg(&data);
        assert!(run(&mut allowed, b"").status.success());
        allow(path, private);
    }
    allow(&data, 0o777);
    let mut server = Server::start_in(folder, &["--allow-shared-data"]);
    assert_eq!(server.request("GET", "/healthz").send().status, 200);
    assert!(server.is_alive());
    allow(&data, 0o755);
    let folder = server.kill();
    let server = Server::start_in(folder, &[]);
    assert_eq!(server.request("GET", "/healthz").send().status, 200);
}
