//! Values for tests whose details do not matter.

use std::time::SystemTime;

use crate::store::{
    Account, ApiToken, Failure, RequestId, SignIn, SignInError, Store, TokenNumber, TokenUsage,
    UsageEntry, UsageTotals, WatermarkKind,
};

impl TokenUsage {
    /// A token for tests, which was not used yet.
    pub(crate) fn example(number: u32, name: &str) -> TokenUsage {
        let mut token = ApiToken::default_token(0, number);
        token.number = TokenNumber(number);
        name.clone_into(&mut token.settings.name);
        TokenUsage {
            token,
            deleted: None,
            totals: UsageTotals::default(),
            last_used: None,
        }
    }
}

impl UsageEntry {
    /// A small conversion for tests, whose details do not matter.
    pub(crate) fn example(time: SystemTime) -> UsageEntry {
        UsageEntry {
            time,
            token: TokenNumber::DEFAULT,
            format: "png".to_owned(),
            input_bytes: 2,
            output_bytes: 1,
            width: 1,
            height: 1,
            quality: 85,
            watermark: WatermarkKind::None,
            milliseconds: 1,
            request: RequestId(1),
        }
    }
}

impl Failure {
    /// A failure by the token 1 for tests, whose details do not matter.
    pub(crate) fn example(status: u16, code: &str) -> Failure {
        Failure {
            time: SystemTime::UNIX_EPOCH,
            token: TokenNumber(1),
            status,
            code: code.to_owned(),
            input_bytes: 7,
            request: RequestId(7),
        }
    }
}

impl Store {
    /// [`Store::sign_in_from`] without a device cookie, of an account without a second factor.
    pub(crate) fn sign_in(&self, email: &str, password: &str) -> Result<Account, SignInError> {
        match self.sign_in_from(None, email, password)? {
            SignIn::Done(account) => Ok(account),
            SignIn::NeedsCode { .. } => panic!("the account has a second factor"),
        }
    }
}
