//! The table of all settings of `towebp serve`: flags, variables, help texts, the manual,
//! completions, checks and the table of `docs/command-line.md` come from it.

use super::given::Setting;
use super::value::Kind::{
    Bytes, Days, File, Files, Folder, List, Number, Pixels, Seconds, Switch, Text, Words,
};
use crate::http::LONGEST_BODY;

const ADDRESS: &str = "Address";
const DATA: &str = "Where the accounts are";
const DATABASE: &str = "A database for several servers";
const CONVERSIONS: &str = "Limits of conversions";
const WATERMARKS: &str = "Watermarks";
const REQUESTS: &str = "Accounts and requests";
const CONNECTIONS: &str = "Connections";
const MEMORY: &str = "Memory";
const OBSERVATION: &str = "Observation";

const DAY: u64 = 24 * 60 * 60;

/// A row is `"name" Unit(least, most) => field, "default in words": "meaning", "reason";` where the
/// default in words and the reason may be missing. Otherwise the default is the field's.
macro_rules! settings {
    ($($heading:ident {$(
        $name:literal $kind:expr => $($place:ident).+ $(, $default:literal)?: $meaning:literal $(, $reason:literal)?;
    )*})*) => {
        /// All settings, in the order of the help text.
        pub const SETTINGS: &[Setting] = &[$($(Setting {
            name: $name,
            heading: $heading,
            kind: $kind,
            default: [$(Some($default),)? None][0],
            meaning: $meaning,
            reason: [$($reason,)? ""][0],
            place: |given| &mut given.$($place).+,
        },)*)*];
    };
}

settings! {
    ADDRESS {
        "listen" List("ADDRESS") => config.listen:
            "address and port, may be given more than once; port 0 takes a free one; stdin is the listening socket that \
             systemd gives", "this machine alone, until you say 0.0.0.0:8080 or [::]:8080";
    }
    DATA {
        "data" Folder => config.store.data:
            "folder for accounts, usage and the secret; made if it is missing, for its owner only";
        "secret-file" File => config.store.secret_file, "secret in that folder":
            "file with the secret that tokens are made from, to keep it apart from the data; with --store it is needed, \
             and never made";
        "allow-shared-data" Switch => config.store.allow_shared_data:
            "use a data folder or database that group or others may write: they can take over every account";
    }
    DATABASE {
        "store" Text("URL") => store, "none: the folder has all":
            "the PostgreSQL that several servers share, such as postgres://towebp@db1,db2/towebp";
        "store-password-file" File => postgres.password_file, "$TOWEBP_STORE_PASSWORD":
            "file with the password for --store; read anew at each connect";
        "store-ca" File => postgres.ca, "Mozilla's":
            "root certificates for --store, as PEM; the chain and the name are always verified";
        "store-tls" Words(&["on", "off"]) => postgres.tls:
            "TLS to --store; off for this machine's own addresses and sockets alone";
        "store-connections" Number(2, 100) => postgres.connections:
            "connections to --store", "one writes, the others read";
        "store-timeout" Seconds(1, 60) => postgres.timeout:
            "how long --store may take to answer", "longer than a standby needs to stand in";
    }
    CONVERSIONS {
        "threads" Number(1, 1024) => config.http.threads, "one for each core":
            "conversions at the same time, and the most cores for a conversion that is alone";
        "max-body" Bytes(1 << 10, LONGEST_BODY) => config.http.max_body:
            "largest picture file", "more than cameras write as JPEG";
        "accept" Words(&["webp", "tiff", "webp,tiff", "none"]) => config.http.accepts, "none":
            "types of pictures that are converted beside PNG, JPEG, GIF and BMP; with --demo, webp at least";
        "max-pixels" Pixels(1, u64::pow(16_383, 2)) => config.limits.max_pixels:
            "most pixels of a picture", "above today's cameras, and up to 2 GB of memory";
        "max-enlarged-pixels" Pixels(1, u64::pow(16_383, 2)) => config.http.max_enlarged:
            "most pixels of a picture that is enlarged with a target, a largest file or the highest effort",
            "a screen of 3840 x 2160, some ten seconds";
        "max-frames" Number(1, 1_000_000_000) => config.limits.max_frames:
            "most frames of a GIF or PNG that stays animated", "some minutes";
        "max-animation-pixels" Pixels(1, 1 << 50) => config.limits.max_animation_pixels:
            "most pixels of all frames of a GIF or PNG together", "about what a conversion has time for";
        "conversion-timeout" Seconds(1, 3600) => config.http.conversion_timeout:
            "longest time that a conversion may take", "proxies wait for 60";
    }
    WATERMARKS {
        "allow-private-watermark-hosts" Switch => config.fetch.allow_private:
            "let watermark URLs reach private and local addresses";
        "ca-file" File => config.fetch.ca_file:
            "root certificates beside Mozilla's for https, as PEM";
        "watermark-timeout" Seconds(1, 300) => config.fetch.timeout:
            "time for fetching a watermark picture, its wait in the queue included",
            "as long as a host needs on a bad day";
        "watermark-fetches" Number(1, 1024) => config.fetch.fetches:
            "fetches of watermark pictures at a time", "each is a thread";
        "watermark-fetches-per-account" Number(1, 1024) => config.fetch.fetches_per_account:
            "fetches at a time for one account", "three other accounts find some left";
        "watermark-queue" Number(0, 1 << 18) => config.fetch.queue:
            "watermark pictures that wait to be fetched; conversions that need more are answered 503",
            "what 16 fetches get done within --watermark-timeout if each takes 2 s";
        "watermark-queue-per-account" Number(0, 1 << 18) => config.fetch.queue_per_account:
            "watermark pictures of one account that wait to be fetched", "a quarter";
        "watermark-cache" Bytes(0, 1 << 30) => config.fetch.cache_bytes:
            "memory for watermark pictures that were fetched lately, 0 for none", "some hundred logos";
        "font" Files => fonts:
            "font for text watermarks (TrueType, OpenType, the first of a collection), may be given more than once; \
             used in this order, before the bundled ones";
    }
    REQUESTS {
        "public-url" Text("URL") => config.http.public_url, "the address that the browser used":
            "where people reach the service, such as https://webp.example.org; with https, cookies are sent over https only";
        "signup" Words(&["open", "closed", "invite"]) => config.http.signup:
            "who may create an account: open, closed (the command line alone), or invite (people with a code of towebp \
             account invite)";
        "signin-limit" Number(0, u32::MAX as u64) => config.http.signin_rate:
            "attempts to sign in from one address in 10 minutes, 0 for no limit", "an office behind one address";
        "signup-limit" Number(0, u32::MAX as u64) => config.http.signup_rate:
            "attempts to sign up from one address in an hour, 0 for no limit", "a class comes in one after the other";
        "rate-limit" Number(0, u32::MAX as u64) => config.http.rate_limit:
            "conversions of one account in a minute, 0 for no limit; of several servers on one --store each allows its part",
            "on one's own server the cores are the limit";
        "monthly-quota" Number(0, u64::MAX) => config.http.monthly_quota:
            "conversions of one account in a calendar month (UTC), 0 for no limit";
        "history-keep" Days(1, 36_500) => config.store.history_keep, "for ever":
            "remove entries of histories after this many days; totals and the sums of days are kept",
            "an entry has some 120 bytes";
        "sniff" Switch => config.http.sniff:
            "convert pictures without a Content-Type, or of application/octet-stream, by what their bytes say (without it \
             they are an error)";
        "allow-origin" List("ORIGIN") => config.http.allowed_origins:
            "an origin whose pages may call the API, as browsers send it, or * for all, with tokens in headers alone; may \
             be given more than once";
    }
    CONNECTIONS {
        "trusted-proxy" List("NETWORK") => config.front.trusted_proxies:
            "address or network of a proxy whose X-Forwarded-For is trusted, such as 10.0.0.1 or 10.0.0.0/8, may be given \
             more than once";
        "max-connections" Number(1, 1 << 18) => config.front.connections:
            "connections at a time", "more clients than the cores can serve";
        "max-connections-per-address" Number(1, 1 << 18) => config.front.connections_per_address:
            "connections of one address, or of one IPv6 /64; trusted proxies are exempt", "an office behind one address";
        "max-head" Bytes(1 << 10, 1 << 20) => config.front.head_bytes:
            "request line and headers together", "the watermark's text stands in the URL";
        "max-headers" Number(8, 1024) => config.front.headers:
            "headers of a request", "browsers send about 20";
        "head-timeout" Seconds(1, DAY) => config.front.head_time:
            "time for the headers", "they are sent in one go";
        "body-timeout" Seconds(1, DAY) => config.front.body_time:
            "time for a body", "32 MiB at 1 Mbit/s";
        "answer-timeout" Seconds(1, DAY) => config.front.answer_time:
            "time for reading an answer", "as for a body";
        "idle-timeout" Seconds(1, DAY) => config.front.idle_time:
            "time between two requests of a connection", "clients drop theirs after 60";
        "queue-timeout" Seconds(1, DAY) => config.front.queue_time:
            "time that a whole request waits for a worker and for memory, together, before it is rejected with 503",
            "clients rarely wait longer";
        "linger-timeout" Seconds(1, DAY) => config.front.linger_time:
            "time in which a rejected client may go on sending, so that it reads the answer";
        "stop-timeout" Seconds(1, DAY) => config.front.stop_time:
            "time that requests under way may take after SIGTERM or SIGINT", "the longest conversion";
        "min-rate" Bytes(0, 1 << 30) => config.front.rate:
            "bytes a second that a client must send or read, over every 10 seconds; with 0, one byte will do",
            "a bad mobile network";
    }
    MEMORY {
        "memory" Bytes(0, u64::MAX >> 1) => memory, "two thirds of what the container or the machine has":
            "memory of the whole process, such as 512MiB: conversions wait for it, and one that needs more is rejected";
        "buffer" Bytes(0, 1 << 40) => buffer, "an eighth, up to 256MiB":
            "part of --memory for requests and answers on their way, and bodies being converted; at least --max-body and \
             1 MiB", "eight of the largest bodies";
    }
    OBSERVATION {
        "metrics" Text("ADDRESS") => config.metrics:
            "address and port for GET /metrics, in the format of Prometheus; without sign-in, so not for the public";
        "log-format" Words(&["text", "json"]) => log_format:
            "format of the log on standard error, one line for each record";
        "demo" Switch => demo:
            "make a demo account, convert a picture by HTTP, show the request, and go on serving";
    }
}

/// The settings that a command has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Has {
    /// All settings.
    All,
    /// The settings of the store.
    Accounts,
    /// The settings of the store, for commands that need no secret.
    Data,
    /// The secret, and how PostgreSQL is reached.
    Copy,
    /// How a server is reached.
    Address,
    /// The settings of conversions without a server.
    Convert,
}

impl Has {
    /// All sets, by their numbers.
    pub const ALL: [Has; 6] = [
        Has::All,
        Has::Accounts,
        Has::Data,
        Has::Copy,
        Has::Address,
        Has::Convert,
    ];

    /// Their rows.
    pub fn rows(self) -> impl Iterator<Item = &'static Setting> {
        SETTINGS.iter().filter(move |row| match self {
            Has::All => true,
            Has::Accounts => row.heading == DATA || row.heading == DATABASE,
            Has::Data => row.name == "data" || row.heading == DATABASE,
            Has::Copy => {
                row.name == "secret-file" || (row.heading == DATABASE && row.name != "store")
            }
            Has::Convert => ["font", "threads", "accept", "max-pixels"].contains(&row.name),
            Has::Address => ["listen", "ca-file"].contains(&row.name),
        })
    }
}
