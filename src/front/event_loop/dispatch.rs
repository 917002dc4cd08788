//! Complete requests on their way to workers, and responses on their way back.

use super::EventLoop;
use crate::admission::Share;
use crate::front::admission::Admission;
use crate::front::connection::{Preparing, Stage, Step};
use crate::front::job::{Exchange, Handover, Job, JobResult, Preparation, Reply, Waker, Work};
use crate::front::kind::WorkKind;
use crate::front::rejection::Rejection;
use crate::front::slab::Key;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Instant;

impl<A: Admission> EventLoop<A> {
    /// Makes a complete request wait for its ticket, and then for a worker. Returns whether the
    /// connection can go on.
    pub(super) fn prepare(&mut self, key: Key) -> bool {
        let Some(connection) = self.connections.get_mut(key) else {
            return false;
        };
        let (
            Stage::Queued {
                work,
                since,
                preparing,
            },
            Some((kind, owner)),
        ) = (&mut connection.stage, connection.queue)
        else {
            return false;
        };
        if kind == WorkKind::Conversion && connection.input_closed {
            return self.reject(key, Rejection::ClientDisconnected, None);
        }
        let began = preparing.map_or(self.now, |preparing| preparing.began);
        let waker = Waker::new(key, &self.inbox);
        let prepare = || match work {
            Work::Request { ticket, .. } => ticket.prepare(&waker),
            Work::Parts(_) => Preparation::Ready,
        };
        let queue = &mut self.queues[kind as usize];
        match catch_unwind(AssertUnwindSafe(prepare)) {
            Ok(Preparation::Pending { until }) => {
                let until = Some(until);
                *preparing = Some(Preparing { began, until });
                return false;
            }
            Ok(Preparation::Queued) => {
                *preparing = Some(Preparing { began, until: None });
                return false;
            }
            Ok(Preparation::Ready) => {
                *since += self.now - began;
                queue.push(owner, key);
            }
            Ok(Preparation::Granted) => queue.push_granted(key),
            Err(_) => return self.reject(key, Rejection::WorkerFailed, None),
        }
        *preparing = None;
        self.dispatch(kind);
        false
    }

    /// Prepares a request again, if it still waits for its ticket.
    pub(super) fn prepare_again(&mut self, key: Key) {
        let connection = self.connections.get_mut(key);
        let Some(Stage::Queued {
            preparing: Some(_), ..
        }) = connection.map(|connection| &connection.stage)
        else {
            return;
        };
        if self.prepare(key) {
            self.drive(key);
        } else {
            self.update_connection(key);
        }
    }

    /// Hands queued requests of this kind to free workers, owners taking turns.
    fn dispatch(&mut self, kind: WorkKind) {
        while let Some(key) = self.queues[kind as usize].pop() {
            self.hand_over(key, kind);
        }
    }

    /// Hands the request of this connection to a worker.
    fn hand_over(&mut self, key: Key, kind: WorkKind) {
        let Some(connection) = self.connections.get_mut(key) else {
            return;
        };
        let Some((_, owner)) = connection.queue else {
            return;
        };
        let mut job = None;
        let inserted = self.exchanges.insert_with(|exchange| {
            let (work, queued_since) = connection.take_work(exchange).ok_or(())?;
            let share = Share {
                bytes: work.held() as u64,
                account: owner.account(),
            };
            let cancel = Arc::default();
            job = Some(Job {
                work,
                handover: Handover {
                    cancel: Arc::clone(&cancel),
                    queued_since,
                    waker: Waker::new(key, &self.inbox),
                    reply: Reply::new(exchange, &self.inbox),
                },
            });
            Ok::<_, ()>(Exchange {
                client: Some(key),
                owner,
                kind,
                since: self.now,
                queued_since,
                cancel,
                share,
            })
        });
        let (Ok(exchange), Some(job)) = (inserted, job) else {
            return;
        };
        if let Some(exchange) = self.exchanges.get_mut(exchange) {
            self.shares.replace(Share::default(), exchange.share);
            if connection.input_closed {
                exchange.cancel.cancel();
            }
        }
        self.queues[kind as usize].begin(owner);
        self.jobs.push(job);
        self.update_connection(key);
    }

    /// Takes a worker's result, and hands the worker the next job.
    pub(super) fn end_exchange(&mut self, exchange: Key, result: JobResult) {
        let Some(exchange) = self.exchanges.remove(exchange) else {
            return;
        };
        self.shares.replace(exchange.share, Share::default());
        let queue = &mut self.queues[exchange.kind as usize];
        queue.end(exchange.owner, self.now - exchange.since);
        if let Some(client) = exchange.client {
            self.answer(client, result, exchange.queued_since);
        }
        self.dispatch(exchange.kind);
    }

    /// Sends a worker's result to this client. The request has waited since `queued_since`.
    fn answer(&mut self, key: Key, result: JobResult, queued_since: Instant) {
        let Some(connection) = self.connections.get_mut(key) else {
            return;
        };
        let now = self.now;
        let step = match result {
            JobResult::Waiting(ticket) => {
                connection.queue_again(ticket, queued_since);
                Step::Complete
            }
            JobResult::Response(response) => connection.respond(response, now),
            JobResult::Part(part, rest) => connection.send_part(part, rest, now),
            JobResult::LastPart => connection.end_parts(now),
            JobResult::Failed => Step::Reject(Rejection::WorkerFailed),
        };
        if self.apply(key, step) {
            self.drive(key);
        } else {
            self.update_connection(key);
        }
        self.bound_memory();
    }

    /// Sends the response that is due now.
    pub(super) fn send_due(&mut self, key: Key) {
        let now = self.now;
        let Some(connection) = self.connections.get_mut(key) else {
            return;
        };
        if let Some(response) = connection.take_due(now) {
            let step = connection.respond(response, now);
            if self.apply(key, step) {
                self.drive(key);
            } else {
                self.update_connection(key);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::front::ByteQueue;
    use crate::front::job::{Handover, Ticket};
    use crate::front::response::Response;
    use crate::front::{Admitted, Head, Listeners, Owner, Settings};
    use std::io::{Read, Write};
    use std::net::{IpAddr, TcpStream};
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::thread;
    use std::time::Duration;

    struct Paths;

    /// A request, which is answered by its path.
    struct Asked {
        path: String,
        /// Whether what it waits for is there, once it waits.
        granted: Option<Arc<AtomicBool>>,
    }

    impl Admission for Paths {
        fn admit(&self, head: &Head, client: IpAddr) -> Result<Admitted, Response> {
            Ok(Admitted {
                body_limit: 0,
                kind: WorkKind::Page,
                owner: Owner::Address(client),
                ticket: Box::new(Asked {
                    path: head.target.clone(),
                    granted: None,
                }),
            })
        }

        fn reject(&self, rejection: Rejection, _: Option<&Head>, _: IpAddr) -> Response {
            assert_eq!(rejection, Rejection::WorkerFailed);
            text(500, "failed")
        }
    }

    impl Ticket for Asked {
        fn prepare(&mut self, _: &Waker) -> Preparation {
            match &self.granted {
                None => Preparation::Ready,
                Some(granted) if granted.load(Ordering::SeqCst) => Preparation::Granted,
                Some(_) => Preparation::Queued,
            }
        }

        fn held(&self) -> usize {
            0
        }

        fn answer(mut self: Box<Self>, _: ByteQueue, handover: Handover) {
            let Handover { waker, reply, .. } = handover;
            match (self.path.as_str(), &self.granted) {
                ("/panic", _) => panic!("a fault"),
                ("/granted", None) => {
                    let granted = Arc::new(AtomicBool::new(false));
                    self.granted = Some(Arc::clone(&granted));
                    thread::spawn(move || {
                        granted.store(true, Ordering::SeqCst);
                        waker.wake();
                    });
                    reply.wait(self);
                }
                ("/never", _) => {
                    self.granted = Some(Arc::default());
                    reply.wait(self);
                }
                ("/due", _) => reply.send(Response {
                    due: Some(Instant::now() + Duration::from_millis(200)),
                    ..text(200, "late")
                }),
                ("/parts", _) => reply.send(Response {
                    parts: Some(Box::new(["b", "c"].map(|part| Ok(part.into())).into_iter())),
                    ..text(200, "a")
                }),
                _ => reply.send(text(200, "fine")),
            }
        }

        fn reject(&self, rejection: Rejection) -> Response {
            assert!(matches!(rejection, Rejection::Busy { .. }), "{rejection:?}");
            text(503, "busy")
        }
    }

    fn text(status: u16, body: &str) -> Response {
        Response {
            status,
            headers: Vec::new(),
            body: body.into(),
            parts: None,
            due: None,
        }
    }

    #[test]
    fn one_worker_answers_whatever_becomes_of_requests() {
        let settings = Settings {
            queue_time: Duration::from_millis(300),
            ..Settings::default()
        };
        let address = "127.0.0.1:0".parse().unwrap();
        let listeners = Listeners::bind(&[address], settings).expect("a free port");
        let address = listeners.addresses()[0];
        let front = listeners.serve([0, 1, 0], Paths).expect("a thread");
        let ask = |path: &str| {
            let mut stream = TcpStream::connect(address).unwrap();
            let head = "HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
            write!(stream, "GET {path} {head}").unwrap();
            stream
        };
        let answer = |mut stream: TcpStream| {
            let mut text = String::new();
            stream.read_to_string(&mut text).unwrap();
            let (head, body) = text.split_once("\r\n\r\n").expect("a head");
            format!("{} {body}", &head["HTTP/1.1 ".len()..][..3])
        };
        let began = Instant::now();
        let (never, due) = (ask("/never"), ask("/due"));
        for (path, expected) in [
            ("/panic", "500 failed"),
            ("/", "200 fine"),
            ("/granted", "200 fine"),
            ("/parts", "200 1\r\na\r\n1\r\nb\r\n1\r\nc\r\n0\r\n\r\n"),
        ] {
            assert_eq!(answer(ask(path)), expected, "{path}");
        }
        assert_eq!(answer(due), "200 late");
        assert!(began.elapsed() >= Duration::from_millis(200));
        assert_eq!(answer(never), "503 busy");
        assert!(began.elapsed() >= Duration::from_millis(300));
        drop(ask("/never"));
        front.shutdown.shut_down().unwrap();
        front.wait().expect("a graceful end");
    }
}
