//! Histories and failures: filters, removal and sums.

use super::{Disk, MemoryEngine, account, one};
use crate::auth::AccountId;
use crate::store::clock;
use crate::store::engine::{Command, Engine, OldRows, Outcome};
use crate::store::failure::{Failure, FailureFilter, MAX_FAILURES, StatusFilter};
use crate::store::token_number::TokenNumber;
use crate::store::usage::{Days, UsageDay, UsageEntry, UsageFilter, UsagePage, UsageTotals};
use towebp_encoder::testing::Random;

on_each_engine! {
    a_filter_finds_what_a_walk_through_the_history_finds
    old_entries_are_removed_and_their_sums_stay
    an_entry_ahead_of_its_time_keeps_those_after_it
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
        })
        .collect();
    engine.apply(&commands).unwrap();
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

/// All pages of this size one after the other.
fn read_all(
    engine: &dyn Engine,
    account: AccountId,
    filter: &UsageFilter,
    limit: usize,
) -> Vec<(u64, UsageEntry)> {
    let (mut all, mut before) = (Vec::new(), None);
    loop {
        let UsagePage {
            entries,
            next_before,
        } = engine.usage_page(account, filter, before, limit).unwrap();
        assert!(entries.len() <= limit);
        all.extend(entries);
        assert!(next_before.is_none_or(|next| before.is_none_or(|before| next < before)));
        before = next_before;
        if before.is_none() {
            return all;
        }
    }
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
        let expected: Vec<_> = (1..)
            .zip(&entries)
            .filter(|(_, it)| {
                let day = clock::day(clock::to_milliseconds(it.time));
                filter.passes(day, it.token, &it.format)
            })
            .map(|(sequence, entry)| (sequence, entry.clone()))
            .collect();
        for limit in [1, 7, 1000] {
            if expected.len() / limit > 300 {
                continue;
            }
            let mut found = read_all(engine, owner, &filter, limit);
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
        let input_bytes = expected.iter().map(|(_, it)| it.input_bytes).sum::<u64>();
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

fn old_entries_are_removed_and_their_sums_stay(engine: &dyn Engine) {
    let [first, second] = ["a@example.org", "b@example.org"].map(|it| account(engine, it, 1).id);
    let entries: Vec<_> = (0..25_000).map(|i| on_day(i / 1000, 0, "png")).collect();
    record_all(engine, first, &entries);
    record_all(engine, second, &entries[..1500]);
    let before = [first, second].map(|id| engine.usage_totals(id).unwrap());
    remove_old(engine, 24, 0);
    let filter = UsageFilter::default();
    let rest = read_all(engine, first, &filter, 300);
    let numbers: Vec<u64> = rest.iter().map(|(sequence, _)| *sequence).collect();
    assert!(numbers.iter().copied().eq((24_001..=25_000).rev()));
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
    // Numbers go on, and pages end with the first entry that is left.
    record_all(engine, second, &entries[24_000..24_001]);
    let page = engine.usage_page(second, &filter, None, 9).unwrap();
    assert_eq!(page.entries[0].0, 1501);
    assert_eq!((page.entries.len(), page.next_before), (1, None));
    let page = engine.usage_page(first, &filter, Some(24_010), 9).unwrap();
    assert_eq!((page.entries.len(), page.next_before), (9, None));
    let old = engine.usage_page(first, &filter, Some(24_001), 9).unwrap();
    assert_eq!((old.entries.len(), old.next_before), (0, None));
    if let Some(snapshot) = engine.snapshot().unwrap() {
        assert_eq!(snapshot.check().unwrap().problems, [""; 0]);
    }
    one(engine, Command::DeleteAccount(second));
    if let Some(snapshot) = engine.snapshot().unwrap() {
        assert_eq!(snapshot.check().unwrap().problems, [""; 0]);
    }
}

fn an_entry_ahead_of_its_time_keeps_those_after_it(engine: &dyn Engine) {
    let owner = account(engine, "owner@example.org", 1).id;
    let entries = [1, 2, 50, 3].map(|day| on_day(day, 0, "png"));
    record_all(engine, owner, &entries);
    remove_old(engine, 10, 0);
    let filter = UsageFilter::default();
    let numbers = |engine| -> Vec<u64> {
        let rest = read_all(engine, owner, &filter, 9);
        rest.iter().map(|(sequence, _)| *sequence).collect()
    };
    assert_eq!(numbers(engine), [4, 3]);
    remove_old(engine, 51, 0);
    assert_eq!(numbers(engine), [0; 0]);
}

fn failure(day: u64, token: u32, status: u16) -> Failure {
    Failure {
        time: clock::from_milliseconds(day * DAY),
        token: TokenNumber(token),
        status,
        code: format!("code_{status}"),
        input_bytes: day,
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
    let found = |filter: &FailureFilter, before, limit| {
        let page = engine.failures(owner, filter, before, limit).unwrap();
        let numbers: Vec<u64> = page.failures.iter().map(|(it, _)| *it).collect();
        for (number, found) in page.failures {
            assert_eq!(found, all[number as usize - 1]);
        }
        (numbers, page.next_before)
    };
    let filter = FailureFilter::default();
    assert_eq!(found(&filter, None, 3), (vec![4, 3, 2], Some(2)));
    assert_eq!(found(&filter, Some(2), 3), (vec![1], None));
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
    assert_eq!(found(&filter, None, 2), (vec![3, 2], Some(2)));
    assert_eq!(engine.usage_totals(owner).unwrap(), UsageTotals::default());
    one(engine, Command::DeleteAccount(owner));
    assert_eq!(found(&FailureFilter::default(), None, 9), (vec![], None));
}

fn an_account_keeps_ten_thousand_failures(engine: &dyn Engine) {
    let owner = account(engine, "owner@example.org", 1).id;
    for count in [MAX_FAILURES - 1, 1, 1, 99] {
        let failures = (0..count).map(|_| failure(1, 0, 400)).collect();
        record_failures(engine, owner, failures);
    }
    let filter = FailureFilter::default();
    let page = engine.failures(owner, &filter, None, 20_000).unwrap();
    assert_eq!(page.failures.len() as u64, MAX_FAILURES);
    assert_eq!(page.failures.last().map(|(it, _)| *it), Some(101));
}

fn old_failures_are_removed(engine: &dyn Engine) {
    let owner = account(engine, "owner@example.org", 1).id;
    let failures = [1, 5, 2, 6].map(|day| failure(day, 0, 400)).to_vec();
    record_failures(engine, owner, failures);
    remove_old(engine, 0, 5);
    let page = engine.failures(owner, &FailureFilter::default(), None, 9);
    let left: Vec<u64> = page.unwrap().failures.iter().map(|(it, _)| *it).collect();
    assert_eq!(left, [4, 2]);
}
