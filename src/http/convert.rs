//! `POST /convert`: the order of the checks, and one conversion.

use super::converted::{Sent, success};
use super::credentials::{Checked, Token};
use super::failures;
use super::multipart::{Form, FormReader};
use super::pairs::Pairs;
use super::problem::{Kind, Problem};
use super::rate_limit_headers::rate_limit_headers;
use super::request::Request;
use super::response::Response;
use super::settings::Settings;
use super::state::AppState;
use super::watermark_fetch::WatermarkFetch;
use crate::admission::{Need, PendingReservation, QuotaGuard};
use crate::front::{ByteQueue, Preparation, Waker};
use crate::store::{
    AccountId, Caller, RecordError, RequestId, TokenNumber, UsageEntry, WatermarkKind,
};
use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};
use towebp_pipeline::conversion::{
    Cancel, ConversionError, DefaultValue, Parameter, Params, Plan, Preset, Resources, Value,
};
use towebp_pipeline::image::{self, AcceptedFormats, DecodeError, Format};

/// The parameter that names the response's file: the one that is not of the conversion.
pub const DOWNLOAD: Parameter = Parameter {
    name: "download",
    value: Value::Text,
    example: "coffee",
    default: DefaultValue::Other("none"),
    meaning: "a name: the answer then carries `Content-Disposition: attachment` with `NAME.webp`",
    as_flag: None,
    otherwise: "characters unfit for file names become `_`",
};

/// A conversion that was admitted, with the contents of its request's head.
pub struct AdmittedConversion {
    /// The account that converts.
    pub account: AccountId,
    /// The watermark's picture.
    watermark: WatermarkFetch,
    token: Token,
    /// Whether the token's preset was known, so that `params` has it.
    is_preset_known: bool,
    params: Params,
    /// The format of `Content-Type`; `None` if it names none, and the bytes decide.
    format: Option<Format>,
    /// The name to save the picture by, if `download` is given.
    download: Option<String>,
    /// The body until it is complete, if it is a form.
    form: Option<Box<IncomingForm>>,
    /// The fields of the form, once it is complete.
    fields: Pairs,
    /// The problem with which the worker answers, if one was found.
    problem: Option<Problem>,
    /// The flags of curl that send a picture in the way in which this request does.
    flags: &'static str,
    /// The worker's results so far, if it has handed the conversion back.
    waiting: Option<Box<Waiting>>,
}

/// A conversion that waits for its memory, or goes on after that.
struct Waiting {
    source: Source,
    pending: PendingReservation,
}

/// The picture, and its caller.
struct Source {
    caller: Caller,
    quota: QuotaGuard,
    bytes: Vec<u8>,
    format: Format,
    /// The watermark's picture.
    picture: Option<Arc<[u8]>>,
    /// Bytes of memory that its pixels need, if a first attempt needed more than planned.
    least_memory: u64,
}

/// A worker's progress with a request.
pub enum Progress {
    /// The response is complete.
    Done(Response),
    /// The conversion waits for memory.
    Waits(Box<AdmittedConversion>),
}

/// A form that arrives, and the parameters in its request's head.
struct IncomingForm {
    reader: FormReader,
    query: Pairs,
    preset: String,
    accepted: Accepted,
}

/// Decides by the head and by memory whether the client should send the body: it checks the token
/// (401), the parameters and the `Content-Type` (400), whether the disk takes writes (503), and the
/// account's quotas (429). The event loop calls it, so it waits for nothing; an account that is not
/// in memory passes, and [`answer`] reads the disk. A problem of such a request waits for the
/// worker too, since a bad token is reported first. The fields of a form come with the body:
/// [`AdmittedConversion::prepare`] reads them.
///
/// # Errors
/// The problem with which the request is rejected.
pub fn admit(state: &AppState, request: &Request) -> Result<AdmittedConversion, Problem> {
    let query = request.query();
    let token = Token::of(request, &query, &state.settings);
    let token = token.map_err(|problem| no_field(request, problem))?;
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

/// The part of [`admit`] after the token was checked.
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
    check_content(request)?;
    // The watermark of the last known preset is fetched while the body arrives.
    let preset = checked.last_known().map_or("", Caller::preset);
    let (params, form) = match form(request)? {
        None => (params_by(query, preset, caller.is_some())?, None),
        // Errors that do not depend on form fields are reported before the body is read. The preset
        // may depend on them.
        Some(reader) => (Params::parse(query.iter())?, Some(reader)),
    };
    let download = query.parameter("download")?.map(str::to_owned);
    let accepted = Accepted::by(&state.settings);
    let format = match &form {
        None => picture_type(request.media_type(), accepted, FLAGS)?,
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
                accepted,
            })
        }),
        flags: if is_form { FORM_FLAGS } else { FLAGS },
        ..admitted
    })
}

/// Checks that there is one `Content-Type` at most, and no `Content-Encoding`.
///
/// # Errors
/// 400 for two `Content-Type`, 415 for a `Content-Encoding`.
pub fn check_content(request: &Request) -> Result<(), Problem> {
    if request.headers("content-type").nth(1).is_some() {
        let detail = "Content-Type is given more than once; give it once.";
        return Err(Problem::new(Kind::ContentTypeRepeated, detail));
    }
    let is_identity = |coding: &str| {
        let coding = coding.trim();
        coding.is_empty() || coding.eq_ignore_ascii_case("identity")
    };
    let mut codings = request.headers("content-encoding");
    if codings.all(|list| list.split(',').all(is_identity)) {
        return Ok(());
    }
    let detail = "Content-Encoding says that the body is encoded; send the picture's bytes as they are, \
                  without Content-Encoding. A picture's file is compressed already.";
    Err(Problem::new(Kind::ContentEncodingUnsupported, detail))
}

/// The reader of the request's body, if that is a form.
fn form(request: &Request) -> Result<Option<FormReader>, Problem> {
    let content_type = request.header("content-type").unwrap_or_default();
    Ok(FormReader::of_content_type(content_type)?)
}

/// Adds to the problem of a missing token that a form field cannot hold it.
fn no_field(request: &Request, mut problem: Problem) -> Problem {
    let media_type = request.media_type();
    if problem.kind == Kind::TokenMissing && media_type.eq_ignore_ascii_case("multipart/form-data")
    {
        let why = " A field of a form comes too late: the token is needed before the body is read.";
        problem.detail.push_str(why);
    }
    problem
}

/// The parameters as of [`params`]. If the preset may have been replaced and does not suit the
/// query, it is left out here, and the worker decides by the present one.
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

/// Converts the body of an admitted request, or goes on with one that has waited for its memory. It
/// checks again the state that may have changed since admission: the token (401), the client's
/// presence, the disk (503) and the account's quotas (429). The usage entry is on disk before
/// anything is delivered. `wake` is called when a conversion that waits can go on.
///
/// # Errors
/// The problem that prevents the conversion.
pub fn answer(
    state: &AppState,
    request: &Request,
    mut conversion: Box<AdmittedConversion>,
    body: &mut ByteQueue,
    wake: impl Fn() + Clone + Send + 'static,
) -> Result<Progress, Problem> {
    let note = |caller: &Caller, received, problem: &Problem| {
        failures::note(state, caller, request, Some(received), problem);
    };
    let (source, pending) = if let Some(waiting) = conversion.waiting.take() {
        (waiting.source, Some(waiting.pending))
    } else {
        let caller = conversion.token.caller(&state.store)?;
        let received = body.len() as u64;
        let begun = begin(state, request, &caller, &mut conversion, body);
        let source = begun.inspect_err(|problem| note(&caller, received, problem))?;
        (source, None)
    };
    let (caller, received) = (source.caller.clone(), source.bytes.len() as u64);
    let headers = rate_limit_headers(source.quota.limits());
    match convert(state, request, conversion, source, pending, wake) {
        Ok(Progress::Done(mut response)) => {
            response.headers.extend(headers);
            Ok(Progress::Done(response))
        }
        Ok(waits) => Ok(waits),
        Err(mut problem) => {
            // One by the quota has the headers of the limits as they are by now.
            if problem.kind != Kind::QuotaExceeded {
                problem.headers.extend(headers);
            }
            note(&caller, received, &problem);
            Err(problem)
        }
    }
}

/// The first part of [`answer`]: all that is needed to plan the conversion.
fn begin(
    state: &AppState,
    request: &Request,
    caller: &Caller,
    conversion: &mut AdmittedConversion,
    body: &mut ByteQueue,
) -> Result<Source, Problem> {
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
    let mut read = || {
        let bytes = std::mem::take(body).into_vec();
        let format = match conversion.format {
            Some(format) => format,
            None => sniffed(&bytes, Accepted::by(&state.settings))?,
        };
        if bytes.is_empty() {
            return Err(body_empty(conversion.flags));
        }
        let picture = conversion.watermark.take_picture()?;
        Ok((bytes, format, picture))
    };
    let (bytes, format, picture) = read().map_err(|mut problem| {
        problem.headers.extend(headers);
        problem
    })?;
    Ok(Source {
        caller: caller.clone(),
        quota,
        bytes,
        format,
        picture,
        least_memory: 0,
    })
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
            waiting: None,
        }
    }

    /// Adds the next bytes of the body, or of a form's file, to `picture`; `to_come` is how many
    /// are known to follow.
    pub fn receive(&mut self, bytes: &[u8], to_come: Option<u64>, picture: &mut ByteQueue) {
        match &mut self.form {
            Some(form) => form.reader.read(bytes, to_come, picture),
            None => picture.push(bytes, to_come),
        }
    }

    /// Reads the fields of a form, once it is complete, and begins to fetch the watermark's
    /// picture. The worker reports problems of the form. For a conversion that waits for memory,
    /// the result is whether it was granted.
    pub fn prepare(&mut self, waker: &Waker) -> Preparation {
        if let Some(form) = self.form.take() {
            self.problem = self.read_form(*form).err();
        }
        match &self.waiting {
            Some(waiting) if waiting.pending.is_granted() => Preparation::Granted,
            Some(_) => Preparation::Queued,
            None if self.problem.is_some() => Preparation::Ready,
            None => self.watermark.prepare(waker),
        }
    }

    /// The problem of one that has waited for its memory for too long; `None` if it does not wait
    /// for that.
    pub fn busy(&self) -> Option<Problem> {
        let Waiting { source, pending } = &**self.waiting.as_ref()?;
        let mut problem = Problem::from(pending.busy());
        let headers = rate_limit_headers(source.quota.limits());
        problem.headers.extend(headers);
        Some(problem)
    }

    /// Bytes of memory that it holds.
    pub fn held(&self) -> usize {
        let form = self.form.as_ref().map_or(0, |form| form.reader.held());
        let source = self.waiting.as_ref().map_or(0, |waiting| {
            let picture = waiting.source.picture.as_ref();
            waiting.source.bytes.capacity() + picture.map_or(0, |picture| picture.len())
        });
        form + self.fields.held() + self.watermark.held() + source
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
            accepted,
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
        self.format = picture_type(&file.media_type, accepted, FORM_FLAGS)?;
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

/// Plans the conversion, and runs it once it has the memory of the plan. The header is read again
/// after it has waited, since a plan refers to the bytes that it is made of.
fn convert(
    state: &AppState,
    request: &Request,
    mut conversion: Box<AdmittedConversion>,
    mut source: Source,
    mut pending: Option<PendingReservation>,
    wake: impl Fn() + Clone + Send + 'static,
) -> Result<Progress, Problem> {
    let (bytes, picture) = (&source.bytes, source.picture.as_deref());
    let resources = Resources {
        fonts: &state.fonts,
        threads: state.cpu_budget.total(),
        cpu_budget: Some(&state.cpu_budget),
    };
    let opened = image::open(bytes, source.format, &state.limits).map_err(|error| match error {
        DecodeError::WrongFormat {
            declared,
            found: Some(found),
        } if conversion.flags == FORM_FLAGS => wrong_format_in_form(declared, found),
        error => ConversionError::from(error).into(),
    })?;
    let plan = Plan::new(&opened, &conversion.params, picture, resources)?;
    let most = state.settings.max_enlarged;
    if let Some((width, height)) = plan.laborious_enlargement()
        && u64::from(width) * u64::from(height) > most
    {
        return Err(too_laborious((width, height), most));
    }
    let mark = picture.map_or(0, <[u8]>::len) as u64;
    let mut need = Need {
        bytes: source.least_memory.max(plan.memory() + mark),
        is_small: plan.is_small(),
        seconds: plan.seconds(),
    };
    let account = conversion.account.0;
    // The time that the request has waited for a worker counts too.
    let until = request.queued_since + state.settings.queue_time;
    let (converted, mut reservation, started) = loop {
        let turn = match pending.take() {
            Some(pending) => pending,
            None => state.memory.join(account, need, until, wake.clone())?,
        };
        let reservation = match turn.take() {
            Ok(reservation) => RefCell::new(reservation),
            Err(pending) => {
                source.least_memory = need.bytes;
                conversion.waiting = Some(Box::new(Waiting { source, pending }));
                return Ok(Progress::Waits(conversion));
            }
        };
        let denied = Cell::new(None);
        let may_hold = |bytes: u64| {
            let grown = reservation.borrow_mut().grow_to(bytes + mark);
            denied.set(grown.err());
            grown.is_ok()
        };
        let started = Instant::now();
        let deadline = started + state.settings.conversion_timeout;
        let own_core = state.cpu_budget.occupy_for(account, need.is_small);
        let is_unwanted = || request.cancel.is_cancelled() || Instant::now() >= deadline;
        let goes_on_when_it_is_its_turn = || {
            own_core.give_way(&is_unwanted);
            is_unwanted()
        };
        let converted = plan.run_within(&Cancel::when(&goes_on_when_it_is_its_turn), &may_hold);
        let mut reservation = reservation.into_inner();
        // A conversion that was stopped is charged as well.
        reservation.charge(own_core.busy().as_secs_f64());
        match converted {
            Err(ConversionError::Cancelled) if request.cancel.is_cancelled() => {
                return Err(Problem::client_gone());
            }
            // It waits with nothing reserved: two that each waited for the other's memory would
            // wait for ever.
            Err(ConversionError::Memory { needed }) if need.bytes < needed + mark => {
                need.bytes = needed + mark;
            }
            Err(error @ ConversionError::GrowthDenied) => {
                return Err(denied.take().map_or_else(|| error.into(), Problem::from));
            }
            converted => break (converted?, reservation, started),
        }
    };
    // The next conversion does not wait for the disk.
    let Source {
        caller,
        bytes,
        format,
        ..
    } = source;
    let original_bytes = bytes.len() as u64;
    let sent = Sent::choose(converted, bytes, format);
    reservation.finish(sent.body.len() as u64);

    let entry = usage_entry(
        (state.store.now(), caller.token, request.id),
        &conversion.params,
        format,
        original_bytes,
        &sent,
        started.elapsed(),
    );
    record(state, &caller, &entry)?;
    state.metrics.converted(&caller, format.name(), sent.timing);
    Ok(Progress::Done(Response {
        memory: Some(Box::new(reservation)),
        ..success(sent, &entry, conversion.download.as_deref())
    }))
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

/// The flags of curl that send a picture, for clients that send no usable `Content-Type` or body.
pub const FLAGS: &str = "for example -H 'Content-Type: image/png' --data-binary @picture.png";

/// The flags of curl that send a picture in a form.
const FORM_FLAGS: &str = "for example -F 'file=@picture.png;type=image/png'";

/// The pictures that are converted, by the settings.
#[derive(Clone, Copy, Default)]
pub struct Accepted {
    /// Whether the bytes decide if `Content-Type` names no format.
    may_sniff: bool,
    /// The formats beside those of the specification.
    formats: AcceptedFormats,
}

impl Accepted {
    fn by(settings: &Settings) -> Accepted {
        Accepted {
            may_sniff: settings.sniff,
            formats: settings.accepts,
        }
    }

    fn has(self, format: Format) -> bool {
        format.is_accepted(self.formats)
    }

    /// The media types that error texts name.
    fn media_types(self) -> String {
        let all = [
            "image/png",
            "image/jpeg",
            "image/jpg",
            "image/gif",
            "image/bmp",
        ];
        self.list(&all, Format::media_type)
    }

    /// The names of formats that error texts list.
    fn names(self) -> String {
        self.list(&["PNG", "JPEG", "GIF", "BMP"], |format| match format {
            Format::Tiff => "TIFF",
            _ => "WebP",
        })
    }

    /// These words, and those of the formats beside the specification's, with "and" before the
    /// last.
    fn list(self, words: &[&str], word: fn(Format) -> &'static str) -> String {
        let more = [Format::Webp, Format::Tiff].into_iter();
        let more = more.filter(|format| self.has(*format)).map(word);
        let words: Vec<&str> = words.iter().copied().chain(more).collect();
        let (last, others) = words.split_last().expect("there are words");
        format!("{} and {last}", others.join(", "))
    }
}

/// The format of a picture whose `Content-Type` is this, without parameters; `None` if it names no
/// format and the bytes decide. `flags` are curl's flags that send a picture.
///
/// # Errors
/// 400, if it names no format, and nothing does.
pub fn picture_type(
    media_type: &str,
    accepted: Accepted,
    flags: &str,
) -> Result<Option<Format>, Problem> {
    let format = Format::from_media_type(media_type);
    if let Some(format) = format.filter(|format| accepted.has(*format)) {
        return Ok(Some(format));
    }
    let says_nothing =
        media_type.is_empty() || media_type.eq_ignore_ascii_case("application/octet-stream");
    if accepted.may_sniff && says_nothing {
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
    let allowed = accepted.media_types();
    let detail = format!("Content-Type is {given}; allowed are {allowed}, {flags}.");
    Err(Problem::new(Kind::ContentTypeUnsupported, detail))
}

/// The format of the bytes by their beginning; PNG for none at all, since the check of an empty
/// body reports that problem.
fn sniffed(bytes: &[u8], accepted: Accepted) -> Result<Format, Problem> {
    if bytes.is_empty() {
        return Ok(Format::Png);
    }
    let format = Format::sniff(bytes).filter(|format| accepted.has(*format));
    format.ok_or_else(|| {
        let names = accepted.names();
        let detail = format!("The body begins like none of {names}.");
        Problem::new(Kind::WrongFormat, detail)
    })
}

fn too_laborious((width, height): (u32, u32), most: u64) -> Problem {
    let pixels = u64::from(width) * u64::from(height);
    let detail = format!(
        "The picture would be enlarged to {width} x {height} pixels, {pixels} in all; with target, max_bytes \
         or effort=max an enlarged picture may have at most {most}. Ask for a smaller size, or leave these away."
    );
    Problem::new(Kind::TooManyPixels, detail)
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
    (time, token, request): (SystemTime, TokenNumber, RequestId),
    params: &Params,
    format: Format,
    input_bytes: u64,
    sent: &Sent,
    spent: Duration,
) -> UsageEntry {
    UsageEntry {
        time,
        token,
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
        request,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

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
            let problem = picture_type(request.media_type(), Accepted::default(), FLAGS)
                .expect_err("no picture type");
            assert_eq!(problem.kind, Kind::ContentTypeMissing);
            let flag = "-H 'Content-Type: image/png' --data-binary @picture.png";
            assert!(problem.detail.contains(flag), "{}", problem.detail);
        }
    }
}
