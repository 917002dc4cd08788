//! The demonstration of the documentation runs: three replicas, a balancer, a primary that is
//! killed and a standby that is promoted.

use crate::support::TOWEBP;
use crate::support::postgres::shared;
use std::path::Path;
use std::process::Command;

#[test]
fn the_demonstration_ends_well() {
    // It says that it is skipped, if it is.
    if shared().is_none() {
        return;
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts/demo-cluster");
    let output = Command::new(script).arg(TOWEBP).output().expect("python3");
    let said = String::from_utf8_lossy(&output.stdout);
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}\n{complaint}");
}
