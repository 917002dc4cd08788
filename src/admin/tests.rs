//! The account commands with a server and without one, and what may go wrong at the socket.

use super::*;
use crate::store::tests::{Folder, entry};
use crate::store::{Account, Backup, Settings, TokenError};
use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

#[test]
fn account_commands_work_through_a_running_server() {
    let folder = Folder::new();
    let store = Arc::new(folder.store());
    let _socket = serve(Arc::clone(&store), &folder.settings().data).unwrap();
    let client = AdminClient::open(&folder.settings()).unwrap();
    assert!(client.is_through_server());
    let first = run_account_commands(&client);
    assert!(
        matches!(store.authenticate(&first), Err(TokenError::Invalid)),
        "the account was deleted"
    );

    let token = client
        .create("owner@example.org", Some("correct horse"))
        .unwrap();
    let owner = store.account_by_email("owner@example.org").unwrap();
    assert_eq!(
        store.authenticate(&token).unwrap().account,
        owner.unwrap().id
    );
    assert!(store.sign_in("owner@example.org", "correct horse").is_ok());
    let rotated = client.rotate("owner@example.org").unwrap();
    assert!(
        store.authenticate(&token).is_err(),
        "the server still accepts the old token"
    );
    assert!(store.authenticate(&rotated).is_ok());
}

#[test]
fn account_commands_work_without_a_server() {
    let folder = Folder::new();
    let client = AdminClient::open(&folder.settings()).unwrap();
    assert!(!client.is_through_server());
    run_account_commands(&client);
}

#[test]
fn the_socket_is_private_and_is_removed_with_the_server() {
    let folder = Folder::new();
    let data = folder.settings().data;
    let socket = serve(Arc::new(folder.store()), &data).unwrap();
    let path = data.join("admin.sock");
    assert_eq!(
        fs::metadata(&path).unwrap().permissions().mode() & 0o777,
        0o600
    );
    drop(socket);
    assert!(!path.exists(), "the socket's file was left behind");
    assert!(
        !AdminClient::open(&folder.settings())
            .unwrap()
            .is_through_server(),
        "the store is free again"
    );
}

#[test]
fn the_socket_of_a_killed_server_is_ignored_and_replaced() {
    let folder = Folder::new();
    let data = folder.settings().data;
    drop(folder.store());
    drop(UnixListener::bind(data.join("admin.sock")).unwrap());
    assert!(
        data.join("admin.sock").exists(),
        "the test left no socket behind"
    );
    assert!(
        !AdminClient::open(&folder.settings())
            .unwrap()
            .is_through_server()
    );
    let _socket = serve(Arc::new(folder.store()), &data).unwrap();
    assert!(
        AdminClient::open(&folder.settings())
            .unwrap()
            .is_through_server()
    );
}

#[test]
fn a_data_folder_with_a_long_path_works_too() {
    let folder = Folder::new();
    let data = folder.path().join("a".repeat(60)).join("b".repeat(60));
    let settings = Settings {
        data,
        secret_file: None,
        allow_shared_data: false,
        history_keep: None,
        postgres: None,
    };
    let store = Arc::new(crate::store::Store::open(&settings).unwrap());
    let socket = serve(store, &settings.data).unwrap();
    let client = AdminClient::open(&settings).unwrap();
    assert!(client.is_through_server());
    run_account_commands(&client);
    drop(socket);
    assert!(!settings.data.join("admin.sock").exists());
}

#[test]
fn a_second_command_waits_for_the_first() {
    let folder = Folder::new();
    let first = AdminClient::open(&folder.settings()).unwrap();
    std::thread::scope(|scope| {
        let second = scope.spawn(|| AdminClient::open(&folder.settings()).unwrap().list());
        std::thread::sleep(Duration::from_millis(200));
        drop(first);
        assert_eq!(second.join().unwrap().unwrap(), []);
    });
}

#[test]
fn an_unknown_request_is_rejected_without_an_echo_and_the_next_is_served() {
    let folder = Folder::new();
    let data = folder.settings().data;
    let _socket = serve(Arc::new(folder.store()), &data).unwrap();
    let mut stream = UnixStream::connect(data.join("admin.sock")).unwrap();
    stream
        .write_all(b"{\"create\":{\"email\":1,\"password\":\"hunter2hunter2\"}}\n")
        .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert_eq!(answer, "{\"refused\":\"the request was not understood\"}\n");

    let mut endless = UnixStream::connect(data.join("admin.sock")).unwrap();
    let mut sent = 0;
    while endless.write_all(&[b' '; 4096]).is_ok() {
        sent += 4096;
        assert!(sent < 8 << 20, "an endless line was not rejected");
    }
    run_account_commands(&AdminClient::open(&folder.settings()).unwrap());
}

#[test]
fn a_backup_that_is_not_read_delays_neither_commands_nor_the_end() {
    let folder = Folder::new();
    let data = folder.settings().data;
    let store = Arc::new(folder.store());
    let id = store.create_account("owner@example.org", None).unwrap().id;
    // More rows than the socket buffers.
    std::thread::scope(|scope| {
        for _ in 0..32 {
            scope.spawn(|| (0..400).for_each(|i| store.record_usage(id, &entry(i)).unwrap()));
        }
    });
    let socket = serve(Arc::clone(&store), &data).unwrap();
    let mut slow = UnixStream::connect(data.join("admin.sock")).unwrap();
    slow.write_all(b"\"backup\"\n").unwrap();
    let mut line = [0; 9];
    slow.read_exact(&mut line).unwrap();
    assert_eq!(&line, b"\"backup\"\n");

    let file = folder.path().join("backup");
    let begin = || Backup::create(&file, false).unwrap();
    let rejection = backup(&data, begin(), &mut |_, _| {}).unwrap_err();
    assert!(rejection.contains("another backup"), "{rejection}");
    assert!(check(&data).unwrap_err().contains("another backup"));
    let client = AdminClient::open(&folder.settings()).unwrap();
    assert_eq!(client.list().unwrap()[0].1, 32 * 400);

    let start = Instant::now();
    drop(socket);
    assert!(
        start.elapsed() < Duration::from_secs(10),
        "{:?}",
        start.elapsed()
    );
    drop(store);
    let mut told = 0;
    let rows = backup(&data, begin(), &mut |done, all| {
        assert!(done <= all);
        told += 1;
    });
    assert!(rows.unwrap() > 32 * 400 && told > 2);
    let (findings, by_server) = check(&data).unwrap();
    assert_eq!((findings.entries, by_server), (32 * 400, false));
}

#[test]
fn a_silent_client_delays_the_next_for_two_seconds_at_most() {
    let folder = Folder::new();
    let data = folder.settings().data;
    let _socket = serve(Arc::new(folder.store()), &data).unwrap();
    let _silent = UnixStream::connect(data.join("admin.sock")).unwrap();
    let client = AdminClient::open(&folder.settings()).unwrap();
    let start = Instant::now();
    client.list().unwrap();
    assert!(
        start.elapsed() < Duration::from_secs(4),
        "it took {:?}",
        start.elapsed()
    );
}

impl AdminClient {
    fn text(&self, request: AdminRequest) -> Result<String, String> {
        match self.send(request)? {
            Answer::Text(text) => Ok(text),
            _ => panic!("it is no text"),
        }
    }

    fn create(&self, email: &str, password: Option<&str>) -> Result<String, String> {
        self.text(AdminRequest::Create {
            email: email.to_owned(),
            password: password.map(str::to_owned),
        })
    }

    fn token(&self, email: &str) -> Result<String, String> {
        self.text(AdminRequest::Token {
            email: email.to_owned(),
            name: None,
        })
    }

    fn rotate(&self, email: &str) -> Result<String, String> {
        self.text(AdminRequest::Rotate {
            email: email.to_owned(),
            name: None,
            overlap_hours: 0,
        })
    }

    fn list(&self) -> Result<Vec<(Account, u64)>, String> {
        match self.send(AdminRequest::List)? {
            Answer::Accounts(accounts) => Ok(accounts),
            _ => panic!("it is no list"),
        }
    }

    fn set_password(&self, email: &str, password: &str) -> Result<Answer, String> {
        self.send(AdminRequest::Password {
            email: email.to_owned(),
            password: password.to_owned(),
        })
    }

    fn delete(&self, email: &str) -> Result<Answer, String> {
        self.send(AdminRequest::Delete {
            email: email.to_owned(),
        })
    }
}

/// Makes, shows, rotates, lists and deletes an account; returns its first token.
fn run_account_commands(client: &AdminClient) -> String {
    let first = client.create("Machine@example.org", None).unwrap();
    assert!(first.starts_with("twp_"));
    assert_eq!(client.token("machine@example.org").unwrap(), first);
    let error = client.create("machine@example.org", None).unwrap_err();
    assert_eq!(error, "there is an account machine@example.org already");
    assert!(client.create("machine", None).unwrap_err().contains("no @"));
    assert!(
        client
            .create("other@example.org", Some("short"))
            .unwrap_err()
            .contains("at least 8")
    );

    let rotated = client.rotate("machine@example.org").unwrap();
    assert_ne!(rotated, first);
    assert_eq!(client.token("machine@example.org").unwrap(), rotated);

    let accounts = client.list().unwrap();
    assert_eq!(accounts.len(), 1);
    let (machine, conversions) = &accounts[0];
    assert_eq!(machine.email, "machine@example.org");
    assert!(!machine.has_password);
    assert_eq!(*conversions, 0);
    let short = client.set_password("machine@example.org", "short");
    assert!(short.map(drop).unwrap_err().contains("at least 8"));
    client
        .set_password("Machine@example.org", "correct horse")
        .map(drop)
        .unwrap();
    assert!(client.list().unwrap()[0].0.has_password);
    let nobody = client.set_password("nobody@example.org", "correct horse");
    assert_eq!(
        nobody.map(drop).unwrap_err(),
        "there is no account nobody@example.org"
    );
    assert!(machine.created.elapsed().unwrap() < Duration::from_mins(1));

    client.delete("machine@example.org").map(drop).unwrap();
    assert_eq!(
        client.delete("machine@example.org").map(drop).unwrap_err(),
        "there is no account machine@example.org"
    );
    assert_eq!(
        client.token("machine@example.org").unwrap_err(),
        "there is no account machine@example.org"
    );
    assert_eq!(client.list().unwrap(), []);
    first
}
