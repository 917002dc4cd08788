//! libwebp through its C interface.
#![allow(unsafe_code)]

use std::ffi::c_int;
use std::mem::MaybeUninit;

use libwebp_sys::{
    WebPConfig, WebPDecodeRGBAInto, WebPDecodeRGBInto, WebPEncode, WebPFree, WebPGetEncoderVersion,
    WebPMemoryWrite, WebPMemoryWriter, WebPMemoryWriterInit, WebPPicture, WebPPictureFree,
    WebPPictureImportRGB, WebPPictureImportRGBA, WebPValidateConfig,
};
use towebp_pipeline::image::Layout;

use crate::picture::Picture;

/// What differs from libwebp's defaults (which are those of `cwebp`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// `cwebp -m`, 0 to 6.
    pub method: u8,
    /// `cwebp -sharpness`, 0 to 7.
    pub sharpness: u8,
}

/// Encodes with one thread. The time of the call is libwebp's plus one copy of the (small) result.
///
/// # Errors
/// libwebp's error code as text.
pub fn encode(picture: &Picture, quality: u8, settings: Settings) -> Result<Vec<u8>, String> {
    let mut config =
        WebPConfig::new().map_err(|()| "WebPConfigInit failed: other version of libwebp")?;
    config.quality = f32::from(quality);
    config.method = c_int::from(settings.method);
    config.filter_sharpness = c_int::from(settings.sharpness);
    // SAFETY: `pixels` holds height rows of 3 * width bytes.
    unsafe {
        run(&config, picture.width, picture.height, |input| {
            WebPPictureImportRGB(input, picture.pixels.as_ptr(), 3 * picture.width as c_int)
        })
    }
}

/// Encodes RGBA without loss by `method`, 0 to 6, with what else `cwebp -lossless` has by default.
///
/// # Errors
/// libwebp's error code as text.
pub fn encode_lossless(
    rgba: &[u8],
    (width, height): (u32, u32),
    method: u8,
) -> Result<Vec<u8>, String> {
    let mut config =
        WebPConfig::new().map_err(|()| "WebPConfigInit failed: other version of libwebp")?;
    config.lossless = 1;
    config.quality = 75.0;
    config.method = c_int::from(method);
    assert_eq!(rgba.len(), width as usize * height as usize * 4, "RGBA");
    // SAFETY: `rgba` holds height rows of 4 * width bytes.
    unsafe {
        run(&config, width, height, |input| {
            (*input).use_argb = 1;
            WebPPictureImportRGBA(input, rgba.as_ptr(), 4 * width as c_int)
        })
    }
}

/// Encodes what `import` puts into a picture of that size; it gives 0 if it fails.
///
/// # Safety
/// `import` must be sound with any picture that libwebp initialised and that has its width and
/// height.
unsafe fn run(
    config: &WebPConfig,
    width: u32,
    height: u32,
    import: impl FnOnce(*mut WebPPicture) -> c_int,
) -> Result<Vec<u8>, String> {
    // SAFETY: the pointers are to live values of the types that libwebp's header names, initialised
    // by its own init functions; the writer outlives the picture that points to it.
    unsafe {
        if WebPValidateConfig(config) == 0 {
            return Err(format!(
                "libwebp refuses method {} at quality {}",
                config.method, config.quality
            ));
        }
        let mut writer = MaybeUninit::<WebPMemoryWriter>::uninit();
        WebPMemoryWriterInit(writer.as_mut_ptr());
        let mut writer = writer.assume_init();
        let mut input =
            WebPPicture::new().map_err(|()| "WebPPictureInit failed: other version of libwebp")?;
        input.width = width as c_int;
        input.height = height as c_int;
        input.writer = Some(WebPMemoryWrite);
        input.custom_ptr = (&raw mut writer).cast();
        let encoded = import(&raw mut input) != 0 && WebPEncode(config, &raw mut input) != 0;
        let error = input.error_code;
        WebPPictureFree(&raw mut input);
        let bytes = if encoded {
            std::slice::from_raw_parts(writer.mem, writer.size).to_vec()
        } else {
            Vec::new()
        };
        WebPFree(writer.mem.cast());
        if encoded {
            Ok(bytes)
        } else {
            Err(format!("libwebp: {error:?}"))
        }
    }
}

/// What libwebp shows of a lossy `file` of `original`.
///
/// # Errors
/// When libwebp refuses the file, or it has another size.
pub fn decode_picture(file: &[u8], original: &Picture) -> Result<Picture, String> {
    let (width, height) = (original.width, original.height);
    Ok(Picture {
        width,
        height,
        pixels: decode(file, (width, height), Layout::Rgb)?,
    })
}

/// Decodes to samples of this layout, with libwebp's own ("fancy") chroma upsampling.
///
/// # Errors
/// When libwebp refuses the file, or it is not `width` x `height`.
pub fn decode(file: &[u8], (width, height): (u32, u32), layout: Layout) -> Result<Vec<u8>, String> {
    let decode_into = match layout {
        Layout::Rgb => WebPDecodeRGBInto,
        Layout::Rgba => WebPDecodeRGBAInto,
    };
    let stride = layout.channels() * width as usize;
    let mut samples = vec![0; stride * height as usize];
    // SAFETY: reads `file.len()` bytes, writes at most `samples.len()` bytes; libwebp checks the
    // size against the file.
    let done = unsafe {
        decode_into(
            file.as_ptr(),
            file.len(),
            samples.as_mut_ptr(),
            samples.len(),
            stride as c_int,
        )
    };
    if done.is_null() {
        return Err(format!("libwebp cannot decode it as {width}x{height}"));
    }
    Ok(samples)
}

/// For example `1.6.0`.
pub fn version() -> String {
    // SAFETY: takes nothing, returns a number: 8 bits each of major, minor, revision.
    let version = unsafe { WebPGetEncoderVersion() };
    format!(
        "{}.{}.{}",
        version >> 16,
        version >> 8 & 0xff,
        version & 0xff
    )
}

/// Which of SSE2, SSE4.1 and AVX2 libwebp finds on this CPU. That it was compiled with them is the
/// features' doing in `Cargo.toml`.
pub fn simd() -> String {
    unsafe extern "C" {
        // src/dsp/cpu.h: `typedef int (*VP8CPUInfo)(CPUFeature feature); extern VP8CPUInfo
        // VP8GetCPUInfo;`
        static VP8GetCPUInfo: Option<unsafe extern "C" fn(c_int) -> c_int>;
    }
    // SAFETY: a constant function pointer that asks cpuid.
    let has = |feature| unsafe { VP8GetCPUInfo.is_some_and(|ask| ask(feature) != 0) };
    let found: Vec<&str> = [(0, "SSE2"), (3, "SSE4.1"), (5, "AVX2")]
        .into_iter()
        .filter(|(f, _)| has(*f))
        .map(|(_, name)| name)
        .collect();
    if found.is_empty() {
        "no SIMD".to_owned()
    } else {
        found.join(" ")
    }
}
