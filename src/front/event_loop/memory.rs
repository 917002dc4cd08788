//! Backpressure and eviction when the memory of all connections is used up.

use super::EventLoop;
use crate::front::admission::Admission;
use crate::front::connection::Stage;
use crate::front::kind::WorkKind;
use crate::front::slab::Key;

impl<A: Admission> EventLoop<A> {
    /// Frees memory for a connection that cannot read on for lack of it, or else rejects its
    /// request. Returns whether the connection can go on. If its account is over its limit, other
    /// accounts give up nothing for it.
    pub(super) fn free_memory_for(&mut self, key: Key) -> bool {
        let Some(connection) = self.connections.get_mut(key) else {
            return false;
        };
        let share = connection.counted;
        let account = share.account.filter(|_| self.shares.is_over_limit(share));
        if self.evict_one(account) {
            return true;
        }
        let busy = self.busy(WorkKind::Conversion);
        self.reject(key, busy, None)
    }

    /// Evicts a connection if this one is reading a head while the memory is used up. Heads are
    /// read nevertheless, since idle connections would be rejected otherwise; but many that only
    /// begin one must not outgrow the memory.
    pub(super) fn bound_head_memory(&mut self, key: Key) {
        let Some(connection) = self.connections.get_mut(key) else {
            return;
        };
        let is_head = matches!(connection.stage, Stage::Head { .. });
        if is_head && connection.counted.bytes > 0 {
            self.bound_memory();
        }
    }

    /// Evicts a connection if the memory is used up.
    pub(super) fn bound_memory(&mut self) {
        if self.shares.held() >= self.shares.total() {
            self.evict_one(None);
        }
    }

    /// Ends the connection that has held most for longest, among those whose request is incomplete
    /// or whose client does not read its response; with `account`, only among the connections of
    /// that account. Such a client is slow or hostile. `false` if there is none.
    fn evict_one(&mut self, account: Option<u64>) -> bool {
        let now = self.now;
        let costliest = self
            .connections
            .iter()
            .filter(|(_, connection)| account.is_none() || connection.counted.account == account)
            .map(|(key, connection)| (connection.eviction_cost(now), key))
            .max();
        let Some((1.., victim)) = costliest else {
            return false;
        };
        let can_be_told = self.connections.get_mut(victim).is_some_and(|connection| {
            matches!(connection.stage, Stage::Head { .. } | Stage::Body(_))
        });
        if can_be_told {
            let busy = self.busy(WorkKind::Conversion);
            if self.reject(victim, busy, None) {
                self.unfinished.push(victim);
            }
            self.update_connection(victim);
        } else {
            self.close(victim);
        }
        true
    }
}
