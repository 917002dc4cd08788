//! The worker threads: each takes a job, does it, and takes the next one.

use super::job::Job;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle, Thread};

/// The threads that do jobs. They end once the [`Jobs`] are dropped.
pub(super) struct Workers(Vec<JoinHandle<()>>);

/// The way to the workers.
pub(super) struct Jobs<T = Job>(Arc<Queue<T>>);

/// The jobs that wait for a worker, and the workers that wait for a job.
struct Queue<T>(Mutex<QueueState<T>>);

struct QueueState<T> {
    jobs: VecDeque<T>,
    /// The last one to become idle gets the next job: its memory is warm, and the memory that
    /// allocators keep for each thread is that of few threads while few are needed.
    idle: Vec<Thread>,
    is_over: bool,
}

impl Workers {
    /// Starts so many threads. Returns the way to them.
    pub(super) fn start(count: usize) -> Result<(Workers, Jobs), String> {
        let jobs = Jobs::new();
        let start = |number| {
            let (queue, name) = (Arc::clone(&jobs.0), format!("worker-{number}"));
            thread::Builder::new()
                .name(name.clone())
                .spawn(move || work(&queue))
                .map_err(|error| format!("the thread {name} did not start: {error}"))
        };
        let threads = (1..=count).map(start).collect::<Result<_, _>>()?;
        Ok((Workers(threads), jobs))
    }

    /// Waits until all threads have ended.
    pub(super) fn join(self) -> Result<(), String> {
        for thread in self.0 {
            thread
                .join()
                .map_err(|_| "a worker has panicked".to_owned())?;
        }
        Ok(())
    }
}

fn work(queue: &Queue<Job>) {
    while let Some(job) = queue.next() {
        // A panic ends the job alone; dropping its reply notifies the event loop.
        if catch_unwind(AssertUnwindSafe(|| job.run())).is_err() {
            log::error!("a worker has lost a request by a panic");
        }
    }
}

impl<T> Jobs<T> {
    pub(super) fn new() -> Jobs<T> {
        Jobs(Arc::new(Queue(Mutex::new(QueueState {
            jobs: VecDeque::new(),
            idle: Vec::new(),
            is_over: false,
        }))))
    }

    /// Hands a job to a worker, at once if one is idle.
    pub(super) fn push(&self, job: T) {
        let mut state = self.0.lock();
        state.jobs.push_back(job);
        let worker = state.idle.pop();
        drop(state);
        if let Some(worker) = worker {
            worker.unpark();
        }
    }
}

#[cfg(test)]
impl<T> Jobs<T> {
    /// Takes jobs out of the queue in place of a worker.
    pub(super) fn taker(&self) -> impl Fn() -> Option<T> + use<T> {
        let queue = Arc::clone(&self.0);
        move || queue.lock().jobs.pop_front()
    }
}

impl<T> Drop for Jobs<T> {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.is_over = true;
        state.idle.iter().for_each(Thread::unpark);
    }
}

impl<T> Queue<T> {
    /// Waits for the next job; `None` once there will be none.
    fn next(&self) -> Option<T> {
        let own = thread::current();
        loop {
            let mut state = self.lock();
            // It may have woken up by itself.
            state.idle.retain(|worker| worker.id() != own.id());
            if let Some(job) = state.jobs.pop_front() {
                return Some(job);
            }
            if state.is_over {
                return None;
            }
            state.idle.push(own.clone());
            drop(state);
            thread::park();
        }
    }

    fn lock(&self) -> MutexGuard<'_, QueueState<T>> {
        // Both lists are whole at all times, even after a panic.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;
    use std::thread::ThreadId;

    #[test]
    fn one_worker_does_what_one_can_do_and_all_end() {
        let jobs: Jobs<mpsc::Sender<ThreadId>> = Jobs::new();
        let threads = [(); 4].map(|()| {
            let queue = Arc::clone(&jobs.0);
            thread::spawn(move || {
                while let Some(sender) = queue.next() {
                    sender.send(thread::current().id()).expect("it is awaited");
                }
            })
        });
        let until_idle = || {
            while jobs.0.lock().idle.len() < threads.len() {
                thread::yield_now();
            }
        };
        let (sender, done) = mpsc::channel();
        let next = || {
            until_idle();
            jobs.push(sender.clone());
            done.recv().expect("a worker lives")
        };
        let first = next();
        for _ in 0..20 {
            assert_eq!(next(), first);
        }
        until_idle();
        for _ in 0..100 {
            jobs.push(sender.clone());
        }
        let counted = done.iter().take(100).count();
        assert_eq!(counted, 100);
        drop(jobs);
        for thread in threads {
            thread.join().expect("it ends");
        }
    }
}
