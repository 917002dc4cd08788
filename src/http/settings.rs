//! The settings of the HTTP service.

use super::cors::AllowedOrigin;
use crate::admission::Rate;
use crate::dashboard::Signup;
use crate::front;
use std::num::{NonZeroU32, NonZeroU64, NonZeroUsize};
use std::thread;
use std::time::Duration;
use towebp_pipeline::image::AcceptedFormats;

/// The highest `--max-body`, in bytes: a picture's file is held in memory whole.
pub const LONGEST_BODY: u64 = 1 << 30;

/// The window of [`Settings::signin_rate`].
pub const SIGNIN_WINDOW: Duration = Duration::from_mins(10);

/// The window of [`Settings::signup_rate`].
pub const SIGNUP_WINDOW: Duration = Duration::from_hours(1);

/// Settings of the HTTP service.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Conversions at the same time, but for one more while a single account has all of them. Each
    /// keeps one core busy: as many as there are cores.
    pub threads: NonZeroUsize,
    /// Most bytes of a picture's file. 32 MiB is more than the JPEG files of cameras and most PNG
    /// screenshots.
    pub max_body: u64,
    /// Most pixels of a picture that is enlarged and for which a quality is looked for, or that is
    /// coded at the highest effort. 8 Mi: a screen of 3840 x 2160, which takes some ten seconds; a
    /// file of 69 bytes suffices for that.
    pub max_enlarged: u64,
    /// The longest that a conversion may take, once its body has arrived and its watermark was
    /// fetched. 50 seconds: 100 megapixels take some 5 on one core, and the proxies that stand
    /// before servers wait for 60 by default, after which nobody would see the response.
    pub conversion_timeout: Duration,
    /// How long a whole request may wait, for a worker and for memory together: the same as
    /// [`front::Settings::queue_time`].
    pub queue_time: Duration,
    /// Where people reach the service, such as `https://webp.example.org`, without a slash at the
    /// end. Without it, pages name the address that the browser used.
    pub public_url: Option<String>,
    /// Who may create an account on the sign-up page.
    pub signup: Signup,
    /// Attempts to sign in by one client address (IPv6: of one /64, and 4 and 16 times as many of
    /// one /56 and one /48, [`CLIENT_FACTORS`](crate::admission::CLIENT_FACTORS)); `None` for no
    /// limit. Successful ones count too, since each leaves a session in the database. 30 in 10
    /// minutes: an office behind one address signs in less often, and somebody who tries one
    /// common password with many accounts, which no wait of an account stops, gets 4,320 a day.
    pub signin_rate: Option<Rate>,
    /// Attempts to sign up by one client address, counted in the same way; `None` for no limit. 10
    /// in an hour: a class or an office comes in one after the other, and a script neither fills
    /// the disk nor finds out who has an account.
    pub signup_rate: Option<Rate>,
    /// Conversions of one account a minute; `None`, the default, for no limit: on one's own server
    /// the cores are the limit.
    pub rate_limit: Option<NonZeroU32>,
    /// Conversions of one account in a calendar month (UTC); `None`, the default, for no limit.
    pub monthly_quota: Option<NonZeroU64>,
    /// Whether a picture may come without a `Content-Type` that names its format.
    pub sniff: bool,
    /// The formats that are inputs beside those of the specification.
    pub accepts: AcceptedFormats,
    /// The origins whose pages may call the API; by default none but the service's own.
    pub allowed_origins: Vec<AllowedOrigin>,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            threads: thread::available_parallelism().unwrap_or(NonZeroUsize::MIN),
            max_body: 32 << 20,
            max_enlarged: 8 << 20,
            conversion_timeout: Duration::from_secs(50),
            queue_time: front::Settings::default().queue_time,
            public_url: None,
            signup: Signup::Open,
            signin_rate: NonZeroU32::new(30).map(|times| Rate {
                times,
                window: SIGNIN_WINDOW,
            }),
            signup_rate: NonZeroU32::new(10).map(|times| Rate {
                times,
                window: SIGNUP_WINDOW,
            }),
            rate_limit: None,
            monthly_quota: None,
            sniff: false,
            accepts: AcceptedFormats::default(),
            allowed_origins: Vec::new(),
        }
    }
}

impl Settings {
    /// Whether browsers reach the service by https.
    pub fn is_behind_tls(&self) -> bool {
        let url = self.public_url.as_deref();
        url.is_some_and(|url| url.starts_with("https://"))
    }

    /// The name of the cookie that holds a browser's session. Behind TLS it has a prefix with
    /// which browsers accept the cookie from this very host over TLS only, so that no neighbor
    /// under the same domain can set it (RFC 6265bis, section 4.1.3.2).
    pub fn session_cookie(&self) -> &'static str {
        self.cookie("__Host-towebp_session")
    }

    /// The name of the cookie by which the page that converts sends the account's token; prefixed
    /// as [`Settings::session_cookie`].
    pub fn token_cookie(&self) -> &'static str {
        self.cookie("__Host-towebp_token")
    }

    /// The name of the cookie that marks a browser that has signed in before; prefixed as
    /// [`Settings::session_cookie`].
    pub fn device_cookie(&self) -> &'static str {
        self.cookie("__Host-towebp_device")
    }

    fn cookie(&self, prefixed: &'static str) -> &'static str {
        if self.is_behind_tls() {
            prefixed
        } else {
            prefixed.trim_start_matches("__Host-")
        }
    }
}
