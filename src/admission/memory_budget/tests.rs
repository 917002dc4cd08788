//! Who gets memory and workers, and in which order.

use super::*;
use std::sync::mpsc;
use std::thread;

/// Long enough for a busy machine.
const DEADLINE: Duration = Duration::from_mins(1);

/// Accounts.
const A: u64 = 1;
const B: u64 = 2;
const C: u64 = 3;

fn large(bytes: u64) -> Need {
    Need {
        bytes,
        is_small: false,
    }
}

fn small(bytes: u64) -> Need {
    Need {
        bytes,
        is_small: true,
    }
}

fn later() -> Instant {
    Instant::now() + DEADLINE
}

/// Reserves what has to be free.
#[track_caller]
fn take(budget: &MemoryBudget, account: u64, bytes: u64) -> Reservation {
    take_need(budget, account, large(bytes))
}

#[track_caller]
fn take_need(budget: &MemoryBudget, account: u64, need: Need) -> Reservation {
    budget
        .reserve(account, need, Instant::now(), &Cancel::never())
        .unwrap_or_else(|error| panic!("{error:?}: {:?}", budget.usage()))
}

/// Whether so many bytes can be reserved at once; they are given back.
fn is_free(budget: &MemoryBudget, account: u64, bytes: u64) -> bool {
    is_free_for(budget, account, large(bytes))
}

fn is_free_for(budget: &MemoryBudget, account: u64, need: Need) -> bool {
    let taken = budget.reserve(account, need, Instant::now(), &Cancel::never());
    taken.is_ok()
}

fn until_waiting(budget: &MemoryBudget, count: usize) {
    let start = Instant::now();
    while budget.usage().waiting != count {
        assert!(start.elapsed() < DEADLINE, "{:?}", budget.usage());
        thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn what_fits_is_reserved_at_once_and_comes_back() {
    let budget = MemoryBudget::new(100, 4);
    let first = take(&budget, A, 60);
    let mut second = take(&budget, B, 40);
    assert_eq!(budget.usage().reserved, 100);
    assert!(!is_free(&budget, C, 1), "nothing is left");
    second.finish(10);
    second.finish(20);
    let usage = budget.usage();
    assert_eq!(
        (usage.reserved, usage.running),
        (70, 1),
        "none comes back by growing"
    );
    drop((first, second));
    let nothing = MemoryUsage {
        total: 100,
        reserved: 0,
        running: 0,
        waiting: 0,
    };
    assert_eq!(budget.usage(), nothing);
    let state = budget.state();
    assert!(state.large.running_by_account.is_empty() && state.shares.is_empty());
    assert_eq!(state.large.squares, 0);
    drop(state);
    take(&budget, A, 100);
}

#[test]
fn what_can_never_fit_fails_without_waiting() {
    let budget = MemoryBudget::new(100, 4);
    let _all = take(&budget, A, 100);
    let outcome = budget.reserve(
        B,
        large(101),
        later(),
        &Cancel::when(&|| panic!("nothing waits")),
    );
    assert_eq!(
        outcome.expect_err("it is too large"),
        ReserveError::TooLarge {
            needed: 101,
            total: 100
        }
    );
}

#[test]
fn so_many_run_at_a_time_and_one_more_while_one_account_has_all() {
    let budget = MemoryBudget::new(100, 2);
    let mut all = vec![take(&budget, A, 1), take(&budget, A, 1)];
    assert!(!is_free(&budget, A, 1), "no third one of the same account");
    all.push(take(&budget, B, 1));
    assert!(!is_free(&budget, C, 1), "there is one more worker only");
    // Neither of two accounts has all, so there is no worker more.
    all.remove(0);
    assert!(!is_free(&budget, A, 1) && !is_free(&budget, C, 1));
    all.remove(0);
    drop(take(&budget, A, 1));
    drop(take(&budget, C, 1));
    assert_eq!(budget.usage().running, 1);
}

#[test]
fn an_account_that_runs_something_leaves_a_quarter_of_the_memory() {
    let budget = MemoryBudget::new(100, 4);
    let large = take(&budget, A, 70);
    assert!(is_free(&budget, A, 5) && !is_free(&budget, A, 6));
    assert!(is_free(&budget, B, 30), "others may have all that is left");
    drop(large);
    assert!(is_free(&budget, A, 100), "alone it may have all");
}

#[test]
fn an_account_is_served_in_order_whatever_the_sizes() {
    let budget = MemoryBudget::new(100, 4);
    let held = take(&budget, A, 60);
    let (sender, order) = mpsc::channel();
    thread::scope(|scope| {
        // The first does not fit beside what is reserved; the others would.
        for (number, bytes) in [90, 15, 10].into_iter().enumerate() {
            let (own, sender) = (budget.clone(), sender.clone());
            scope.spawn(move || {
                let _taken = own
                    .reserve(A, large(bytes), later(), &Cancel::never())
                    .expect("its turn");
                sender.send(bytes).expect("the receiver is there");
            });
            until_waiting(&budget, number + 1);
        }
        order
            .recv_timeout(Duration::from_millis(50))
            .expect_err("none overtakes");
        drop(held);
        assert_eq!(order.recv_timeout(DEADLINE), Ok(90), "the first to come");
        let mut others = [(); 2].map(|()| order.recv_timeout(DEADLINE).expect("both"));
        others.sort_unstable();
        assert_eq!(others, [10, 15]);
    });
}

#[test]
fn accounts_take_turns_however_many_one_has_waiting() {
    let budget = MemoryBudget::new(100, 1);
    let (sender, order) = mpsc::channel();
    thread::scope(|scope| {
        // Two accounts, so that there is no worker more.
        let held = [take(&budget, A, 1), take(&budget, B, 1)];
        let arrivals = [A, A, A, A, B, B, C];
        for (number, account) in arrivals.into_iter().enumerate() {
            let (own, sender) = (budget.clone(), sender.clone());
            scope.spawn(move || {
                let taken = own
                    .reserve(account, large(1), later(), &Cancel::never())
                    .expect("its turn");
                sender
                    .send((account, taken))
                    .expect("the receiver is there");
            });
            until_waiting(&budget, number + 1);
        }
        let mut running: Vec<Reservation> = held.into();
        let mut served = Vec::new();
        while served.len() < arrivals.len() {
            running.remove(0);
            while let Ok((account, taken)) = order.recv_timeout(Duration::from_millis(100)) {
                served.push(account);
                running.push(taken);
            }
        }
        let last = served.iter().rposition(|account| *account != A);
        assert!(
            last < Some(5),
            "others wait for one turn of A each: {served:?}"
        );
    });
}

#[test]
fn what_waits_for_memory_is_overtaken_by_others_until_half_its_time() {
    let budget = MemoryBudget::new(100, 4);
    let own = take(&budget, A, 60);
    let soon = Instant::now() + Duration::from_millis(400);
    let cancel = Cancel::new();
    thread::scope(|scope| {
        let of_same = scope.spawn(|| {
            budget
                .reserve(A, large(90), soon, &Cancel::never())
                .map(drop)
        });
        until_waiting(&budget, 1);
        assert!(is_free(&budget, B, 30), "it fits beside");
        of_same
            .join()
            .expect("no panic")
            .expect_err("its time is over");
        // An account with something running has no claim, however long it waits.
        budget.state().large.queue.push(
            A,
            Waiting {
                number: u64::MAX - 1,
                bytes: 90,
                is_small: false,
                claims_at: Instant::now(),
            },
        );
        assert!(is_free(&budget, B, 30));
        budget.state().large.queue.remove(A, |_| true);
        let of_other = scope.spawn(|| budget.reserve(C, large(90), later(), &cancel).map(drop));
        until_waiting(&budget, 1);
        assert!(is_free(&budget, B, 30), "half of its time is not over");
        cancel.cancel();
        of_other
            .join()
            .expect("no panic")
            .expect_err("it was cancelled");
        // One whose time is half over is next.
        budget.state().large.queue.push(
            C,
            Waiting {
                number: 0,
                bytes: 90,
                is_small: false,
                claims_at: Instant::now(),
            },
        );
        assert!(!is_free(&budget, B, 30), "it is not overtaken any more");
        drop(own);
        assert!(budget.state().granted.contains(&0), "it is next");
    });
}

#[test]
fn a_cancelled_one_lets_the_next_begin() {
    let budget = MemoryBudget::new(100, 4);
    let _held = take(&budget, A, 30);
    let cancel = Cancel::new();
    thread::scope(|scope| {
        let first = scope.spawn(|| budget.reserve(A, large(90), later(), &cancel));
        until_waiting(&budget, 1);
        let second = scope.spawn(|| {
            budget
                .reserve(A, large(40), later(), &Cancel::never())
                .map(drop)
        });
        until_waiting(&budget, 2);
        cancel.cancel();
        let first = first.join().expect("no panic");
        assert_eq!(
            first.expect_err("it was cancelled"),
            ReserveError::Cancelled
        );
        second.join().expect("no panic").expect("it fits now");
    });
    assert_eq!(budget.usage().reserved, 30);
}

#[test]
fn waiting_ends_in_time_with_what_stands_before() {
    let budget = MemoryBudget::new(100, 4);
    budget.state().large.seconds_per_byte = 0.01;
    let held = take(&budget, A, 100);
    let wait = |bytes| {
        let until = Instant::now() + Duration::from_millis(30);
        let outcome = budget.reserve(B, large(bytes), until, &Cancel::never());
        match outcome.expect_err("nothing is free") {
            ReserveError::Busy { wait } => wait.as_secs_f64(),
            other => panic!("{other:?}"),
        }
    };
    // 100 bytes are held for a second.
    assert!((wait(50) - 1.0).abs() < 1e-9, "{}", wait(50));
    thread::scope(|scope| {
        scope.spawn(|| budget.reserve(B, large(50), later(), &Cancel::never()));
        until_waiting(&budget, 1);
        // Then 50 for half a second, which leaves room for as much beside them.
        assert!((wait(50) - 1.25).abs() < 1e-9, "{}", wait(50));
        drop(held);
    });
}

#[test]
fn small_ones_do_not_wait_for_large_ones_of_their_own_account_or_of_others() {
    let budget = MemoryBudget::new(100, 2).keep_for_small(10);
    let cancel = Cancel::new();
    // Two workers and the one more for others have large ones, and all but 10 bytes are taken.
    let held = [(A, 40), (A, 25), (B, 25)].map(|(account, bytes)| take(&budget, account, bytes));
    thread::scope(|scope| {
        for (number, account) in [A, B, C].into_iter().enumerate() {
            let (budget, cancel) = (&budget, &cancel);
            scope.spawn(move || budget.reserve(account, large(1), later(), cancel).map(drop));
            until_waiting(budget, number + 1);
        }
        for account in [A, B, C] {
            let taken = take_need(&budget, account, small(5));
            assert!(is_free_for(&budget, account, small(5)), "a second one");
            assert!(!is_free_for(&budget, account, small(6)), "no memory");
            drop(taken);
        }
        cancel.cancel();
    });
    drop(held);
    assert_eq!((budget.usage().reserved, budget.usage().running), (0, 0));
    assert_eq!(budget.state().held_by_small, 0);
}

#[test]
fn large_ones_do_not_wait_for_workers_or_memory_of_small_ones() {
    let budget = MemoryBudget::new(100, 2).keep_for_small(10);
    let small_ones = [A, A, B].map(|account| take_need(&budget, account, small(3)));
    assert!(!is_free_for(&budget, C, small(1)), "no worker");
    assert!(is_free(&budget, A, 90), "its workers are others");
    assert!(!is_free(&budget, C, 92), "9 bytes are taken");
    drop(small_ones);
    assert!(is_free(&budget, A, 100), "nothing else runs");
    // Small ones may take more than is kept for them.
    let small_one = take_need(&budget, A, small(30));
    assert!(is_free(&budget, B, 70) && !is_free(&budget, B, 71));
    drop(small_one);
}

#[test]
fn a_large_one_that_is_next_is_not_overtaken_by_small_ones_in_its_memory() {
    let budget = MemoryBudget::new(100, 4).keep_for_small(10);
    let (own, smalls) = (take(&budget, A, 60), take_need(&budget, B, small(8)));
    for (bytes, left_to_small) in [(85, 7), (100, 0)] {
        budget.state().large.queue.push(
            C,
            Waiting {
                number: 0,
                bytes,
                is_small: false,
                claims_at: Instant::now(),
            },
        );
        let is_free = |bytes| is_free_for(&budget, B, small(bytes));
        assert!(!is_free(left_to_small + 1), "{bytes}");
        assert!(left_to_small == 0 || is_free(left_to_small), "{bytes}");
        budget.state().large.queue.remove(C, |_| true);
    }
    drop((own, smalls));
}

#[test]
fn small_ones_of_accounts_take_turns_and_are_served_in_order() {
    let budget = MemoryBudget::new(100, 1);
    let (sender, order) = mpsc::channel();
    thread::scope(|scope| {
        let mut held = vec![
            take_need(&budget, A, small(1)),
            take_need(&budget, B, small(1)),
        ];
        let arrivals = [(A, 1), (A, 2), (B, 3)];
        for (number, (account, bytes)) in arrivals.into_iter().enumerate() {
            let (own, sender) = (budget.clone(), sender.clone());
            scope.spawn(move || {
                let taken = own.reserve(account, small(bytes), later(), &Cancel::never());
                sender.send((bytes, taken)).expect("the receiver is there");
            });
            until_waiting(&budget, number + 1);
        }
        drop(held.remove(0));
        drop(held.remove(0));
        let mut served = Vec::new();
        while served.len() < arrivals.len() {
            let (bytes, taken) = order.recv_timeout(DEADLINE).expect("its turn");
            taken.expect("it is granted");
            served.push(bytes);
        }
        let place = |bytes| served.iter().position(|served| *served == bytes);
        assert!(place(1) < place(2), "{served:?}");
    });
}
