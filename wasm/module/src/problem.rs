//! Why a call made nothing, by the codes of the HTTP API.

/// A code of the HTTP API's problems, or `cancelled`, with the sentence for this case.
pub(crate) struct Problem {
    pub(crate) code: &'static str,
    pub(crate) detail: String,
}

impl Problem {
    pub(crate) fn new(code: &'static str, detail: impl Into<String>) -> Problem {
        Problem {
            code,
            detail: detail.into(),
        }
    }
}

/// Checks that a call may take `needed` bytes of memory.
pub(crate) fn check_memory(needed: u64, allowed: u64) -> Result<(), Problem> {
    if needed <= allowed {
        return Ok(());
    }
    let detail = format!(
        "This needs {needed} bytes of memory at a time; {allowed} are allowed. Choose a smaller picture, or allow \
         more by maxMemory."
    );
    Err(Problem::new("too_much_memory", detail))
}
