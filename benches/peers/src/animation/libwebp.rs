//! libwebp's encoder and decoder of animations, through their C interface.
#![allow(unsafe_code)]

use std::ffi::{CStr, c_int};
use std::mem::MaybeUninit;

use libwebp_sys as sys;

/// One of the three ways of `gif2webp`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// Without loss: its default.
    Lossless,
    /// `-mixed`: each frame both ways, of which the smaller one is kept.
    Mixed,
    /// `-lossy`.
    Lossy,
}

/// An animation in the making, with the settings of `gif2webp`: method 4, one thread, and key
/// frames as it asks for them.
pub struct Encoder {
    handle: *mut sys::WebPAnimEncoder,
    config: sys::WebPConfig,
    size: (u32, u32),
    now: c_int,
}

impl Encoder {
    /// `loops` of 0 are for ever.
    ///
    /// # Errors
    /// When libwebp refuses.
    pub fn new(way: Way, size: (u32, u32), loops: u32, quality: u8) -> Result<Encoder, String> {
        const ABI: c_int = sys::WEBP_MUX_ABI_VERSION as c_int;
        let mut config = sys::WebPConfig::new().map_err(|()| "another version of libwebp")?;
        config.lossless = c_int::from(way == Way::Lossless);
        config.quality = f32::from(quality);
        let mut options = MaybeUninit::<sys::WebPAnimEncoderOptions>::uninit();
        // SAFETY: the first call initialises what the second one reads; both are told the version
        // of their header.
        let encoder = unsafe {
            if sys::WebPAnimEncoderOptionsInitInternal(options.as_mut_ptr(), ABI) == 0 {
                return Err("another version of libwebp".to_owned());
            }
            let mut options = options.assume_init();
            options.anim_params.loop_count = loops as c_int;
            options.allow_mixed = c_int::from(way == Way::Mixed);
            (options.kmin, options.kmax) = match way {
                Way::Lossless => (9, 17),
                Way::Mixed | Way::Lossy => (3, 5),
            };
            sys::WebPAnimEncoderNewInternal(
                size.0 as c_int,
                size.1 as c_int,
                &raw const options,
                ABI,
            )
        };
        if encoder.is_null() {
            return Err("libwebp makes no encoder of animations".to_owned());
        }
        Ok(Encoder {
            handle: encoder,
            config,
            size,
            now: 0,
        })
    }

    /// Shows RGBA for so many milliseconds.
    ///
    /// # Errors
    /// libwebp's own words.
    pub fn add(&mut self, rgba: &[u8], milliseconds: u32) -> Result<(), String> {
        let (width, height) = self.size;
        assert_eq!(rgba.len(), width as usize * height as usize * 4, "RGBA");
        let mut picture = sys::WebPPicture::new().map_err(|()| "another version of libwebp")?;
        picture.width = width as c_int;
        picture.height = height as c_int;
        picture.use_argb = 1;
        // SAFETY: `rgba` holds height rows of 4 * width bytes; the picture is freed once the
        // encoder has copied it.
        let is_added = unsafe {
            let is_added =
                sys::WebPPictureImportRGBA(&raw mut picture, rgba.as_ptr(), 4 * width as c_int)
                    != 0
                    && sys::WebPAnimEncoderAdd(
                        self.handle,
                        &raw mut picture,
                        self.now,
                        &raw const self.config,
                    ) != 0;
            sys::WebPPictureFree(&raw mut picture);
            is_added
        };
        self.now += milliseconds as c_int;
        if is_added { Ok(()) } else { Err(self.error()) }
    }

    /// The file.
    ///
    /// # Errors
    /// libwebp's own words.
    pub fn finish(self) -> Result<Vec<u8>, String> {
        let mut data = sys::WebPData::default();
        // SAFETY: no picture marks the end, as the header says; `data` is libwebp's until it is
        // freed.
        unsafe {
            let end = sys::WebPAnimEncoderAdd(
                self.handle,
                std::ptr::null_mut(),
                self.now,
                std::ptr::null(),
            );
            if end == 0 || sys::WebPAnimEncoderAssemble(self.handle, &raw mut data) == 0 {
                return Err(self.error());
            }
            let file = std::slice::from_raw_parts(data.bytes, data.size).to_vec();
            sys::WebPDataClear(&mut data);
            Ok(file)
        }
    }

    fn error(&self) -> String {
        // SAFETY: libwebp gives a string that lives as long as the encoder.
        let text = unsafe { CStr::from_ptr(sys::WebPAnimEncoderGetError(self.handle)) };
        format!("libwebp: {}", text.to_string_lossy())
    }
}

impl Drop for Encoder {
    fn drop(&mut self) {
        // SAFETY: it was made by libwebp, and nobody has it any more.
        unsafe { sys::WebPAnimEncoderDelete(self.handle) }
    }
}

/// What stands in a file's header.
pub struct Info {
    /// Width and height in pixels.
    pub size: (u32, u32),
    /// How often it is played, 0 for ever.
    pub loops: u32,
}

/// Gives RGBA of each canvas to `show`, with the milliseconds from the beginning to its end.
///
/// # Errors
/// When libwebp refuses the file.
pub fn decode(file: &[u8], mut show: impl FnMut(&[u8], u32)) -> Result<Info, String> {
    const REFUSED: &str = "libwebp cannot decode it";
    let data = sys::WebPData {
        bytes: file.as_ptr(),
        size: file.len(),
    };
    let mut info = sys::WebPAnimInfo::default();
    // SAFETY: the decoder reads `file` while it lives; canvases are width * height * 4 bytes of its
    // own, by default RGBA.
    unsafe {
        let decoder = sys::WebPAnimDecoderNew(&raw const data, std::ptr::null());
        if decoder.is_null() || sys::WebPAnimDecoderGetInfo(decoder, &raw mut info) == 0 {
            return Err(REFUSED.to_owned());
        }
        let bytes = info.canvas_width as usize * info.canvas_height as usize * 4;
        let mut is_good = true;
        while is_good && sys::WebPAnimDecoderHasMoreFrames(decoder) != 0 {
            let (mut canvas, mut until) = (std::ptr::null_mut(), 0);
            is_good = sys::WebPAnimDecoderGetNext(decoder, &raw mut canvas, &raw mut until) != 0;
            if is_good {
                show(std::slice::from_raw_parts(canvas, bytes), until as u32);
            }
        }
        sys::WebPAnimDecoderDelete(decoder);
        if !is_good {
            return Err(REFUSED.to_owned());
        }
    }
    Ok(Info {
        size: (info.canvas_width, info.canvas_height),
        loops: info.loop_count,
    })
}
