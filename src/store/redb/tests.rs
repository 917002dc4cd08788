//! Tests of what only this engine has.

mod power;

use super::*;
use crate::store::tests::disk::Disk;

#[test]
fn a_probe_leaves_no_table() {
    let engine = Disk::default().engine();
    let tables = || {
        let count = engine.database.read(|read| Ok(read.list_tables()?.count()));
        count.unwrap()
    };
    let before = tables();
    engine.probe().unwrap();
    assert_eq!((before, tables()), (14, 14));
}
