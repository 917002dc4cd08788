//! What every engine must do ([`crate::store::engine`]), tried on each of them.

use super::disk::Disk;
use super::entry;
use crate::auth::{AccountId, Email, Nonce, Proof, SecondFactor};
use crate::store::account::Account;
use crate::store::clock;
use crate::store::engine::{AccountChange, Command, Engine, Outcome, PageRange, TokenChange};
use crate::store::entry_id::EntryId;
use crate::store::session::{Browser, MAX_SESSIONS, SessionId, SessionTimes, StoredSession};
use crate::store::token::{
    AccountAccess, ApiToken, Limits, MAX_DELETED_TOKENS, MAX_TOKENS, PreviousText, Restrictions,
    TokenSettings,
};
use crate::store::token_number::TokenNumber;
use crate::store::usage::{MonthlyQuotas, UsageEntry, UsageFilter, UsageTotals};
use std::num::{NonZeroU32, NonZeroU64};
use std::time::Instant;

/// Makes two tests of each function: on redb, and on PostgreSQL if it is installed.
macro_rules! on_each_engine {
    ($($test:ident)*) => {
        mod on_redb {
            $(#[test] fn $test() { super::$test(&super::Disk::default().engine()); })*
        }
        #[cfg(feature = "postgres")]
        mod on_postgres {
            use crate::store::tests::postgres::on_postgres;
            $(#[test] fn $test() { on_postgres(super::$test); })*
        }
    };
}

mod history;
#[cfg(feature = "postgres")]
mod pooler;
#[cfg(feature = "postgres")]
mod replicas;

on_each_engine! {
    accounts_are_found_by_number_and_by_address
    account_numbers_are_not_given_again
    an_invitation_makes_one_account_until_it_ends
    tokens_are_made_changed_rotated_and_deleted
    an_account_has_at_most_fifty_tokens
    an_account_is_restricted
    conversions_are_counted_by_their_token
    a_password_is_replaced_only_if_it_is_the_verified_one
    an_address_is_replaced_unless_it_is_taken
    a_code_of_a_second_factor_is_spent_once
    sessions_start_move_and_end
    ended_sessions_are_swept
    sessions_are_listed_and_ended_by_their_account
    an_account_has_at_most_a_hundred_sessions
    a_deleted_account_leaves_nothing
    a_history_is_read_in_pages_from_the_newest_entry
    conversions_are_counted_by_the_month_of_their_time
    each_command_of_a_group_sees_the_earlier_ones
    the_mark_of_the_secret_is_exchanged
}

fn accounts_are_found_by_number_and_by_address(engine: &dyn Engine) {
    let first = account(engine, "first@example.org", 5);
    let second = account(engine, "second@example.org", 9);
    assert_eq!((first.id, second.id), (AccountId(5), AccountId(9)));
    assert_eq!(clock::to_milliseconds(second.created), 9);
    assert_eq!(
        one(engine, create("first@example.org", 10)),
        Outcome::Unchanged
    );
    assert_eq!(engine.accounts().unwrap(), [first.clone(), second.clone()]);
    assert_eq!(
        Account::from(engine.account(first.id).unwrap().unwrap()),
        first
    );
    assert!(engine.account(AccountId(6)).unwrap().is_none());
    let found = engine.account_by_email(&email("second@example.org"));
    assert_eq!(Account::from(found.unwrap().unwrap()), second);
    let found = engine.account_by_email(&email("third@example.org"));
    assert!(found.unwrap().is_none());
    for limit in 0..3 {
        let youngest = [
            (second.id, AccountAccess::of_new_account(9)),
            (first.id, AccountAccess::of_new_account(5)),
        ];
        let mut found = Vec::new();
        let mut each = |id, access| found.push((id, access));
        engine.each_access(limit, &mut each).unwrap();
        // The accounts of a shared engine are not loaded at the start.
        let count = if engine.is_shared() { 0 } else { limit };
        assert_eq!(found, youngest[..count], "of at most {limit}");
    }
}

fn account_numbers_are_not_given_again(engine: &dyn Engine) {
    let first = account(engine, "a@example.org", 1000);
    // The clock was set back.
    let second = account(engine, "b@example.org", 10);
    assert_eq!(second.id.0, first.id.0 + 1);
    one(engine, Command::DeleteAccount(second.id));
    assert_eq!(account(engine, "b@example.org", 10).id.0, first.id.0 + 2);
}

fn an_invitation_makes_one_account_until_it_ends(engine: &dyn Engine) {
    let (code, ended) = ([1; 32], [2; 32]);
    let add = |code, end, now| Command::AddInvite { code, end, now };
    one(engine, add(ended, 50, 0));
    one(engine, add(code, 100, 0));
    let join = |address: &str, code, created| Command::CreateAccount {
        email: email(address),
        password_hash: None,
        created,
        invite: Some(code),
    };
    account(engine, "taken@example.org", 1);
    assert_eq!(
        one(engine, join("taken@example.org", code, 99)),
        Outcome::Unchanged
    );
    assert_eq!(
        one(engine, join("guest@example.org", ended, 50)),
        Outcome::Unchanged
    );
    assert_eq!(
        one(engine, join("guest@example.org", [3; 32], 50)),
        Outcome::Unchanged
    );
    assert_eq!(
        engine.invite_end(&code).unwrap(),
        Some(100),
        "a failure used the invitation up"
    );
    assert!(one(engine, join("guest@example.org", code, 99)).changed());
    assert_eq!(
        one(engine, join("second@example.org", code, 99)),
        Outcome::Unchanged
    );
    assert_eq!(engine.invite_end(&code).unwrap(), None);
    one(engine, add(code, 200, 50));
    assert_eq!(
        engine.invite_end(&ended).unwrap(),
        None,
        "an ended invitation is still stored"
    );
}

fn settings(name: &str) -> TokenSettings {
    TokenSettings {
        name: name.to_owned(),
        ends: Some(clock::from_milliseconds(5000)),
        limits: Limits {
            per_minute: NonZeroU32::new(3),
            monthly: NonZeroU64::new(4),
        },
        preset: "quality=5\n".to_owned(),
    }
}

fn changed(engine: &dyn Engine, account: AccountId, change: TokenChange) -> Outcome {
    one(engine, Command::ChangeTokens { account, change })
}

/// The token that a command has made or changed, as the engine has it, too.
fn token_of(engine: &dyn Engine, account: AccountId, change: TokenChange) -> ApiToken {
    let Outcome::Token { token, access } = changed(engine, account, change) else {
        panic!("no token was changed");
    };
    assert_eq!(engine.access(account).unwrap(), Some(access.clone()));
    access.token(token).cloned().expect("it is not deleted")
}

fn tokens_are_made_changed_rotated_and_deleted(engine: &dyn Engine) {
    let id = account(engine, "owner@example.org", 5).id;
    let other = account(engine, "other@example.org", 6).id;
    let create = |name: &str, now| TokenChange::Create {
        settings: settings(name),
        now,
    };
    let shop = token_of(engine, id, create("shop", 7_000));
    assert_eq!((shop.number, shop.serial), (TokenNumber(7), 7));
    assert_eq!(clock::to_milliseconds(shop.created), 7_000);
    assert_eq!(shop.settings, settings("shop"));
    let blog = token_of(engine, id, create("blog", 7_000));
    assert_eq!(blog.serial, 8, "serial numbers grow without the clock, too");
    assert_eq!(
        changed(engine, id, create("shop", 9_000)),
        Outcome::NameTaken
    );
    assert!(changed(engine, other, create("shop", 1_000)).changed());
    assert_eq!(
        changed(engine, AccountId(99), create("shop", 9_000)),
        Outcome::Unchanged
    );

    let change = |token, name: &str| TokenChange::Set {
        token,
        settings: settings(name),
    };
    assert_eq!(
        changed(engine, id, change(blog.number, "shop")),
        Outcome::NameTaken
    );
    assert_eq!(
        changed(engine, id, change(TokenNumber(99), "x")),
        Outcome::Unchanged
    );
    let journal = token_of(engine, id, change(blog.number, "journal"));
    assert_eq!(journal.settings, settings("journal"));
    assert_eq!(journal.serial, blog.serial);
    token_of(engine, id, change(blog.number, "journal"));

    let rotate = |overlap_ends, now| TokenChange::Rotate {
        token: shop.number,
        overlap_ends,
        now,
    };
    let rotated = token_of(engine, id, rotate(Some(20_000), 10_000));
    let previous = PreviousText {
        serial: 7,
        ends: clock::from_milliseconds(20_000),
    };
    assert_eq!((rotated.serial, rotated.previous), (10, Some(previous)));
    let rotated = token_of(engine, id, rotate(None, 3_000));
    assert_eq!((rotated.serial, rotated.previous), (11, None));
    assert_eq!(rotated.number, shop.number);

    let delete = |now| TokenChange::Delete {
        token: shop.number,
        now,
    };
    assert!(changed(engine, id, delete(12_000)).changed());
    assert_eq!(changed(engine, id, delete(13_000)), Outcome::Unchanged);
    assert_eq!(changed(engine, id, rotate(None, 1)), Outcome::Unchanged);
    let access = engine.access(id).unwrap().unwrap();
    let names: Vec<_> = access.tokens.iter().map(|it| &*it.settings.name).collect();
    assert_eq!(names, ["default", "journal"]);
    let all = engine.tokens(id).unwrap();
    let told: Vec<_> = all
        .iter()
        .map(|it| {
            (
                &*it.token.settings.name,
                it.deleted.map(clock::to_milliseconds),
            )
        })
        .collect();
    assert_eq!(
        told,
        [("default", None), ("shop", Some(12_000)), ("journal", None)]
    );
    assert_eq!(all[1].token.settings.preset, "", "what was set is gone");
    assert!(token_of(engine, id, create("shop", 14_000)).serial == 14);
}

fn an_account_has_at_most_fifty_tokens(engine: &dyn Engine) {
    let id = account(engine, "owner@example.org", 5).id;
    let create = |name: String| {
        changed(
            engine,
            id,
            TokenChange::Create {
                settings: settings(&name),
                now: 0,
            },
        )
    };
    for number in 1..MAX_TOKENS {
        assert!(create(number.to_string()).changed(), "{number}");
    }
    assert_eq!(create("more".to_owned()), Outcome::TooManyTokens);
    let rounds = 0..MAX_DELETED_TOKENS + 3;
    for (last, round) in (MAX_TOKENS as u32 - 1..).zip(rounds) {
        let delete = TokenChange::Delete {
            token: TokenNumber(last),
            now: round as u64,
        };
        assert!(changed(engine, id, delete).changed());
        assert!(create(format!("again {round}")).changed());
    }
    let all = engine.tokens(id).unwrap();
    let deleted = all.iter().filter(|token| token.deleted.is_some()).count();
    assert_eq!(deleted, MAX_DELETED_TOKENS, "the oldest are forgotten");
    assert_eq!(all.len(), MAX_TOKENS + MAX_DELETED_TOKENS);
}

fn an_account_is_restricted(engine: &dyn Engine) {
    let id = account(engine, "owner@example.org", 5).id;
    for restrictions in [
        Restrictions {
            per_minute: Some(0),
            monthly: Some(7),
            disabled: None,
        },
        Restrictions {
            per_minute: None,
            monthly: None,
            disabled: Some(clock::from_milliseconds(9)),
        },
        Restrictions::default(),
    ] {
        let restrict = || TokenChange::Restrict(restrictions);
        assert_eq!(
            changed(engine, AccountId(6), restrict()),
            Outcome::Unchanged
        );
        assert!(changed(engine, id, restrict()).changed());
        let access = engine.access(id).unwrap().unwrap();
        assert_eq!(access.restrictions, restrictions);
    }
}

fn conversions_are_counted_by_their_token(engine: &dyn Engine) {
    let id = account(engine, "owner@example.org", 5).id;
    let shop = TokenChange::Create {
        settings: settings("shop"),
        now: 7_000,
    };
    let shop = token_of(engine, id, shop).number;
    let day = 24 * 60 * 60 * 1000;
    let (first, next) = (3 * day, 40 * day);
    let (january, february) = (0, 31 * day);
    // The clock is set back in between.
    for (time, token, in_its_month) in [
        (first, shop, 1),
        (next, TokenNumber::DEFAULT, 1),
        (next, shop, 1),
        (first, shop, 2),
        (next, shop, 2),
    ] {
        let entry = UsageEntry {
            token,
            ..UsageEntry::example(clock::from_milliseconds(time))
        };
        let Outcome::Recorded { by_token, .. } = one(engine, record(id, entry)) else {
            panic!("it was not recorded");
        };
        assert_eq!(by_token, in_its_month, "{token:?} at {time}");
    }
    for (token, month, expected) in [
        (Some(shop), january, 2),
        (Some(shop), february, 2),
        (Some(TokenNumber::DEFAULT), january, 0),
        (Some(TokenNumber::DEFAULT), february, 1),
        (None, february, 3),
        (Some(TokenNumber(99)), february, 0),
    ] {
        let count = engine.usage_in_month(id, token, month).unwrap();
        assert_eq!(count, expected, "{token:?} in {month}");
    }
    let told: Vec<_> = engine
        .tokens(id)
        .unwrap()
        .into_iter()
        .map(|it| {
            (
                it.totals.conversions,
                it.last_used.map(clock::to_milliseconds),
            )
        })
        .collect();
    assert_eq!(told, [(1, Some(next)), (4, Some(next))]);
}

fn a_password_is_replaced_only_if_it_is_the_verified_one(engine: &dyn Engine) {
    let owner = account(engine, "owner@example.org", 5);
    let other = account(engine, "other@example.org", 6);
    let set = |account, hash: &str, verified: Option<&str>, kept_session| Command::ChangeAccount {
        account,
        change: AccountChange::Password {
            hash: hash.to_owned(),
            kept_session,
        },
        verified: verified.map(str::to_owned),
    };
    let [kept, ended, others] = [[1; 32], [2; 32], [3; 32]];
    for (cookie, account) in [(kept, owner.id), (ended, owner.id), (others, other.id)] {
        assert!(one(engine, start(cookie, account, 100, 0)).changed());
    }
    let stored = || engine.account(owner.id).unwrap().unwrap().password;
    assert_eq!(
        one(engine, set(owner.id, "$b", Some("$a"), None)),
        Outcome::Unchanged
    );
    assert_eq!(stored(), None);
    assert!(
        has_session(engine, &ended),
        "a session ended although nothing was changed"
    );
    let changed = one(engine, set(owner.id, "$a", None, Some(kept))).account();
    assert!(changed.unwrap().has_password);
    assert_eq!(stored().as_deref(), Some("$a"));
    assert!(has_session(engine, &kept) && has_session(engine, &others));
    assert!(!has_session(engine, &ended));
    assert!(one(engine, set(owner.id, "$b", Some("$a"), None)).changed());
    assert_eq!(stored().as_deref(), Some("$b"));
    assert!(!has_session(engine, &kept));
    assert_eq!(
        one(engine, set(AccountId(7), "$a", None, None)),
        Outcome::Unchanged
    );
}

fn an_address_is_replaced_unless_it_is_taken(engine: &dyn Engine) {
    let owner = account(engine, "owner@example.org", 5);
    let other = account(engine, "other@example.org", 6);
    let set = |account, address: &str, verified: Option<&str>| Command::ChangeAccount {
        account,
        change: AccountChange::Email(email(address)),
        verified: verified.map(str::to_owned),
    };
    let found = |address| {
        let found = engine.account_by_email(&email(address)).unwrap();
        found.map(|account| account.id)
    };
    assert!(one(engine, start([1; 32], owner.id, 100, 0)).changed());
    assert_eq!(
        one(engine, set(owner.id, "other@example.org", None)),
        Outcome::EmailTaken
    );
    assert_eq!(
        one(engine, set(owner.id, "new@example.org", Some("$a"))),
        Outcome::Unchanged,
        "another password was verified"
    );
    assert_eq!(
        one(engine, set(AccountId(7), "new@example.org", None)),
        Outcome::Unchanged
    );
    assert_eq!(found("new@example.org"), None);
    let changed = one(engine, set(owner.id, "new@example.org", None)).account();
    assert_eq!(changed.unwrap().email, "new@example.org");
    assert_eq!(found("owner@example.org"), None);
    assert_eq!(found("new@example.org"), Some(owner.id));
    let again = one(engine, set(owner.id, "new@example.org", None));
    assert!(again.changed(), "its own address is not taken");
    assert_eq!(found("new@example.org"), Some(owner.id));
    // What one has given up, another may take.
    assert!(one(engine, set(other.id, "owner@example.org", None)).changed());
    let session = engine.session(&[1; 32]).unwrap().unwrap();
    assert_eq!(session.account.email, "new@example.org");
}

fn a_code_of_a_second_factor_is_spent_once(engine: &dyn Engine) {
    let id = account(engine, "owner@example.org", 1000).id;
    let (factor, codes) = SecondFactor::new(Nonce::random().unwrap(), 7).unwrap();
    let set = |factor: Option<&SecondFactor>, verified: Option<&str>| Command::ChangeAccount {
        account: id,
        change: AccountChange::SecondFactor(factor.cloned()),
        verified: verified.map(str::to_owned),
    };
    let spend = |proof, password: Option<&str>| Command::ChangeAccount {
        account: id,
        change: AccountChange::SpendCode {
            proof,
            password_hash: password.map(str::to_owned),
        },
        verified: None,
    };
    let recovery = Proof::recovery(&codes[0]).unwrap();
    assert!(!one(engine, spend(recovery, Some("$a"))).changed(), "off");
    assert!(!one(engine, set(Some(&factor), Some("$b"))).changed());
    let turned_on = one(engine, set(Some(&factor), None)).account();
    assert!(turned_on.unwrap().has_second_factor);
    for (period, is_spent) in [(7, false), (9, true), (9, false), (8, false)] {
        let spent = one(engine, spend(Proof::Period(period), None));
        assert_eq!(spent.changed(), is_spent, "{period}");
    }
    one(engine, start([1; 32], id, 100, 0));
    assert!(one(engine, spend(recovery, Some("$a"))).changed());
    assert!(!has_session(engine, &[1; 32]));
    assert!(!one(engine, spend(recovery, Some("$b"))).changed());
    let row = engine.account(id).unwrap().unwrap();
    assert_eq!(row.password.as_deref(), Some("$a"));
    assert!(one(engine, set(None, Some("$a"))).changed());
    assert_eq!(engine.account(id).unwrap().unwrap().second_factor, None);
}

fn sessions_start_move_and_end(engine: &dyn Engine) {
    let owner = account(engine, "owner@example.org", 5);
    let cookie = [1; 32];
    assert_eq!(
        one(engine, start(cookie, AccountId(6), 100, 0)),
        Outcome::Unchanged
    );
    assert!(one(engine, start(cookie, owner.id, 100, 0)).changed());
    let session = engine.session(&cookie).unwrap().unwrap();
    assert_eq!(Account::from(session.account), owner);
    assert_eq!(session.times, times(100));
    let renew = |cookie, end, browser| Command::RenewSession {
        cookie,
        times: times(end),
        browser,
    };
    one(engine, renew(cookie, 200, None));
    let stored = |name, end| {
        let session = StoredSession {
            times: times(end),
            browser: browser(name),
        };
        vec![(cookie, session)]
    };
    assert_eq!(engine.session(&cookie).unwrap().unwrap().times, times(200));
    let found = engine.sessions(owner.id).unwrap();
    assert_eq!(found, stored("Firefox on Linux", 200));
    one(engine, renew(cookie, 300, Some(browser(""))));
    assert_eq!(engine.sessions(owner.id).unwrap(), stored("", 300));
    one(engine, renew([2; 32], 200, None));
    assert!(
        !has_session(engine, &[2; 32]),
        "a renewal started a session"
    );
    let end = || Command::EndSession { cookie };
    assert_eq!(one(engine, end()), Outcome::Changed);
    assert_eq!(one(engine, end()), Outcome::Unchanged);
    assert!(!has_session(engine, &cookie));
    one(engine, start([3; 32], owner.id, 100, 0));
    one(engine, Command::EndSessionsOf(owner.id));
    assert!(!has_session(engine, &[3; 32]));
}

fn ended_sessions_are_swept(engine: &dyn Engine) {
    let owner = account(engine, "owner@example.org", 5);
    let [first, second, third] = [[1; 32], [2; 32], [3; 32]];
    one(engine, start(first, owner.id, 100, 0));
    one(engine, start(second, owner.id, 100, 0));
    one(engine, start(third, owner.id, 101, 0));
    let moved = Command::RenewSession {
        cookie: second,
        times: times(102),
        browser: None,
    };
    one(engine, moved);
    let sweep = |now| Command::SweepSessions { now };
    assert_eq!(one(engine, sweep(99)), Outcome::Unchanged);
    assert_eq!(one(engine, sweep(100)), Outcome::Changed);
    let present = [first, second, third].map(|cookie| has_session(engine, &cookie));
    assert_eq!(present, [false, true, true]);
    one(engine, start(first, owner.id, 200, 101));
    assert!(!has_session(engine, &third), "a start did not sweep");
}

fn sessions_are_listed_and_ended_by_their_account(engine: &dyn Engine) {
    let owner = account(engine, "owner@example.org", 5).id;
    let other = account(engine, "other@example.org", 6).id;
    let [first, second, others] = [[1; 32], [2; 32], [3; 32]];
    for (cookie, account) in [(first, owner), (second, owner), (others, other)] {
        one(engine, start(cookie, account, 100, 0));
    }
    let listed = |account| {
        let sessions = engine.sessions(account).unwrap();
        let mut cookies: Vec<_> = sessions.iter().map(|(cookie, _)| *cookie).collect();
        cookies.sort_unstable();
        cookies
    };
    assert_eq!(listed(owner), [first, second]);
    assert_eq!(listed(other), [others]);
    assert_eq!(listed(AccountId(7)), [[0; 32]; 0]);
    let end = |account, cookie| {
        let session = SessionId::of(&cookie);
        one(engine, Command::EndSessionOf { account, session }).changed()
    };
    assert!(!end(owner, others), "a session of another account");
    assert!(!end(owner, [4; 32]), "no session");
    assert!(end(owner, first));
    assert!(!end(owner, first), "it has ended");
    assert_eq!((listed(owner), listed(other)), (vec![second], vec![others]));
}

fn an_account_has_at_most_a_hundred_sessions(engine: &dyn Engine) {
    let owner = account(engine, "owner@example.org", 5).id;
    let other = account(engine, "other@example.org", 6).id;
    one(engine, start([255; 32], other, 500, 0));
    // The one that began first was used last.
    one(engine, start([0; 32], owner, 900, 0));
    for i in 1..MAX_SESSIONS as u8 {
        one(engine, start([i; 32], owner, 500 + u64::from(i), 0));
    }
    assert_eq!(engine.sessions(owner).unwrap().len(), MAX_SESSIONS);
    assert!(has_session(engine, &[0; 32]) && has_session(engine, &[1; 32]));
    one(engine, start([200; 32], owner, 800, 0));
    assert_eq!(engine.sessions(owner).unwrap().len(), MAX_SESSIONS);
    assert!(has_session(engine, &[0; 32]) && has_session(engine, &[2; 32]));
    assert!(!has_session(engine, &[1; 32]), "not used for the longest");
    assert!(has_session(engine, &[255; 32]), "another account's");
}

fn a_deleted_account_leaves_nothing(engine: &dyn Engine) {
    let owner = account(engine, "owner@example.org", 5);
    let other = account(engine, "other@example.org", 6);
    for (account, cookie) in [(owner.id, [1; 32]), (other.id, [2; 32])] {
        one(engine, start(cookie, account, 100, 0));
        one(engine, record(account, entry(1)));
    }
    let month = month_of(&entry(1));
    assert_eq!(
        one(engine, Command::DeleteAccount(owner.id)),
        Outcome::Changed
    );
    assert_eq!(
        one(engine, Command::DeleteAccount(owner.id)),
        Outcome::Unchanged
    );
    assert_eq!(one(engine, record(owner.id, entry(2))), Outcome::Unchanged);
    assert_eq!(engine.accounts().unwrap(), std::slice::from_ref(&other));
    assert!(!has_session(engine, &[1; 32]) && has_session(engine, &[2; 32]));
    assert_eq!(
        engine.usage_totals(owner.id).unwrap(),
        UsageTotals::default()
    );
    assert_eq!(engine.usage_in_month(owner.id, None, month).unwrap(), 0);
    assert!(
        engine
            .usage_page(
                owner.id,
                &UsageFilter::default(),
                PageRange {
                    before: None,
                    limit: 9
                }
            )
            .unwrap()
            .entries
            .is_empty()
    );
    assert_eq!(engine.usage_totals(other.id).unwrap().conversions, 1);
}

fn a_history_is_read_in_pages_from_the_newest_entry(engine: &dyn Engine) {
    let owner = account(engine, "owner@example.org", 5);
    let other = account(engine, "other@example.org", 6);
    for i in 1..=3 {
        one(engine, record(owner.id, entry(i)));
        one(engine, record(other.id, entry(10)));
    }
    let page = |before, limit| {
        let page = engine
            .usage_page(
                owner.id,
                &UsageFilter::default(),
                PageRange { before, limit },
            )
            .unwrap();
        let (ids, entries): (Vec<_>, Vec<_>) = page.entries.into_iter().unzip();
        assert!(ids.is_sorted_by(|newer, older| newer > older));
        (ids, entries, page.next_before)
    };
    let (ids, entries, next) = page(None, 2);
    assert_eq!(entries, [entry(3), entry(2)]);
    assert_eq!(next, Some(ids[1]));
    let (rest, entries, next) = page(next, 2);
    assert_eq!((entries, next), (vec![entry(1)], None));
    let (_, entries, next) = page(Some(ids[0]), 2);
    assert_eq!((entries, next), (vec![entry(2), entry(1)], None));
    for first in [rest[0], EntryId(0)] {
        assert_eq!(page(Some(first), 2), (vec![], vec![], None));
    }
    let expected = UsageTotals {
        conversions: 3,
        input_bytes: (1..=3).map(|i| entry(i).input_bytes).sum(),
        output_bytes: (1..=3).map(|i| entry(i).output_bytes).sum(),
    };
    assert_eq!(engine.usage_totals(owner.id).unwrap(), expected);
}

fn conversions_are_counted_by_the_month_of_their_time(engine: &dyn Engine) {
    let owner = account(engine, "owner@example.org", 5);
    let at = |time| UsageEntry {
        time: humantime::parse_rfc3339(time).unwrap(),
        ..entry(1)
    };
    // The clock is set back in between.
    for (time, conversions) in [
        ("2026-11-01T00:00:00Z", 1),
        ("2026-12-01T00:00:00Z", 1),
        ("2026-11-30T23:59:59.999Z", 2),
    ] {
        let month = month_of(&at(time));
        assert_eq!(
            one(engine, record(owner.id, at(time))),
            Outcome::Recorded {
                month,
                conversions,
                by_token: conversions
            }
        );
        assert_eq!(
            engine.usage_in_month(owner.id, None, month).unwrap(),
            conversions
        );
    }
    assert_eq!(engine.usage_in_month(owner.id, None, 0).unwrap(), 0);
}

fn each_command_of_a_group_sees_the_earlier_ones(engine: &dyn Engine) {
    let id = AccountId(5);
    let commands = [
        create("owner@example.org", 5),
        create("owner@example.org", 6),
        record(id, entry(1)),
        record(id, entry(2)),
        Command::DeleteAccount(id),
        record(id, entry(3)),
    ];
    let changed = engine
        .apply(&commands, Instant::now())
        .unwrap()
        .iter()
        .map(Outcome::changed)
        .collect::<Vec<_>>();
    assert_eq!(changed, [true, false, true, true, true, false]);
    assert!(engine.accounts().unwrap().is_empty());
    assert!(engine.apply(&[], Instant::now()).unwrap().is_empty());
}

fn the_mark_of_the_secret_is_exchanged(engine: &dyn Engine) {
    assert_eq!(engine.exchange_secret_mark(1).unwrap(), None);
    assert_eq!(engine.exchange_secret_mark(1).unwrap(), Some(1));
    assert_eq!(engine.exchange_secret_mark(2).unwrap(), Some(1));
    let last = if engine.is_shared() { 1 } else { 2 };
    assert_eq!(engine.exchange_secret_mark(2).unwrap(), Some(last));
    engine.probe().unwrap();
}

/// The outcome of one command.
fn one(engine: &dyn Engine, command: Command) -> Outcome {
    let mut outcomes = engine.apply(&[command], Instant::now()).unwrap();
    assert_eq!(outcomes.len(), 1);
    outcomes.remove(0)
}

fn account(engine: &dyn Engine, address: &str, created: u64) -> Account {
    one(engine, create(address, created)).account().unwrap()
}

fn has_session(engine: &dyn Engine, cookie: &[u8; 32]) -> bool {
    engine.session(cookie).unwrap().is_some()
}

fn create(address: &str, created: u64) -> Command {
    Command::CreateAccount {
        email: email(address),
        password_hash: None,
        created,
        invite: None,
    }
}

fn start(cookie: [u8; 32], account: AccountId, end: u64, now: u64) -> Command {
    Command::StartSession {
        cookie,
        account,
        session: StoredSession {
            times: times(end),
            browser: browser("Firefox on Linux"),
        },
        now,
    }
}

fn times(end: u64) -> SessionTimes {
    SessionTimes {
        created: end / 4,
        used: end / 2,
        end,
        latest: 1000,
    }
}

fn browser(name: &str) -> Browser {
    Browser {
        name: name.to_owned(),
        network: "192.0.2.0/24".to_owned(),
    }
}

fn record(account: AccountId, entry: UsageEntry) -> Command {
    Command::RecordUsage {
        account,
        entry,
        quotas: MonthlyQuotas::default(),
    }
}

fn month_of(entry: &UsageEntry) -> u64 {
    clock::month(clock::to_milliseconds(entry.time)).0
}

fn email(text: &str) -> Email {
    Email::parse(text).unwrap()
}
