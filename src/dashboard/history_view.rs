//! The shown part of the history, and links to other parts.

use super::paths;
use crate::store::{EntryId, FilterTexts};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

/// The shown part of the history.
#[derive(Clone, Debug, Default)]
pub struct HistoryView {
    /// The filter of conversions and failures.
    pub texts: FilterTexts,
    /// Conversions older than this entry.
    pub before: Option<EntryId>,
    /// Failures older than this one.
    pub failed_before: Option<EntryId>,
}

impl HistoryView {
    /// The path with the filter and more parameters in its query.
    pub(super) fn link(&self, path: &str, more: &[(&str, &str)]) -> String {
        let FilterTexts {
            from,
            to,
            token_name,
            format,
            status,
        } = &self.texts;
        let filters = [
            ("from", &**from),
            ("to", to),
            ("token_name", token_name),
            ("format", format),
            ("status", status),
        ];
        let given = filters.iter().filter(|(_, text)| !text.is_empty());
        let mut link = path.to_owned();
        for (index, (name, text)) in given.chain(more).enumerate() {
            link.push(if index == 0 { '?' } else { '&' });
            link.push_str(name);
            link.push('=');
            link.extend(utf8_percent_encode(text, NON_ALPHANUMERIC));
        }
        link
    }

    /// The history, with more parameters.
    pub(super) fn page(&self, more: &[(&str, &str)]) -> String {
        self.link(paths::DASHBOARD, more) + "#history"
    }

    /// The usage from a day on, or of all days for an empty text.
    pub(super) fn since(&self, from: String) -> String {
        let mut view = self.clone();
        (view.texts.from, view.texts.to) = (from, String::new());
        view.link(paths::DASHBOARD, &[]) + "#usage"
    }

    /// The failed conversions, with more parameters.
    pub(super) fn failures(&self, more: &[(&str, &str)]) -> String {
        self.link(paths::DASHBOARD, more) + "#failures"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_carry_the_filter() {
        let view = HistoryView {
            texts: FilterTexts {
                from: "2026-11-01".to_owned(),
                token_name: "a & b".to_owned(),
                ..FilterTexts::default()
            },
            ..HistoryView::default()
        };
        assert_eq!(
            view.page(&[("before", "7")]),
            "/dashboard?from=2026%2D11%2D01&token_name=a%20%26%20b&before=7#history"
        );
        assert_eq!(
            view.since("2026-10-01".to_owned()),
            "/dashboard?from=2026%2D10%2D01&token_name=a%20%26%20b#usage"
        );
        assert_eq!(HistoryView::default().page(&[]), "/dashboard#history");
    }
}
