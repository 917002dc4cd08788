//! What takes the place of the standard library's locks, channels, threads and clock.

/// Locks, atomics and channels of shuttle, with what it lacks.
pub mod sync {
    pub use shuttle::sync::*;

    use super::time::Duration;
    use atomic::{AtomicBool, Ordering};
    use std::sync::OnceLock as Cell;

    /// [`std::sync::Condvar`], which shuttle has without limits of time: here another thread ends
    /// a wait that has one, at any time.
    #[derive(Debug, Default)]
    pub struct Condvar(Arc<shuttle::sync::Condvar>);

    impl Condvar {
        pub fn new() -> Condvar {
            Condvar::default()
        }

        pub fn wait<'m, T>(&self, guard: MutexGuard<'m, T>) -> LockResult<MutexGuard<'m, T>> {
            self.0.wait(guard)
        }

        /// The clock moves on by half of the limit, if the wait has not ended before.
        pub fn wait_timeout<'m, T>(
            &self,
            guard: MutexGuard<'m, T>,
            limit: Duration,
        ) -> LockResult<(MutexGuard<'m, T>, ())> {
            let is_over = Arc::new(AtomicBool::new(false));
            let (condvar, seen) = (Arc::clone(&self.0), Arc::clone(&is_over));
            let timer = shuttle::thread::spawn(move || {
                while !seen.load(Ordering::SeqCst) {
                    super::time::pass(limit / 2);
                    condvar.notify_all();
                    shuttle::thread::yield_now();
                }
            });
            let guard = self.0.wait(guard);
            is_over.store(true, Ordering::SeqCst);
            drop(timer);
            guard
                .map(|guard| (guard, ()))
                .map_err(|error| PoisonError::new((error.into_inner(), ())))
        }

        pub fn notify_all(&self) {
            self.0.notify_all();
        }
    }

    /// [`std::sync::OnceLock`], whose `wait` lets other threads go on. It does so without a lock:
    /// the end of a scoped thread may wake the one that has the scope, which shuttle's `Condvar`
    /// does not expect.
    #[derive(Debug)]
    pub struct OnceLock<T>(Cell<T>);

    impl<T> OnceLock<T> {
        pub fn new() -> OnceLock<T> {
            OnceLock(Cell::new())
        }

        pub fn get(&self) -> Option<&T> {
            shuttle::thread::yield_now();
            self.0.get()
        }

        pub fn get_or_init(&self, make: impl FnOnce() -> T) -> &T {
            shuttle::thread::yield_now();
            self.0.get_or_init(make)
        }

        pub fn wait(&self) {
            while self.get().is_none() {}
        }

        pub fn into_inner(self) -> Option<T> {
            self.0.into_inner()
        }
    }
}

/// Threads of shuttle, with names for those of a scope.
pub mod thread {
    pub use shuttle::thread::*;

    use std::io;

    /// [`std::thread::Builder`], of which shuttle has no `spawn_scoped`.
    pub struct Builder(shuttle::thread::Builder);

    impl Builder {
        pub fn new() -> Builder {
            Builder(shuttle::thread::Builder::new())
        }

        pub fn name(self, name: String) -> Builder {
            Builder(self.0.name(name))
        }

        pub fn spawn<T: Send + 'static>(
            self,
            work: impl FnOnce() -> T + Send + 'static,
        ) -> io::Result<JoinHandle<T>> {
            self.0.spawn(work)
        }

        pub fn spawn_scoped<'scope, T: Send + 'scope>(
            self,
            scope: &'scope Scope<'scope, '_>,
            work: impl FnOnce() -> T + Send + 'scope,
        ) -> io::Result<ScopedJoinHandle<'scope, T>> {
            Ok(scope.spawn(work))
        }
    }
}

/// A clock that moves on by a millisecond each time that it is read, so that a schedule can be
/// repeated.
pub mod time {
    pub use std::time::Duration;

    use std::cell::Cell;
    use std::ops::{Add, Sub};

    // All threads of a schedule share the one that they take turns on.
    thread_local! {
        static NOW: Cell<Duration> = const { Cell::new(Duration::ZERO) };
    }

    /// Begins anew, for another schedule.
    pub fn reset() {
        NOW.set(Duration::ZERO);
    }

    pub fn pass(time: Duration) {
        NOW.set(NOW.get() + time);
    }

    /// Time since the schedule began.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub struct Instant(Duration);

    impl Instant {
        pub fn now() -> Instant {
            pass(Duration::from_millis(1));
            Instant(NOW.get())
        }

        pub fn elapsed(self) -> Duration {
            Instant::now() - self
        }

        pub fn saturating_duration_since(self, earlier: Instant) -> Duration {
            self.0.saturating_sub(earlier.0)
        }
    }

    impl Add<Duration> for Instant {
        type Output = Instant;

        fn add(self, time: Duration) -> Instant {
            Instant(self.0 + time)
        }
    }

    impl Sub for Instant {
        type Output = Duration;

        fn sub(self, earlier: Instant) -> Duration {
            self.saturating_duration_since(earlier)
        }
    }
}
