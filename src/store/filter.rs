//! Filters of histories as texts, shared by the API's parameters and the dashboard's forms.

use std::time::SystemTime;

use super::clock::{self, DAY};
use super::failure::{FailureFilter, StatusFilter};
use super::token::TokenUsage;
use super::token_number::TokenNumber;
use super::usage::{Days, Period, UsageFilter};

/// The input formats in histories.
pub const USAGE_FORMATS: [&str; 6] = ["png", "jpeg", "gif", "bmp", "webp", "tiff"];

/// A text of a filter that is not allowed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilterError {
    /// The name of the text.
    pub name: &'static str,
    /// The given text.
    pub given: String,
    /// The allowed texts.
    pub allowed: &'static str,
}

/// Filters as they are given. An empty text filters nothing, as an empty field of a form.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FilterTexts {
    /// The first day (UTC), such as `2026-11-01`.
    pub from: String,
    /// The last day (UTC).
    pub to: String,
    /// The name of a token.
    pub token_name: String,
    /// The input format.
    pub format: String,
    /// The status code of a failure, or its class, such as `4xx`.
    pub status: String,
}

impl FilterTexts {
    /// The filter of histories.
    ///
    /// # Errors
    /// The first text that cannot be used.
    pub fn usage(&self, tokens: &[TokenUsage]) -> Result<UsageFilter, FilterError> {
        let format = &*self.format;
        if !format.is_empty() && !USAGE_FORMATS.contains(&format) {
            return Err(FilterError::new(
                "format",
                format,
                "png, jpeg, gif, bmp, webp or tiff",
            ));
        }
        Ok(UsageFilter {
            days: self.days()?,
            token: self.token(tokens)?,
            format: (!format.is_empty()).then(|| format.to_owned()),
        })
    }

    /// The filter of failed conversions.
    ///
    /// # Errors
    /// The first text that cannot be used.
    pub fn failures(&self, tokens: &[TokenUsage]) -> Result<FailureFilter, FilterError> {
        let status = match &*self.status {
            "" => None,
            text => Some(StatusFilter::parse(text).ok_or_else(|| {
                let allowed = "a status code from 400 to 599, 4xx or 5xx";
                FilterError::new("status", text, allowed)
            })?),
        };
        Ok(FailureFilter {
            days: self.days()?,
            token: self.token(tokens)?,
            status,
        })
    }

    /// The days.
    ///
    /// # Errors
    /// One of the texts is no day, or the last day comes before the first one.
    pub fn days(&self) -> Result<Days, FilterError> {
        let all = Days::default();
        let first = parse_day("from", &self.from)?.unwrap_or(all.first);
        let last = parse_day("to", &self.to)?.unwrap_or(all.last);
        if last < first {
            let allowed = "the day given as from, and later ones";
            return Err(FilterError::new("to", &self.to, allowed));
        }
        Ok(Days { first, last })
    }

    fn token(&self, tokens: &[TokenUsage]) -> Result<Option<TokenNumber>, FilterError> {
        if self.token_name.is_empty() {
            return Ok(None);
        }
        let named = tokens
            .iter()
            .filter(|usage| usage.token.settings.name == self.token_name);
        // A name may be that of a deleted token, too.
        let found = named.max_by_key(|usage| (usage.deleted.is_none(), usage.deleted));
        let found = found.ok_or_else(|| {
            let allowed = "the names of the account's tokens, such as default";
            FilterError::new("token_name", &self.token_name, allowed)
        })?;
        Ok(Some(found.token.number))
    }
}

impl FilterError {
    fn new(name: &'static str, given: &str, allowed: &'static str) -> FilterError {
        FilterError {
            name,
            given: given.chars().take(60).collect(),
            allowed,
        }
    }
}

/// The day (UTC), counted from the epoch, of a text such as `2026-11-01`; `None` for none.
fn parse_day(name: &'static str, text: &str) -> Result<Option<u32>, FilterError> {
    if text.is_empty() {
        return Ok(None);
    }
    let start = clock::start_of_day(text).filter(|it| *it >= SystemTime::UNIX_EPOCH);
    let day = start.map(|time| clock::day(clock::to_milliseconds(time)));
    day.map(Some).ok_or_else(|| {
        FilterError::new(
            name,
            text,
            "days (UTC) from 1970-01-01 on, such as 2026-11-01",
        )
    })
}

/// A day (UTC), counted from the epoch, such as `2026-11-01`.
pub fn day_text(day: u32) -> String {
    let midnight = clock::from_milliseconds(u64::from(day) * DAY);
    // Only a damaged file has a day after the year 9999, which this format cannot show.
    let last = clock::from_milliseconds(253_402_214_400_000);
    let text = humantime::format_rfc3339_seconds(midnight.min(last)).to_string();
    text.split('T').next().unwrap_or_default().to_owned()
}

/// A day or a month (UTC) by its first day, such as `2026-11-01` or `2026-11`.
pub fn period_text(period: Period, first_day: u32) -> String {
    let mut text = day_text(first_day);
    if period == Period::Month {
        text.truncate("2026-11".len());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(from: &str, to: &str, token_name: &str, format: &str) -> FilterTexts {
        FilterTexts {
            from: from.to_owned(),
            to: to.to_owned(),
            token_name: token_name.to_owned(),
            format: format.to_owned(),
            status: String::new(),
        }
    }

    #[test]
    fn days_are_written_as_they_are_read() {
        for (text, day) in [
            ("1970-01-01", 0),
            ("2026-11-01", 20_758),
            ("2028-02-29", 21_243),
            ("9999-12-31", 2_932_896),
        ] {
            assert_eq!(parse_day("from", text), Ok(Some(day)));
            assert_eq!(day_text(day), text);
        }
        assert_eq!(day_text(u32::MAX), "9999-12-31");
        assert_eq!(period_text(Period::Day, 20_758), "2026-11-01");
        assert_eq!(period_text(Period::Month, 20_758), "2026-11");
        for text in [
            "1969-12-31",
            "2026-11-31",
            "2027-02-29",
            "2026-13-01",
            "2026-1-1",
            "2026-11-01T00:00:00Z",
            "yesterday",
            " ",
            "10000-01-01",
        ] {
            assert_eq!(
                parse_day("from", text).map_err(|error| (error.name, error.given)),
                Err(("from", text.to_owned()))
            );
        }
    }

    #[test]
    fn the_first_text_that_cannot_be_used_is_named() {
        let tokens = [(0, "default"), (1, "shop")];
        let tokens = tokens.map(|(number, name)| TokenUsage::example(number, name));
        let filter = texts("2026-11-01", "2026-11-01", "shop", "gif").usage(&tokens);
        let expected = UsageFilter {
            days: Days {
                first: 20_758,
                last: 20_758,
            },
            token: Some(TokenNumber(1)),
            format: Some("gif".to_owned()),
        };
        assert_eq!(filter, Ok(expected));
        assert_eq!(
            FilterTexts::default().usage(&tokens),
            Ok(UsageFilter::default())
        );
        for (texts, name) in [
            (texts("x", "", "", ""), "from"),
            (texts("2026-11-02", "2026-11-01", "", ""), "to"),
            (texts("", "", "Shop", ""), "token_name"),
            (texts("", "", "", "heic"), "format"),
        ] {
            let error = texts.usage(&tokens).unwrap_err();
            assert_eq!(error.name, name, "{error:?}");
        }
        let status = |status: &str| FilterTexts {
            status: status.to_owned(),
            ..FilterTexts::default()
        };
        assert_eq!(status("200").failures(&tokens).unwrap_err().name, "status");
        assert_eq!(
            status("4xx").failures(&tokens).unwrap().status,
            Some(StatusFilter::Class(4))
        );
    }

    #[test]
    fn a_living_token_comes_before_a_deleted_one_of_its_name() {
        let mut tokens = [1, 2, 3].map(|number| TokenUsage::example(number, "shop"));
        let later = |seconds: u64| Some(clock::from_milliseconds(seconds * 1000));
        (tokens[0].deleted, tokens[2].deleted) = (later(1), later(2));
        let filter = texts("", "", "shop", "");
        assert_eq!(filter.usage(&tokens).unwrap().token, Some(TokenNumber(2)));
        tokens[1].deleted = later(3);
        assert_eq!(filter.usage(&tokens).unwrap().token, Some(TokenNumber(2)));
        tokens[1].deleted = later(0);
        assert_eq!(filter.usage(&tokens).unwrap().token, Some(TokenNumber(3)));
    }
}
