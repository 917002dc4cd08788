//! Who gets memory and workers, and in which order.

use super::*;
use std::sync::mpsc;
use std::thread;
use towebp_encoder::Cancel;

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
        seconds: 0.0,
    }
}

fn small(bytes: u64) -> Need {
    Need {
        is_small: true,
        ..large(bytes)
    }
}

/// One that has waited half of its time.
fn claiming(number: u64, bytes: u64) -> Waiting {
    Waiting {
        number,
        need: large(bytes),
        claims_at: Instant::now(),
        wake: Box::new(|| {}),
    }
}

impl MemoryBudget {
    /// Waits for what is needed, as a job does without a thread.
    fn reserve(
        &self,
        account: u64,
        need: Need,
        until: Instant,
        cancel: &Cancel<'_>,
    ) -> Result<Reservation, ReserveError> {
        let (sender, woken) = mpsc::channel();
        let wake = move || sender.send(()).expect("it is waited for, or it is over");
        let mut pending = self.join(account, need, until, wake)?;
        loop {
            pending = match pending.take() {
                Ok(reservation) => return Ok(reservation),
                Err(pending) => pending,
            };
            if Instant::now() >= until || cancel.is_cancelled() {
                return Err(pending.busy());
            }
            woken.recv_timeout(Duration::from_millis(5)).ok();
        }
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
fn a_reservation_grows_at_once_or_not_at_all() {
    let budget = MemoryBudget::new(100, 4);
    let mut first = take(&budget, A, 40);
    let second = take(&budget, B, 30);
    assert_eq!(first.grow_to(70), Ok(()));
    assert_eq!(budget.usage().reserved, 100);
    assert!(matches!(first.grow_to(71), Err(ReserveError::Busy { .. })));
    let too_large = ReserveError::TooLarge {
        needed: 101,
        total: 100,
    };
    assert_eq!(first.grow_to(101), Err(too_large));
    drop(second);
    assert_eq!(first.grow_to(100), Ok(()), "one conversion may have all");
    assert_eq!(first.grow_to(101), Err(too_large));
    drop(first);
    assert_eq!(budget.usage().reserved, 0);
    // An account that runs several leaves a quarter to others.
    let mut first = take(&budget, A, 40);
    let second = take(&budget, A, 30);
    assert_eq!(first.grow_to(45), Ok(()));
    assert!(matches!(first.grow_to(46), Err(ReserveError::Busy { .. })));
    assert_eq!(first.grow_to(45), Ok(()), "it has as many");
    drop((first, second));
    let state = budget.state();
    assert_eq!((state.shares.held(), state.large.squares), (0, 0));
}

#[test]
fn growing_leaves_what_is_kept_for_small_ones() {
    let budget = MemoryBudget::new(100, 2).keep_for_small(20);
    let other = take(&budget, B, 10);
    let mut growing = take(&budget, A, 50);
    assert!(growing.grow_to(71).is_err(), "20 are kept");
    assert!(growing.grow_to(70).is_ok());
    drop(other);
    assert!(growing.grow_to(81).is_ok(), "no other large one runs");
    assert_eq!(MemoryBudget::most_running(2), [3, 10]);
}

#[test]
fn averages_follow_slowly() {
    assert!((average(8.0, 16.0) - 9.0).abs() < 1e-9);
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
fn so_many_run_at_a_time_and_one_of_each_account_that_runs_nothing() {
    let budget = MemoryBudget::new(1000, 2);
    let [_, most] = MemoryBudget::most_running(2);
    let mut all = vec![take(&budget, A, 1), take(&budget, A, 1)];
    assert!(!is_free(&budget, A, 1), "no third one of the same account");
    for account in B.. {
        if all.len() == most {
            assert!(!is_free(&budget, account, 1), "no thread would be left");
            break;
        }
        all.push(take(&budget, account, 1));
        assert!(!is_free(&budget, account, 1), "a second one of {account}");
    }
    drop(all);
    drop([take(&budget, A, 1), take(&budget, A, 1)]);
    assert_eq!(budget.usage().running, 0);
}

#[test]
fn workers_beyond_those_with_memory_of_their_own_are_counted() {
    let budget = MemoryBudget::new(100, 1).count_workers(6);
    let held = [A, B].map(|account| take(&budget, account, 10));
    assert_eq!(budget.usage().reserved, 20, "a worker, and one more");
    let third = take(&budget, C, 10);
    assert_eq!(budget.usage().reserved, 36);
    assert!(is_free(&budget, 4, 58) && !is_free(&budget, 4, 59));
    drop(held);
    assert_eq!(budget.usage().reserved, 16);
    drop(third);
    assert!(is_free(&budget, A, 100), "alone it may have all");
}

#[test]
fn several_accounts_divide_what_they_may_have_by_several_conversions() {
    let budget = MemoryBudget::new(120, 4);
    let own = [take(&budget, A, 30), take(&budget, B, 10)];
    assert!(is_free(&budget, A, 15) && !is_free(&budget, A, 16));
    assert!(is_free(&budget, B, 35) && !is_free(&budget, B, 36));
    assert!(is_free(&budget, C, 80), "its first one");
    drop(own);
    let state = budget.state();
    assert!(state.shares.is_empty() && state.large.accounts() == 0);
}

#[test]
fn the_account_that_was_given_least_work_is_next() {
    let budget = MemoryBudget::new(100, 1);
    let [_, most] = MemoryBudget::most_running(1);
    let wait = |account, seconds| {
        let need = Need {
            seconds,
            ..large(1)
        };
        budget.join(account, need, later(), || {}).expect("it fits")
    };
    // All that may run do, of other accounts, after these two have had their share.
    let mut held = vec![take(&budget, 10, 1)];
    drop([wait(A, 50.0), wait(B, 1.0)].map(PendingReservation::take));
    held.extend((11..).take(most - 1).map(|it| take(&budget, it, 1)));
    let (heavy, light) = (wait(A, 50.0), wait(B, 1.0));
    held.pop();
    assert!(light.is_granted() && !heavy.is_granted(), "{budget:?}");
    // It took longer than was thought.
    let mut light = light.take().expect("it is granted");
    let given = || budget.state().large.given[&B];
    let before = given();
    light.charge(200.0);
    assert!((given() - before - 199.0).abs() < 1e-9, "in place of one");
    drop((light, held.pop()));
    held.extend([take(&budget, 20, 1)]);
    assert!(heavy.is_granted());
    let (light, heavy_too) = (wait(B, 1.0), wait(A, 50.0));
    drop(heavy);
    assert!(heavy_too.is_granted() && !light.is_granted(), "{budget:?}");
    drop((heavy_too, light, held));
    drop(take(&budget, C, 1));
    assert!(
        budget.state().large.given.len() == 1,
        "others are forgotten"
    );
}

#[test]
fn what_is_given_up_leaves_nothing_behind() {
    let budget = MemoryBudget::new(100, 1);
    let (sender, woken) = mpsc::channel();
    let wait = |bytes| {
        let sender = sender.clone();
        let wake = move || sender.send(bytes).expect("the test waits");
        budget
            .join(A, large(bytes), later(), wake)
            .expect("it fits")
    };
    let (first, second, third) = (wait(1), wait(2), wait(3));
    assert!(first.is_granted() && !second.is_granted());
    drop(second);
    drop(first);
    assert_eq!(woken.try_iter().collect::<Vec<_>>(), [1, 3]);
    assert!(third.is_granted());
    drop(third);
    let state = budget.state();
    assert!(state.shares.is_empty() && state.granted.is_empty());
    assert_eq!((state.large.squares, state.large.running), (0, 0));
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
        // Each runs something, so that none begins beside it.
        let held = [A, B, C].map(|account| take(&budget, account, 1));
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
        budget
            .state()
            .large
            .queue
            .push(A, claiming(u64::MAX - 1, 90));
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
        budget.state().large.queue.push(C, claiming(0, 90));
        assert!(!is_free(&budget, B, 30), "it is not overtaken any more");
        drop(own);
        assert!(budget.state().granted.contains_key(&0), "it is next");
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
        first.expect_err("it was cancelled");
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
            ReserveError::TooLarge { .. } => panic!("it fits in all"),
        }
    };
    // 100 bytes are held for a second.
    assert!((wait(50) - 1.0).abs() < 1e-9, "{}", wait(50));
    thread::scope(|scope| {
        scope.spawn(|| budget.reserve(B, large(50), later(), &Cancel::never()));
        until_waiting(&budget, 1);
        // Then 50 for half a second, which leaves room for as much beside them.
        assert!((wait(50) - 1.25).abs() < 1e-9, "{}", wait(50));
        // One is before it, for a quarter of the workers.
        budget.state().large.seconds_per_conversion = 10.0;
        assert!((wait(50) - 2.5).abs() < 1e-9, "{}", wait(50));
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
fn one_that_has_waited_long_behind_one_that_has_not_is_in_nobodys_way() {
    let budget = MemoryBudget::new(100, 1);
    let began = Instant::now();
    let join = |account, seconds| {
        let until = began + Duration::from_secs(seconds);
        budget.join(account, large(100), until, || {}).unwrap()
    };
    monotonic::simulate(Some(began));
    let running = join(A, 60).take().expect("nobody is before it");
    // The first of account B came before the second one, and has less of its time behind it.
    let waiting = [join(B, 60), join(B, 20), join(C, 20)];
    monotonic::simulate(Some(began + Duration::from_secs(11)));
    drop(running);
    let granted = waiting.each_ref().map(PendingReservation::is_granted);
    assert_eq!(granted, [false, false, true]);
    monotonic::simulate(None);
}

#[test]
fn a_large_one_that_is_next_is_not_overtaken_by_small_ones_in_its_memory() {
    let budget = MemoryBudget::new(100, 4).keep_for_small(10);
    let (own, smalls) = (take(&budget, A, 60), take_need(&budget, B, small(8)));
    for (bytes, left_to_small) in [(85, 7), (100, 0)] {
        budget.state().large.queue.push(C, claiming(0, bytes));
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
