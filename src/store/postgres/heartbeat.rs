//! The heartbeat of a replica: other replicas count it, and it reads the database's clock.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use tokio::time::sleep;
use uuid::Uuid;

use super::cell::{self, cells};
use super::connection::Link;
use super::fault::Result;
use super::pool::Shared;

/// The time between two heartbeats.
const INTERVAL: Duration = Duration::from_secs(5);

/// How long a replica counts as living after its last heartbeat, in milliseconds.
const LIVING: i64 = 30_000;

/// How many replicas examine the hosts that are not in use, in each [`INTERVAL`].
const LOOKING: u32 = 3;

/// The timeout of one heartbeat.
const LIMIT: Duration = Duration::from_secs(5);

/// The timeout of the examination of one host, for which heartbeats wait.
const LOOK_LIMIT: Duration = Duration::from_secs(1);

/// Runs until the store is closed. Stores the number of living replicas in `replicas`.
pub async fn run(shared: Arc<Shared>, replica: Uuid, replicas: Arc<AtomicU32>) {
    loop {
        sleep(INTERVAL).await;
        let beaten = shared.query_once(LIMIT, async |link: &Link| {
            beat(&shared, link, replica).await
        });
        // Errors of the database are reported by the queries that need it.
        if let Ok(living) = beaten.await {
            replicas.store(living, Ordering::Relaxed);
            if is_turn(living) {
                shared.look_at_others(LOOK_LIMIT).await;
            }
        }
    }
}

/// Whether this replica examines the other hosts now. With up to [`LOOKING`] replicas each one
/// always does; with more, [`LOOKING`] of them do so in each [`INTERVAL`], on average.
fn is_turn(replicas: u32) -> bool {
    let mut bytes = [0; 4];
    // Without random numbers, it always does.
    let _ = getrandom::fill(&mut bytes);
    u32::from_ne_bytes(bytes).is_multiple_of(replicas.div_ceil(LOOKING))
}

/// One heartbeat, which also writes down the timeline. Returns the number of living replicas.
pub async fn beat(shared: &Shared, link: &Link, replica: Uuid) -> Result<u32> {
    let state = shared.examine(link).await?;
    shared.check_target(state)?;
    sign(link, replica).await?;
    if state.timeline > state.noted {
        link.note_timeline(state.system, state.timeline).await?;
    }
    Ok(living(link).await?.max(1))
}

/// Updates the row of this replica.
pub async fn sign(link: &Link, replica: Uuid) -> Result<()> {
    let sql = "INSERT INTO replicas (id, seen)
               VALUES ($1, (extract(epoch FROM clock_timestamp()) * 1000)::INT8)
               ON CONFLICT (id) DO UPDATE SET seen = excluded.seen";
    link.forget_warnings();
    link.execute(sql, cells![replica]).await?;
    link.confirm()
}

/// Removes the row of this replica when it ends.
pub async fn sign_off(link: &Link, replica: Uuid) -> Result<()> {
    let sql = "DELETE FROM replicas WHERE id = $1";
    link.execute(sql, cells![replica]).await.map(drop)
}

async fn living(link: &Link) -> Result<u32> {
    let sql = "SELECT count(*) FROM replicas
               WHERE seen > (extract(epoch FROM clock_timestamp()) * 1000)::INT8 - $1";
    let count = link.first(sql, cells![LIVING], cell::read).await?;
    Ok(count.unwrap_or(0))
}
