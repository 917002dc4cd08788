//! The conversions that were answered in a run, compared with the histories in the store.

use super::run::size;
use crate::store::tests::all_usage;
use crate::store::{AccountId, Store};
use std::collections::{BTreeMap, BTreeSet};

/// The conversions that clients have got.
#[derive(Default)]
pub struct History {
    /// The number of the request by its account and its name.
    answered: BTreeMap<(usize, String), usize>,
}

impl History {
    /// A client has the response to its conversion.
    pub fn answered(&mut self, account: usize, number: usize, id: &str) {
        let before = self.answered.insert((account, id.to_owned()), number);
        assert_eq!(before, None, "two responses have the name {id}");
    }

    /// How many conversions the clients of this account have got.
    pub fn count(&self, account: usize) -> usize {
        self.answered
            .keys()
            .filter(|(it, _)| *it == account)
            .count()
    }

    /// Compares it with the store: each conversion that was answered is there once, in the history
    /// of its account, and no month has more than its quota.
    pub fn check(&self, store: &Store, accounts: &[AccountId], quota: Option<u64>) {
        let (mut recorded, mut sizes) = (BTreeMap::new(), BTreeSet::new());
        for (index, id) in accounts.iter().enumerate() {
            let (mut before, mut months) = (None, BTreeMap::<_, u64>::new());
            let mut count = 0;
            loop {
                let page = all_usage(store, *id, before, 20).expect("the disk is mended");
                for (_, entry) in page.entries {
                    let size = (entry.width, entry.height);
                    assert!(sizes.insert(size), "a request is recorded twice: {size:?}");
                    recorded.insert((index, entry.request.to_string()), size);
                    let month = store.usage_in_month(*id, None, entry.time).unwrap();
                    *months.entry(month.start).or_default() += 1;
                    count += 1;
                }
                before = page.next_before;
                if before.is_none() {
                    break;
                }
            }
            for (month, count) in months {
                assert!(
                    quota.is_none_or(|quota| count <= quota),
                    "{count} conversions in the month of {month:?}, {quota:?} allowed"
                );
            }
            let totals = store.usage_totals(*id).unwrap();
            assert_eq!(totals.conversions, count, "the sums and the entries differ");
        }
        for ((account, id), number) in &self.answered {
            let found = recorded.get(&(*account, id.clone()));
            assert_eq!(
                found,
                Some(&size(*number)),
                "request {number} was answered, and is not recorded for its account"
            );
        }
    }
}
