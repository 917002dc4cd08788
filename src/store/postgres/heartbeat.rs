//! Tells the other replicas that this one lives, and what time it is.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use tokio::time::sleep;
use uuid::Uuid;

use super::cell;
use super::connection::Link;
use super::fault::Result;
use super::pool::Shared;

/// The time between two signs of life.
const INTERVAL: Duration = Duration::from_secs(5);

/// How long a replica counts as living after its last sign of life, in milliseconds.
const LIVING: i64 = 30_000;

/// How many replicas look at the hosts that are not in use, in each [`INTERVAL`].
const LOOKING: u32 = 3;

/// How long one sign of life may take.
const LIMIT: Duration = Duration::from_secs(5);

/// How long a look at one host may take: signs of life wait for it.
const LOOK_LIMIT: Duration = Duration::from_secs(1);

/// Goes on until the store is closed. `replicas` is told how many live.
pub async fn run(shared: Arc<Shared>, replica: Uuid, replicas: Arc<AtomicU32>) {
    loop {
        sleep(INTERVAL).await;
        let beaten = shared.ask_now(LIMIT, async |link: &Link| {
            beat(&shared, link, replica).await
        });
        // What is wrong with the database is told by those who need it.
        if let Ok(living) = beaten.await {
            replicas.store(living, Ordering::Relaxed);
            if is_turn(living) {
                shared.look_at_others(LOOK_LIMIT).await;
            }
        }
    }
}

/// Whether this replica looks at the other hosts now: always among up to [`LOOKING`] replicas;
/// among more, so many of them do in each [`INTERVAL`], on average.
fn is_turn(replicas: u32) -> bool {
    let mut bytes = [0; 4];
    // Without randomness it is always.
    let _ = getrandom::fill(&mut bytes);
    u32::from_ne_bytes(bytes).is_multiple_of(replicas.div_ceil(LOOKING))
}

/// One sign of life, which also notes the timeline. Returns how many replicas live.
pub async fn beat(shared: &Shared, link: &Link, replica: Uuid) -> Result<u32> {
    let state = shared.examine(link).await?;
    shared.check_target(state)?;
    sign(link, replica).await?;
    if state.timeline > state.noted {
        link.note_timeline(state.system, state.timeline).await?;
    }
    Ok(living(link).await?.max(1))
}

/// Writes the row of this replica.
pub async fn sign(link: &Link, replica: Uuid) -> Result<()> {
    let sql = "INSERT INTO replicas (id, seen)
               VALUES ($1, (extract(epoch FROM clock_timestamp()) * 1000)::INT8)
               ON CONFLICT (id) DO UPDATE SET seen = excluded.seen";
    link.forget_warnings();
    link.execute(sql, &[replica.into()]).await?;
    link.confirm()
}

/// Removes the row of this replica, which ends.
pub async fn sign_off(link: &Link, replica: Uuid) -> Result<()> {
    let sql = "DELETE FROM replicas WHERE id = $1";
    link.execute(sql, &[replica.into()]).await.map(drop)
}

async fn living(link: &Link) -> Result<u32> {
    let sql = "SELECT count(*) FROM replicas
               WHERE seen > (extract(epoch FROM clock_timestamp()) * 1000)::INT8 - $1";
    let count = link.first(sql, &[LIVING.into()], cell::number).await?;
    Ok(count.unwrap_or(0))
}
