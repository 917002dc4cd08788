//! Why a command ends without success, and the exit code for it.

/// Why a command ends without success: a sentence for standard error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The command line is wrong: nothing was done, and the same command never succeeds.
    Usage(String),
    /// The work failed, or a part of it.
    Failed(String),
}

impl Failure {
    /// The exit code: 2 for usage, as of shells and most commands, and 1 for the rest.
    pub fn exit_code(&self) -> u8 {
        match self {
            Failure::Usage(_) => 2,
            Failure::Failed(_) => 1,
        }
    }

    /// The sentence.
    pub fn sentence(&self) -> &str {
        let (Failure::Usage(sentence) | Failure::Failed(sentence)) = self;
        sentence
    }
}

/// Most sentences are about work that failed.
impl From<String> for Failure {
    fn from(sentence: String) -> Failure {
        Failure::Failed(sentence)
    }
}
