//! The page of all tokens: their owner makes, changes, replaces and deletes them here.

use super::context::{Form, SignedIn};
use super::document::{Viewer, document_with};
use super::duration::amount;
use super::forms::{alert, as_sentence, csrf_field, notice};
use super::outcome::{Outcome, PageStatus};
use super::paths;
use super::token_field::{Label, token_field, token_number};
use super::units::{ago, date_and_time, size, time};
use crate::store::{
    AccountId, ApiToken, ChangeTokenError, Limits, MAX_NAME, MAX_PRESET_BYTES, MAX_TOKENS, Session,
    StoreError, TokenNumber, TokenSettings, TokenUsage, end_of_day,
};
use maud::{Markup, html};
use std::num::{NonZeroU32, NonZeroU64};
use std::time::{Duration, SystemTime};

/// How long a replaced token may go on working, in hours, as the form offers it.
const OVERLAPS: [(u64, &str); 5] = [
    (0, "at once"),
    (1, "after 1 hour"),
    (24, "after 24 hours"),
    (48, "after 48 hours"),
    (72, "after 72 hours"),
];

/// The most tokens that are shown without a search field.
const UNSEARCHED: usize = 10;

const HOUR: Duration = Duration::from_hours(1);

/// The page of all tokens. `done` and `number` give the notice of the last change.
pub fn tokens(context: &SignedIn<'_>, done: &str, number: &str) -> Result<Outcome, StoreError> {
    let all = context.store.tokens(context.session.account.id)?;
    let done = Done::named(done).and_then(|done| done.sentence(&all, number));
    let news = notice(done.as_deref());
    let page = page(context, &all, &Draft::default(), &news, None)?;
    Ok(Outcome::page(page))
}

/// Makes a token.
pub fn create_token(context: &SignedIn<'_>, form: &Form) -> Result<Outcome, StoreError> {
    submit(context, Done::Created, &Draft::of(form), |id, draft| {
        let settings = draft.settings(context.check_preset)?;
        check_end(context, id, draft, settings.ends)?;
        Ok(context.store.create_token(id, settings)?.number)
    })
}

/// Replaces the settings of a token.
pub fn change_token(context: &SignedIn<'_>, form: &Form) -> Result<Outcome, StoreError> {
    submit(context, Done::Saved, &Draft::of(form), |id, draft| {
        let settings = draft.settings(context.check_preset)?;
        check_end(context, id, draft, settings.ends)?;
        let token = draft.token.ok_or(ChangeTokenError::NoToken)?;
        Ok(context.store.change_token(id, token, settings)?.number)
    })
}

/// Replaces the text of a token; the present one is refused at once, or after some hours.
pub fn rotate_token(context: &SignedIn<'_>, form: &Form) -> Result<Outcome, StoreError> {
    let token = token_number(form).unwrap_or(TokenNumber::DEFAULT);
    let hours: u32 = form.field("overlap").parse().unwrap_or(0);
    let overlap = HOUR * hours.min(72);
    context
        .store
        .rotate_token(context.session.account.id, token, overlap)?;
    Ok(Done::Rolled.redirect(token))
}

/// Deletes a token, which is refused at once.
pub fn delete_token(context: &SignedIn<'_>, form: &Form) -> Result<Outcome, StoreError> {
    submit(context, Done::Deleted, &Draft::default(), |id, _| {
        let token = token_number(form).ok_or(ChangeTokenError::NoToken)?;
        context.store.delete_token(id, token)?;
        Ok(token)
    })
}

/// A change of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Done {
    Created,
    Saved,
    Rolled,
    Deleted,
}

impl Done {
    const ALL: [(Done, &str); 4] = [
        (Done::Created, "created"),
        (Done::Saved, "saved"),
        (Done::Rolled, "rolled"),
        (Done::Deleted, "deleted"),
    ];

    fn named(name: &str) -> Option<Done> {
        let found = Done::ALL.iter().find(|(_, known)| *known == name);
        found.map(|(done, _)| *done)
    }

    /// Leads to the page of all tokens, which shows the notice.
    fn redirect(self, token: TokenNumber) -> Outcome {
        let found = Done::ALL.iter().find(|(done, _)| *done == self);
        let name = found.map_or("", |(_, name)| name);
        Outcome::redirect(format!("{}?done={name}&number={}", paths::TOKENS, token.0))
    }

    /// The notice for the token of this number, if it is in the matching state.
    fn sentence(self, all: &[TokenUsage], number: &str) -> Option<String> {
        let usage = all
            .iter()
            .find(|usage| usage.token.number.0.to_string() == number)?;
        let name = &usage.token.settings.name;
        match (self, usage.deleted.is_some()) {
            (Done::Created, false) => Some(format!("The token {name} is created.")),
            (Done::Saved, false) => Some(format!("The token {name} is saved.")),
            (Done::Rolled, false) => Some(format!(
                "The token {name} is rolled. Put the new one wherever the old one is in use."
            )),
            (Done::Deleted, true) => Some(format!(
                "The token {name} is deleted: it is refused from now on."
            )),
            _ => None,
        }
    }
}

/// Why a form was not taken.
enum Refusal {
    /// A sentence for the page.
    Invalid(String),
    Store(StoreError),
}

impl From<String> for Refusal {
    fn from(reason: String) -> Refusal {
        Refusal::Invalid(reason)
    }
}

impl From<ChangeTokenError> for Refusal {
    fn from(error: ChangeTokenError) -> Refusal {
        match error {
            ChangeTokenError::Store(error) => Refusal::Store(error),
            error => Refusal::Invalid(as_sentence(&error.to_string())),
        }
    }
}

/// Carries out an action of a form; the page comes again with the reason if it is not possible.
fn submit(
    context: &SignedIn<'_>,
    done: Done,
    draft: &Draft,
    action: impl FnOnce(AccountId, &Draft) -> Result<TokenNumber, Refusal>,
) -> Result<Outcome, StoreError> {
    match action(context.session.account.id, draft) {
        Ok(token) => Ok(done.redirect(token)),
        Err(Refusal::Store(error)) => Err(error),
        Err(Refusal::Invalid(reason)) => {
            let all = context.store.tokens(context.session.account.id)?;
            let page = page(context, &all, draft, &alert(Some(&reason)), Some(done))?;
            Ok(Outcome::page_with(page, PageStatus::Invalid))
        }
    }
}

/// Rejects an end that is over, unless it is the one that the token has.
fn check_end(
    context: &SignedIn<'_>,
    id: AccountId,
    draft: &Draft,
    ends: Option<SystemTime>,
) -> Result<(), Refusal> {
    if ends.is_none_or(|ends| ends > context.store.now()) {
        return Ok(());
    }
    let all = context.store.tokens(id).map_err(Refusal::Store)?;
    let is_present = |usage: &TokenUsage| {
        Some(usage.token.number) == draft.token && usage.token.settings.ends == ends
    };
    if all.iter().any(is_present) {
        return Ok(());
    }
    let given = &draft.ends;
    Err(Refusal::Invalid(format!(
        "Last day: {given:?} was given, which is over; allowed is today (UTC) or a later day, or nothing."
    )))
}

/// The settings of a token as the fields of a form.
#[derive(Default)]
struct Draft {
    /// The token that is changed; `None` for a new one.
    token: Option<TokenNumber>,
    name: String,
    ends: String,
    per_minute: String,
    monthly: String,
    preset: String,
}

impl Draft {
    fn of(form: &Form) -> Draft {
        let field = |name: &str| form.field(name).trim().to_owned();
        Draft {
            token: token_number(form),
            name: field("name"),
            ends: field("ends"),
            per_minute: field("per_minute"),
            monthly: field("monthly"),
            preset: form.field("preset").to_owned(),
        }
    }

    fn of_token(token: &ApiToken) -> Draft {
        let TokenSettings {
            name,
            ends,
            limits,
            preset,
        } = &token.settings;
        let text = |number: Option<String>| number.unwrap_or_default();
        Draft {
            token: Some(token.number),
            name: name.clone(),
            ends: ends.map_or_else(String::new, last_day),
            per_minute: text(limits.per_minute.map(|number| number.to_string())),
            monthly: text(limits.monthly.map(|number| number.to_string())),
            preset: preset.clone(),
        }
    }

    /// The settings, or a sentence that names the field that cannot be used.
    fn settings(
        &self,
        check_preset: fn(&str) -> Result<String, String>,
    ) -> Result<TokenSettings, String> {
        Ok(TokenSettings {
            name: self.name.clone(),
            ends: after_day(&self.ends)?,
            limits: Limits {
                per_minute: limit(&self.per_minute, "Conversions a minute", NonZeroU32::new)?,
                monthly: limit(&self.monthly, "Conversions a month", NonZeroU64::new)?,
            },
            preset: check_preset(&self.preset)?,
        })
    }
}

/// A limit as it is written; `None` for an empty field.
fn limit<N: std::str::FromStr, L>(
    text: &str,
    field: &str,
    limit: impl FnOnce(N) -> Option<L>,
) -> Result<Option<L>, String> {
    if text.is_empty() {
        return Ok(None);
    }
    let parsed = text.parse().ok().and_then(limit);
    parsed.map(Some).ok_or_else(|| {
        let shown: String = text.chars().take(40).collect();
        format!("{field}: {shown:?} was given; allowed is a whole number of at least 1, or nothing for no limit.")
    })
}

/// The end of a day (UTC), such as `2026-12-31`; `None` for an empty field.
fn after_day(text: &str) -> Result<Option<SystemTime>, String> {
    if text.is_empty() {
        return Ok(None);
    }
    end_of_day(text).map(Some).ok_or_else(|| {
        let shown: String = text.chars().take(40).collect();
        format!("Last day: {shown:?} was given; allowed is a day such as 2026-12-31, or nothing.")
    })
}

/// The last day (UTC) before an end.
fn last_day(end: SystemTime) -> String {
    let before = end.checked_sub(Duration::from_millis(1)).unwrap_or(end);
    let text = date_and_time(before);
    text.split_once(' ')
        .map_or(text.clone(), |(day, _)| day.to_owned())
}

/// The page with its news. `rejected` is the change that the draft could not be used for.
fn page(
    context: &SignedIn<'_>,
    all: &[TokenUsage],
    draft: &Draft,
    news: &Markup,
    rejected: Option<Done>,
) -> Result<Markup, StoreError> {
    let (deleted, living): (Vec<_>, Vec<_>) = all.iter().partition(|it| it.deleted.is_some());
    let is_new = rejected == Some(Done::Created);
    let today = last_day(context.store.now());
    let mut rows = Vec::new();
    for usage in &living {
        let is_changed = draft.token == Some(usage.token.number);
        let of_token = Draft::of_token(&usage.token);
        let draft = if is_changed { draft } else { &of_token };
        rows.push(token_row(context, usage, draft, is_changed)?);
    }
    let content = html! {
        div.title {
            h1 { "Tokens" }
            // It opens the dialog. Without a script the dialog is a card of the page instead.
            button #create type="button" { "Create token" }
        }
        p {
            "A token for each place that converts: each can be named, limited, given parameters, replaced and deleted \
             by itself. All of them convert; only " code { "default" } " reads the usage history."
        }
        @if !is_new { (news) }
        dialog.card.token #new aria-labelledby="create" {
            details open[is_new] {
                summary.button { "Create token" }
                @if is_new { (news) }
                @if living.len() >= MAX_TOKENS {
                    p { "An account has at most " (MAX_TOKENS) " tokens; delete one first." }
                } @else {
                    @let empty = Draft::default();
                    @let draft = if is_new { draft } else { &empty };
                    (settings_form(paths::CREATE_TOKEN, &context.session, draft, "new", &today))
                }
            }
        }
        section.card {
            @if living.len() > UNSEARCHED { (search_field()) }
            table.labelled.tokens {
                thead {
                    tr {
                        th { "Name" } th { "Token" } th { "Last used" } th { "This month" } th { "Ends" }
                        th { span.visually-hidden { "Menu" } }
                    }
                }
                tbody { @for row in rows { (row) } }
            }
        }
        @if !deleted.is_empty() { (deleted_card(&deleted)) }
    };
    let viewer = Viewer::of(&context.session);
    Ok(document_with(
        paths::TOKENS_SCRIPT,
        "Tokens",
        viewer,
        &content,
    ))
}

/// The search over the rows. It is not visible without a script.
fn search_field() -> Markup {
    html! {
        div #search {
            label for="sought" { "Search by name or last characters" }
            input #sought type="search" autocomplete="off" spellcheck="false";
            p.hint #found role="status" {}
        }
    }
}

/// A token with its use, and a menu with all that can be done about it.
fn token_row(
    context: &SignedIn<'_>,
    usage: &TokenUsage,
    draft: &Draft,
    is_open: bool,
) -> Result<Markup, StoreError> {
    let token = &usage.token;
    let (id, name) = (format!("token-{}", token.number.0), &token.settings.name);
    let account = context.session.account.id;
    let text = context.store.token_text(account, token);
    let label = format!("Token {name}");
    let now = context.store.now();
    let month = context
        .store
        .usage_in_month(account, Some(token.number), now)?;
    Ok(html! {
        tr.token {
            th.when scope="row" { (name) }
            td data-label="" { (token_field(&context.session, token.number, &text, &id, &Label::Hidden(&label))) }
            td data-label="Last used" {
                @match usage.last_used {
                    Some(last) => (ago(last, now)),
                    None => "never",
                }
            }
            td data-label="This month" {
                (month.conversions)
                @if let Some(limit) = token.settings.limits.monthly {
                    " of " (limit)
                    meter min="0" max=(limit) optimum="0" high=(limit.get().saturating_mul(4) / 5)
                        value=(month.conversions) aria-label={ "Of the month's conversions by " (name) } {}
                }
            }
            td data-label="Ends" {
                @match token.settings.ends {
                    Some(ends) if ends <= now => strong { "ended with " (last_day(ends)) },
                    Some(ends) => (last_day(ends)),
                    None => "never",
                }
            }
            td data-label="" { (menu(context, usage, draft, is_open)) }
        }
    })
}

fn menu(context: &SignedIn<'_>, usage: &TokenUsage, draft: &Draft, is_open: bool) -> Markup {
    let token = &usage.token;
    let (number, now) = (token.number.0, context.store.now());
    let previous = token.previous.filter(|previous| previous.ends > now);
    html! {
        details.menu name="menu" open[is_open] {
            summary title="Edit, roll or delete" {
                "⋯" span.visually-hidden { " Edit, roll or delete " (token.settings.name) }
            }
            div {
                p.hint {
                    "Created on " (time(token.created)) ". "
                    (amount(usage.totals.conversions, "conversion")) ", "
                    (size(usage.totals.input_bytes)) " in, " (size(usage.totals.output_bytes)) " out."
                    @if let Some(previous) = previous {
                        " The one before works until " (time(previous.ends)) "."
                    }
                }
                (settings_line(&token.settings))
                details open[is_open] {
                    summary { "Edit" }
                    (settings_form(paths::CHANGE_TOKEN, &context.session, draft, &number.to_string(), &last_day(now)))
                }
                details {
                    summary { "Roll token" }
                    (rotation_form(&context.session, token.number))
                }
                @if token.number != TokenNumber::DEFAULT {
                    details {
                        summary { "Delete token…" }
                        form method="post" action=(paths::DELETE_TOKEN) {
                            (csrf_field(&context.session.csrf))
                            input type="hidden" name="token" value=(number);
                            p {
                                "Whatever converts with it stops working at once. Its conversions stay in the history."
                            }
                            label.check { input type="checkbox" required; "I have understood this" }
                            button.danger type="submit" { "Delete token" }
                        }
                    }
                }
            }
        }
    }
}

/// The settings of a token, if there are any.
fn settings_line(settings: &TokenSettings) -> Markup {
    let Limits {
        per_minute,
        monthly,
    } = settings.limits;
    html! {
        @if per_minute.is_some() || monthly.is_some() {
            p {
                "At most "
                @if let Some(number) = per_minute { (amount(number.get().into(), "conversion")) " a minute" }
                @if per_minute.is_some() && monthly.is_some() { " and " }
                @if let Some(number) = monthly { (amount(number.get(), "conversion")) " a month" }
                "."
            }
        }
        @if !settings.preset.is_empty() {
            p { "Preset: " @for line in settings.preset.lines() { code { (line) } " " } }
        }
    }
}

/// The form that replaces a token.
fn rotation_form(session: &Session, token: TokenNumber) -> Markup {
    let id = format!("overlap-{}", token.0);
    html! {
        form method="post" action=(paths::ROTATE_TOKEN) {
            (csrf_field(&session.csrf))
            input type="hidden" name="token" value=(token.0);
            p {
                "A new token is made. Whatever converts with the old one stops working once that is refused, and there \
                 is no way back to it."
            }
            label for=(id) { "The old one is refused" }
            select id=(id) name="overlap" {
                @for (hours, text) in OVERLAPS { option value=(hours) { (text) } }
            }
            label.check { input type="checkbox" required; "I have understood this" }
            button.danger type="submit" { "Roll token" }
        }
    }
}

/// The fields of a token. `today` is the day (UTC), before which no token may end.
fn settings_form(action: &str, session: &Session, draft: &Draft, id: &str, today: &str) -> Markup {
    let field = |name: &str| format!("{name}-{id}");
    let is_default = draft.token == Some(TokenNumber::DEFAULT);
    html! {
        form method="post" action=(action) {
            (csrf_field(&session.csrf))
            @if let Some(token) = draft.token { input type="hidden" name="token" value=(token.0); }
            @if is_default {
                input type="hidden" name="name" value=(TokenNumber::DEFAULT_NAME);
            } @else {
                label for=(field("name")) { "Name" }
                input id=(field("name")) type="text" name="name" value=(draft.name) required
                    maxlength=(MAX_NAME) autocomplete="off";
                @let is_over = !draft.ends.is_empty() && *draft.ends < *today;
                label for=(field("ends")) { "Last day (UTC), or nothing" }
                input id=(field("ends")) type="date" name="ends" value=(draft.ends)
                    min=(if is_over { &draft.ends } else { today });
            }
            label for=(field("minute")) { "Conversions a minute, or nothing for no limit of its own" }
            input id=(field("minute")) type="number" name="per_minute" min="1" value=(draft.per_minute);
            label for=(field("month")) { "Conversions a month, or nothing for no limit of its own" }
            input id=(field("month")) type="number" name="monthly" min="1" value=(draft.monthly);
            label for=(field("preset")) { "Preset: parameters that its requests need not give" }
            textarea id=(field("preset")) name="preset" rows="4" maxlength=(MAX_PRESET_BYTES)
                spellcheck="false" aria-describedby=(field("hint")) { (draft.preset) }
            p.hint id=(field("hint")) {
                "One a line, such as " code { "quality=80" } " or " code { "width=1200" } ". A " code { "!" }
                " before the name fixes it, so that no request may give it: " code { "!watermark=© Example" }
                " fixes everything about the watermark."
            }
            button type="submit" { @if draft.token.is_some() { "Save" } @else { "Create token" } }
        }
    }
}

fn deleted_card(deleted: &[&TokenUsage]) -> Markup {
    html! {
        section.card {
            details {
                summary { "Deleted tokens: " (deleted.len()) }
                ul {
                    @for usage in deleted.iter().rev() {
                        li {
                            (usage.token.settings.name) ": " (amount(usage.totals.conversions, "conversion"))
                            @if let Some(deleted) = usage.deleted { ", deleted on " (time(deleted)) }
                        }
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draft(ends: &str, per_minute: &str, monthly: &str) -> Draft {
        Draft {
            ends: ends.to_owned(),
            per_minute: per_minute.to_owned(),
            monthly: monthly.to_owned(),
            ..Draft::default()
        }
    }

    #[test]
    fn fields_become_settings_and_back() {
        let settings = draft("2026-12-31", "5", "")
            .settings(|preset| Ok(preset.to_owned()))
            .unwrap();
        let end = humantime::parse_rfc3339("2027-01-01T00:00:00Z").unwrap();
        assert_eq!(settings.ends, Some(end));
        assert_eq!(settings.limits.per_minute, NonZeroU32::new(5));
        assert_eq!(settings.limits.monthly, None);
        let token = ApiToken {
            number: TokenNumber(7),
            created: end,
            serial: 7,
            previous: None,
            settings,
        };
        let back = Draft::of_token(&token);
        assert_eq!(
            (&*back.ends, &*back.per_minute, &*back.monthly),
            ("2026-12-31", "5", "")
        );
    }

    #[test]
    fn a_field_that_cannot_be_used_is_named() {
        for (draft, expected) in [
            (draft("31.12.2026", "", ""), "Last day: \"31.12.2026\""),
            (draft("9999-99-99", "", ""), "Last day: "),
            (draft("", "0", ""), "Conversions a minute: \"0\""),
            (draft("", "", "-1"), "Conversions a month: \"-1\""),
            (draft("", "4294967296", ""), "Conversions a minute: "),
        ] {
            let reason = draft.settings(|it| Ok(it.to_owned())).unwrap_err();
            assert!(reason.starts_with(expected), "{reason}");
        }
        let reason = draft("", "", "").settings(|_| Err("No.".to_owned()));
        assert_eq!(reason.unwrap_err(), "No.");
    }
}
