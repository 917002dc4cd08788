//! The paths that the pages link to. The server's route table answers every one of them.

/// Makes the constants and the list of all of them from the same lines.
macro_rules! paths {
    ($($(#[$doc:meta])* $name:ident = $path:literal;)+) => {
        $($(#[$doc])* pub const $name: &str = $path;)+

        /// All of the paths.
        #[cfg(test)]
        pub const ALL: &[&str] = &[$($name),+];
    };
}

paths! {
    /// The start page.
    START = "/";
    /// The dashboard.
    DASHBOARD = "/dashboard";
    /// The page that converts.
    CONVERTING = "/dashboard/convert";
    /// The sign-up page, and its form.
    SIGN_UP = "/signup";
    /// The sign-in page, and its form.
    SIGN_IN = "/signin";
    /// The form for a code of the second factor, after the sign-in form.
    SIGN_IN_CODE = "/signin/code";
    /// The page of a forgotten password, and its form.
    RECOVER = "/signin/recover";
    /// The form that ends the browser's session.
    SIGN_OUT = "/signout";
    /// The form that ends all sessions of the account.
    SIGN_OUT_EVERYWHERE = "/signout/everywhere";
    /// The page of the account's sessions.
    SESSIONS = "/sessions";
    /// The form that ends one session.
    END_SESSION = "/session/end";
    /// The page of all tokens.
    TOKENS = "/tokens";
    /// The form that makes a token.
    CREATE_TOKEN = "/token/create";
    /// The form that changes the settings of a token.
    CHANGE_TOKEN = "/token/change";
    /// The form that replaces a token.
    ROTATE_TOKEN = "/token/rotate";
    /// The form that shows the text of a token.
    REVEAL_TOKEN = "/token/reveal";
    /// The form that deletes a token.
    DELETE_TOKEN = "/token/delete";
    /// The page of the account: e-mail address, password, deletion.
    ACCOUNT = "/account";
    /// The form that changes the e-mail address.
    CHANGE_EMAIL = "/account/email";
    /// The page after a change of the e-mail address.
    EMAIL_CHANGED = "/account/email/changed";
    /// The form that changes the password.
    CHANGE_PASSWORD = "/account/password";
    /// The page of the account's second factor, and the form that turns it on.
    SECOND_FACTOR = "/account/second-factor";
    /// The form that turns the second factor off.
    SECOND_FACTOR_OFF = "/account/second-factor/off";
    /// The form that deletes the account.
    DELETE_ACCOUNT = "/account/delete";
    /// The page after a change of the password.
    PASSWORD_CHANGED = "/account/changed";
    /// The page after the deletion of an account.
    ACCOUNT_DELETED = "/account/deleted";
    /// The index of the documentation.
    DOCS = "/docs";
    /// The documentation's page for programmers.
    DOCS_API = "/docs/api";
    /// The stylesheet.
    STYLE = "/style.css";
    /// The stylesheet of the page that converts, beside that of all pages.
    CONVERT_STYLE = "/convert.css";
    /// The script that sets the theme before a page is painted.
    THEME_SCRIPT = "/theme.js";
    /// The script.
    SCRIPT = "/app.js";
    /// The script of the dashboard.
    USAGE_SCRIPT = "/usage.js";
    /// The script of the page of all tokens.
    TOKENS_SCRIPT = "/tokens.js";
    /// The script of the page that converts.
    CONVERT_SCRIPT = "/convert.js";
    /// The script of the start page.
    START_SCRIPT = "/start.js";
    /// The package by which browsers convert.
    BROWSER = "/browser/index.js";
    /// Its worker.
    BROWSER_WORKER = "/browser/worker.js";
    /// The picture that the start page shows before and after.
    SAMPLE = "/sample.jpg";
    /// The WebP that the service makes of that picture.
    SAMPLE_WEBP = "/sample.webp";
    /// The icon.
    ICON = "/icon.svg";
    /// The conversion.
    CONVERT = "/convert";
    /// The usage history as JSON.
    USAGE = "/api/usage";
    /// The usage history as CSV.
    USAGE_CSV = "/api/usage.csv";
    /// The whole usage history, one JSON object a line.
    USAGE_LINES = "/api/usage.ndjson";
    /// Failed conversions as CSV.
    FAILURES_CSV = "/api/failures.csv";
    /// The description of the API.
    OPENAPI = "/openapi.json";
}
