//! The one way from a request's token or session to an account.

use super::pairs::Pairs;
use super::problem::Problem;
use super::request::Request;
use super::same_site::is_same_site;
use super::settings::Settings;
use crate::store::{AccountId, Caller, Store, TokenCheck, TokenError, TokenNumber};

/// The credentials of a request, unchecked.
pub enum Credentials {
    /// An API token.
    Token(Token),
    /// The value of a session cookie.
    Session(String),
}

impl Credentials {
    /// The token if one is given, else the session.
    ///
    /// # Errors
    /// 401, if there is neither, or there are different tokens.
    pub fn of(
        request: &Request,
        query: &Pairs,
        settings: &Settings,
    ) -> Result<Credentials, Problem> {
        if let Some(token) = Token::find(request, query)? {
            return Ok(Credentials::Token(token));
        }
        let cookie = session_cookie(request, settings).ok_or_else(Problem::token_missing)?;
        Ok(Credentials::Session(cookie.to_owned()))
    }

    /// The account whose history they may read. Only the token `default` may, since others are
    /// given away, for example to a public page. It may read the disk, so only workers call it.
    ///
    /// # Errors
    /// 401, if they are nobody's; 403, if they are a token that only converts; 500 and 503, if the
    /// store fails.
    pub fn account(&self, store: &Store) -> Result<AccountId, Problem> {
        match self {
            Credentials::Token(token) => {
                let caller = token.caller(store)?;
                if caller.token == TokenNumber::DEFAULT {
                    Ok(caller.account)
                } else {
                    Err(Problem::token_converts_only(caller.token_name()))
                }
            }
            Credentials::Session(cookie) => store
                .session(cookie)?
                .map(|session| session.account.id)
                .ok_or_else(Problem::token_missing),
        }
    }
}

/// An API token as a request gives it, unchecked.
#[derive(Clone, PartialEq)]
pub struct Token(String);

/// More than one token was given, and they differ, so the account is not clear.
#[derive(Debug, PartialEq, Eq)]
pub struct TokensDiffer;

impl Token {
    /// The token of a conversion: the given one, or else the token cookie of the page that
    /// converts.
    ///
    /// # Errors
    /// 401, if there is none, or there are different ones.
    pub fn of(request: &Request, query: &Pairs, settings: &Settings) -> Result<Token, Problem> {
        let found = Token::find(request, query)?.or_else(|| Token::of_page(request, settings));
        found.ok_or_else(Problem::token_missing)
    }

    /// The token of the cookie that the page that converts has, so that the token stands neither in
    /// the page nor in an address. Only that page may use it.
    fn of_page(request: &Request, settings: &Settings) -> Option<Token> {
        let cookie = request.cookie(settings.token_cookie())?;
        let is_usable = !cookie.is_empty() && is_same_site(settings, request);
        is_usable.then(|| Token(cookie.to_owned()))
    }

    /// The token of the `token` parameter or of `Authorization: Bearer`. An empty one counts as
    /// none.
    fn find(request: &Request, query: &Pairs) -> Result<Option<Token>, TokensDiffer> {
        let mut tokens = query
            .values("token")
            .chain(request.headers("authorization").filter_map(bearer))
            .filter(|token| !token.is_empty());
        let Some(first) = tokens.next() else {
            return Ok(None);
        };
        if tokens.all(|other| other == first) {
            Ok(Some(Token(first.to_owned())))
        } else {
            Err(TokensDiffer)
        }
    }

    /// Looks up the sender in memory, for the event loop. The token of an account that is not in
    /// memory passes if it is not forged; [`Token::caller`] then reads the disk.
    ///
    /// # Errors
    /// 401, if it is nobody's, or has ended.
    pub fn check(&self, store: &Store) -> Result<Checked, Problem> {
        match store.check_token(&self.0) {
            TokenCheck::Valid(caller) => Ok(Checked::Known(caller)),
            TokenCheck::Unknown {
                account,
                last_known,
            } => Ok(Checked::Unknown {
                account,
                last_known,
            }),
            TokenCheck::Ended => Err(TokenError::Ended.into()),
            TokenCheck::Invalid => Err(TokenError::Invalid.into()),
        }
    }

    /// Looks up the sender. It may read the disk, so only workers call it.
    ///
    /// # Errors
    /// 401, if it is nobody's, or nobody's any more, or has ended; 500 and 503, if the store fails.
    pub fn caller(&self, store: &Store) -> Result<Caller, Problem> {
        Ok(store.authenticate(&self.0)?)
    }
}

/// The result of looking up a token in memory; the token is not forged.
pub enum Checked {
    /// The caller.
    Known(Caller),
    /// An account that had this token at some time, and the last caller known to memory.
    Unknown {
        /// The account.
        account: AccountId,
        /// The last known caller.
        last_known: Option<Caller>,
    },
}

impl Checked {
    /// The account.
    pub fn account(&self) -> AccountId {
        match self {
            Checked::Known(caller) => caller.account,
            Checked::Unknown { account, .. } => *account,
        }
    }

    /// The caller, if memory knows it.
    pub fn known(&self) -> Option<&Caller> {
        match self {
            Checked::Known(caller) => Some(caller),
            Checked::Unknown { .. } => None,
        }
    }

    /// The caller, or else the last known one.
    pub fn last_known(&self) -> Option<&Caller> {
        match self {
            Checked::Known(caller) => Some(caller),
            Checked::Unknown { last_known, .. } => last_known.as_ref(),
        }
    }
}

/// The value of the session cookie, unchecked. Pages pass it to the dashboard, which needs more of
/// the session than its account.
pub fn session_cookie<'r>(request: &'r Request, settings: &Settings) -> Option<&'r str> {
    request.cookie(settings.session_cookie())
}

/// Whether the script of the page that converts sends this conversion: by the page's cookie, and
/// not as a form.
pub fn is_of_page_script(request: &Request, settings: &Settings) -> bool {
    let is_form = request
        .media_type()
        .eq_ignore_ascii_case("multipart/form-data");
    let is_given = Token::find(request, &request.query()) != Ok(None);
    !is_form && !is_given && Token::of_page(request, settings).is_some()
}

/// The token of `Bearer TOKEN`; the scheme's case does not matter (RFC 9110 section 11.1).
fn bearer(value: &str) -> Option<&str> {
    let (scheme, token) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    #[test]
    fn a_token_comes_from_query_or_bearer_and_must_not_be_ambiguous() {
        let found = |target: &str, headers: &[(&str, &str)]| {
            let client = Ipv4Addr::LOCALHOST.into();
            let request = Request::new("POST", target, client, headers.iter().copied());
            Token::find(&request, &request.query()).map(|token| token.map(|Token(text)| text))
        };
        let bearer = ("Authorization", "bearer  abc");
        let abc = || Ok(Some("abc".to_owned()));
        assert_eq!(found("/?token=abc", &[]), abc());
        assert_eq!(found("/", &[bearer]), abc());
        assert_eq!(found("/?token=abc", &[bearer]), abc());
        assert_eq!(found("/?token=", &[bearer]), abc());
        assert_eq!(found("/?token=", &[]), Ok(None));
        assert_eq!(found("/", &[("Authorization", "Basic abc")]), Ok(None));
        assert_eq!(found("/?token=xyz", &[bearer]), Err(TokensDiffer));
        assert_eq!(found("/?token=xyz&token=abc", &[]), Err(TokensDiffer));
    }

    #[test]
    fn the_cookie_of_the_page_that_converts_is_for_that_page_alone() {
        let settings = Settings::default();
        let found = |target: &str, headers: &[(&str, &str)]| {
            let client = Ipv4Addr::LOCALHOST.into();
            let request = Request::new("POST", target, client, headers.iter().copied());
            let token = Token::of(&request, &request.query(), &settings);
            let by_script = is_of_page_script(&request, &settings);
            (token.ok().map(|Token(text)| text), by_script)
        };
        let cookie = ("Cookie", "towebp_session=s; towebp_token=abc");
        let here = ("Sec-Fetch-Site", "same-origin");
        let abc = || Some("abc".to_owned());
        assert_eq!(found("/", &[cookie, here]), (abc(), true));
        let form = ("Content-Type", "multipart/form-data; boundary=x");
        assert_eq!(found("/", &[cookie, here, form]), (abc(), false));
        for site in ["same-site", "cross-site"] {
            let elsewhere = ("Sec-Fetch-Site", site);
            assert_eq!(found("/", &[cookie, elsewhere]), (None, false), "{site}");
        }
        let xyz = Some("xyz".to_owned());
        assert_eq!(found("/?token=xyz", &[cookie, here]), (xyz, false));
        assert_eq!(
            found("/", &[("Cookie", "towebp_token="), here]),
            (None, false)
        );
        assert_eq!(found("/", &[]), (None, false));
    }
}
