//! towebp's conversions as WebAssembly: plain functions over numbers and buffers, for the
//! JavaScript in `wasm/npm/`, which is the only caller.
//!
//! A call is: [`reserve`] each input and write its bytes there, call [`convert`] or [`encode`],
//! read [`output`] and [`notes`], and [`release`] all of them. The bindings are written by hand:
//! ten functions, where a generator of bindings would bring more text to read than they have, and
//! bytes of its own.
//!
//! One picture is worked on by one thread. Threads of WebAssembly share their memory, and the
//! standard library that stable Rust ships is not built for that: rust-lld rejects it ("it was not
//! compiled with 'atomics' or 'bulk-memory' features"), and building it anew takes a nightly
//! compiler. `wasm-opt -O3` took 8 % of the raw bytes and 2.6 % of the compressed ones, and is left
//! out, since it would be a program to download.

mod buffers;
#[cfg(feature = "convert")]
mod conversion;
mod problem;

use buffers::{Input, with_inputs, with_result};
use problem::Problem;
use towebp_encoder::{Cancel, ColorType, Effort, EncodeError, Encoder, Mode, Picture};

/// What a call makes: the file, and notes on it in lines.
struct Made {
    file: Vec<u8>,
    notes: String,
}

#[cfg(target_family = "wasm")]
#[link(wasm_import_module = "host")]
#[allow(
    unsafe_code,
    reason = "JavaScript promises that the function has this signature"
)]
unsafe extern "C" {
    /// Tells how long the work takes in all, by an estimate in milliseconds of a native program,
    /// and asks whether it is still wanted: 0 if it is.
    safe fn checkpoint(expected: f64) -> u32;
}

#[cfg(not(target_family = "wasm"))]
fn checkpoint(_expected: f64) -> u32 {
    0
}

/// Makes room for `length` bytes of an input (see `Input`), and returns where they begin; 0 if
/// there is not as much memory, or no such input.
#[unsafe(no_mangle)]
#[allow(unsafe_code, reason = "the name is exported, and no other has it")]
pub extern "C" fn reserve(input: u32, length: usize) -> *mut u8 {
    let Some(input) = Input::of(input) else {
        return std::ptr::null_mut();
    };
    with_inputs(|inputs| {
        let bytes = &mut inputs[input as usize];
        *bytes = Vec::new();
        if bytes.try_reserve_exact(length).is_err() {
            return std::ptr::null_mut();
        }
        bytes.resize(length, 0);
        bytes.as_mut_ptr()
    })
}

/// Converts the file in `Input::Picture` by `Input::Parameters`. Bounds are those of
/// [`towebp_pipeline::image::Limits`] and bytes of memory. Returns 1 if it was converted, and 0 if
/// `notes` say why not.
#[cfg(feature = "convert")]
#[unsafe(no_mangle)]
#[allow(unsafe_code, reason = "the name is exported, and no other has it")]
pub extern "C" fn convert(max_pixels: f64, max_memory: f64) -> u32 {
    finish(conversion::convert(max_pixels as u64, max_memory as u64))
}

/// Adds the font in `Input::Font`, a zlib stream, after those that were added before. Returns
/// whether it is one.
#[cfg(feature = "convert")]
#[unsafe(no_mangle)]
#[allow(unsafe_code, reason = "the name is exported, and no other has it")]
pub extern "C" fn add_font() -> u32 {
    u32::from(conversion::add_font())
}

/// Encodes `width` x `height` pixels of RGBA in `Input::Picture`. `mode` is 0 for `auto`, 1 for
/// `lossy`, 2 for `lossless`; `effort` is 0 for `low` to 3 for `max`. Returns 1 if it was encoded,
/// and 0 if `notes` say why not.
#[unsafe(no_mangle)]
#[allow(unsafe_code, reason = "the name is exported, and no other has it")]
pub extern "C" fn encode(
    width: u32,
    height: u32,
    quality: u8,
    mode: u32,
    effort: u32,
    alpha_quality: u8,
    near_lossless: u8,
    exact: u32,
    max_memory: f64,
) -> u32 {
    finish(with_inputs(|inputs| {
        let pixels = &inputs[Input::Picture as usize];
        let picture = Picture::new(width, height, ColorType::Rgba8, pixels)?;
        // 60 nanoseconds a pixel, as the pipeline estimates it.
        let expected = f64::from(width) * f64::from(height) * 60e-6;
        let is_unwanted = || checkpoint(expected) != 0;
        let cancel = Cancel::when(&is_unwanted);
        let encoder = Encoder::lossy(quality)
            .mode(MODES[(mode as usize).min(2)])
            .effort(EFFORTS[(effort as usize).min(3)])
            .alpha_quality(alpha_quality)
            .near_lossless(near_lossless)
            .exact(exact != 0)
            .cancel(&cancel);
        let needed = pixels.len() as u64 + encoder.memory((width, height), ColorType::Rgba8);
        problem::check_memory(needed, max_memory as u64)?;
        let encoded = encoder.encode(&picture)?;
        Ok(Made {
            notes: format!("{width}\n{height}\n{}", encoded.coding.name()),
            file: encoded.file,
        })
    }))
}

/// Where the bytes of the file begin that was made.
#[unsafe(no_mangle)]
#[allow(unsafe_code, reason = "the name is exported, and no other has it")]
pub extern "C" fn output() -> *const u8 {
    with_result(|result| result.file.as_ptr())
}

/// The number of those bytes.
#[unsafe(no_mangle)]
#[allow(unsafe_code, reason = "the name is exported, and no other has it")]
pub extern "C" fn output_length() -> usize {
    with_result(|result| result.file.len())
}

/// Where the notes begin, in UTF-8: of a file its width, height and coding, and what a search
/// found; of a problem its code, and the details. Each stands on a line, details to the end.
#[unsafe(no_mangle)]
#[allow(unsafe_code, reason = "the name is exported, and no other has it")]
pub extern "C" fn notes() -> *const u8 {
    with_result(|result| result.notes.as_ptr())
}

/// The number of bytes of the notes.
#[unsafe(no_mangle)]
#[allow(unsafe_code, reason = "the name is exported, and no other has it")]
pub extern "C" fn notes_length() -> usize {
    with_result(|result| result.notes.len())
}

/// Frees the inputs and the result.
#[unsafe(no_mangle)]
#[allow(unsafe_code, reason = "the name is exported, and no other has it")]
pub extern "C" fn release() {
    with_inputs(|inputs| *inputs = [const { Vec::new() }; Input::COUNT]);
    with_result(|result| *result = Made::NOTHING);
}

const MODES: [Mode; 3] = [Mode::Auto, Mode::Lossy, Mode::Lossless];

const EFFORTS: [Effort; 4] = [Effort::Low, Effort::Medium, Effort::High, Effort::Max];

impl Made {
    const NOTHING: Made = Made {
        file: Vec::new(),
        notes: String::new(),
    };
}

/// Keeps the result for JavaScript, and returns whether there is a file.
fn finish(outcome: Result<Made, Problem>) -> u32 {
    let is_made = outcome.is_ok();
    let made = outcome.unwrap_or_else(|problem| Made {
        notes: format!("{}\n{}", problem.code, problem.detail),
        ..Made::NOTHING
    });
    with_result(|result| *result = made);
    u32::from(is_made)
}

impl From<EncodeError> for Problem {
    fn from(error: EncodeError) -> Problem {
        let code = match error {
            EncodeError::Dimensions => "image_too_wide",
            EncodeError::Cancelled => "cancelled",
            EncodeError::TooLarge => "too_many_pixels",
            _ => "invalid_image",
        };
        Problem::new(code, format!("The picture cannot be encoded: {error}."))
    }
}
