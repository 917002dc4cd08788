//! `POST /convert`: the order of the checks, and one conversion.

use super::credentials::{Checked, Token};
use super::failures;
use super::multipart::{Form, FormReader};
use super::pairs::Pairs;
use super::problem::{Kind, Problem};
use super::rate_limit_headers::rate_limit_headers;
use super::request::{Body, Request};
use super::response::Response;
use super::state::AppState;
use super::watermark_fetch::WatermarkFetch;
use crate::admission::Need;
use crate::conversion::{
    Cancel, Coding, Conversion, ConversionError, DefaultValue, FoundQuality, Parameter, Params,
    Plan, Preset, Resources, Timing, Value,
};
use crate::front::{ByteQueue, Preparation, Waker};
use crate::image::{self, DecodeError, Format};
use crate::store::{AccountId, Caller, RecordError, TokenNumber, UsageEntry, WatermarkKind};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use std::time::{Duration, Instant, SystemTime};

/// The parameter that names the response's file: the one that is not of the conversion.
pub const DOWNLOAD: Parameter = Parameter {
    name: "download",
    value: Value::Text,
    example: "coffee",
    default: DefaultValue::Other("none"),
    meaning: "a name: the answer then carries `Content-Disposition: attachment` with `NAME.webp`",
    otherwise: "characters unfit for file names become `_`",
};

/// A conversion that was admitted: all that the head of its request says.
pub struct AdmittedConversion {
    /// Whose conversion it is.
    pub account: AccountId,
    /// The watermark's picture.
    watermark: WatermarkFetch,
    token: Token,
    /// Whether the token's preset was known, so that `params` has it.
    is_preset_known: bool,
    params: Params,
    /// What `Content-Type` says; `None` if it says nothing, and the bytes are asked.
    format: Option<Format>,
    /// The name to save the picture by, if `download` is given.
    download: Option<String>,
    /// The body until it is complete, if it is a form.
    form: Option<Box<IncomingForm>>,
    /// The fields of the form, once it is complete.
    fields: Pairs,
    /// What is wrong with the request, of which the worker is to tell.
    problem: Option<Problem>,
    /// The flags of curl that send a picture in the way in which this request does.
    flags: &'static str,
}

/// A form that arrives, and what the head says of what it asks for.
struct IncomingForm {
    reader: FormReader,
    query: Pairs,
    preset: String,
    may_sniff: bool,
}

/// Decides by the head, and by what is in memory, whether the body is worth being sent: it checks
/// the token (401), the parameters and the `Content-Type` (400), whether the disk takes writes
/// (503), and the account's quotas (429). The event loop calls it, so it waits for nothing; an
/// account that is not in memory passes, and [`answer`] asks the disk; so does what is wrong with
/// its request, since a bad token is to be told first. Of a form, the fields come with the body:
/// [`AdmittedConversion::prepare`] reads them.
///
/// # Errors
/// Why the request is rejected.
pub fn admit(state: &AppState, request: &Request) -> Result<AdmittedConversion, Problem> {
    let query = request.query();
    let token = Token::of(request, &query).map_err(|problem| no_field(request, problem))?;
    let checked = token.check(&state.store)?;
    let admitted = admit_checked(state, request, &query, token.clone(), &checked);
    match (admitted, checked.known()) {
        (Err(problem), Some(caller)) => {
            failures::note(state, caller, request, None, &problem);
            Err(problem)
        }
        (Err(problem), None) if problem.kind != Kind::StorageUnavailable => {
            Ok(AdmittedConversion {
                problem: Some(problem),
                ..AdmittedConversion::new(state, checked.account(), token)
            })
        }
        (admitted, _) => admitted,
    }
}

/// As [`admit`], of a request whose token was checked.
fn admit_checked(
    state: &AppState,
    request: &Request,
    query: &Pairs,
    token: Token,
    checked: &Checked,
) -> Result<AdmittedConversion, Problem> {
    query.check()?;
    // A token that is given twice is an error, even if it is the same one.
    query.parameter("token")?;
    let caller = checked.known();
    caller.map_or(Ok(()), check_enabled)?;
    // By the preset that was known last, what the present one needs can be fetched meanwhile.
    let preset = checked.last_known().map_or("", Caller::preset);
    let (params, form) = match form(request)? {
        None => (params_by(query, preset, caller.is_some())?, None),
        // What is wrong without the fields is wrong with them; the preset may suit them alone.
        Some(reader) => (Params::parse(query.iter())?, Some(reader)),
    };
    let download = query.parameter("download")?.map(str::to_owned);
    let may_sniff = state.settings.sniff;
    let format = match &form {
        None => picture_type(request.media_type(), may_sniff, FLAGS)?,
        Some(_) => None,
    };
    state.store.check_available()?;
    if let Some(caller) = caller {
        state.limiters.quotas.check(&state.store, caller)?;
    }
    let is_form = form.is_some();
    let mut admitted = AdmittedConversion::new(state, checked.account(), token);
    admitted.watermark.plan(params.picture_url.clone());
    Ok(AdmittedConversion {
        is_preset_known: caller.is_some(),
        params,
        format,
        download,
        form: form.map(|reader| {
            Box::new(IncomingForm {
                reader,
                query: request.query(),
                preset: preset.to_owned(),
                may_sniff,
            })
        }),
        flags: if is_form { FORM_FLAGS } else { FLAGS },
        ..admitted
    })
}

/// The reader of the request's body, if that is a form.
fn form(request: &Request) -> Result<Option<FormReader>, Problem> {
    let content_type = request.header("content-type").unwrap_or_default();
    Ok(FormReader::of_content_type(content_type)?)
}

/// Says of a missing token that no field can be it, if the body is a form.
fn no_field(request: &Request, mut problem: Problem) -> Problem {
    let media_type = request.media_type();
    if problem.kind == Kind::TokenMissing && media_type.eq_ignore_ascii_case("multipart/form-data")
    {
        let why = " A field of a form comes too late: the token is needed before the body is read.";
        problem.detail.push_str(why);
    }
    problem
}

/// As [`params`], unless the preset may have been replaced: then one that does not suit the query
/// is left away, and the worker, who knows the present one, decides.
fn params_by(query: &Pairs, preset: &str, is_known: bool) -> Result<Params, Problem> {
    params(query, preset).or_else(|problem| {
        if is_known {
            return Err(problem);
        }
        params(query, "")
    })
}

/// The parameters of a query, completed by the preset of its token.
fn params(query: &Pairs, preset: &str) -> Result<Params, Problem> {
    Ok(Preset::parse_stored(preset)?.complete(query.iter())?)
}

/// Checks that the operator has not disabled the caller's account.
fn check_enabled(caller: &Caller) -> Result<(), Problem> {
    if caller.restrictions().disabled.is_none() {
        return Ok(());
    }
    Err(account_disabled())
}

/// 403 for an account that the operator has disabled.
pub fn account_disabled() -> Problem {
    Problem::new(
        Kind::AccountDisabled,
        "The server's operator has disabled this account; ask there.",
    )
}

/// 400 for a request without a picture. `flags` are those of curl that send one.
pub fn body_empty(flags: &str) -> Problem {
    Problem::new(
        Kind::BodyEmpty,
        format!("Send the picture's bytes as the body: {flags}."),
    )
}

/// Converts the body of an admitted request. It checks what may have changed since admission: the
/// token (401), the client's presence, the disk (503) and the account's quotas (429). The usage
/// entry is on disk before anything is delivered.
///
/// # Errors
/// Why there is no conversion.
pub fn answer(
    state: &AppState,
    request: &Request,
    conversion: AdmittedConversion,
    body: &mut Body,
) -> Result<Response, Problem> {
    let caller = conversion.token.caller(&state.store)?;
    let received = body.len();
    let answered = answer_caller(state, request, &caller, conversion, body);
    answered.inspect_err(|problem| {
        failures::note(state, &caller, request, Some(received), problem);
    })
}

/// As [`answer`], of a caller who is known.
fn answer_caller(
    state: &AppState,
    request: &Request,
    caller: &Caller,
    mut conversion: AdmittedConversion,
    body: &mut Body,
) -> Result<Response, Problem> {
    check_enabled(caller)?;
    if let Some(problem) = conversion.problem.take() {
        return Err(problem);
    }
    if !conversion.is_preset_known {
        conversion.complete(request, caller)?;
    }
    if request.cancel.is_cancelled() {
        return Err(Problem::client_gone());
    }
    state.store.check_available()?;
    let quota = state.limiters.quotas.take(&state.store, caller)?;
    let headers = rate_limit_headers(quota.limits());
    match convert(state, request, caller, conversion, body) {
        Ok(mut response) => {
            response.headers.extend(headers);
            Ok(response)
        }
        // It has the headers of the limits as they are by now.
        Err(problem) if problem.kind == Kind::QuotaExceeded => Err(problem),
        Err(mut problem) => {
            problem.headers.extend(headers);
            Err(problem)
        }
    }
}

impl AdmittedConversion {
    /// One without parameters, by a token of the account.
    fn new(state: &AppState, account: AccountId, token: Token) -> AdmittedConversion {
        let (fetcher, metrics) = (state.fetcher.clone(), state.metrics.clone());
        AdmittedConversion {
            account,
            watermark: WatermarkFetch::new(account, None, fetcher, metrics),
            token,
            is_preset_known: false,
            params: Params::parse(std::iter::empty()).expect("no parameter is needed"),
            format: None,
            download: None,
            form: None,
            fields: Pairs::default(),
            problem: None,
            flags: FLAGS,
        }
    }

    /// Adds the next bytes of the body to `picture`, or of a form what belongs to its file;
    /// `to_come` is how many are known to follow.
    pub fn receive(&mut self, bytes: &[u8], to_come: Option<u64>, picture: &mut ByteQueue) {
        match &mut self.form {
            Some(form) => form.reader.read(bytes, to_come, picture),
            None => picture.push(bytes, to_come),
        }
    }

    /// Reads the fields of a form, once it is complete, and begins to fetch the watermark's
    /// picture. What is wrong with the form is for the worker to say.
    pub fn prepare(&mut self, waker: &Waker) -> Preparation {
        if let Some(form) = self.form.take() {
            self.problem = self.read_form(*form).err();
        }
        if self.problem.is_some() {
            return Preparation::Ready;
        }
        self.watermark.prepare(waker)
    }

    /// Bytes of memory that it holds.
    pub fn held(&self) -> usize {
        let form = self.form.as_ref().map_or(0, |form| form.reader.held());
        form + self.fields.held() + self.watermark.held()
    }

    /// The names of the form's fields.
    pub fn field_names(&self) -> Vec<String> {
        let names = self.fields.iter().map(|(name, _)| name.to_owned());
        names.collect()
    }

    fn read_form(&mut self, form: IncomingForm) -> Result<(), Problem> {
        let IncomingForm {
            reader,
            mut query,
            preset,
            may_sniff,
        } = form;
        let Form { fields, file } = reader.finish()?;
        query.append(&fields);
        self.fields = fields;
        self.params = params_by(&query, &preset, self.is_preset_known)?;
        self.download = query.parameter("download")?.map(str::to_owned);
        let file = file.ok_or_else(|| {
            let detail = format!("The form has no file; send the picture as one: {FORM_FLAGS}.");
            Problem::new(Kind::BodyEmpty, detail)
        })?;
        self.format = picture_type(&file.media_type, may_sniff, FORM_FLAGS)?;
        self.watermark.plan(self.params.picture_url.clone());
        Ok(())
    }

    /// Completes the parameters by the preset of a token that was not in memory. Its watermark's
    /// picture would have to be fetched before a worker took the request.
    fn complete(&mut self, request: &Request, caller: &Caller) -> Result<(), Problem> {
        let mut given = request.query();
        given.append(&self.fields);
        let params = params(&given, caller.preset())?;
        if params.picture_url != self.params.picture_url {
            let detail =
                "The token's preset was not in memory, and is now; send the request again.";
            return Err(Problem::new(Kind::Busy, detail).with_retry_after(1));
        }
        self.params = params;
        Ok(())
    }
}

fn convert(
    state: &AppState,
    request: &Request,
    caller: &Caller,
    conversion: AdmittedConversion,
    body: &mut Body,
) -> Result<Response, Problem> {
    let AdmittedConversion {
        account,
        watermark,
        params,
        format,
        download,
        flags,
        ..
    } = conversion;
    let bytes = body.read();
    let format = match format {
        Some(format) => format,
        None => sniffed(&bytes)?,
    };
    if bytes.is_empty() {
        return Err(body_empty(flags));
    }
    let watermark_picture = watermark.into_picture()?;
    let watermark_picture = watermark_picture.as_deref();
    let resources = Resources {
        fonts: &state.fonts,
        threads: state.cpu_budget.total(),
        cpu_budget: Some(&state.cpu_budget),
    };
    let opened = image::open(&bytes, format, &state.limits).map_err(|error| match error {
        DecodeError::WrongFormat {
            declared,
            found: Some(found),
        } if flags == FORM_FLAGS => wrong_format_in_form(declared, found),
        error => ConversionError::from(error).into(),
    })?;
    let plan = Plan::new(&opened, &params, watermark_picture, resources)?;
    let need = Need {
        bytes: plan.memory() + watermark_picture.map_or(0, <[u8]>::len) as u64,
        is_small: plan.is_small(),
    };
    // The time that the request has waited for a worker counts too.
    let until = request.queued_since + state.settings.queue_time;
    let mut reservation = state
        .memory
        .reserve(account.0, need, until, &request.cancel)?;
    let started = Instant::now();
    let deadline = started + state.settings.conversion_timeout;
    let own_core = if need.is_small {
        state.cpu_budget.occupy_first()
    } else {
        state.cpu_budget.occupy()
    };
    let is_unwanted = || {
        own_core.give_way();
        request.cancel.is_cancelled() || Instant::now() >= deadline
    };
    let converted = match plan.run(&Cancel::when(&is_unwanted)) {
        Err(ConversionError::Cancelled) if request.cancel.is_cancelled() => {
            return Err(Problem::client_gone());
        }
        converted => converted?,
    };
    drop(own_core);
    // The next conversion does not wait for the disk.
    let original_bytes = bytes.len() as u64;
    let sent = Sent::choose(converted, bytes, format);
    reservation.finish(sent.body.len() as u64);

    let entry = UsageEntry {
        token: caller.token,
        ..usage_entry(
            state.store.now(),
            &params,
            format,
            original_bytes,
            &sent,
            started.elapsed(),
        )
    };
    record(state, caller, &entry)?;
    state.metrics.converted(caller, format.name(), sent.timing);
    Ok(Response {
        memory: Some(Box::new(reservation)),
        ..success(sent, &entry, download.as_deref())
    })
}

/// Adds the entry to the history, unless a month is full by now: other conversions may have been
/// recorded since the quotas were checked, by other servers, too.
fn record(state: &AppState, caller: &Caller, entry: &UsageEntry) -> Result<(), Problem> {
    let quotas = &state.limiters.quotas;
    let monthly = quotas.monthly(caller);
    let recorded = state
        .store
        .record_usage_within(caller.account, entry, monthly);
    recorded.map_err(|error| match error {
        RecordError::QuotaExceeded { of_token } => {
            quotas.exceeded(&state.store, caller, of_token).into()
        }
        RecordError::Store(error) => error.into(),
    })
}

/// The file that a successful request gets.
struct Sent {
    body: Vec<u8>,
    media_type: &'static str,
    /// The ending of its name.
    ending: &'static str,
    width: u32,
    height: u32,
    /// How the pixels of a WebP are coded.
    coding: Option<Coding>,
    /// What a search over quality found of a WebP, if there was one.
    found: Option<FoundQuality>,
    timing: Timing,
}

impl Sent {
    /// The WebP, or the input in its place.
    fn choose(converted: Conversion, input: Vec<u8>, format: Format) -> Sent {
        let Conversion {
            webp,
            width,
            height,
            coding,
            found,
            timing,
            prefers_original,
        } = converted;
        let webp = Sent {
            body: webp,
            media_type: "image/webp",
            ending: "webp",
            width,
            height,
            coding: Some(coding),
            found,
            timing,
        };
        if !prefers_original {
            return webp;
        }
        Sent {
            body: input,
            media_type: format.media_type(),
            ending: format.ending(),
            coding: None,
            found: None,
            ..webp
        }
    }
}

/// The flags of curl that send a picture, for clients that send no usable `Content-Type` or body.
pub const FLAGS: &str = "for example -H 'Content-Type: image/png' --data-binary @picture.png";

/// The same of a picture in a form.
const FORM_FLAGS: &str = "for example -F 'file=@picture.png;type=image/png'";

/// The format of a picture whose `Content-Type` is this, without parameters; `None` if that says
/// nothing and `may_sniff`. `flags` are those of curl that would have said it.
///
/// # Errors
/// 400, if it names no format, and nothing does.
pub fn picture_type(
    media_type: &str,
    may_sniff: bool,
    flags: &str,
) -> Result<Option<Format>, Problem> {
    if let Some(format) = Format::from_media_type(media_type) {
        return Ok(Some(format));
    }
    let says_nothing =
        media_type.is_empty() || media_type.eq_ignore_ascii_case("application/octet-stream");
    if may_sniff && says_nothing {
        return Ok(None);
    }
    if media_type.is_empty() {
        let detail = format!("Say what the picture is, {flags}.");
        return Err(Problem::new(Kind::ContentTypeMissing, detail));
    }
    if media_type.eq_ignore_ascii_case("application/x-www-form-urlencoded") {
        let detail = format!(
            "Content-Type says that the body is a form, which is curl's default. Say what the picture is, {flags}."
        );
        return Err(Problem::new(Kind::ContentTypeMissing, detail));
    }
    let given: String = media_type.chars().take(100).collect();
    let detail = format!(
        "Content-Type is {given}; allowed are image/png, image/jpeg, image/jpg, image/gif and image/bmp, {flags}."
    );
    Err(Problem::new(Kind::ContentTypeUnsupported, detail))
}

/// The format of the bytes by their beginning; PNG for none at all, of which the body's own check
/// says what is wrong.
fn sniffed(bytes: &[u8]) -> Result<Format, Problem> {
    if bytes.is_empty() {
        return Ok(Format::Png);
    }
    Format::sniff(bytes).ok_or_else(|| {
        let detail = "The body begins like none of PNG, JPEG, GIF and BMP.";
        Problem::new(Kind::WrongFormat, detail)
    })
}

fn wrong_format_in_form(declared: Format, found: Format) -> Problem {
    let (declared, found) = (declared.name(), found.name());
    let detail = format!(
        "Content-Type of the form's file says image/{declared}, but it looks like image/{found}; \
         send -F 'file=@picture;type=image/{found}'."
    );
    Problem::new(Kind::WrongFormat, detail)
}

fn usage_entry(
    time: SystemTime,
    params: &Params,
    format: Format,
    input_bytes: u64,
    sent: &Sent,
    spent: Duration,
) -> UsageEntry {
    UsageEntry {
        time,
        token: TokenNumber::DEFAULT,
        format: format.name().to_owned(),
        input_bytes,
        output_bytes: sent.body.len() as u64,
        width: sent.width,
        height: sent.height,
        quality: sent.found.map_or(params.quality, |found| {
            // No loss is the best quality.
            found.quality.unwrap_or(100)
        }),
        watermark: match (&params.text, &params.picture_url) {
            (None, None) => WatermarkKind::None,
            (Some(_), None) => WatermarkKind::Text,
            (None, Some(_)) => WatermarkKind::Image,
            (Some(_), Some(_)) => WatermarkKind::Both,
        },
        milliseconds: u32::try_from(spent.as_millis()).unwrap_or(u32::MAX),
    }
}

fn success(sent: Sent, entry: &UsageEntry, download: Option<&str>) -> Response {
    let mut response = Response::new(200, sent.media_type, sent.body)
        .header("Cache-Control", "private, no-store")
        .header("Image-Width", &sent.width.to_string())
        .header("Image-Height", &sent.height.to_string())
        .header("X-Original-Bytes", &entry.input_bytes.to_string());
    if let Some(percent) = entry.saved_percent() {
        response = response.header("X-Saved-Percent", &percent.to_string());
    }
    if let Some(coding) = sent.coding {
        response = response.header("X-Webp-Mode", coding.name());
    }
    response = response.header("Server-Timing", &server_timing(sent.timing));
    response = found_headers(response, sent.found);
    match download {
        Some(name) => response.header(
            "Content-Disposition",
            &content_disposition(name, sent.ending),
        ),
        None => response,
    }
}

/// Adds what a search over quality found.
fn found_headers(response: Response, found: Option<FoundQuality>) -> Response {
    let Some(FoundQuality { quality, score, .. }) = found else {
        return response;
    };
    let response = match quality {
        Some(quality) => response.header("X-Webp-Quality", &quality.to_string()),
        None => response,
    };
    match score {
        Some(score) => response.header("X-Webp-Score", &format!("{score:.2}")),
        None => response,
    }
}

/// The stages' times in milliseconds with one decimal, in the form of the W3C's Server Timing.
fn server_timing(timing: Timing) -> String {
    let milliseconds = |duration: Duration| duration.as_secs_f64() * 1000.0;
    format!(
        "decode;dur={:.1}, watermark;dur={:.1}, encode;dur={:.1}",
        milliseconds(timing.decode),
        milliseconds(timing.watermark),
        milliseconds(timing.encode)
    )
}

/// All but letters, digits and these three is escaped in `filename*` (RFC 8187, section 3.2.1).
const ESCAPED_IN_A_HEADER: AsciiSet = NON_ALPHANUMERIC.remove(b'.').remove(b'_').remove(b'-');

/// The `Content-Disposition` of `download=NAME`: it asks the browser to save the picture as
/// `NAME.webp`, or with the ending of the original (RFC 6266). Letters, digits and a few marks are
/// kept, and everything else becomes `_`; a name that is not plain ASCII is also given in UTF-8
/// (RFC 8187).
fn content_disposition(name: &str, ending: &str) -> String {
    let name = name.strip_suffix(".webp").unwrap_or(name);
    let cleaned: String = name
        .chars()
        .take(100)
        .map(|c| {
            if c.is_alphanumeric() || " ._-()".contains(c) {
                c
            } else {
                '_'
            }
        })
        .collect();
    let cleaned = cleaned.trim_matches([' ', '.']);
    let name = format!(
        "{}.{ending}",
        if cleaned.is_empty() {
            "picture"
        } else {
            cleaned
        }
    );
    let ascii: String = name
        .chars()
        .map(|c| if c.is_ascii() { c } else { '_' })
        .collect();
    let mut disposition = format!("attachment; filename=\"{ascii}\"");
    if !name.is_ascii() {
        disposition.push_str("; filename*=UTF-8''");
        disposition.extend(utf8_percent_encode(&name, &ESCAPED_IN_A_HEADER));
    }
    disposition
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    #[test]
    fn download_names_are_safe_in_a_header_and_in_a_folder() {
        assert_eq!(
            content_disposition("cat", "webp"),
            "attachment; filename=\"cat.webp\""
        );
        assert_eq!(
            content_disposition("cat.webp", "webp"),
            "attachment; filename=\"cat.webp\""
        );
        assert_eq!(
            content_disposition("../../etc/x\"\r\nA: b", "webp"),
            "attachment; filename=\"_.._etc_x___A_ b.webp\""
        );
        assert_eq!(
            content_disposition("", "webp"),
            "attachment; filename=\"picture.webp\""
        );
        assert_eq!(
            content_disposition("...", "webp"),
            "attachment; filename=\"picture.webp\""
        );
        assert_eq!(
            content_disposition("Käse", "webp"),
            "attachment; filename=\"K_se.webp\"; filename*=UTF-8''K%C3%A4se.webp"
        );
    }

    #[test]
    fn server_timing_is_in_milliseconds() {
        let timing = Timing {
            decode: Duration::from_micros(12_340),
            watermark: Duration::ZERO,
            encode: Duration::from_secs(2),
        };
        assert_eq!(
            server_timing(timing),
            "decode;dur=12.3, watermark;dur=0.0, encode;dur=2000.0"
        );
    }

    #[test]
    fn curls_default_type_is_told_the_right_flag() {
        for headers in [
            &[("Content-Type", "application/x-www-form-urlencoded")][..],
            &[],
            &[("Content-Type", "")],
        ] {
            let request = Request::new(
                "POST",
                "/convert",
                Ipv4Addr::LOCALHOST.into(),
                headers.iter().copied(),
            );
            let problem =
                picture_type(request.media_type(), false, FLAGS).expect_err("no picture type");
            assert_eq!(problem.kind, Kind::ContentTypeMissing);
            let flag = "-H 'Content-Type: image/png' --data-binary @picture.png";
            assert!(problem.detail.contains(flag), "{}", problem.detail);
        }
    }
}
