//! The limit of open files, and the number of connections that it allows.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Surplus connections at a time, which only get the response that there are too many; further ones
/// are closed without a response.
pub const MAX_SURPLUS: usize = 64;

/// Descriptors for everything else: the database, standard streams, watermarks being fetched, the
/// command line's socket.
const OTHER_DESCRIPTORS: usize = 96;

/// Most client connections, up to `wanted`, that the limit of open files allows, after
/// raising the limit as far as is allowed.
pub fn affordable_connections(wanted: usize) -> usize {
    let needed = (wanted + MAX_SURPLUS + OTHER_DESCRIPTORS) as u64;
    let limit = getrlimit(Resource::Nofile);
    // None is no limit.
    let (Some(current), maximum) = (limit.current, limit.maximum) else {
        return wanted;
    };
    if current >= needed {
        return wanted;
    }
    let raised = maximum.map_or(needed, |maximum| maximum.min(needed));
    let raise = Rlimit {
        current: Some(raised),
        maximum,
    };
    let allowed = if setrlimit(Resource::Nofile, raise).is_ok() {
        raised
    } else {
        current
    };
    let connections = (allowed as usize)
        .saturating_sub(OTHER_DESCRIPTORS + MAX_SURPLUS)
        .clamp(16, wanted.max(16))
        .min(wanted);
    if connections < wanted {
        log::warn!(
            "{allowed} files may be open, so at most {connections} connections are held, not {wanted}"
        );
    }
    connections
}
