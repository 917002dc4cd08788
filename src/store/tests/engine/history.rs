//! Histories and failures: filters, removal and sums.

use super::{Disk, account, one};
use crate::auth::AccountId;
use crate::store::clock;
use crate::store::engine::{Command, Engine, OldRows, Outcome, PageRange};
use crate::store::entry_id::{EntryId, Page};
use crate::store::failure::{Failure, FailureFilter, MAX_FAILURES, StatusFilter};
use crate::store::request_id::RequestId;
use crate::store::token_number::TokenNumber;
use crate::store::usage::{Days, MonthlyQuotas, UsageDay, UsageEntry, UsageFilter, UsageTotals};
use std::num::NonZeroU64;
use std::time::Instant;
use towebp_encoder::testing::Random;

on_each_engine! {
    a_filter_finds_what_a_walk_through_the_history_finds
    old_entries_are_removed_and_their_sums_stay
    an_entry_ahead_of_its_time_keeps_those_after_it
    a_month_that_is_full_takes_no_more
    failures_are_kept_apart_and_filtered
    an_account_keeps_ten_thousand_failures
    old_failures_are_removed
}

const DAY: u64 = clock::DAY;

/// Records conversions in one group.
fn record_all(engine: &dyn Engine, account: AccountId, entries: &[UsageEntry]) {
    let commands: Vec<_> = entries
        .iter()
        .map(|entry| Command::RecordUsage {
            account,
            entry: entry.clone(),
            quotas: MonthlyQuotas::default(),
        })
        .collect();
    engine.apply(&commands, Instant::now()).unwrap();
}

/// A conversion on a day by a token.
fn on_day(day: u64, token: u32, format: &str) -> UsageEntry {
    UsageEntry {
        token: TokenNumber(token),
        format: format.to_owned(),
        input_bytes: 1000 + day,
        ..UsageEntry::example(clock::from_milliseconds(day * DAY + 5))
    }
}

/// All pages of this size one after the other: the entries with their ids, which fall.
fn read_all(
    engine: &dyn Engine,
    account: AccountId,
    filter: &UsageFilter,
    limit: usize,
) -> Vec<(EntryId, UsageEntry)> {
    let (mut all, mut before) = (Vec::new(), None);
    loop {
        let Page {
            entries,
            next_before,
        } = engine
            .usage_page(account, filter, PageRange { before, limit })
            .unwrap();
        assert!(entries.len() <= limit);
        all.extend(entries);
        assert!(next_before.is_none_or(|next| before.is_none_or(|before| next < before)));
        before = next_before;
        if before.is_none() {
            assert!(all.is_sorted_by(|(newer, _), (older, _)| newer > older));
            return all;
        }
    }
}

/// The entries without their ids.
fn entries_of(found: Vec<(EntryId, UsageEntry)>) -> Vec<UsageEntry> {
    found.into_iter().map(|(_, entry)| entry).collect()
}

fn a_filter_finds_what_a_walk_through_the_history_finds(engine: &dyn Engine) {
    let owner = account(engine, "owner@example.org", 1).id;
    let other = account(engine, "other@example.org", 1).id;
    let mut random = Random::new(18);
    // The clock goes forward, is set back, and forward again. One token is rare.
    let entries: Vec<_> = (0..5000_u64)
        .map(|i| {
            let day = match i {
                2000..3000 => 700 + i / 500,
                3000 => 100_000,
                _ => 720 + i / 250,
            };
            let token = if i % 1700 == 7 { 9 } else { random.below(2) };
            let format = ["png", "jpeg", "gif"][random.index(if i < 1024 { 3 } else { 2 })];
            on_day(day, token, format)
        })
        .collect();
    record_all(engine, owner, &entries);
    record_all(engine, other, &entries[..3]);
    let days = |first, last| Days { first, last };
    let all = Days::default();
    for (days, token, format) in [
        (all, Some(9), None),
        (all, Some(9), Some("gif")),
        (all, Some(8), None),
        (all, None, Some("gif")),
        (all, None, Some("bmp")),
        (days(725, 725), None, None),
        (days(700, 704), Some(1), Some("png")),
        (days(100_000, 100_000), None, None),
        (days(0, 703), None, None),
        (days(730, u32::MAX), Some(9), None),
    ] {
        let filter = UsageFilter {
            days,
            token: token.map(TokenNumber),
            format: format.map(str::to_owned),
        };
        let passing = entries.iter().filter(|it| {
            let day = clock::day(clock::to_milliseconds(it.time));
            filter.passes(day, it.token, &it.format)
        });
        let expected: Vec<_> = passing.cloned().collect();
        for limit in [1, 7, 1000] {
            if expected.len() / limit > 300 {
                continue;
            }
            let mut found = entries_of(read_all(engine, owner, &filter, limit));
            found.reverse();
            assert_eq!(found, expected, "{filter:?}, {limit} a page");
        }
        let mut sums = UsageTotals::default();
        let mut add = |day: UsageDay| {
            if filter.passes(day.day, day.token, &day.format) {
                sums += day.totals;
            }
        };
        engine.usage_days(owner, filter.days, &mut add).unwrap();
        let input_bytes = expected.iter().map(|it| it.input_bytes).sum::<u64>();
        assert_eq!(
            (sums.conversions, sums.input_bytes),
            (expected.len() as u64, input_bytes),
            "{filter:?}"
        );
    }
    let filter = UsageFilter::default();
    assert_eq!(read_all(engine, owner, &filter, 900).len(), entries.len());
}

/// Removes what is from before these days, to the end.
fn remove_old(engine: &dyn Engine, history_before: u64, failures_before: u64) {
    let mut first = Some(AccountId(0));
    while let Some(account) = first {
        let old = OldRows {
            first: account,
            history_before: history_before * DAY,
            failures_before: failures_before * DAY,
        };
        first = match one(engine, Command::RemoveOld(old)) {
            Outcome::Removed { next } => next,
            other => panic!("{other:?}"),
        };
    }
}

/// A check finds nothing, but that the tests' PostgreSQL does not wait for its disk.
fn assert_consistent(engine: &dyn Engine) {
    if let Some(snapshot) = engine.snapshot().unwrap() {
        let mut problems = snapshot.check().unwrap().problems;
        problems.retain(|problem| !problem.contains("fsync = off"));
        assert_eq!(problems, [""; 0]);
    }
}

fn old_entries_are_removed_and_their_sums_stay(engine: &dyn Engine) {
    let [first, second] = ["a@example.org", "b@example.org"].map(|it| account(engine, it, 1).id);
    let entries: Vec<_> = (0..25_000).map(|i| on_day(i / 1000, 0, "png")).collect();
    record_all(engine, first, &entries);
    record_all(engine, second, &entries[..1500]);
    let before = [first, second].map(|id| engine.usage_totals(id).unwrap());
    remove_old(engine, 24, 0);
    let filter = UsageFilter::default();
    let rest = read_all(engine, first, &filter, 300);
    assert_eq!(entries_of(rest.clone()), entries[24_000..]);
    let (newest, oldest) = (rest[0].0, rest[999].0);
    assert_eq!(read_all(engine, second, &filter, 300), []);
    assert_eq!(
        [first, second].map(|id| engine.usage_totals(id).unwrap()),
        before
    );
    assert_eq!(engine.usage_in_month(first, None, 0).unwrap(), 25_000);
    let token = &engine.tokens(second).unwrap()[0];
    assert_eq!(token.totals, before[1]);
    let mut days = 0;
    engine
        .usage_days(first, Days::default(), &mut |day| {
            assert_eq!(day.totals.conversions, 1000);
            days += 1;
        })
        .unwrap();
    assert_eq!(days, 25);
    // Ids go on, and pages end with the first entry that is left.
    record_all(engine, first, &entries[24_000..24_001]);
    record_all(engine, second, &entries[24_000..24_001]);
    let page = engine
        .usage_page(
            first,
            &filter,
            PageRange {
                before: None,
                limit: 1,
            },
        )
        .unwrap();
    assert!(page.entries[0].0 > newest);
    let page = engine
        .usage_page(
            second,
            &filter,
            PageRange {
                before: None,
                limit: 9,
            },
        )
        .unwrap();
    assert_eq!((page.entries.len(), page.next_before), (1, None));
    let before = Some(rest[990].0);
    let page = engine
        .usage_page(first, &filter, PageRange { before, limit: 9 })
        .unwrap();
    assert_eq!((page.entries.len(), page.next_before), (9, None));
    let old = engine
        .usage_page(
            first,
            &filter,
            PageRange {
                before: Some(oldest),
                limit: 9,
            },
        )
        .unwrap();
    assert_eq!((old.entries.len(), old.next_before), (0, None));
    assert_consistent(engine);
    one(engine, Command::DeleteAccount(second));
    assert_consistent(engine);
}

fn an_entry_ahead_of_its_time_keeps_those_after_it(engine: &dyn Engine) {
    let owner = account(engine, "owner@example.org", 1).id;
    let entries = [1, 2, 50, 3].map(|day| on_day(day, 0, "png"));
    record_all(engine, owner, &entries);
    remove_old(engine, 10, 0);
    let filter = UsageFilter::default();
    let rest = || entries_of(read_all(engine, owner, &filter, 9));
    assert_eq!(rest(), [entries[3].clone(), entries[2].clone()]);
    remove_old(engine, 51, 0);
    assert_eq!(rest(), []);
}

fn a_month_that_is_full_takes_no_more(engine: &dyn Engine) {
    let owner = account(engine, "owner@example.org", 1).id;
    let other = account(engine, "other@example.org", 1).id;
    let exceeded = |of_token| Outcome::QuotaExceeded { of_token };
    let quota = NonZeroU64::new;
    let record = |account, day, token, most: [u64; 2]| {
        let record = Command::RecordUsage {
            account,
            entry: on_day(day, token, "png"),
            quotas: MonthlyQuotas {
                account: quota(most[0]),
                token: quota(most[1]),
            },
        };
        one(engine, record)
    };
    assert!(record(owner, 1, 0, [2, 1]).changed());
    assert_eq!(record(owner, 1, 0, [2, 1]), exceeded(true));
    assert!(record(owner, 1, 5, [2, 1]).changed());
    assert_eq!(record(owner, 1, 5, [2, 1]), exceeded(false));
    assert_eq!(record(owner, 1, 5, [2, 0]), exceeded(false));
    assert_eq!(record(owner, 1, 5, [0, 1]), exceeded(true));
    // Another account and another month have counts of their own, also if the clock is set back.
    assert!(record(other, 1, 0, [1, 1]).changed());
    assert!(record(owner, 40, 5, [1, 1]).changed());
    assert_eq!(record(owner, 1, 5, [0, 1]), exceeded(true));
    assert!(record(owner, 1, 5, [0, 2]).changed());
    assert!(record(owner, 1, 5, [0, 0]).changed());
    // What is refused is nowhere.
    assert_eq!(engine.usage_totals(owner).unwrap().conversions, 5);
    assert_eq!(engine.usage_in_month(owner, None, 0).unwrap(), 4);
    let history = read_all(engine, owner, &UsageFilter::default(), 9);
    assert_eq!(history.len(), 5);
    // Each command of a group sees the earlier ones.
    let commands: Vec<_> = (0..6)
        .map(|_| Command::RecordUsage {
            account: other,
            entry: on_day(1, 0, "png"),
            quotas: MonthlyQuotas {
                account: quota(4),
                token: None,
            },
        })
        .collect();
    let outcomes = engine.apply(&commands, Instant::now()).unwrap();
    let recorded: Vec<_> = outcomes.iter().map(Outcome::changed).collect();
    assert_eq!(recorded, [true, true, true, false, false, false]);
}

fn failure(day: u64, token: u32, status: u16) -> Failure {
    Failure {
        time: clock::from_milliseconds(day * DAY),
        token: TokenNumber(token),
        status,
        code: format!("code_{status}"),
        input_bytes: day,
        request: RequestId(day.into()),
    }
}

fn record_failures(engine: &dyn Engine, account: AccountId, failures: Vec<Failure>) -> Outcome {
    one(engine, Command::RecordFailures { account, failures })
}

fn failures_are_kept_apart_and_filtered(engine: &dyn Engine) {
    let owner = account(engine, "owner@example.org", 1).id;
    let all = [(1, 0, 400), (2, 1, 413), (2, 0, 429), (3, 0, 503)];
    let all = all.map(|(day, token, status)| failure(day, token, status));
    record_failures(engine, owner, all[..2].to_vec());
    record_failures(engine, owner, all[2..].to_vec());
    let outcome = record_failures(engine, AccountId(7), all.to_vec());
    assert_eq!(outcome, Outcome::Unchanged);
    // The places in `all` from 1 on, and the cursor of the next page.
    let found = |filter: &FailureFilter, before, limit| {
        let page = engine
            .failures(owner, filter, PageRange { before, limit })
            .unwrap();
        let ids = page.entries.iter().map(|(id, _)| *id);
        assert!(ids.is_sorted_by(|newer, older| newer > older));
        if let Some(next) = page.next_before {
            assert_eq!(page.entries.last().unwrap().0, next);
        }
        let place = |found| 1 + all.iter().position(|it| it == found).unwrap();
        let places: Vec<_> = page.entries.iter().map(|(_, it)| place(it)).collect();
        (places, page.next_before)
    };
    let filter = FailureFilter::default();
    let (places, next) = found(&filter, None, 3);
    assert_eq!((places, next.is_some()), (vec![4, 3, 2], true));
    assert_eq!(found(&filter, next, 3), (vec![1], None));
    assert_eq!(found(&filter, None, 4), (vec![4, 3, 2, 1], None));
    let days = Days { first: 2, last: 2 };
    let filter = FailureFilter { days, ..filter };
    assert_eq!(found(&filter, None, 9), (vec![3, 2], None));
    let token = Some(TokenNumber(1));
    assert_eq!(
        found(&FailureFilter { token, ..filter }, None, 9),
        (vec![2], None)
    );
    let status = Some(StatusFilter::Class(4));
    let filter = FailureFilter {
        status,
        ..FailureFilter::default()
    };
    let (places, next) = found(&filter, None, 2);
    assert_eq!((places, next.is_some()), (vec![3, 2], true));
    assert_eq!(engine.usage_totals(owner).unwrap(), UsageTotals::default());
    one(engine, Command::DeleteAccount(owner));
    assert_eq!(found(&FailureFilter::default(), None, 9), (vec![], None));
}

fn an_account_keeps_ten_thousand_failures(engine: &dyn Engine) {
    let owner = account(engine, "owner@example.org", 1).id;
    let mut sizes = 1..;
    for count in [MAX_FAILURES - 1, 1, 1, 99] {
        let failures = sizes.by_ref().take(count as usize).map(|bytes| Failure {
            input_bytes: bytes,
            ..failure(1, 0, 400)
        });
        record_failures(engine, owner, failures.collect());
    }
    let filter = FailureFilter::default();
    let page = engine
        .failures(
            owner,
            &filter,
            PageRange {
                before: None,
                limit: 20_000,
            },
        )
        .unwrap();
    assert_eq!(page.entries.len() as u64, MAX_FAILURES);
    let oldest = page.entries.last().map(|(_, it)| it.input_bytes);
    assert_eq!(oldest, Some(101));
}

fn old_failures_are_removed(engine: &dyn Engine) {
    let owner = account(engine, "owner@example.org", 1).id;
    let failures = [1, 5, 2, 6].map(|day| failure(day, 0, 400));
    record_failures(engine, owner, failures.to_vec());
    remove_old(engine, 0, 5);
    let page = engine.failures(
        owner,
        &FailureFilter::default(),
        PageRange {
            before: None,
            limit: 9,
        },
    );
    let left: Vec<_> = page
        .unwrap()
        .entries
        .into_iter()
        .map(|(_, it)| it)
        .collect();
    assert_eq!(left, [failures[3].clone(), failures[1].clone()]);
}
