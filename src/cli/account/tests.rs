//! The life of accounts, with a server on the data folder and without.

use super::*;
use crate::admin;
use crate::store::tests::Folder;
use std::ffi::OsString;
use std::sync::Arc;

#[test]
fn an_accounts_life_without_a_server() {
    let folder = Folder::new();
    live(&folder);
}

#[test]
fn an_accounts_life_beside_a_server() {
    let folder = Folder::new();
    let store = Arc::new(folder.store());
    let _socket = admin::serve(Arc::clone(&store), &folder.settings().data).unwrap();
    live(&folder);

    let token = account(
        &folder,
        &["create", "owner@example.org", "--password-stdin"],
        "correct horse\r\n",
    );
    let token = token.unwrap().output;
    let owner = store.account_by_email("owner@example.org").unwrap();
    assert_eq!(
        store.authenticate(token.trim_end()).unwrap().account,
        owner.unwrap().id
    );
    assert!(
        store.sign_in("owner@example.org", "correct horse").is_ok(),
        "the line's end is no part of it"
    );
    let set = account(&folder, &["password", "owner@example.org"], "another horse");
    set.unwrap();
    assert!(store.sign_in("owner@example.org", "another horse").is_ok());
    assert!(store.sign_in("owner@example.org", "correct horse").is_err());
    let said = account(&folder, &["list", "--secret-file", "elsewhere"], "").unwrap();
    assert!(said.notes.contains("--secret-file"), "{}", said.notes);
    assert!(said.output.ends_with("\t0\tdashboard\n"), "{}", said.output);
}

#[test]
fn a_mistyped_folder_is_not_made() {
    let folder = Folder::new();
    for args in [
        &["list"][..],
        &["token", "a@example.org"],
        &["rotate", "a@example.org"],
    ] {
        let error = account(&folder, args, "").unwrap_err();
        assert!(error.starts_with("there are no accounts in "), "{error}");
    }
    assert!(!folder.settings().data.exists());
}

/// Makes an account under an address that is replaced. Returns what its creation said.
fn move_account(folder: &Folder) -> Said {
    let created = account(folder, &["create", "old@example.org"], "").unwrap();
    for (email, new, refusal) in [
        ("nobody@example.org", "a@example.org", "there is no account"),
        ("old@example.org", "example.org", "has no @"),
    ] {
        let refused = account(folder, &["set-email", email, new], "").unwrap_err();
        assert!(refused.contains(refusal), "{refused}");
    }
    let moved = ["set-email", "Old@example.org", " Machine@example.org"];
    let moved = account(folder, &moved, "").unwrap();
    let said = "the account Old@example.org is Machine@example.org now\n";
    assert_eq!((&*moved.output, &*moved.notes), ("", said));
    let gone = account(folder, &["token", "old@example.org"], "").unwrap_err();
    assert!(gone.contains("there is no account"), "{gone}");
    created
}

fn live(folder: &Folder) {
    let created = move_account(folder);
    assert!(
        created.output.starts_with("twp_") && created.output.lines().count() == 1,
        "{}",
        created.output
    );
    assert_eq!(created.notes, "");
    let shown = account(folder, &["token", "Machine@example.org"], "").unwrap();
    assert_eq!(shown.output, created.output);
    let rotated = account(folder, &["rotate", "machine@example.org"], "").unwrap();
    assert_ne!(rotated.output, created.output);
    let shop = ["set-token", "machine@example.org", "shop", "--rate", "5"];
    let preset = ["--preset", "!watermark=© Example", "--preset", "quality=60"];
    let shop = account(folder, &[&shop[..], &preset].concat(), "").unwrap();
    assert_ne!(shop.output, rotated.output);
    let named = ["machine@example.org", "--name", "shop"];
    let shown = account(folder, &[&["token"], &named[..]].concat(), "").unwrap();
    assert_eq!(shown.output, shop.output);
    let ends = [
        "set-token",
        "machine@example.org",
        "shop",
        "--ends",
        "2999-12-31",
    ];
    let again = account(folder, &ends, "").unwrap();
    assert_eq!(again.output, shop.output, "it is the same token");
    let rotate = [&["rotate", "--overlap", "24"], &named[..]].concat();
    assert_ne!(account(folder, &rotate, "").unwrap().output, shop.output);
    let limit = ["limit", "machine@example.org", "--monthly", "0"];
    account(folder, &limit, "").unwrap();
    account(folder, &["disable", "machine@example.org"], "").unwrap();
    let usage = account(folder, &["usage", "machine@example.org"], "").unwrap();
    for line in [
        "conversions\t0",
        "limit a minute\tserver",
        "limit a month\tany number",
        "disabled\ttrue",
        "token\tdefault\t0\t-\t-",
        "token\tshop\t0\t-\t3000-01-01T00:00:00Z",
    ] {
        let mut lines = usage.output.lines();
        assert!(lines.any(|it| it == line), "no {line} in {}", usage.output);
    }
    account(folder, &["enable", "machine@example.org"], "").unwrap();
    let delete = ["delete-token", "machine@example.org", "shop"];
    account(folder, &delete, "").unwrap();
    for (args, expected) in [
        (&delete[..], "no token \"shop\""),
        (&["limit", "machine@example.org"], "--rate or --monthly"),
        (
            &["set-token", "machine@example.org", "a", "--preset", "x=1"],
            "--preset: Parameter \"x\"",
        ),
        (
            &["set-token", "machine@example.org", "a", "--ends", "soon"],
            "--ends: \"soon\"",
        ),
        (
            &["set-token", "machine@example.org", " "],
            "1 to 40 characters",
        ),
    ] {
        let error = account(folder, args, "").unwrap_err();
        assert!(error.contains(expected), "{error}");
    }
    let listed = account(folder, &["list"], "").unwrap().output;
    assert!(
        listed.starts_with("machine@example.org\t2") && listed.ends_with("\t0\tno dashboard\n"),
        "{listed}"
    );

    let invites = [(); 2].map(|()| account(folder, &["invite"], "").unwrap().output);
    assert!(
        invites[0].len() == 44 && invites[0] != invites[1],
        "{invites:?}"
    );

    let error = account(folder, &["create", "machine@example.org"], "").unwrap_err();
    assert_eq!(
        error,
        "there is an account machine@example.org already; towebp account token machine@example.org prints its token"
    );

    let password = ["password", "Machine@example.org"];
    let set = account(folder, &password, "correct horse\nmore").unwrap();
    assert_eq!(set.output, "");
    assert!(set.notes.contains("new password"), "{}", set.notes);
    let listed = account(folder, &["list"], "").unwrap().output;
    assert!(listed.ends_with("\t0\tdashboard\n"), "{listed}");
    let error = account(folder, &password, "short\n").unwrap_err();
    assert!(error.contains("5 characters"), "{error}");
    let nobody = account(folder, &["password", "no@example.org"], "correct horse\n");
    assert_eq!(nobody.unwrap_err(), "there is no account no@example.org");
    let error = account(folder, &["delete", "machine@example.org"], "").unwrap_err();
    assert!(error.contains("--yes"), "{error}");
    account(folder, &["delete", "machine@example.org", "--yes"], "").unwrap();
    let error = account(folder, &["token", "machine@example.org"], "").unwrap_err();
    assert_eq!(error, "there is no account machine@example.org");
}

#[test]
fn a_token_goes_into_a_file_that_is_not_emptied_by_a_second_time() {
    let folder = Folder::new();
    let path = folder.path().join("token");
    let file = path.to_str().unwrap();
    let read = || std::fs::read_to_string(&path).unwrap();
    let create = ["create", "machine@example.org", "-o", file];
    let created = account(&folder, &create, "").unwrap();
    assert_eq!((created.output, created.notes), Default::default());
    let token = account(&folder, &["token", "machine@example.org"], "").unwrap();
    assert_eq!(read(), token.output);
    let mode =
        std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(&path).unwrap().permissions());
    assert_eq!(mode & 0o777, 0o600);

    let error = account(&folder, &create, "").unwrap_err();
    let helpful = "towebp account token machine@example.org prints its token";
    assert!(
        error.contains("already") && error.ends_with(helpful),
        "{error}"
    );
    for action in ["create", "rotate"] {
        let email = ["new@example.org", "machine@example.org"][usize::from(action == "rotate")];
        let error = account(&folder, &[action, email, "-o", file], "").unwrap_err();
        assert!(error.contains("exists; --force"), "{error}");
    }
    assert_eq!(read(), token.output, "it was emptied");
    let listed = account(&folder, &["list"], "").unwrap().output;
    assert_eq!(
        listed.lines().count(),
        1,
        "an account was made, though its token could not be written"
    );

    let rotate = ["rotate", "machine@example.org", "-o", file, "--force"];
    account(&folder, &rotate, "").unwrap();
    let rotated = account(&folder, &["token", "machine@example.org"], "").unwrap();
    assert_eq!(read(), rotated.output);
    assert_ne!(rotated.output, token.output);
}

#[derive(Debug)]
struct Said {
    output: String,
    notes: String,
}

fn account(folder: &Folder, args: &[&str], input: &str) -> Result<Said, String> {
    let data = folder.settings().data;
    let args = [&["account"], args, &["--data", data.to_str().unwrap()]].concat();
    let args: Vec<OsString> = args.iter().map(OsString::from).collect();
    let towebp = crate::cli::read(&mut crate::cli::program(), &args);
    let crate::cli::Command::Account(command) = towebp.unwrap().command else {
        panic!("{args:?}");
    };
    let (mut output, mut notes) = (Vec::new(), Vec::new());
    run_with(
        &command,
        &mut Streams {
            input: &mut input.as_bytes(),
            output: &mut output,
            notes: &mut notes,
        },
    )
    .map_err(|failure| failure.sentence().to_owned())?;
    Ok(Said {
        output: String::from_utf8(output).unwrap(),
        notes: String::from_utf8(notes).unwrap(),
    })
}
