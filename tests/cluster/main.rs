//! Several replicas over a real PostgreSQL, which fails in every way.

#[path = "../support/mod.rs"]
mod support;

mod chaos;
mod clocks;
mod demo;
mod disk;
mod equipment;
mod failover;
mod load;
mod moving;
mod proxy;
mod quota;
mod replicas;
mod rotations;
mod sharing;
mod start;
