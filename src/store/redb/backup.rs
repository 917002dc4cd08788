//! Backups: one state of the whole store as a stream of rows, and such a stream as a new database
//! file.
//!
//! If the bytes of the file were copied while the server writes to it, the copy could not be
//! opened. So the rows are copied, in one read transaction. They travel as a stream, because the
//! process that writes the backup file is not the one that has the database open: a server sends
//! the rows to the command line, which writes the file where it was told to and as the user who
//! called it. If the server wrote the file itself, the path would be one of the server's name space
//! (a container, or a unit with a private /tmp), and the file would belong to another user.
//!
//! ```text
//! 0  8  format, u64
//! 8  8  number of rows, u64
//!       each row:  0  1  table: its place in [`visit`], from 1
//!                  1  4  length of the key, u32
//!                  5  4  length of the value, u32
//!                  9  .  key and value, as the table's module draws them
//! .  1  0: the end
//! ```
//!
//! Numbers have their least significant byte first.
//!
//! Sessions are left out: they are not worth keeping, and whoever restores a backup after a theft
//! does not want the thief's sessions back. The new file has their tables, empty.

use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use redb::{
    Key, ReadTransaction, ReadableTable, ReadableTableMetadata, TableDefinition, Value,
    WriteTransaction,
};

use super::load::Loader;
use super::meta::{FORMAT, META};
use super::{accounts, blocks, failures, invites, sessions, tokens, usage};
use crate::store::engine::EachRow;
use crate::store::error::StoreError;
use crate::store::folder;

/// From this many bytes of rows on, a commit of the new file is made. It bounds the memory.
const BATCH_BYTES: usize = 4 << 20;

/// The most bytes of a key or a value. E-mail addresses and password hashes have some hundred
/// bytes.
const MAX_FIELD_BYTES: u32 = 64 << 10;

/// The most bytes of pages of the new file that are kept in memory.
pub const CACHE_BYTES: usize = 16 << 20;

/// Writes all rows but those of sessions.
///
/// # Errors
/// The rows cannot be read, or `out` takes no more.
pub fn export(read: &ReadTransaction, out: &mut dyn Write) -> io::Result<()> {
    let mut out = BufWriter::with_capacity(64 << 10, out);
    let mut count = Count { read, rows: 0 };
    visit(&mut count)?;
    out.write_all(&FORMAT.to_le_bytes())?;
    out.write_all(&count.rows.to_le_bytes())?;
    visit(&mut Export {
        read,
        out: &mut out,
    })?;
    out.write_all(&[0])?;
    out.flush()
}

/// A backup file that is being written. It has a temporary name beside its target until it is
/// complete, and is removed if it does not become complete.
pub struct Backup {
    target: PathBuf,
    partial: PathBuf,
    replace: bool,
    /// `None` once [`Backup::fill`] has taken it.
    file: Option<File>,
}

impl Backup {
    /// Makes the temporary file, which only its owner may read ([`folder::partial_name`]). With
    /// `replace`, a regular file of the target's name is replaced at the end.
    ///
    /// # Errors
    /// A sentence: the target exists already, or the file cannot be made.
    pub fn create(target: &Path, replace: bool) -> Result<Backup, String> {
        let cannot = |error: io::Error| format!("{} cannot be written: {error}", target.display());
        match fs::symlink_metadata(target) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(cannot(error)),
            Ok(found) if found.is_symlink() => {
                return Err(format!(
                    "{} is a symbolic link, which a backup does not follow: name the file itself",
                    target.display()
                ));
            }
            Ok(found) if !found.is_file() => {
                return Err(format!(
                    "{} is not a regular file: a backup is a new file",
                    target.display()
                ));
            }
            Ok(_) if !replace => {
                return Err(format!(
                    "{} is there already; --force replaces it",
                    target.display()
                ));
            }
            Ok(_) => {}
        }
        let partial = folder::partial_name(target).map_err(cannot)?;
        let file = folder::create_new_private(&partial).map_err(cannot)?;
        Ok(Backup {
            target: target.to_owned(),
            partial,
            replace,
            file: Some(file),
        })
    }

    /// The path of the temporary file, which a process that is interrupted has to remove.
    pub fn partial(&self) -> &Path {
        &self.partial
    }

    /// Completes the file from what [`export`] writes, and returns the number of its rows.
    /// `progress` is called with the number of rows written so far and the number of all rows.
    ///
    /// # Errors
    /// A sentence: the rows end too early, or the file cannot be written. No file is left then.
    pub fn fill(self, rows: impl Read, progress: &mut dyn FnMut(u64, u64)) -> Result<u64, String> {
        self.complete(|file| import(rows, || create(file), progress))
    }

    /// Completes the file from rows of any engine: `give` calls its argument with each of them, in
    /// their order ([`crate::store::rows`]).
    ///
    /// # Errors
    /// A sentence: that of `give`, the rows do not fit together, or the file cannot be written. No
    /// file is left then.
    pub fn load(
        self,
        give: impl FnOnce(&mut EachRow<'_>) -> Result<(), StoreError>,
    ) -> Result<(), String> {
        self.complete(|file| {
            let mut loader = Loader::new(create(file).map_err(io::Error::other)?);
            give(&mut |row| loader.add(row))
                .and_then(|()| loader.finish())
                .map_err(io::Error::other)
        })
    }

    /// Gives the file, which `write` makes a whole database, its name.
    fn complete<T>(mut self, write: impl FnOnce(File) -> io::Result<T>) -> Result<T, String> {
        let file = self
            .file
            .take()
            .expect("only this function takes it, and it consumes the backup");
        let completed = file.try_clone().and_then(|written| {
            let answer = write(file)?;
            written.sync_all()?;
            if self.replace {
                fs::rename(&self.partial, &self.target)?;
            } else {
                folder::rename_new(&self.partial, &self.target)?;
            }
            folder::sync(folder::of(&self.target))?;
            Ok(answer)
        });
        completed.map_err(|error| {
            fs::remove_file(&self.partial).ok();
            let cause = match error.kind() {
                io::ErrorKind::UnexpectedEof => "the rows ended too early".to_owned(),
                io::ErrorKind::AlreadyExists => "a file of that name was made meanwhile".to_owned(),
                _ => error.to_string(),
            };
            format!("{} was not made: {cause}", self.target.display())
        })
    }
}

fn create(file: File) -> Result<redb::Database, redb::DatabaseError> {
    redb::Database::builder()
        .set_cache_size(CACHE_BYTES)
        .create_file(file)
}

impl Drop for Backup {
    fn drop(&mut self) {
        if self.file.is_some() {
            fs::remove_file(&self.partial).ok();
        }
    }
}

/// Fills the new database that `create` makes from what [`export`] writes, and returns the number
/// of its rows.
///
/// # Errors
/// The rows end too early, or the database cannot be made or written.
pub fn import(
    rows: impl Read,
    create: impl FnOnce() -> Result<redb::Database, redb::DatabaseError>,
    progress: &mut dyn FnMut(u64, u64),
) -> io::Result<u64> {
    let mut input = BufReader::with_capacity(64 << 10, rows);
    let format = u64::from_le_bytes(read(&mut input)?);
    if format != FORMAT {
        return Err(io::Error::other(format!(
            "the server's database has format {format}, and this towebp writes format {FORMAT}: use \
             the server's own version"
        )));
    }
    let expected = u64::from_le_bytes(read(&mut input)?);
    let redb = create().map_err(io::Error::other)?;
    let (mut batch, mut done) = (Batch::default(), 0);
    progress(0, expected);
    loop {
        let [table] = read(&mut input)?;
        if table != batch.table || batch.bytes >= BATCH_BYTES {
            done += batch.commit(&redb)?;
            progress(done, expected);
            batch.table = table;
        }
        if table == 0 {
            break;
        }
        batch.push(&mut input)?;
    }
    if done != expected {
        return Err(io::Error::other(format!("{done} rows came of {expected}")));
    }
    Ok(done)
}

/// Rows of one table that are not yet in the new file.
#[derive(Default)]
struct Batch {
    table: u8,
    rows: Vec<(Vec<u8>, Vec<u8>)>,
    bytes: usize,
}

impl Batch {
    fn push(&mut self, input: &mut impl Read) -> io::Result<()> {
        let lengths = [read(input)?, read(input)?].map(u32::from_le_bytes);
        if lengths.iter().any(|length| *length > MAX_FIELD_BYTES) {
            return Err(io::Error::other("a row is too long"));
        }
        let [key, value] = lengths.map(|length| vec![0; length as usize]);
        let mut row = (key, value);
        input.read_exact(&mut row.0)?;
        input.read_exact(&mut row.1)?;
        self.bytes += row.0.len() + row.1.len() + size_of_val(&row);
        self.rows.push(row);
        Ok(())
    }

    /// Writes the rows and forgets them. Returns their number.
    fn commit(&mut self, redb: &redb::Database) -> io::Result<u64> {
        let rows = std::mem::take(&mut self.rows);
        self.bytes = 0;
        if rows.is_empty() {
            return Ok(0);
        }
        let write = redb.begin_write().map_err(io::Error::other)?;
        let mut insert = Insert {
            write: &write,
            table: self.table,
            rows: &rows,
            is_known: false,
        };
        visit(&mut insert)?;
        if !insert.is_known {
            return Err(io::Error::other(format!(
                "there is no table {}",
                self.table
            )));
        }
        write.commit().map_err(io::Error::other)?;
        Ok(rows.len() as u64)
    }
}

/// Something that is done with every table.
trait Visitor {
    fn visit<K: Key + 'static, V: Value + 'static>(
        &mut self,
        number: u8,
        table: TableDefinition<'static, K, V>,
    ) -> io::Result<()>;
}

/// Whether this is one of the session tables, whose rows are neither written nor, if an older
/// server sends them, read.
fn holds_sessions(table: u8) -> bool {
    matches!(table, 4..=6)
}

/// Calls the visitor for every table with the table's number in the stream. `meta` comes last:
/// without the format in it, no towebp opens the file, so an incomplete one is not taken for a
/// complete one.
fn visit(visitor: &mut impl Visitor) -> io::Result<()> {
    visitor.visit(1, accounts::ACCOUNTS)?;
    visitor.visit(2, accounts::EMAILS)?;
    visitor.visit(3, invites::INVITES)?;
    visitor.visit(4, sessions::SESSIONS)?;
    visitor.visit(5, sessions::SESSION_ENDS)?;
    visitor.visit(6, sessions::ACCOUNT_SESSIONS)?;
    visitor.visit(7, usage::HISTORY)?;
    visitor.visit(8, usage::USAGE_TOTALS)?;
    visitor.visit(9, usage::USAGE_MONTHS)?;
    visitor.visit(10, tokens::TOKENS)?;
    visitor.visit(11, tokens::RESTRICTIONS)?;
    visitor.visit(12, usage::USAGE_TOKENS)?;
    visitor.visit(13, usage::USAGE_DAYS)?;
    visitor.visit(14, usage::HISTORY_REMOVED)?;
    visitor.visit(15, blocks::HISTORY_BLOCKS)?;
    visitor.visit(16, failures::FAILURES)?;
    visitor.visit(17, META)
}

struct Count<'a> {
    read: &'a ReadTransaction,
    rows: u64,
}

impl Visitor for Count<'_> {
    fn visit<K: Key + 'static, V: Value + 'static>(
        &mut self,
        number: u8,
        table: TableDefinition<'static, K, V>,
    ) -> io::Result<()> {
        if holds_sessions(number) {
            return Ok(());
        }
        let table = self.read.open_table(table).map_err(io::Error::other)?;
        self.rows += table.len().map_err(io::Error::other)?;
        Ok(())
    }
}

struct Export<'a, W> {
    read: &'a ReadTransaction,
    out: &'a mut W,
}

impl<W: Write> Visitor for Export<'_, W> {
    fn visit<K: Key + 'static, V: Value + 'static>(
        &mut self,
        number: u8,
        table: TableDefinition<'static, K, V>,
    ) -> io::Result<()> {
        if holds_sessions(number) {
            return Ok(());
        }
        let table = self.read.open_table(table).map_err(io::Error::other)?;
        for row in table.iter().map_err(io::Error::other)? {
            let (key, value) = row.map_err(io::Error::other)?;
            let (key, value) = (key.value(), value.value());
            let (key, value) = (K::as_bytes(&key), V::as_bytes(&value));
            let (key, value) = (key.as_ref(), value.as_ref());
            self.out.write_all(&[number])?;
            for length in [key.len(), value.len()] {
                let length = u32::try_from(length).map_err(io::Error::other)?;
                self.out.write_all(&length.to_le_bytes())?;
            }
            self.out.write_all(key)?;
            self.out.write_all(value)?;
        }
        Ok(())
    }
}

struct Insert<'a> {
    write: &'a WriteTransaction,
    table: u8,
    rows: &'a [(Vec<u8>, Vec<u8>)],
    is_known: bool,
}

impl Visitor for Insert<'_> {
    fn visit<K: Key + 'static, V: Value + 'static>(
        &mut self,
        number: u8,
        table: TableDefinition<'static, K, V>,
    ) -> io::Result<()> {
        // Opening the table makes it, so that each one exists even if it is empty.
        let mut table = self.write.open_table(table).map_err(io::Error::other)?;
        if number == self.table {
            self.is_known = true;
            if holds_sessions(number) {
                return Ok(());
            }
            for (key, value) in self.rows {
                table
                    .insert(K::from_bytes(key), V::from_bytes(value))
                    .map_err(io::Error::other)?;
            }
        }
        Ok(())
    }
}

fn read<const N: usize>(input: &mut impl Read) -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    input.read_exact(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::TokenNumber;
    use crate::store::tests::{Folder, entry};
    use crate::store::{Settings, Store, check_file, database_path};
    use std::os::unix::fs::{DirBuilderExt, PermissionsExt, symlink};
    use std::time::Duration;

    /// A store with two accounts, the second deleted again, an invitation, a session and `entries`
    /// conversions.
    fn filled(folder: &Folder, entries: u64) -> (Store, String, String) {
        let store = folder.store();
        let owner = store.create_account("owner@example.org", None).unwrap();
        let token = TokenNumber::DEFAULT;
        store.rotate_token(owner.id, token, Duration::ZERO).unwrap();
        let other = store.create_account("other@example.org", None).unwrap();
        store.delete_account(other.id).unwrap();
        let cookie = store
            .start_session(owner.id, &crate::store::Browser::default())
            .unwrap();
        for i in 0..entries {
            store.record_usage(owner.id, &entry(i)).unwrap();
        }
        let token = store.token(owner.id).unwrap();
        (store, token, cookie)
    }

    fn exported(store: &Store) -> Vec<u8> {
        let mut rows = Vec::new();
        store.snapshot().unwrap().export(&mut rows).unwrap();
        rows
    }

    #[test]
    fn a_restored_backup_is_the_store_as_it_was() {
        let folder = Folder::new();
        let (store, token, cookie) = filled(&folder, 3);
        let code = store.invite().unwrap();
        let rows = exported(&store);
        let later = store.authenticate(&token).unwrap().account;
        store.record_usage(later, &entry(9)).unwrap();

        let restored = Settings {
            data: folder.path().join("restored"),
            secret_file: Some(folder.settings().data.join("secret")),
            allow_shared_data: false,
            history_keep: None,
            postgres: None,
        };
        let mut private = fs::DirBuilder::new();
        private.mode(0o700).create(&restored.data).unwrap();
        let file = database_path(&restored.data);
        let mut told = Vec::new();
        Backup::create(&file, false)
            .unwrap()
            .fill(&rows[..], &mut |done, all| told.push((done, all)))
            .unwrap();
        let (_, all) = told[0];
        assert_eq!((told[0], told.last()), ((0, all), Some(&(all, all))));
        let mode = fs::metadata(&file).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert_eq!(fs::read_dir(&restored.data).unwrap().count(), 1);

        let copy = Store::open(&restored).unwrap();
        let owner = copy.authenticate(&token).unwrap().account;
        assert_eq!(copy.usage_totals(owner).unwrap().conversions, 3);
        assert!(
            copy.session(&cookie).unwrap().is_none(),
            "a session came back"
        );
        copy.create_invited_account("guest@example.org", "correct horse", &code)
            .unwrap();
        let findings = copy.snapshot().unwrap().check().unwrap();
        assert_eq!(findings.problems, [""; 0]);
        assert_eq!((findings.accounts, findings.sessions), (2, 0));
        // Account numbers are not given again.
        let next = copy.create_account("next@example.org", None).unwrap();
        assert!(next.id > owner);
    }

    #[test]
    fn rows_that_end_early_make_no_file() {
        let folder = Folder::new();
        let (store, ..) = filled(&folder, 2);
        let rows = exported(&store);
        let file = folder.path().join("backup");
        for length in 0..rows.len() {
            let made = Backup::create(&file, false)
                .unwrap()
                .fill(&rows[..length], &mut |_, _| {});
            let sentence = made.expect_err("an incomplete backup was accepted");
            assert!(sentence.contains("was not made"), "{sentence}");
            assert_eq!(
                fs::read_dir(folder.path()).unwrap().count(),
                1,
                "after {length} of {} bytes something was left beside the data",
                rows.len()
            );
        }
    }

    #[test]
    fn other_bytes_make_no_file() {
        let folder = Folder::new();
        let file = folder.path().join("backup");
        let head = [FORMAT, 1].map(u64::to_le_bytes).concat();
        let long = [&head[..], &[1], &[255; 8]].concat();
        let unknown = [&head[..], &[18, 0, 0, 0, 0, 0, 0, 0, 0, 0]].concat();
        let other = [FORMAT + 1, 0].map(u64::to_le_bytes).concat();
        let fewer = [&head[..], &[0]].concat();
        for (rows, expected) in [
            (long, "too long"),
            (unknown, "no table 18"),
            (other, "format 5"),
            (fewer, "0 rows came of 1"),
        ] {
            let made = Backup::create(&file, false)
                .unwrap()
                .fill(&rows[..], &mut |_, _| {});
            let sentence = made.expect_err("it was accepted as a backup");
            assert!(sentence.contains(expected), "{sentence}");
            assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
        }
    }

    #[test]
    fn sessions_of_an_older_servers_stream_are_left_out() {
        let folder = Folder::new();
        let file = folder.path().join("backup");
        let head = [FORMAT, 4].map(u64::to_le_bytes).concat();
        let lengths = |key: u32, value: u32| [key, value].map(u32::to_le_bytes).concat();
        let session = [&[4][..], &lengths(32, 41), &[7; 73]].concat();
        let end = [&[5][..], &lengths(40, 0), &[7; 40]].concat();
        let owner = [&[6][..], &lengths(40, 0), &[7; 40]].concat();
        let meta = [&[17][..], &lengths(6, 8), b"format", &FORMAT.to_le_bytes()].concat();
        let rows = [head, session, end, owner, meta, vec![0]].concat();
        let backup = Backup::create(&file, false).unwrap();
        assert_eq!(backup.fill(&rows[..], &mut |_, _| {}), Ok(4));
        let findings = check_file(&file).unwrap();
        assert_eq!((findings.sessions, &findings.problems[..]), (0, &[][..]));
    }

    #[test]
    fn an_existing_file_is_replaced_only_on_demand() {
        let folder = Folder::new();
        let (store, ..) = filled(&folder, 1);
        let file = folder.path().join("backup");
        fs::write(&file, "precious").unwrap();
        let rejection = Backup::create(&file, false).err().unwrap();
        assert!(rejection.contains("--force"), "{rejection}");
        let first = Backup::create(&file, true).unwrap();
        let partial = first.partial().to_owned();
        let second = Backup::create(&file, true).unwrap();
        assert_ne!(partial, second.partial(), "two backups write to one file");
        drop(second);
        assert_eq!(
            fs::read(&file).unwrap(),
            b"precious",
            "the target changed before the backup was complete"
        );
        first.fill(&exported(&store)[..], &mut |_, _| {}).unwrap();
        assert!(!partial.exists());
        let findings = check_file(&file).unwrap();
        assert_eq!((findings.entries, &findings.problems[..]), (1, &[][..]));

        // A file of the same name that is made while the backup is being written.
        let late = folder.path().join("late");
        let backup = Backup::create(&late, false).unwrap();
        fs::write(&late, "precious").unwrap();
        let rejection = backup.fill(&exported(&store)[..], &mut |_, _| {});
        assert!(rejection.unwrap_err().contains("made meanwhile"));
        assert_eq!(fs::read(&late).unwrap(), b"precious");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 3);
    }

    #[test]
    fn links_and_special_files_are_left_alone() {
        let folder = Folder::new();
        let (store, ..) = filled(&folder, 1);
        let at = |name: &str| folder.path().join(name);
        fs::write(at("victim"), "precious").unwrap();
        // What another user could prepare in a folder that all may write to, such as /tmp.
        symlink("victim", at("backup.partial")).unwrap();
        symlink("victim", at("link")).unwrap();
        symlink("nowhere", at("dangling")).unwrap();
        let socket = std::os::unix::net::UnixListener::bind(at("socket")).unwrap();
        for name in ["link", "dangling", "socket", "data"] {
            for replace in [false, true] {
                let rejection = Backup::create(&at(name), replace).err().unwrap();
                assert!(rejection.contains(name), "{rejection}");
            }
        }
        drop(socket);
        let backup = Backup::create(&at("backup"), false).unwrap();
        let made = fs::symlink_metadata(backup.partial()).unwrap();
        assert!(made.is_file() && made.permissions().mode() & 0o777 == 0o600);
        backup.fill(&exported(&store)[..], &mut |_, _| {}).unwrap();
        assert_eq!(fs::read(at("victim")).unwrap(), b"precious");
        assert!(fs::symlink_metadata(at("backup")).unwrap().is_file());
        assert!(!at("nowhere").exists());
    }
}
